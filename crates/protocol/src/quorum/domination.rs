//! Whether a structure could be better: another of its kind with a smaller quorum wherever this one
//! has a quorum, so that it survives whatever this one survives.

use super::NodeSet;
use super::witness::{self, Search};

/// What is known about domination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Domination {
    /// No other structure of its kind dominates it.
    NonDominated,
    /// With this quorum added, and those that contain it dropped, it would be a better one.
    Dominated(NodeSet),
    /// This set satisfies the theorem's conditions; that some structure dominates is not proved.
    Perhaps(NodeSet),
    /// Too large to be searched.
    Unknown,
}

impl Domination {
    /// By the theorems 4.1 to 4.3, which differ in what the witness must meet. `improves` says
    /// whether adding the witness gives a structure of the kind.
    pub(super) fn search(
        meet: &[NodeSet],
        avoid: &[NodeSet],
        improves: impl Fn(NodeSet) -> bool,
    ) -> Domination {
        match witness::find(meet, avoid) {
            Search::Found(set) if improves(set) => Domination::Dominated(set),
            Search::Found(set) => Domination::Perhaps(set),
            Search::Nothing => Domination::NonDominated,
            Search::GaveUp => Domination::Unknown,
        }
    }
}
