//! Deadlock, thought through: everybody who is not blocked gives back all that he holds, whoever can enter does and gives
//! back too, and so on. Who still waits in the end waits for ever.

use testigo_core::Rule;

use super::{Model, Waiter};

impl Model {
    /// Those who can never enter, if the given one is among them and keeps anybody waiting.
    pub(super) fn knot(&self, arrival: u64) -> Option<Vec<u64>> {
        if self.waiter(arrival).asynchronous {
            return None;
        }
        let left = self.left();
        if !left.contains(&arrival) {
            return None;
        }
        if !self.keeps_nobody(arrival) {
            return Some(left);
        }
        // It only waits for others who can never enter, and they could not without it.
        let mut without = self.clone();
        without.waiters.retain(|w| w.arrival != arrival);
        let others = left.into_iter().filter(|other| *other != arrival);
        assert_eq!(without.left(), others.collect::<Vec<_>>());
        None
    }

    /// Those who can never enter.
    fn left(&self) -> Vec<u64> {
        let mut future = self.clone();
        future.counts_overtakes = false;
        future.waiters.retain(|w| !w.asynchronous);
        loop {
            let blocked: Vec<usize> = future.waiters.iter().map(|w| w.session).collect();
            future.holders.retain(|h| blocked.contains(&h.session));
            let mut waiters = future.waiters.iter();
            match waiters.find(|w| future.may_enter(w.arrival)) {
                Some(enters) => {
                    let arrival = enters.arrival;
                    future.waiters.retain(|w| w.arrival != arrival);
                }
                None => break,
            }
        }
        future.waiters.iter().map(|w| w.arrival).collect()
    }

    /// Whether nobody stands behind it, and nobody waits for what its session holds. At a gate of rooms the last one may keep
    /// a door shut.
    fn keeps_nobody(&self, arrival: u64) -> bool {
        let waiter = self.waiter(arrival);
        let last = |gate| {
            let order = self.order(gate);
            order.last().is_some_and(|last| last.arrival == arrival)
                && self.gates[gate].rule != Rule::Rooms
        };
        let mut held = self.holders.iter().filter(|h| h.session == waiter.session);
        waiter.legs.iter().all(|leg| last(leg.gate)) && held.all(|h| self.order(h.gate).is_empty())
    }

    /// Whether only those who can never enter stand before one who fits: then it may pass them.
    pub(super) fn may_pass(&self, arrival: u64, knot: &[u64]) -> bool {
        let waiter: &Waiter = self.waiter(arrival);
        waiter.legs.iter().all(|leg| {
            let order = self.order(leg.gate);
            let mut ahead = order.iter().take_while(|w| w.arrival != arrival);
            let inside: Vec<_> = self.inside(leg.gate).map(|h| &h.mode).collect();
            ahead.all(|w| knot.contains(&w.arrival))
                && self.joins(leg.gate, &inside, &leg.mode, waiter.needs_ms)
        })
    }
}
