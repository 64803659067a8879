//! What an algorithm of shared memory says of itself, and how to make it.

use crate::{Plan, PlanError, Program};

/// A program by its name. Only this crate makes them, so that a lock can take their word.
#[derive(Debug)]
#[non_exhaustive]
pub struct ThreadAlgorithm {
    /// What it says of itself.
    pub profile: ThreadProfile,
    /// Makes it, or says why it cannot be made for so many.
    pub program: fn(&Plan) -> Result<Box<dyn Program>, PlanError>,
}

/// What an algorithm says of itself, as data.
#[derive(Clone, Copy, Debug)]
pub struct ThreadProfile {
    /// As people type it: `peterson-n`.
    pub name: &'static str,
    /// As people say it.
    pub title: &'static str,
    /// The problem that it solves: `threads-mutex`, `threads-permits` or `threads-rooms`.
    pub problem: &'static str,
    /// The section of the thesis, and the paper.
    pub source: &'static str,
    /// What is wrong with it, for an algorithm that is kept in order to be refuted.
    pub specimen: Option<&'static str>,
    /// What it claims, without numbers.
    pub claims: &'static [Claimed],
    /// Whether what it writes grows without bound, so that processes that ask for ever have no end of states.
    pub grows: bool,
    /// Whether it is right only while others are no slower than a known bound.
    pub needs_time_bound: bool,
    /// The accesses of a process' entry and exit with nobody else there: published, or derived from the program.
    pub lone: Option<Lone>,
    /// The number of registers, likewise.
    pub registers: Option<Lone>,
    /// The smallest configuration that shows what there is to see.
    pub telling: ThreadTelling,
}

impl ThreadProfile {
    /// What most algorithms say.
    pub const PLAIN: ThreadProfile = ThreadProfile {
        name: "",
        title: "",
        problem: "threads-mutex",
        source: "",
        specimen: None,
        claims: &[
            Claimed::Exclusion,
            Claimed::DeadlockFreedom,
            Claimed::LockoutFreedom,
        ],
        grows: false,
        needs_time_bound: false,
        lone: None,
        registers: None,
        telling: ThreadTelling {
            processes: 3,
            entries: 1,
            rooms: 2,
            present: &[],
        },
    };
}

/// A property that is claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claimed {
    /// Never too many inside, and never two rooms.
    Exclusion,
    /// Somebody who waits gets in, in the end.
    DeadlockFreedom,
    /// Everybody who waits gets in, in the end.
    LockoutFreedom,
}

/// A count: the formula, as printed where it is published, and its least and greatest value.
#[derive(Clone, Copy, Debug)]
pub struct Lone {
    /// In N processes and M rooms.
    pub formula: &'static str,
    /// Whether it is derived from the program; else it is published.
    pub is_derived: bool,
    /// Its values for so many.
    pub range: fn(&Plan) -> [usize; 2],
}

/// A configuration for the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadTelling {
    /// How many processes there are.
    pub processes: usize,
    /// How often each of them enters.
    pub entries: usize,
    /// How many rooms there are to ask for.
    pub rooms: usize,
    /// The processes that ask at all; empty: all of them.
    pub present: &'static [usize],
}
