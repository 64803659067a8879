//! How takes, waits and sessions end at a desk.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::desk::Desk;
use super::shelf::Shelves;
use crate::limits::Limits;
use crate::name::Name;
use crate::session::SessionId;
use crate::wait::Ticket;

impl Desk {
    /// A session was silent for too long, and its end is on its way to the log: it gets nothing more. Its client may believe until
    /// the given time what this node answered while it was cut off.
    pub fn run_out(&mut self, session: SessionId, until: u64, shelves: &dyn Shelves) {
        self.end_waits(session, shelves);
        self.ran_out.insert(session, until);
    }

    /// A session has ended: everything that it had comes back. If that is very much, a part of it comes back now and the rest
    /// as time goes on.
    pub fn end(&mut self, session: SessionId, shelves: &dyn Shelves) {
        self.end_partly(session, Limits::SLOTS_AT_ONCE, shelves);
    }

    /// Ends a session, of whose slots at most so many come back now. Returns how many did.
    fn end_partly(&mut self, session: SessionId, most: usize, shelves: &dyn Shelves) -> usize {
        self.ran_out.remove(&session);
        let tickets: Vec<Ticket> = self.waiting.of(session).collect();
        let mut touched: BTreeMap<Name, Vec<u32>> = BTreeMap::new();
        for (name, tickets) in self.by_pool(tickets) {
            self.drop_waits(&name, tickets);
            touched.insert(name, Vec::new());
        }
        let mut rest = self.holders.remove(&session).unwrap_or_default();
        let mut held: Vec<(u64, u32)> = rest.iter().take(most).copied().collect();
        held.sort_unstable();
        let freed = held.len();
        if freed < rest.len() {
            for slot in &held {
                rest.remove(slot);
            }
            self.holders.insert(session, rest);
            self.ended.insert(session, self.now);
        }
        for (key, slot) in held {
            if let Some(name) = self.names.get(&key) {
                touched.entry(name.clone()).or_default().push(slot);
            }
        }
        // One pool after the other: what one pool's member says is posted before the next one speaks.
        for (name, slots) in touched {
            let shelf = shelves.shelf(&name);
            for slot in slots {
                self.release_here(session, &name, slot, shelf.and_then(|shelf| shelf.record));
            }
            if let Some(shelf) = shelf {
                self.serve(0, &name, shelf);
            }
        }
        freed
    }

    /// A session ended while this node was cut off: what it took here comes back at the given time.
    pub(super) fn end_later(&mut self, session: SessionId, until: u64, shelves: &dyn Shelves) {
        self.end_waits(session, shelves);
        if self.holders.contains_key(&session) {
            self.ended.insert(session, until);
        }
    }

    /// Ends a session's waits. It keeps the slots that it has.
    pub(super) fn end_waits(&mut self, session: SessionId, shelves: &dyn Shelves) {
        let held = self.holders.remove(&session);
        self.end(session, shelves);
        if let Some(held) = held {
            self.holders.insert(session, held);
        }
    }

    /// Ends many waits at once.
    pub fn cancel_all(&mut self, tickets: &FxHashSet<Ticket>, shelves: &dyn Shelves) {
        let mut tickets: Vec<Ticket> = tickets.iter().copied().collect();
        tickets.sort_unstable();
        for (name, tickets) in self.by_pool(tickets) {
            self.drop_waits(&name, tickets);
            if let Some(shelf) = shelves.shelf(&name) {
                self.serve(0, &name, shelf);
            }
        }
    }

    /// Whether this wait is the session's.
    pub fn waits_for(&self, session: SessionId, ticket: Ticket) -> bool {
        self.waiting.is_of(ticket, session)
    }

    /// Ends a wait; false if there is none.
    pub fn cancel(&mut self, ticket: Ticket, shelves: &dyn Shelves) -> bool {
        let waits = self.waiting.pool(ticket).is_some();
        self.cancel_all(&FxHashSet::from_iter([ticket]), shelves);
        waits
    }

    /// These takes, by the pools that they wait for.
    fn by_pool(&self, tickets: Vec<Ticket>) -> BTreeMap<Name, Vec<Ticket>> {
        let mut pools: BTreeMap<Name, Vec<Ticket>> = BTreeMap::new();
        for ticket in tickets {
            let key = self.waiting.pool(ticket);
            if let Some(name) = key.and_then(|key| self.names.get(&key)) {
                pools.entry(name.clone()).or_default().push(ticket);
            }
        }
        pools
    }

    /// These takes stop waiting and get nothing.
    fn drop_waits(&mut self, name: &Name, tickets: Vec<Ticket>) {
        let counter = self.pools.get_mut(name).expect("they wait for it");
        for ticket in tickets {
            counter.wait_over(ticket, &mut self.waiting);
            self.out.answers.push((ticket, Vec::new()));
        }
    }

    /// When the next wait is over, or the next withheld slot comes back.
    pub fn next_deadline(&self) -> Option<u64> {
        let pools = self.pools.values();
        let waits = pools.filter_map(|counter| counter.waits.next_deadline());
        let ends = self.ended.values().copied().chain(self.believed_until);
        waits.chain(ends).min()
    }

    /// Ends the waits whose time is over, and frees slots that nobody can still believe to have.
    pub fn expire(&mut self, now: u64, shelves: &dyn Shelves) {
        self.now = now;
        if self.next_deadline().is_none_or(|due| due > now) {
            return;
        }
        let over = self.ended.iter().filter(|(_, until)| **until <= now);
        let over: Vec<SessionId> = over.map(|(session, _)| *session).collect();
        let mut left = Limits::SLOTS_AT_ONCE;
        for session in over {
            if left == 0 {
                break;
            }
            self.ended.remove(&session);
            let freed = self.end_partly(session, left, shelves);
            left = left.saturating_sub(1 + freed);
        }
        if self.believed_until.is_some_and(|until| until <= now) {
            self.believed_until = None;
            if let Some(replicated) = shelves.replicated() {
                self.release_unknown(replicated);
            }
        }
        if let Some(replicated) = shelves.replicated() {
            self.tell_waited(replicated);
        }
        let pools = self.pools.iter();
        let over = pools.map(|(name, counter)| (name, counter.waits.over(now)));
        let over = over.filter(|(_, over)| !over.is_empty());
        let over: Vec<(Name, Vec<Ticket>)> =
            over.map(|(name, over)| (name.clone(), over)).collect();
        for (name, tickets) in over {
            self.drop_waits(&name, tickets);
            if let Some(shelf) = shelves.shelf(&name) {
                self.serve(now, &name, shelf);
            }
        }
    }
}
