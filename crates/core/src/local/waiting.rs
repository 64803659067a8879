//! Waits: how they begin, how they end, and what the answer is then.

use super::Local;
use super::request::{Terms, Wanted};
use crate::command::Settled;
use crate::event::Event;
use crate::gate::{GateKey, QueuedLeg, Rank};
use crate::session::{Memo, SessionKey};
use crate::wait::{Leg, Legs, Ticket, Wait, WaitKey};

impl Local {
    pub(super) fn enqueue(
        &mut self,
        now: u64,
        s: SessionKey,
        wanted: Vec<Wanted>,
        terms: &Terms<'_>,
    ) -> WaitKey {
        let seq = self.next_serial();
        let mut legs = Vec::with_capacity(wanted.len());
        for Wanted { gate, mode, class } in wanted {
            let gate = self.make_gate(gate);
            let definition = &self.gates[gate].definition;
            let rank = Rank::new(definition, &mode, class, terms.set, seq);
            legs.push(Leg {
                gate,
                mode,
                class,
                rank,
            });
        }
        let wait_ms = terms.wait_ms.unwrap_or(self.limits.wait_ms_max);
        let wait = Wait {
            ticket: Ticket(seq),
            session: s,
            legs: Legs::new(terms.set, legs),
            since: now,
            deadline: now.saturating_add(wait_ms),
            needs_ms: terms.needs_ms,
            reason: terms.reason.map(Box::from),
            id: terms.id.map(Box::from),
            asynchronous: terms.asynchronous,
        };
        self.add_wait(wait, &[])
    }

    /// Adds a wait to its session and to the queues of its gates. `overtaken` is for restored waits.
    pub(super) fn add_wait(&mut self, wait: Wait, overtaken: &[u32]) -> WaitKey {
        let (s, asynchronous, set) = (wait.session, wait.asynchronous, wait.set());
        self.waiting_legs += wait.legs.len();
        let w = self.waits.insert(wait);
        for (at, leg) in self.waits[w].legs.iter().enumerate() {
            let gate = &mut self.gates[leg.gate];
            let queued = QueuedLeg {
                rank: leg.rank,
                wait: w,
                leg: at as u32,
                overtaken: overtaken.get(at).copied().unwrap_or(0),
                set,
            };
            gate.queue.insert(queued, gate.definition.overtakes);
            self.awaited.park(gate.shard, leg.gate);
        }
        self.count_wait(w, true);
        let session = &mut self.sessions[s];
        let was_entangled = session.entangled();
        session.waits.push(w);
        session.blocked += u32::from(!asynchronous);
        self.recount(s, was_entangled);
        w
    }

    /// Sets whether a wait blocks its session.
    pub(super) fn set_blocking(&mut self, w: WaitKey, blocking: bool) {
        let wait = &mut self.waits[w];
        if wait.asynchronous != blocking {
            return;
        }
        wait.asynchronous = !blocking;
        let s = wait.session;
        let session = &mut self.sessions[s];
        let was_entangled = session.entangled();
        match blocking {
            true => session.blocked += 1,
            false => session.blocked -= 1,
        }
        self.recount(s, was_entangled);
    }

    /// Answers a request that waited.
    pub(super) fn settle(&mut self, wait: Wait, settled: Settled, out: &mut Vec<Event>) {
        let ids_max = self.limits.ids_per_session;
        let session = &mut self.sessions[wait.session];
        if let Some(id) = wait.id {
            session
                .memos
                .remember(id, Memo::Settled(settled.clone()), ids_max);
        }
        out.push(Event::Settled {
            session: session.id,
            ticket: wait.ticket,
            settled,
        });
    }

    /// Ends a wait without entering, and lets those behind it go on.
    pub(super) fn end_wait(
        &mut self,
        now: u64,
        w: WaitKey,
        settled: Settled,
        out: &mut Vec<Event>,
    ) {
        let wait = self.withdraw(w, out);
        let gates: Vec<GateKey> = wait.legs.iter().map(|leg| leg.gate).collect();
        self.counters.waits_ended += 1;
        self.settle(wait, settled, out);
        for g in gates {
            self.advance(now, g, out);
        }
    }

    /// Takes a waiter out of its queues. The caller answers it and lets the others go on.
    pub(super) fn withdraw(&mut self, w: WaitKey, out: &mut Vec<Event>) -> Wait {
        let wait = self.forget_wait(w);
        for leg in wait.legs.iter() {
            self.gates[leg.gate].queue.remove(leg.rank);
        }
        if self.observed {
            out.push(Event::Gone {
                session: self.sessions[wait.session].id,
                ticket: wait.ticket,
            });
        }
        wait
    }

    pub(super) fn forget_wait(&mut self, w: WaitKey) -> Wait {
        self.count_wait(w, false);
        let wait = self.waits.remove(w);
        self.waiting_legs -= wait.legs.len();
        let session = &mut self.sessions[wait.session];
        let was_entangled = session.entangled();
        session.waits.retain(|other| *other != w);
        if !wait.asynchronous {
            session.blocked -= 1;
            session.hear(self.now, self.absent_ms);
        }
        self.recount(wait.session, was_entangled);
        wait
    }
}
