//! `SESSION OPEN|RESUME|CLOSE|INFO|LIST|END`.

use std::sync::Arc;

use testigo_core::pool::{NamedSlot, Said};
use testigo_core::{
    Ask, Change, Command, Fence, Limits, Name, Refusal, SessionId, Word, no_session,
};

use super::lock::{ask, gate_name};
use super::show::session_reply;
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{ActsFor, Answers, Asking, ClientId, Holding, House, Resuming, SeenSessions};
use crate::random;
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, refuse};

/// What a claim to a slot takes in an entry of the log, apart from the names of its pool and itself: a number and two
/// lengths.
const SLOT_CLAIM_BYTES: usize = 16;

impl House {
    pub(super) fn session(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("OPEN") {
            self.session_open(id, words)
        } else if words.keyword("RESUME") {
            self.session_resume(id, words)
        } else if words.keyword("CLOSE") {
            words.end()?;
            self.session_close(id)
        } else if words.keyword("INFO") {
            words.end()?;
            self.session_info(id)
        } else if words.keyword("LIST") {
            words.end()?;
            self.session_list(id)
        } else if words.keyword("END") {
            let session = session_id(&mut words)?;
            words.end()?;
            self.session_end(id, session)
        } else {
            let known = "OPEN, RESUME, CLOSE, INFO, LIST, END";
            Err(unknown_word("SESSION", words.text("a word")?, known))
        }
    }

    /// `SESSION OPEN [TTL ms] [LABEL text]`.
    fn session_open(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let (mut ttl_ms, mut label) = (self.services.limits().ttl_ms_default, None);
        while words.left() > 0 {
            if words.keyword("TTL") {
                ttl_ms = words.number("TTL")?;
            } else if words.keyword("LABEL") {
                label = Some(words.text("LABEL")?.to_owned());
            } else {
                words.end()?;
            }
        }
        self.leave_implicit(id)?;
        let session = self.draw_session()?;
        let user = self.user(id)?.mark().map(str::to_owned);
        let change = Change::OpenSession {
            session,
            ttl_ms,
            label,
            user,
        };
        self.submit(change, Answers::Client(id))?;
        Ok(Answered::Later)
    }

    /// An ID that nobody can guess, because whoever names it may resume the session.
    pub(crate) fn draw_session(&self) -> Result<SessionId, Refusal> {
        let mut bytes = [0; 8];
        random::fill(&mut bytes).map_err(|error| {
            let why = format!("the system gives no random numbers: {error}");
            refuse(Word::Unavailable, why)
        })?;
        Ok(SessionId::opened(u64::from_le_bytes(bytes)))
    }

    /// `SESSION RESUME id [SERIAL n] [HOLDING n (gate fence [SHARED|PERMITS h|ROOM r] | election term LEADER rank value)… [RECEIPTS
    /// (receipt|-)…] [REASONS (reason|-)…]] [SLOTS n (pool slot fence)…]`.
    fn session_resume(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let session = session_id(&mut words)?;
        let serial = match words.keyword("SERIAL") {
            true => Some(words.number("SERIAL")?),
            false => None,
        };
        let mut claims = Vec::new();
        if words.keyword("HOLDING") {
            let count = words.number("the number of claims")?;
            if count > words.left() as u64 / 2 {
                return Err(bad_arg(format!("{count} claims need more words")));
            }
            claims.reserve_exact(count as usize);
            for _ in 0..count {
                let claim = claim(&mut words)?;
                claims.push(claim);
            }
            if words.keyword("RECEIPTS") {
                for claim in &mut claims {
                    let receipt = words.text("a receipt (- for a claim without one)")?;
                    claim.receipt = Some(receipt).filter(|receipt| *receipt != "-");
                }
            }
            if words.keyword("REASONS") {
                for claim in &mut claims {
                    let reason = words.text("a reason (- for a hold without one)")?;
                    claim.reason = Some(reason).filter(|reason| *reason != "-");
                }
            }
        }
        let slots = slot_claims(&mut words)?;
        words.end()?;
        for (pool, _, _) in slots.iter().flatten() {
            self.allow(id, Deed::Use, pool)?;
        }
        for claim in &claims {
            self.allow(id, Deed::Use, &claim.gate)?;
        }
        if self.connections[id].acts_for != ActsFor::Opened(session) {
            self.leave_implicit(id)?;
        }
        // Whatever is wrong with the number, the answer is the same: nobody learns of a session or a connection by guessing.
        let opened = self.replicated().session(session).is_some();
        if !opened || !self.commands(self.user(id)?, session) {
            return Err(no_session(session));
        }
        let said = Said {
            serial,
            slots: slots.clone(),
        };
        match self.resume(session, &claims, said)? {
            Resuming::Done(resumed) => {
                self.take_seat(session, id);
                Ok(Answered::Now(
                    self.resumed_reply(id, session, resumed, slots),
                ))
            }
            Resuming::Asked { ticket, fits } => {
                self.block_on_asking(id, ticket, Asking::Resume { fits, slots });
                Ok(Answered::Later)
            }
        }
    }

