//! Receipts: proof, after a crash, that the node granted what a session claims. A receipt says when the hold was granted and
//! when it ends by itself, by the wall clock of the session's home, and has an HMAC-SHA256 over that, session, gate, mode and
//! fence, under the key in the log. It is made from the node's own record of a hold, never from what a client says, and only
//! for holds that are themselves proven: a lie gets no receipt.

use std::borrow::Cow;

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::hmac;
use testigo_core::pool::Said;
use testigo_core::{
    Answer, Ask, Claim, Command, Fence, HoldView, Mode, ReceiptKey, Refusal, Resumed, SessionId,
    Settled, Ticket,
};

use super::asking::with_misfits;
use super::{House, Seat, fence_reply};
use crate::clock::wall_ms;
use crate::wire::{Reply, Words};

/// Says what is covered, so that nothing else that the key may ever sign can be taken for a receipt.
const DOMAIN: &[u8] = b"testigo receipt 2\0";
/// The same for receipts of earlier versions, which say nothing of time.
const DOMAIN_BEFORE: &[u8] = b"testigo receipt 1\0";
/// The length of the code.
const TAG_BYTES: usize = 32;

/// How far the wall clocks of two nodes may be apart. A hold that is claimed ends this much later than its receipt says.
const CLOCKS_APART_MS: u64 = 60_000;

/// What a resuming session says it holds, with the receipt that it was given, if any.
#[derive(Clone, Debug)]
pub struct Holding<'a> {
    /// The gate's name.
    pub gate: Cow<'a, str>,
    /// The fence of the grant.
    pub fence: Fence,
    /// How it is inside.
    pub ask: Ask<'a>,
    /// The proof.
    pub receipt: Option<&'a str>,
    /// Why, shown to others.
    pub reason: Option<&'a str>,
}

/// A resume.
#[derive(Debug)]
pub(crate) enum Resuming {
    /// It is done.
    Done(Resumed),
    /// The other nodes are asked what the session has. `fits` says which of its receipts match.
    Asked { ticket: Ticket, fits: Vec<bool> },
}

/// Makes and verifies receipts.
#[derive(Debug)]
pub(crate) struct Receipts(hmac::Key);

impl Receipts {
    pub(crate) fn new(key: &ReceiptKey) -> Receipts {
        Receipts(hmac::Key::new(hmac::HMAC_SHA256, key.bytes()))
    }

