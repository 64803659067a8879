//! How sessions come and go. An implicit session begins and ends here; an opened one only follows the log.

use rustc_hash::FxHashSet;

use super::Local;
use crate::command::{Answer, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::event::{Event, Vacancy};
use crate::gate::GateKey;
use crate::session::{Session, SessionId, SessionKey, State};
use crate::timer::Target;

impl Local {
    /// Begins an implicit session.
    pub(super) fn connect(&mut self, id: SessionId) -> Result<Answer, Refusal> {
        if !id.is_implicit() || self.session_ids.contains_key(&id) {
            return Err(Refusal::new(
                Word::BadArg,
                format!("{id} is no new implicit session"),
            ));
        }
        if self.sessions.len() >= self.limits.sessions {
            let most = self.limits.sessions;
            return Err(Refusal::new(
                Word::Limit,
                format!("{most} sessions exist, which is the limit sessions"),
            ));
        }
        self.add_session(self.now, id, 0, None, State::Connected);
        Ok(Answer::Done)
    }

    /// The connection of a session is gone.
    pub(super) fn disconnect(
        &mut self,
        id: SessionId,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let s = self.session(id)?;
        if id.is_implicit() {
            self.end_session(self.now, s, out);
            return Ok(Answer::Done);
        }
        if self.sessions[s].state == State::Connected {
            self.sessions[s].state = State::Disconnected;
            if self.sessions[s].blocked > 0 {
                self.sessions[s].hear(self.now, self.absent_ms);
            }
            self.abandon_takes(s, out);
            // Nobody is blocked in a call any more: a client that resumes the session can give things back.
            for w in self.sessions[s].waits.clone() {
                self.set_blocking(w, false);
            }
        }
        Ok(Answer::Done)
    }

    pub(super) fn add_session(
        &mut self,
        now: u64,
        id: SessionId,
        ttl_ms: u64,
        label: Option<&str>,
        state: State,
    ) -> SessionKey {
        let serial = self.next_serial();
        let mut session = Session::new(id, serial, now);
        session.hear(now, self.absent_ms);
        session.ttl_ms = ttl_ms;
        session.label = label.map(Box::from);
        session.state = state;
        let s = self.sessions.insert(session);
        self.session_ids.insert(id, s);
        if !id.is_implicit() {
            self.arm(now.saturating_add(ttl_ms), serial, Target::Session(s));
        }
        s
    }

    /// A session was silent for too long. It no longer waits, but keeps what it holds until its end is logged: after a crash
    /// in between it could still claim that.
    pub(super) fn run_out(&mut self, now: u64, s: SessionKey, out: &mut Vec<Event>) {
        self.sessions[s].state = State::RunOut;
        out.push(Event::RunOut {
            session: self.sessions[s].id,
        });
        self.end_takes(s, out);
        for g in self.withdraw_all(s, out) {
            self.advance(now, g, out);
        }
    }

    /// Ends a session and gives back everything that it held.
    pub(super) fn end_session(&mut self, now: u64, s: SessionKey, out: &mut Vec<Event>) {
        self.end_takes(s, out);
        self.hands_down(s, out);
        let mut gates = self.withdraw_all(s, out);
        let holds: Vec<_> = self.sessions[s]
            .holds
            .of_session(&self.holds)
            .map(|(h, _)| h)
            .collect();
        for h in holds {
            self.vacated(h, Vacancy::Ended, out);
            let hold = self.leave(h, out);
            self.counters.releases += 1;
            gates.push(hold.gate);
        }
        let session = self.sessions.remove(s);
        self.touched -= session.touched.shards().len();
        self.session_ids.remove(&session.id);
        out.push(Event::SessionEnded {
            session: session.id,
        });
        let mut seen = FxHashSet::default();
        gates.retain(|g| seen.insert(*g));
        for g in gates {
            self.advance(now, g, out);
        }
        if session.awaited {
            self.heard_of(now, session.id, &session.touched, out);
        }
    }

    /// Without its caller, a take would get a job that nobody works on.
    fn abandon_takes(&mut self, s: SessionKey, out: &mut Vec<Event>) {
        for ticket in self.sessions[s].takes.clone() {
            self.end_taker(ticket, WaitEnd::Cancelled, out);
        }
    }

    fn end_takes(&mut self, s: SessionKey, out: &mut Vec<Event>) {
        for ticket in self.sessions[s].takes.clone() {
            self.end_taker(ticket, WaitEnd::SessionEnded, out);
        }
    }

    /// Ends all waits of a session. Returns each gate once; the caller lets those behind go on.
    fn withdraw_all(&mut self, s: SessionKey, out: &mut Vec<Event>) -> Vec<GateKey> {
        let mut gates: Vec<GateKey> = Vec::new();
        for w in self.sessions[s].waits.clone() {
            let wait = self.withdraw(w, out);
            gates.extend(wait.legs.iter().map(|leg| leg.gate));
            self.counters.waits_ended += 1;
            self.settle(wait, Settled::Ended(WaitEnd::SessionEnded), out);
        }
        gates
    }
}
