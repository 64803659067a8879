//! Giving back: `UNLOCK`, `DOWNGRADE` and the end of a wait on request.

use super::Local;
use super::election::no_candidate;
use super::request::WantedGate;
use crate::command::{Answer, Settled, WaitEnd};
use crate::error::{Refusal, Word};
use crate::event::{Event, Turn, Vacancy};
use crate::fence::Fence;
use crate::gate::{Company, GateKey, HoldKey, Mode, Rule};
use crate::name::{bare_name, called};
use crate::session::{SessionId, SessionKey};
use crate::wait::Ticket;

impl Local {
    pub(super) fn unlock(
        &mut self,
        session: SessionId,
        gate: &str,
        fence: Option<Fence>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        let (g, h) = self.hold(s, gate)?;
        let held = self.holds[h].fence;
        if let Some(fence) = fence
            && fence != held
        {
            return Err(other_fence(gate, held, fence));
        }
        self.vacated(h, Vacancy::Resigned, out);
        self.leave(h, out);
        self.counters.releases += 1;
        self.advance(now, g, out);
        Ok(Answer::Done)
    }

    pub(super) fn downgrade(
        &mut self,
        session: SessionId,
        gate: &str,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        let (g, h) = self.hold(s, gate)?;
        let standing = &self.gates[g];
        let rule = standing.definition.rule;
        if !(rule == Rule::Shared || standing.implicit() && rule != Rule::Election) {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "gate {gate} is {}; only a SHARED gate has readers",
                    standing.definition.rule.word()
                ),
            ));
        }
        if self.holds[h].mode == Mode::Shared {
            return Ok(Answer::Downgraded(self.holds[h].fence));
        }
        // A reader's fence is a new grant. Until the last claim is heard, a holder from before the crash could get it, and
        // drive out the grant that came after its own.
        let shard = standing.shard;
        if self.awaited.shuts(shard) {
            let why = self.why_shut(gate, shard);
            return Err(Refusal::new(
                Word::Unavailable,
                format!("{why}; downgrade it once that is settled"),
            ));
        }
        let shard = self.gates[g].shard;
        if !self.fences.suffices(shard, 1) {
            return Err(self.not_granting(&WantedGate::Found(g)));
        }
        // The readers that join conflict with the writer that this holder was, so their fence is above its old one. It is
        // inside with them, so it gets theirs.
        let fence = self.next_fence(shard, out);
        let (gate, hold) = (&mut self.gates[g], &mut self.holds[h]);
        let writer = std::mem::replace(&mut hold.fence, fence);
        hold.mode = Mode::Shared;
        gate.exclusive = false;
        gate.company = Company {
            fence: Some(fence),
            units: 1,
        };
        if self.observed {
            let (session, name) = (self.sessions[s].id, gate.name.clone());
            out.push(Event::Left {
                session,
                gate: name.clone(),
                fence: writer,
            });
            out.push(Event::Entered {
                session,
                gate: name,
                mode: Mode::Shared,
                class: 0,
                fence,
                turn: Turn::Kept,
                ticket: None,
                together: 1,
            });
        }
        self.advance(now, g, out);
        Ok(Answer::Downgraded(fence))
    }

    pub(super) fn cancel(
        &mut self,
        session: SessionId,
        ticket: Ticket,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        if self.sessions[s].takes.contains(&ticket) {
            self.end_taker(ticket, WaitEnd::Cancelled, out);
            return Ok(Answer::Done);
        }
        let mut waits = self.sessions[s].waits.iter();
        let Some(&w) = waits.find(|w| self.waits[**w].ticket == ticket) else {
            return Err(Refusal::new(
                Word::BadArg,
                format!("session {} has no wait {ticket}", self.sessions[s].id),
            ));
        };
        self.end_wait(now, w, Settled::Ended(WaitEnd::Cancelled), out);
        Ok(Answer::Done)
    }

    fn hold(&self, s: SessionKey, gate: &str) -> Result<(GateKey, HoldKey), Refusal> {
        if let Some(&g) = self.names.get(gate)
            && let Some(h) = self.held(g, s)
        {
            return Ok((g, h));
        }
        Err(not_held(self.sessions[s].id, gate))
    }
}

/// The refusal of a fence other than the one with which a gate is held.
pub(crate) fn other_fence(gate: &str, held: Fence, believed: Fence) -> Refusal {
    let what = called(gate);
    Refusal::new(
        Word::Stale,
        format!("{what} is held with fence {held}, not with {believed}"),
    )
}

/// The refusal of what a session does not hold.
pub(crate) fn not_held(session: SessionId, gate: &str) -> Refusal {
    if bare_name(gate) != gate {
        return no_candidate(session, gate);
    }
    Refusal::new(
        Word::NotHeld,
        format!(
            "session {session} does not hold gate {gate:?}; it never did, gave it back or lost it"
        ),
    )
}