    /// A connection without an opened session gives back the slots it took, and its waits for slots end.
    fn end_own_slots(&mut self, id: ClientId) {
        let identity = self.identity(id);
        if identity.is_implicit() {
            self.services.end_slots(identity);
        }
    }

    /// `SESSION CLOSE`. An implicit session gives everything back, too.
    fn session_close(&mut self, id: ClientId) -> Outcome {
        match self.connections[id].acts_for {
            ActsFor::Opened(session) => {
                self.give_back_all(session);
                self.submit(self.end_change(session, true), Answers::Client(id))?;
                return Ok(Answered::Later);
            }
            ActsFor::Implicit(session) => {
                if let Some(client) = self.connections.client_mut(id) {
                    client.acts_for = ActsFor::Nobody;
                }
                self.give_back_all(session);
                self.stand_up(session);
                self.end_own_slots(id);
            }
            ActsFor::Nobody | ActsFor::Guest(_) | ActsFor::Ended(_) => {
                self.end_own_slots(id);
                if let Some(client) = self.connections.client_mut(id) {
                    client.acts_for = ActsFor::Nobody;
                }
            }
        }
        Ok(Answered::Now(Reply::Ok))
    }

    /// `SESSION INFO`: the connection's own session.
    fn session_info(&mut self, id: ClientId) -> Outcome {
        let session = self.session_of(id)?;
        match self.services.session_view(session) {
            Some(view) => {
                let owner = self.owner(session);
                Ok(Answered::Now(session_reply(&view, owner, self.now())))
            }
            None => Err(refuse(Word::Stale, format!("session {session} ended"))),
        }
    }

