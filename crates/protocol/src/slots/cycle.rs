//! A request and the answers to it that are still due.

use serde::{Deserialize, Serialize};

use super::SlotsState;
use crate::NodeId;
use crate::quorum::NodeSet;

/// A donation cycle: from the delivery of a request until everybody has answered it. All members of a
/// component have the same ones.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Cycle {
    pub requester: NodeId,
    /// Its requester's count of requests.
    pub number: u32,
    pub wanted: u32,
    /// How many of those its users wait for.
    pub urgent: u32,
    /// Who still has to answer.
    pub waits_for: NodeSet,
    pub answered: NodeSet,
    /// Whether only those whom its request named were asked so far.
    pub named: bool,
    /// How many slots the answers brought.
    pub brought: u32,
}

/// What users still wait for when a cycle has closed, where requests stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Standing {
    pub requester: NodeId,
    pub wanted: u32,
}

impl SlotsState {
    /// A donation serves the oldest wish of whoever gets it. Where it is owed, a donor that has wishes of its own
    /// wishes for what it gave to an older one.
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
    /// The first after the requester, in the ring of numbers, among those who still have to answer: it
    /// never holds a null answer back.
    pub(super) fn designated(&self) -> Option<NodeId> {
        let up_to_requester = NodeSet::first(self.requester.index() + 1);
        let behind = self.waits_for.minus(up_to_requester);
        let first = behind.iter().chain(self.waits_for.iter()).next();
        first.map(|member| NodeId(member as u32))
    }
}
