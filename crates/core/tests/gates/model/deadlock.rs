//! Deadlock, thought through: everybody who is not blocked gives back all that he holds, whoever can enter does and gives
//! back too, and so on. Who still waits in the end waits for ever.

use super::{Model, Waiter};

impl Model {
    /// Those who can never enter, if the given one is among them.
    pub(super) fn knot(&self, arrival: u64) -> Option<Vec<u64>> {
        if self.waiter(arrival).asynchronous {
            return None;
        }
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
        let left: Vec<u64> = future.waiters.iter().map(|w| w.arrival).collect();
        left.contains(&arrival).then_some(left)
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
