//! Why a family of quorums is not what it should be, with the sets that show it.

use std::fmt;

use super::{LOOKS_MAX, NodeSet};

/// What is wrong with a family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Flaw {
    /// Two quorums that do not meet: two could be inside.
    Disjoint(NodeSet, NodeSet),
    /// The first lies in the second: safe, and wasteful.
    Nested(NodeSet, NodeSet),
    /// More than k pairwise disjoint quorums together are these nodes.
    TooManyDisjoint(NodeSet),
    /// Fewer than k disjoint quorums together are these nodes, and no quorum is free of them: a
    /// free place could not be used.
    NoneFree(NodeSet),
    /// The last of these sets is a quorum without a node of the first, which is what others share.
    NoCommonNode(NodeSet, NodeSet),
    /// The number of entries allowed must be at least 1.
    NoPlaces,
    /// Too large to be checked within [`STATES_MAX`] intermediate sets and [`LOOKS_MAX`] looks.
    TooLarge,
}

/// How many different unions or intersections a check of disjoint or common nodes may build.
pub const STATES_MAX: usize = 200_000;

/// Whether so many intermediate sets can be held against so many quorums.
pub(super) fn within_reach(states: usize, quorums: usize) -> Result<(), Flaw> {
    let looks = (states as u64).saturating_mul(quorums as u64);
    match states > STATES_MAX || looks > LOOKS_MAX {
        true => Err(Flaw::TooLarge),
        false => Ok(()),
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Disjoint(a, b) => write!(f, "{a} and {b} do not meet"),
            Flaw::Nested(a, b) => write!(f, "{a} lies in {b}"),
            Flaw::TooManyDisjoint(set) => write!(f, "{set} holds more than k disjoint quorums"),
            Flaw::NoneFree(set) => {
                write!(
                    f,
                    "{set} is fewer than k disjoint quorums, and no other is free"
                )
            }
            Flaw::NoCommonNode(common, set) => {
                write!(f, "{set} has no node of {common}, which others share")
            }
            Flaw::NoPlaces => f.write_str("k must be at least 1"),
            Flaw::TooLarge => f.write_str("too large to be checked"),
        }
    }
}

impl std::error::Error for Flaw {}
