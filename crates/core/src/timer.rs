//! Deadlines in one heap. A timer whose object is gone stays until it comes up, or until such garbage outweighs the rest and
//! the heap is swept. So arming is cheap, cancelling is free, and the heap has never much more than twice as many timers as
//! there are objects.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::gate::HoldKey;
use crate::session::SessionKey;
use crate::wait::{Ticket, WaitKey};

/// What a timer ends. At the same time holds end before waits, so that a waiter whose limit coincides with the hold's gets
/// in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ends {
    Hold,
    Wait,
    Session,
}

/// A deadline. The serial tells whether the object is still the one for which the timer was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub(crate) at: u64,
    ends: Ends,
    pub(crate) serial: u64,
    pub(crate) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    Hold(HoldKey),
    Wait(WaitKey),
    Take(Ticket),
    Session(SessionKey),
}

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
}

/// Below this many timers sweeping is not worth it.
const SWEEP_FROM: usize = 64;

impl Timers {
    pub(crate) fn arm(&mut self, at: u64, serial: u64, target: Target) {
        let ends = match target {
            Target::Hold(_) => Ends::Hold,
            Target::Wait(_) | Target::Take(_) => Ends::Wait,
            Target::Session(_) => Ends::Session,
        };
        self.heap.push(Reverse(Timer {
            at,
            ends,
            serial,
            target,
        }));
    }

    /// The earliest deadline. It may belong to an object that is gone, so it is never late but sometimes needless.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(timer)| timer.at)
    }

    #[inline]
    pub(crate) fn due(&self, now: u64) -> bool {
        self.next().is_some_and(|at| at <= now)
    }

    pub(crate) fn pop_due(&mut self, now: u64) -> Option<Timer> {
        if !self.due(now) {
            return None;
        }
        self.heap.pop().map(|Reverse(timer)| timer)
    }

    /// Whether more than half of the timers must be garbage, given how many objects live.
    #[inline]
    pub(crate) fn overgrown(&self, living: usize) -> bool {
        self.heap.len() > SWEEP_FROM + 2 * living
    }

    pub(crate) fn sweep(&mut self, lives: impl Fn(&Timer) -> bool) {
        self.heap.retain(|Reverse(timer)| lives(timer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;

    #[test]
    fn at_the_same_time_holds_end_before_waits() {
        let wait = Arena::new().insert(crate::wait::Wait::for_test());
        let session = Arena::new().insert(crate::session::Session::for_test());
        let mut timers = Timers::default();
        timers.arm(5, 1, Target::Session(session));
        timers.arm(5, 2, Target::Wait(wait));
        timers.arm(4, 3, Target::Session(session));
        assert_eq!(timers.pop_due(3), None);
        let serials = std::iter::from_fn(|| timers.pop_due(5)).map(|timer| timer.serial);
        assert_eq!(serials.collect::<Vec<_>>(), [3, 2, 1]);
    }

    #[test]
    fn garbage_is_swept_when_it_outweighs_what_lives() {
        let session = Arena::new().insert(crate::session::Session::for_test());
        let mut timers = Timers::default();
        for serial in 0..=SWEEP_FROM as u64 + 2 {
            timers.arm(serial, serial, Target::Session(session));
        }
        assert!(timers.overgrown(1) && !timers.overgrown(2));
        timers.sweep(|timer| timer.serial == 40);
        assert_eq!(timers.next(), Some(40));
    }
}