    fn write(
        &self,
        session: SessionId,
        gate: &str,
        (ask, fence): (Ask<'_>, Fence),
        stay: Stay,
    ) -> String {
        let tag = hmac::sign(&self.0, &covered(session, gate, ask, fence, Some(stay)));
        let mut bytes = stay.bytes().to_vec();
        bytes.extend(tag.as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a receipt says, if it is one. Compares in constant time.
    fn read(&self, session: SessionId, holding: &Holding<'_>, receipt: &str) -> Option<Stay> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(receipt).ok()?;
        let (stay, tag) = match bytes.len() {
            TAG_BYTES => (None, &bytes[..]),
            _ => {
                let (stay, tag) = bytes.split_first_chunk()?;
                (Some(Stay::of(stay)), tag)
            }
        };
        let covered = covered(session, &holding.gate, holding.ask, holding.fence, stay);
        hmac::verify(&self.0, &covered, tag).ok()?;
        Some(stay.unwrap_or(Stay::UNKNOWN))
    }
}

/// When a hold was granted and when it ends by itself, by the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stay {
    since: u64,
    /// `u64::MAX` for never.
    until: u64,
}

impl Stay {
    const BYTES: usize = 16;
    const UNKNOWN: Stay = Stay {
        since: u64::MAX,
        until: u64::MAX,
    };

    fn bytes(self) -> [u8; Stay::BYTES] {
        (u128::from(self.since) << 64 | u128::from(self.until)).to_be_bytes()
    }

    fn of(bytes: &[u8; Stay::BYTES]) -> Stay {
        let both = u128::from_be_bytes(*bytes);
        Stay {
            since: (both >> 64) as u64,
            until: both as u64,
        }
    }

    /// The stay of a hold of this node.
    fn of_hold(hold: &HoldView<'_>, now: u64, wall: u64) -> Stay {
        let by_wall = |at: u64| match at >= now {
            true => wall.saturating_add(at - now),
            false => wall.saturating_sub(now - at),
        };
        Stay {
            since: by_wall(hold.since),
            until: hold.until.map_or(u64::MAX, by_wall),
        }
    }

    /// Since when and until when the hold counts here.
    fn here(self, now: u64, wall: u64) -> (u64, Option<u64>) {
        let since = now.saturating_sub(wall.saturating_sub(self.since));
        let until = (self.until < u64::MAX).then(|| {
            let late = self.until.saturating_add(CLOCKS_APART_MS);
            now.saturating_add(late.saturating_sub(wall))
        });
        (since, until)
    }
}

/// The bytes that a receipt covers: numbers of fixed length, texts after their length. A request without words is the same as
/// one for one permit, so both are covered alike.
fn covered(
    session: SessionId,
    gate: &str,
    ask: Ask<'_>,
    fence: Fence,
    stay: Option<Stay>,
) -> Vec<u8> {
    let mut bytes = match stay {
        Some(_) => DOMAIN.to_vec(),
        None => DOMAIN_BEFORE.to_vec(),
    };
    bytes.extend(stay.into_iter().flat_map(Stay::bytes));
    bytes.extend(session.number().to_be_bytes());
    bytes.extend(fence.0.to_be_bytes());
    let text = |bytes: &mut Vec<u8>, text: &str| {
        bytes.extend((text.len() as u64).to_be_bytes());
        bytes.extend(text.as_bytes());
    };
    text(&mut bytes, gate);
    match ask {
        Ask::Plain | Ask::Permits(1) => bytes.push(0),
        Ask::Shared => bytes.push(1),
        Ask::Permits(count) => {
            bytes.push(2);
            bytes.extend(count.to_be_bytes());
        }
        Ask::Room(room) => {
            bytes.push(3);
            text(&mut bytes, room);
        }
        // What a leader says of itself may change while it leads.
        Ask::Lead { .. } => bytes.push(4),
    }
    bytes
}

/// What a waiting request wants to be told about its grants apart from the fences, and for which gates.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) form: Form,
    pub(crate) gates: Box<[Box<str>]>,
}

/// How a grant is told to a client that wants more than the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `RECEIPT`: with its receipt.
    Receipt,
    /// `GRANT`: also with its end.
    Grant,
}

impl Form {
    /// The form that the next word asks for, if any.
    pub(crate) fn read(words: &mut Words<'_>) -> Option<Form> {
        if words.keyword("RECEIPT") {
            Some(Form::Receipt)
        } else {
            words.keyword("GRANT").then_some(Form::Grant)
        }
    }
}

impl House {
    /// The receipt of a hold; `None` if the session does not hold the gate with this fence, or claimed it without proof.
    pub(crate) fn receipt(&self, session: SessionId, gate: &str, fence: Fence) -> Option<String> {
        let hold = self.hold(session, gate, fence)?;
        let ask = match hold.mode {
            Mode::Exclusive => Ask::Plain,
            Mode::Shared => Ask::Shared,
            Mode::Permits(count) => Ask::Permits(*count),
            Mode::Room(room) => Ask::Room(room),
            Mode::Lead(of) => Ask::Lead {
                rank: of.rank,
                value: &of.value,
            },
        };
        let receipts = self.receipts.as_ref().filter(|_| hold.proven);
        let stay = Stay::of_hold(&hold, self.now, wall_ms());
        receipts.map(|receipts| receipts.write(session, gate, (ask, fence), stay))
    }

    /// The log now has the key of receipts.
    pub(super) fn take_receipt_key(&mut self) {
        self.receipts = self.replicated().receipt_key().map(Receipts::new);
    }

