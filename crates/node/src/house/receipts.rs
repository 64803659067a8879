//! Receipts: proof, after a crash, that the node granted what a session claims. A receipt is an HMAC-SHA256 over session,
//! gate, mode and fence, under the key in the log. It is made from the node's own record of a hold, never from what a client
//! says, and only for holds that are themselves proven: a lie gets no receipt.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use ring::hmac;
use testigo_core::pool::Said;
use testigo_core::{
    Answer, Ask, Claim, Command, Fence, HoldView, Mode, ReceiptKey, Refusal, Resumed, SessionId,
    Settled, Ticket,
};

use super::asking::with_misfits;
use super::{House, Seat, fence_reply};
use crate::wire::{Reply, Words};

/// Says what is covered, so that nothing else that the key may ever sign can be taken for a receipt.
const DOMAIN: &[u8] = b"testigo receipt 1\0";

/// What a resuming session says it holds, with the receipt that it was given, if any.
#[derive(Clone, Copy, Debug)]
pub struct Holding<'a> {
    /// The gate's name.
    pub gate: &'a str,
    /// The fence of the grant.
    pub fence: Fence,
    /// How it is inside.
    pub ask: Ask<'a>,
    /// The proof.
    pub receipt: Option<&'a str>,
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

    fn write(&self, session: SessionId, gate: &str, ask: Ask<'_>, fence: Fence) -> String {
        let tag = hmac::sign(&self.0, &covered(session, gate, ask, fence));
        BASE64_URL_SAFE_NO_PAD.encode(tag)
    }

    /// Compares in constant time.
    fn proves(&self, session: SessionId, holding: &Holding<'_>, receipt: &str) -> bool {
        let covered = covered(session, holding.gate, holding.ask, holding.fence);
        let tag = BASE64_URL_SAFE_NO_PAD.decode(receipt);
        tag.is_ok_and(|tag| hmac::verify(&self.0, &covered, &tag).is_ok())
    }
}

/// The bytes that a receipt covers: numbers of fixed length, texts after their length. A request without words is the same as
/// one for one permit, so both are covered alike.
fn covered(session: SessionId, gate: &str, ask: Ask<'_>, fence: Fence) -> Vec<u8> {
    let mut bytes = DOMAIN.to_vec();
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
        receipts.map(|receipts| receipts.write(session, gate, ask, fence))
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
            let proven = receipt.map(|receipt| {
                receipts.is_some_and(|receipts| receipts.proves(session, holding, receipt))
            });
            fits.push(proven != Some(false));
            if proven != Some(false) {
                claims.push(Claim {
                    gate: holding.gate,
                    fence: holding.fence,
                    ask: holding.ask,
                    proven: proven == Some(true),
                });
            }
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

    fn receipts(byte: u8) -> Receipts {
        Receipts::new(&ReceiptKey::new([byte; ReceiptKey::BYTES]))
    }

    fn holding<'a>(gate: &'a str, fence: u64, ask: Ask<'a>) -> Holding<'a> {
        Holding {
            gate,
            fence: Fence(fence),
            ask,
            receipt: None,
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
            let receipt = own.write(SessionId::opened(session), gate, ask, Fence(fence));
            assert_eq!(receipt.len(), 43);
            let fit = all.iter().filter(|(session, gate, fence, ask)| {
                let holding = holding(gate, *fence, *ask);
                own.proves(SessionId::opened(*session), &holding, &receipt)
            });
            assert_eq!(fit.count(), 1);
            let holding = holding(gate, fence, ask);
            assert!(!receipts(2).proves(SessionId::opened(session), &holding, &receipt));
        }
    }

    #[test]
    fn a_leader_that_has_changed_its_value_proves_its_term() {
        let lead = |rank, value| Ask::Lead { rank, value };
        let receipt = receipts(1).write(SessionId::opened(1), "a", lead(1, b"old"), Fence(5));
        let changed = holding("a", 5, lead(2, b"new"));
        assert!(receipts(1).proves(SessionId::opened(1), &changed, &receipt));
    }

    #[test]
    fn one_permit_is_what_a_plain_request_asks_for() {
        let receipt = receipts(1).write(SessionId::opened(1), "a", Ask::Permits(1), Fence(5));
        let plain = holding("a", 5, Ask::Plain);
        assert!(receipts(1).proves(SessionId::opened(1), &plain, &receipt));
    }

    #[test]
    fn whatever_is_no_receipt_proves_nothing() {
        let own = receipts(1);
        let (session, plain) = (SessionId::opened(1), holding("a", 5, Ask::Plain));
        let receipt = own.write(session, "a", Ask::Plain, Fence(5));
        let cut = &receipt[..42];
        let longer = format!("{receipt}A");
        for wrong in [
            "",
            "-",
            "ä",
            cut,
            &longer,
            &"A".repeat(43),
            &"A".repeat(100_000),
        ] {
            assert!(!own.proves(session, &plain, wrong), "{wrong}");
        }
    }
}
