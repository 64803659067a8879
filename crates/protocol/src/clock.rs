//! Logical time: Lamport's clock, and the stamps that order requests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// A Lamport clock: 1978's two rules, a tick for a local event and the maximum plus one for a
/// message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LamportClock(pub u64);

impl LamportClock {
    /// The time of a local event.
    pub fn tick(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }

    /// A message that carries this time has been received.
    pub fn observe(&mut self, time: u64) {
        self.0 = self.0.max(time) + 1;
    }
}

/// A request's time and its node: a total order in which the smaller is the older.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub time: u64,
    pub node: NodeId,
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.time, self.node)
    }
}
