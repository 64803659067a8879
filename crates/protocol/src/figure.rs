//! Published figures that hold in a situation of their own: on a line, for a lone request, after a
//! failure. What holds in general is a [`Cost`](crate::Cost).

use crate::{Range, Setup};

/// A published figure, and the experiment that measures it.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    /// What is counted, in words.
    pub what: &'static str,
    /// As printed.
    pub formula: &'static str,
    pub range: fn(&Setup) -> Range,
    /// The numbers of nodes that it is measured at.
    pub sizes: &'static [usize],
    /// What else is chosen, as [`Setup::choose`] takes it.
    pub chosen: &'static [(&'static str, &'static str)],
    pub experiment: Experiment,
}

/// How a figure is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Experiment {
    /// Messages per entry, everybody asking again at once.
    FullLoad,
    /// Messages of an entry with nobody else asking, from the best place after the entry before.
    LoneEntryLeast,
    /// Messages of an entry with nobody else asking, from the worst place after the entry before.
    LoneEntryMost,
    /// Messages of an election that one process calls while the largest is down, from the best caller to the worst.
    LoneCallWithoutLargest,
    /// Messages of an entry beside another user that stays inside, from the worst places of both.
    SecondEntryMost,
    /// Messages of these kinds per entry, everybody asking once with nobody else near.
    LoneKinds(&'static [&'static str]),
    /// Messages per entry by those of another algorithm, one at a time.
    LoneRatio(&'static str),
    /// Messages per entry by those of another algorithm, under full load.
    FullLoadRatio(&'static str),
    /// The sizes of the construction's quorums, from the smallest to the largest.
    QuorumSizes(crate::quorum::Construction),
    /// With how many of the nodes dead, one at a time, all others still enter.
    NodeFailuresSurvived,
    /// With how many of the links dead, one at a time, everybody still enters.
    LinkFailuresSurvived,
    /// The most entries that passed one request of this kind, at nodes that could know of it.
    PassedMost(u32),
}
