//! `LOCK`: asking to enter one gate, and what all requests to enter have in common.

use super::Local;
use super::enter::{Entrance, Known};
use super::request::{Terms, Wanted, WantedGate};
use crate::command::{Answer, Lock, Settled, WaitEnd};
use crate::error::Refusal;
use crate::event::{Event, Turn};
use crate::gate::{Ask, GateKey};
use crate::session::{Memo, SessionId, SessionKey};
use crate::timer::Target;
use crate::wait::{Ticket, WaitKey};

impl Local {
    pub(super) fn lock(
        &mut self,
        session: SessionId,
        lock: &Lock<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.acting(session)?, self.now);
        let terms = Terms {
            set: false,
            needs_ms: lock.needs_ms,
            wait_ms: lock.wait_ms,
            reason: lock.reason,
            id: lock.id,
            asynchronous: lock.asynchronous,
        };
        if let Some(answer) = self.answered_before(now, s, &terms)? {
            return Ok(answer);
        }
        if matches!(lock.ask, Ask::Lead { .. })
            && let Some(answer) = self.campaign_again(now, s, lock, out)?
        {
            return Ok(answer);
        }
        self.check_terms(s, 1, &terms)?;
        let wanted = self.find_gate(s, lock.gate, lock.ask, lock.class, &terms)?;
        let free = match &wanted.gate {
            WantedGate::Found(g) => {
                self.gates[*g].queue.is_empty() && self.fits(now, *g, &wanted.mode, lock.needs_ms)
            }
            WantedGate::Implicit(..) => true,
        };
        if !(free && self.granting_at(&wanted.gate)) {
            return self.ask_for(now, s, vec![wanted], terms, out);
        }
        // Nobody waits and the gate has room, so no place in the queue is needed.
        let gate = self.make_gate(wanted.gate);
        let turn = self.right_of(gate);
        let entrance = Entrance {
            session: s,
            gate,
            mode: wanted.mode,
            class: wanted.class,
            reason: lock.reason.map(Box::from),
            turn,
            ticket: None,
            asked: Some(now),
            together: 1,
            known: Known::default(),
        };
        let settled = Settled::Entered(self.take(now, entrance, None, out));
        if lock.id.is_some() {
            self.remember(s, lock.id, Memo::Settled(settled.clone()));
        }
        Ok(Answer::Settled(settled))
    }

    /// Enters if it is the request's turn, waits if it may, or says why not. The request has been checked.
    pub(super) fn ask_for(
        &mut self,
        now: u64,
        s: SessionKey,
        wanted: Vec<Wanted>,
        terms: Terms<'_>,
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let trying = terms.wait_ms == Some(0);
        let gates = wanted.iter().map(|wanted| &wanted.gate);
        let shut = gates.clone().find(|gate| !self.granting_at(gate));
        let granting = shut.is_none();
        if let Some(shut) = shut.filter(|_| trying) {
            return Err(self.not_granting(shut));
        }
        if !trying {
            self.check_queues(s, &wanted)?;
        }
        let w = self.enqueue(now, s, wanted, &terms);
        let turn = match granting && self.turn_everywhere(now, w) {
            true => None,
            false => match self.deadlock(now, w) {
                Ok(Some(knot)) if granting && knot.only_dependents_ahead(self, now, w) => {
                    Some(Turn::Dependents)
                }
                _ if trying => return Ok(self.give_up(w, s, &terms)),
                Ok(None) => return Ok(self.wait(now, w, &terms, out)),
                Err(refusal) => {
                    self.undo(w);
                    return Err(refusal);
                }
                Ok(Some(knot)) => {
                    let refusal = Refusal::deadlock(knot.cycle(self, now, s));
                    self.counters.deadlocks += 1;
                    self.undo(w);
                    return Err(refusal);
                }
            },
        };
        let gates: Vec<GateKey> = self.waits[w].legs.iter().map(|leg| leg.gate).collect();
        let (_, settled) = self.enter(now, w, turn, out);
        // The leader of a new room opens its door to others of the room.
        for g in gates {
            self.advance(now, g, out);
        }
        self.remember(s, terms.id, Memo::Settled(settled.clone()));
        Ok(Answer::Settled(settled))
    }

    fn wait(&mut self, now: u64, w: WaitKey, terms: &Terms<'_>, out: &mut Vec<Event>) -> Answer {
        let wait = &self.waits[w];
        let (ticket, deadline, s) = (wait.ticket, wait.deadline, wait.session);
        let gates: Vec<GateKey> = wait.legs.iter().map(|leg| leg.gate).collect();
        if self.observed {
            for leg in wait.legs.iter() {
                out.push(Event::Waits {
                    session: self.sessions[s].id,
                    ticket,
                    gate: self.gates[leg.gate].name.clone(),
                    mode: leg.mode.clone(),
                    class: leg.class,
                    set: wait.set(),
                });
            }
        }
        self.counters.waits += 1;
        self.arm(deadline, ticket.0, Target::Wait(w));
        for g in gates {
            self.tell_holders(now, g, out);
        }
        self.remember(s, terms.id, Memo::Waiting(ticket));
        Answer::Waiting(ticket)
    }

    /// Ends a try that did not succeed.
    fn give_up(&mut self, w: WaitKey, s: SessionKey, terms: &Terms<'_>) -> Answer {
        self.undo(w);
        let settled = Settled::Ended(WaitEnd::TimedOut);
        self.remember(s, terms.id, Memo::Settled(settled.clone()));
        Answer::Settled(settled)
    }

    /// Takes back a request that nobody has seen yet.
    fn undo(&mut self, w: WaitKey) {
        let observed = std::mem::replace(&mut self.observed, false);
        let wait = self.withdraw(w, &mut Vec::new());
        self.observed = observed;
        for leg in wait.legs.iter() {
            self.retire(leg.gate);
        }
    }

    pub(super) fn remember(&mut self, s: SessionKey, id: Option<&str>, memo: Memo) {
        if let Some(id) = id {
            let ids_max = self.limits.ids_per_session;
            self.sessions[s].memos.remember(id.into(), memo, ids_max);
        }
    }

    /// The answer to an ID that was seen before. A wait that lost its connection is resumed in its old place.
    pub(super) fn answered_before(
        &mut self,
        now: u64,
        s: SessionKey,
        terms: &Terms<'_>,
    ) -> Result<Option<Answer>, Refusal> {
        let Some(id) = terms.id else {
            return Ok(None);
        };
        match self.sessions[s].memos.recall(id) {
            None => Ok(None),
            Some(Memo::Settled(settled)) => Ok(Some(Answer::Settled(settled.clone()))),
            Some(Memo::Waiting(ticket)) => {
                let ticket = *ticket;
                if !terms.asynchronous {
                    self.block_again(now, s, ticket)?;
                }
                Ok(Some(Answer::Waiting(ticket)))
            }
        }
    }

    pub(super) fn block_again(
        &mut self,
        now: u64,
        s: SessionKey,
        ticket: Ticket,
    ) -> Result<(), Refusal> {
        let mut waits = self.sessions[s].waits.iter();
        let w = waits.find(|w| self.waits[**w].ticket == ticket).copied();
        let Some(w) = w.filter(|w| self.waits[*w].asynchronous) else {
            return Ok(());
        };
        self.set_blocking(w, true);
        let refusal = match self.deadlock(now, w) {
            Ok(None) => return Ok(()),
            Ok(Some(knot)) => Refusal::deadlock(knot.cycle(self, now, s)),
            Err(refusal) => refusal,
        };
        self.set_blocking(w, false);
        Err(refusal)
    }
}
