//! The connections that can be closed to make room: all that have neither a request nor a stream. The oldest goes first, so
//! that a new one has time to say what it wants, however many slow ones there are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The idle connections, oldest first.
#[derive(Debug)]
pub(super) struct Idle {
    most: usize,
    all: Mutex<All>,
}

#[derive(Debug, Default)]
struct All {
    next: u64,
    waiting: BTreeMap<u64, Arc<Notify>>,
    closed: u64,
}

/// A connection's place among the idle ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn(u64);

impl Idle {
    pub(super) fn new(most: usize) -> Idle {
        Idle {
            most,
            all: Mutex::default(),
        }
    }

    /// Adds a connection as the newest. If there are too many, tells the oldest to close.
    pub(super) fn enter(&self, close: &Arc<Notify>) -> Turn {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = all.next;
        all.next += 1;
        all.waiting.insert(turn, Arc::clone(close));
        if all.waiting.len() > self.most {
            all.close_oldest();
        }
        Turn(turn)
    }

    /// Tells the oldest one to close, because the system has no room for another.
    pub(super) fn make_room(&self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.close_oldest();
    }

    /// It is no longer idle, or gone.
    pub(super) fn leave(&self, Turn(turn): Turn) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.waiting.remove(&turn);
    }

    /// How many there are, and how many were closed to make room.
    pub(super) fn counts(&self) -> (usize, u64) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        (all.waiting.len(), all.closed)
    }
}

impl All {
    fn close_oldest(&mut self) {
        if let Some((_, oldest)) = self.waiting.pop_first() {
            self.closed += 1;
            oldest.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room() {
        let idle = Idle::new(2);
        let bells: Vec<_> = (0..4).map(|_| Arc::new(Notify::new())).collect();
        let first = idle.enter(&bells[0]);
        idle.enter(&bells[1]);
        // The first has had a request meanwhile, so it is no longer the oldest.
        idle.leave(first);
        idle.enter(&bells[0]);
        assert_eq!(idle.counts(), (2, 0));
        idle.enter(&bells[2]);
        assert_eq!(idle.counts(), (2, 1));
        let told = |at: usize| {
            let told = std::pin::pin!(bells[at].notified());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            told.poll(&mut context).is_ready()
        };
        assert_eq!([0, 1, 2].map(told), [false, true, false]);
        idle.make_room();
        assert_eq!([0, 1, 2].map(told), [true, false, false]);
        assert_eq!(idle.counts(), (1, 2));
    }
}
