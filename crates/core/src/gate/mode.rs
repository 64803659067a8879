//! How a session is inside a gate, and how it asks to be.

use serde::{Deserialize, Serialize};

use crate::job::Body;
use crate::name::Name;

/// What a request asks for; what that means depends on the gate's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Ask<'a> {
    /// No mode given: exclusive, or one permit.
    #[default]
    Plain,
    /// `SHARED`.
    Shared,
    /// `PERMITS h`.
    Permits(u32),
    /// `ROOM r`.
    Room(&'a str),
    /// `ELECT CAMPAIGN`.
    Lead {
        /// The candidate with the highest rank is elected.
        rank: i64,
        /// What is told of the leader.
        value: &'a [u8],
    },
}

/// How a holder is inside, or a waiter wants to be.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Mode {
    /// Alone.
    Exclusive,
    /// With other readers.
    Shared,
    /// With this many units.
    Permits(u32),
    /// With others of this room.
    Room(Name),
    /// Alone, as the leader of an election.
    Lead(Box<Candidacy>),
}

/// What a candidate says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidacy {
    /// The candidate with the highest rank is elected.
    pub rank: i64,
    /// What is told of the leader: an address, or whatever its followers need.
    pub value: Body,
}

impl Mode {
    /// The units that the mode takes of a `PERMITS` gate.
    pub(crate) fn units(&self) -> u64 {
        match self {
            Mode::Permits(h) => u64::from(*h),
            _ => 1,
        }
    }

    /// Whether nobody else is inside.
    pub(crate) fn exclusive(&self) -> bool {
        matches!(self, Mode::Exclusive | Mode::Lead(_))
    }

    /// What a leader or candidate says of itself; `None` at a gate.
    pub fn candidacy(&self) -> Option<&Candidacy> {
        match self {
            Mode::Lead(candidacy) => Some(candidacy),
            _ => None,
        }
    }

    /// Whether two modes can never be inside together, whoever else is. Permits conflict only by their sum.
    pub fn conflicts(&self, other: &Mode) -> bool {
        match (self, other) {
            (Mode::Shared, Mode::Shared) | (Mode::Permits(_), Mode::Permits(_)) => false,
            (Mode::Room(mine), Mode::Room(yours)) => mine != yours,
            _ => true,
        }
    }
}