    fn hold(&self, session: SessionId, gate: &str, fence: Fence) -> Option<HoldView<'_>> {
        let hold = self.services.hold_of(session, gate)?;
        (hold.fence == fence).then_some(hold)
    }

    /// The reply to a successful `LOCK` or `LOCKALL`: fences, or more if wanted.
    pub(crate) fn grant_reply(
        &self,
        session: SessionId,
        settled: &Settled,
        wanted: Option<&Wanted>,
    ) -> Reply {
        let reply = |at: usize, fence: Fence| {
            let told = wanted.and_then(|wanted| Some((wanted.form, wanted.gates.get(at)?)));
            match told {
                Some((form, gate)) => self.form_reply(session, gate, fence, form),
                None => fence_reply(fence),
            }
        };
        match settled {
            Settled::Entered(grant) => reply(0, grant.fence),
            Settled::EnteredAll(grants) => {
                let grants = grants.iter().enumerate();
                Reply::Array(grants.map(|(at, grant)| reply(at, grant.fence)).collect())
            }
            Settled::Taken(_) | Settled::Ended(_) => Reply::Null,
        }
    }

    /// A grant in the wanted form.
    pub(crate) fn form_reply(
        &self,
        session: SessionId,
        gate: &str,
        fence: Fence,
        form: Form,
    ) -> Reply {
        let receipt = self.receipt(session, gate, fence);
        let mut told = vec![fence_reply(fence), Reply::optional(receipt, Reply::text)];
        if form == Form::Grant {
            let ends_ms = match self.hold(session, gate, fence) {
                Some(hold) => hold.until.map(|until| self.since_heard(session, until)),
                // The hold has ended.
                None => Some(0),
            };
            told.push(Reply::optional(ends_ms, Reply::number));
        }
        Reply::Array(told)
    }

    /// How long after the last command of a session's connection a time is. A client can relate its own clock only to that
    /// command.
    fn since_heard(&self, session: SessionId, at: u64) -> u64 {
        let client = match self.seat(session) {
            Some(Seat::Client(id)) => self.connections.client(*id),
            _ => None,
        };
        at.saturating_sub(client.map_or(self.now, |client| client.heard))
    }

    /// Notes what a waiting request wants to be told.
    pub(crate) fn want(&mut self, ticket: Ticket, wanted: Option<Wanted>) {
        match wanted {
            Some(wanted) => self.wanted.insert(ticket, wanted),
            None => self.wanted.remove(&ticket),
        };
    }

    /// Resumes a session. A receipt is checked only where the claim would have to be believed; one that does not match is
    /// refused, whatever the claim would be worth without it. If the session says which slots it has, the log hears of them
    /// with its move.
    pub(crate) fn resume(
        &mut self,
        session: SessionId,
        holdings: &[Holding<'_>],
        said: Said,
    ) -> Result<Resuming, Refusal> {
        self.services.number_resume(session, said.serial)?;
        let awaited = match self.services.estate() {
            // Whether a claim must be believed is up to the gate's owner.
            Some(_) => true,
            None => (self.local().session_view(session)).is_some_and(|view| view.awaited),
        };
        // More claims than this are refused as a whole.
        let looked_at = awaited && holdings.len() <= self.services.limits().holds_per_session;
        let (mut claims, mut fits) = (Vec::new(), Vec::new());
        for holding in holdings {
            let receipt = holding.receipt.filter(|_| looked_at);
            let receipts = self.receipts.as_ref();
            let read = receipt.map(|receipt| receipts?.read(session, holding, receipt));
            fits.push(read != Some(None));
            if read == Some(None) {
                continue;
            }
            let stay = read.flatten();
            let here = stay.map(|stay| stay.here(self.now, wall_ms()));
            claims.push(Claim {
                gate: &holding.gate,
                fence: holding.fence,
                ask: holding.ask,
                proven: stay.is_some(),
                since: here.map(|(since, _)| since),
                until: here.and_then(|(_, until)| until),
                reason: holding.reason,
            });
        }
        if self.services.estate().is_some() {
            let ticket = (self.services).resume(self.now, session, &claims, said)?;
            return Ok(Resuming::Asked { ticket, fits });
        }
        let claims = claims.into();
        match self.ask(session, &Command::Resume { claims })? {
            Answer::Resumed(resumed) => Ok(Resuming::Done(with_misfits(resumed, fits))),
            other => unreachable!("a resume was answered {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAY: Stay = Stay {
        since: 1_000,
        until: 5_000,
    };

    fn receipts(byte: u8) -> Receipts {
        Receipts::new(&ReceiptKey::new([byte; ReceiptKey::BYTES]))
    }

    fn holding<'a>(gate: &'a str, fence: u64, ask: Ask<'a>) -> Holding<'a> {
        Holding {
            gate: gate.into(),
            fence: Fence(fence),
            ask,
            receipt: None,
            reason: None,
        }
    }

    #[test]
    fn a_receipt_is_for_one_session_gate_mode_and_fence_and_of_one_key() {
        let all = [
            (1, "a", 5, Ask::Plain),
            (2, "a", 5, Ask::Plain),
            (1, "b", 5, Ask::Plain),
            (1, "a", 6, Ask::Plain),
            (1, "a", 5, Ask::Shared),
            (1, "a", 5, Ask::Permits(2)),
            (1, "a", 5, Ask::Permits(3)),
            (1, "a", 5, Ask::Room("r")),
            (1, "a", 5, Ask::Room("rr")),
            // The same letters, divided in another way.
            (1, "ar", 5, Ask::Room("r")),
            (1, "a\0", 5, Ask::Plain),
            (
                1,
                "a",
                5,
                Ask::Lead {
                    rank: 1,
                    value: b"v",
                },
            ),
        ];
        let own = receipts(1);
        for (session, gate, fence, ask) in all {
            let receipt = own.write(SessionId::opened(session), gate, (ask, Fence(fence)), STAY);
            assert_eq!(receipt.len(), 64);
            let fit = all.iter().filter(|(session, gate, fence, ask)| {
                let holding = holding(gate, *fence, *ask);
                own.read(SessionId::opened(*session), &holding, &receipt) == Some(STAY)
            });
            assert_eq!(fit.count(), 1);
            let holding = holding(gate, fence, ask);
            assert_eq!(
                receipts(2).read(SessionId::opened(session), &holding, &receipt),
                None
            );
        }
    }

    #[test]
    fn a_leader_that_has_changed_its_value_proves_its_term() {
        let lead = |rank, value| Ask::Lead { rank, value };
        let receipt =
            receipts(1).write(SessionId::opened(1), "a", (lead(1, b"old"), Fence(5)), STAY);
        let changed = holding("a", 5, lead(2, b"new"));
        assert!(
            receipts(1)
                .read(SessionId::opened(1), &changed, &receipt)
                .is_some()
        );
    }

    #[test]
    fn one_permit_is_what_a_plain_request_asks_for() {
        let receipt =
            receipts(1).write(SessionId::opened(1), "a", (Ask::Permits(1), Fence(5)), STAY);
        let plain = holding("a", 5, Ask::Plain);
        assert!(
            receipts(1)
                .read(SessionId::opened(1), &plain, &receipt)
                .is_some()
        );
    }

    #[test]
    fn whatever_is_no_receipt_proves_nothing() {
        let own = receipts(1);
        let (session, plain) = (SessionId::opened(1), holding("a", 5, Ask::Plain));
        let receipt = own.write(session, "a", (Ask::Plain, Fence(5)), STAY);
        let cut = &receipt[..60];
        let longer = format!("{receipt}A");
        for wrong in [
            "",
            "-",
            "ä",
            cut,
            &longer,
            &"A".repeat(43),
            &"A".repeat(64),
            // Another time, under the same tag.
            &format!("B{}", &receipt[1..]),
            &"A".repeat(100_000),
        ] {
            assert_eq!(own.read(session, &plain, wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_receipt_of_an_earlier_version_says_nothing_of_time() {
        let (session, holding) = (SessionId::opened(1), holding("a", 5, Ask::Plain));
        let covered = covered(session, "a", Ask::Plain, Fence(5), None);
        let receipt = BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&receipts(1).0, &covered));
        assert_eq!(receipt.len(), 43);
        let stay = receipts(1).read(session, &holding, &receipt);
        assert_eq!(stay, Some(Stay::UNKNOWN));
        assert_eq!(Stay::UNKNOWN.here(100_000, 3_000), (100_000, None));
        assert_eq!(receipts(2).read(session, &holding, &receipt), None);
    }

    #[test]
    fn a_hold_counts_a_minute_longer_than_its_receipt_says() {
        let later = STAY.here(100_000, 3_000);
        assert_eq!(later, (98_000, Some(100_000 + 62_000)));
        // Two minutes later it is over.
        assert_eq!(STAY.here(100_000, 125_000).1, Some(100_000));
        let endless = Stay {
            until: u64::MAX,
            ..STAY
        };
        assert_eq!(endless.here(100_000, 125_000).1, None);
        assert_eq!(Stay::of(&endless.bytes()), endless);
    }
}