    /// `SESSION LIST`: the sessions that the user may see.
    fn session_list(&mut self, id: ClientId) -> Outcome {
        let user = Arc::clone(self.user(id)?);
        let mut rows = self.rows_for(id);
        let mut seen = SeenSessions::default();
        self.in_slices(id, move |house, slice| {
            if !seen.look(house, &user, slice) {
                return Ok(None);
            }
            house.check_rows(seen.ids.len() + rows.count(), "sessions")?;
            while slice.has_room() {
                let Some(session) = seen.ids.pop_first() else {
                    return Ok(Some(rows.array()));
                };
                slice.spend(1 + house.local().session_weight(session));
                if let Some(view) = house.session_for(&user, session) {
                    let owner = house.owner(session);
                    rows.push(&session_reply(&view, owner, house.now()));
                }
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }

    /// `SESSION END id`: ends one of the user's sessions, or anybody's as an administrator. A process may end only its own:
    /// ending another's would count as a death of the job in hand.
    fn session_end(&mut self, id: ClientId, session: SessionId) -> Outcome {
        let own = match self.connections[id].acts_for {
            ActsFor::Opened(own)
            | ActsFor::Implicit(own)
            | ActsFor::Guest(own)
            | ActsFor::Ended(own) => Some(own),
            ActsFor::Nobody => None,
        };
        if own != Some(session) {
            self.no_process(id)?;
        }
        self.check_end(id, session)?;
        if session.is_implicit() {
            return self.end_implicit(session);
        }
        self.submit(
            self.end_change(session, own == Some(session)),
            Answers::Client(id),
        )?;
        Ok(Answered::Later)
    }

    fn check_end(&self, id: ClientId, session: SessionId) -> Result<(), Refusal> {
        let user = self.user(id)?;
        match self.commands(user, session) {
            true => Ok(()),
            // A user that may not see it gets the same answer as for a session that does not exist.
            false if !user.may(Deed::Show, "") => Err(match session.is_implicit() {
                true => no_implicit(session),
                false => no_session(session),
            }),
            false => Err(refuse(
                Word::Denied,
                format!(
                    "user {} may not end session {session} of another user; the right * : admin is missing",
                    user.name()
                ),
            )),
        }
    }

    fn end_implicit(&mut self, session: SessionId) -> Outcome {
        if self.seat(session).is_none() {
            return Err(no_implicit(session));
        }
        self.ask(session, &Command::Disconnect)?;
        self.services.end_slots(session);
        Ok(Answered::Now(Reply::Ok))
    }
}

fn no_implicit(session: SessionId) -> Refusal {
    refuse(
        Word::Stale,
        format!("there is no session {session}; SESSION LIST shows them"),
    )
}

/// `SLOTS n (pool slot fence)…`; `None` if the session does not say which it has.
fn slot_claims(words: &mut Words<'_>) -> Result<Option<Vec<NamedSlot>>, Refusal> {
    if !words.keyword("SLOTS") {
        return Ok(None);
    }
    let count = words.number("the number of slots")?;
    if count > words.left() as u64 / 3 {
        return Err(bad_arg(format!("{count} slots need more words")));
    }
    let (mut claims, mut bytes) = (Vec::new(), 0);
    for _ in 0..count {
        let pool = Name::new(words.text("a pool's name")?)?;
        let slot = words.text("a slot")?.to_owned();
        bytes += pool.len() + slot.len() + SLOT_CLAIM_BYTES;
        if bytes > Limits::SLOTS_NAMED_BYTES {
            return Err(refuse(
                Word::Limit,
                format!(
                    "the names of the slots and their pools are more than {} bytes; name fewer, and give back the others",
                    Limits::SLOTS_NAMED_BYTES
                ),
            ));
        }
        claims.push((pool, slot, Fence(words.number("a fence")?)));
    }
    Ok(Some(claims))
}

/// `gate fence [SHARED|PERMITS h|ROOM r]`, or `election term LEADER rank value`.
fn claim<'a>(words: &mut Words<'a>) -> Result<Holding<'a>, Refusal> {
    let mut ahead = *words;
    let name = words.text("a gate's name")?;
    let fence = Fence(words.number("a fence")?);
    let (gate, ask) = match words.keyword("LEADER") {
        true => {
            let rank = words.integer("the rank")?;
            let value = words.next_bytes();
            let value = value.ok_or_else(|| bad_arg("the value is missing; it may be empty"))?;
            let election = String::from(Name::election(name)?);
            (election.into(), Ask::Lead { rank, value })
        }
        false => {
            let gate = gate_name(&mut ahead)?;
            (gate.into(), ask(words)?.unwrap_or_default())
        }
    };
    Ok(Holding {
        gate,
        fence,
        ask,
        receipt: None,
        reason: None,
    })
}

fn session_id(words: &mut Words<'_>) -> Result<SessionId, Refusal> {
    let number = words.number("the session")?;
    SessionId::from_wire(number)
        .ok_or_else(|| bad_arg(format!("{number} is no session; it is above 2^53")))
}
