//! Elections. A leadership is an exclusive hold, a candidacy a wait, and a term a fence, so elections have what gates
//! guarantee: one leader at a time, and terms that only rise. This file has what is special: a candidate may change what it
//! says of itself, and observers are told who leads.

use super::Local;
use crate::command::{Answer, Grant, Lock, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::event::{Event, Vacancy};
use crate::gate::{Candidacy, GateKey, HoldKey, Mode, QueuedLeg, Rank};
use crate::session::{SessionId, SessionKey};
use crate::wait::WaitKey;

impl Local {
    /// A session that leads or is a candidate campaigns again: its rank and value change; its term and its place among equals
    /// do not. `None` if it is neither.
    #[cold]
    pub(super) fn campaign_again(
        &mut self,
        now: u64,
        s: SessionKey,
        lock: &Lock<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Option<Answer>, Refusal> {
        let Some(&g) = self.names.get(lock.gate) else {
            return Ok(None);
        };
        let mode = self.gates[g].definition.mode(lock.gate, true, lock.ask)?;
        if let Some(h) = self.held(g, s) {
            let hold = &mut self.holds[h];
            let fence = hold.fence;
            let before = std::mem::replace(&mut hold.mode, mode.clone());
            if before != mode {
                self.tell_elected(h, true, out);
            }
            let lease_ms = None;
            let grant = Grant { fence, lease_ms };
            return Ok(Some(Answer::Settled(Settled::Entered(grant))));
        }
        let Some(w) = self.candidacy_of(g, s) else {
            return Ok(None);
        };
        let ticket = self.waits[w].ticket;
        let rank = Rank::new(&self.gates[g].definition, &mode, 0, false, ticket.0);
        let leg = &mut self.waits[w].legs[0];
        leg.mode = mode;
        let before = std::mem::replace(&mut leg.rank, rank);
        let (gate, queued) = (
            &mut self.gates[g],
            QueuedLeg {
                rank,
                wait: w,
                leg: 0,
                overtaken: 0,
                set: false,
            },
        );
        gate.queue.remove(before);
        gate.queue.insert(queued, gate.definition.overtakes);
        if lock.wait_ms == Some(0) {
            let ended = Settled::Ended(WaitEnd::TimedOut);
            return Ok(Some(Answer::Settled(ended)));
        }
        if !lock.asynchronous {
            self.block_again(now, s, ticket)?;
        }
        Ok(Some(Answer::Waiting(ticket)))
    }

    /// `ELECT RESIGN`: as the leader or as a candidate.
    pub(super) fn resign(
        &mut self,
        session: SessionId,
        election: &str,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        let Some(&g) = self.names.get(election) else {
            return Err(no_candidate(session, election));
        };
        if self.held(g, s).is_some() {
            return self.unlock(session, election, None, out);
        }
        let Some(w) = self.candidacy_of(g, s) else {
            return Err(no_candidate(session, election));
        };
        self.end_wait(now, w, Settled::Ended(WaitEnd::Cancelled), out);
        Ok(Answer::Done)
    }

    fn candidacy_of(&self, g: GateKey, s: SessionKey) -> Option<WaitKey> {
        let mut waits = self.sessions[s].waits.iter();
        let found = waits.find(|w| self.waits[**w].legs.iter().any(|leg| leg.gate == g));
        found.copied()
    }

    /// Tells observers that a candidate now leads, or that the leader has changed its value.
    #[cold]
    pub(super) fn tell_elected(&self, h: HoldKey, again: bool, out: &mut Vec<Event>) {
        let hold = &self.holds[h];
        if let Mode::Lead(candidacy) = &hold.mode {
            out.push(Event::Elected {
                session: self.sessions[hold.session].id,
                election: self.gates[hold.gate].name.clone(),
                term: hold.fence,
                candidacy: Candidacy::clone(candidacy),
                again,
            });
        }
    }

    /// A hold is about to end. If it is a leadership, observers are told.
    #[inline]
    pub(super) fn vacated(&self, h: HoldKey, why: Vacancy, out: &mut Vec<Event>) {
        if let Mode::Lead(_) = self.holds[h].mode {
            self.tell_vacant(h, why, out);
        }
    }

    #[cold]
    fn tell_vacant(&self, h: HoldKey, why: Vacancy, out: &mut Vec<Event>) {
        let hold = &self.holds[h];
        if let Some(candidacy) = hold.mode.candidacy() {
            out.push(Event::Vacant {
                session: self.sessions[hold.session].id,
                election: self.gates[hold.gate].name.clone(),
                term: hold.fence,
                candidacy: candidacy.clone(),
                since: hold.since,
                why,
            });
        }
    }
}

/// The refusal of a session that resigns from nothing.
pub(crate) fn no_candidate(session: SessionId, election: &str) -> Refusal {
    Refusal::new(
        Word::NotHeld,
        format!(
            "session {session} neither leads nor is a candidate in {election}; it never was, resigned or lost it"
        ),
    )
}
