//! A request that waits, for one gate or for a set of gates that it enters together.

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use crate::arena::Key;
use crate::gate::{GateKey, Mode, Rank};
use crate::session::SessionKey;

pub(crate) type WaitKey = Key<Wait>;

/// Identifies a request that waits, so that its end can be told and it can be cancelled. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ticket(pub u64);

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug)]
pub(crate) struct Wait {
    pub(crate) ticket: Ticket,
    pub(crate) session: SessionKey,
    pub(crate) legs: Legs,
    pub(crate) since: u64,
    pub(crate) deadline: u64,
    pub(crate) needs_ms: Option<u64>,
    pub(crate) reason: Option<Box<str>>,
    pub(crate) id: Option<Box<str>>,
    /// Whether the client goes on meanwhile, so that the wait does not keep its session from giving things back.
    pub(crate) asynchronous: bool,
}

/// One gate of a wait.
#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) gate: GateKey,
    pub(crate) mode: Mode,
    pub(crate) class: u32,
    /// The rank on arrival.
    pub(crate) rank: Rank,
}

/// The gates of a wait: nearly always one, which needs no allocation.
#[derive(Debug)]
pub(crate) enum Legs {
    One([Leg; 1]),
    Set(Box<[Leg]>),
}

impl Wait {
    pub(crate) fn set(&self) -> bool {
        matches!(self.legs, Legs::Set(_))
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Wait {
        use crate::arena::Arena;
        Wait {
            ticket: Ticket(0),
            session: Arena::new().insert(crate::session::Session::for_test()),
            legs: Legs::Set(Box::default()),
            since: 0,
            deadline: 0,
            needs_ms: None,
            reason: None,
            id: None,
            asynchronous: false,
        }
    }
}

impl Legs {
    pub(crate) fn new(set: bool, legs: Vec<Leg>) -> Legs {
        match <[Leg; 1]>::try_from(legs) {
            Ok(leg) if set => Legs::Set(Box::new(leg)),
            Ok(leg) => Legs::One(leg),
            Err(legs) => Legs::Set(legs.into()),
        }
    }
}

impl DerefMut for Legs {
    fn deref_mut(&mut self) -> &mut [Leg] {
        match self {
            Legs::One(leg) => leg,
            Legs::Set(legs) => legs,
        }
    }
}

impl Deref for Legs {
    type Target = [Leg];
    fn deref(&self) -> &[Leg] {
        match self {
            Legs::One(leg) => leg,
            Legs::Set(legs) => legs,
        }
    }
}
