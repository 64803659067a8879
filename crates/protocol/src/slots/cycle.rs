//! A request and the answers to it that are still due.

use serde::{Deserialize, Serialize};

use super::SlotsState;
use crate::NodeId;
use crate::quorum::NodeSet;

/// A donation cycle: from the delivery of a request until everybody has answered it. All members of a
/// component have the same cycles.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cycle {
    pub requester: NodeId,
    /// Counts the requester's requests.
    pub number: u32,
    pub wanted: u32,
    /// How many of those the requester's users wait for.
    pub urgent: u32,
    /// Who still has to answer.
    pub waits_for: NodeSet,
    pub answered: NodeSet,
    /// Whether the request named its donors, and only they were asked.
    pub named: bool,
    /// How many slots the answers brought.
    pub brought: u32,
}

/// What users still wait for when a cycle has closed, if requests stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Standing {
    pub requester: NodeId,
    pub wanted: u32,
}

impl SlotsState {
    /// A donation serves the receiver's oldest wish. If it `owes`, a donor with wishes of its own adds what it gave to its
    /// oldest one.
    pub(super) fn count_standing(&mut self, donor: NodeId, to: NodeId, owes: bool, count: u32) {
        let mut of_taker = self
            .standing
            .iter_mut()
            .filter(|standing| standing.requester == to);
        if let Some(standing) = of_taker.next() {
            standing.wanted = standing.wanted.saturating_sub(count);
        }
        let mut of_donor = self
            .standing
            .iter_mut()
            .filter(|standing| standing.requester == donor);
        if let Some(standing) = of_donor.next()
            && owes
        {
            standing.wanted += count;
        }
        self.standing.retain(|standing| standing.wanted > 0);
    }
}

impl Cycle {
    /// The first member after the requester, in the ring of numbers, that still has to answer. It never
    /// holds back a null answer.
    pub(super) fn designated(&self) -> Option<NodeId> {
        let up_to_requester = NodeSet::first(self.requester.index() + 1);
        let behind = self.waits_for.minus(up_to_requester);
        let first = behind.iter().chain(self.waits_for.iter()).next();
        first.map(|member| NodeId(member as u32))
    }
}
