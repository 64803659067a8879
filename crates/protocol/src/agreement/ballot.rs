//! What the Paxos family shares: ballot numbers, and the count of who accepted what.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::user::Value;
use crate::NodeId;

/// The number `n` of a proposal. Numbers of different proposers differ, so a round and its proposer are one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Ballot {
    pub(super) round: u64,
    pub(super) by: NodeId,
}

#[cfg(test)]
impl Ballot {
    pub(super) fn of(round: u64, by: u32) -> Ballot {
        let by = NodeId(by);
        Ballot { round, by }
    }
}

impl fmt::Debug for Ballot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.round, self.by)
    }
}

/// More than half of so many.
pub(super) fn majority(nodes: usize) -> usize {
    nodes / 2 + 1
}

/// A set of nodes as bits: states of the checker are compared and hashed all the time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(super) struct Nodes(u64);

impl Nodes {
    /// As many as there are bits.
    pub(super) const MAX: usize = 64;

    pub(super) fn insert(&mut self, node: NodeId) {
        self.0 |= 1 << node.0;
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        self.0 &= !(1 << node.0);
    }

    pub(super) fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Those of either set.
    pub(super) fn and(self, other: Nodes) -> Nodes {
        Nodes(self.0 | other.0)
    }

    /// Those of both sets.
    pub(super) fn both(self, other: Nodes) -> Nodes {
        Nodes(self.0 & other.0)
    }

    pub(super) fn without(self, other: Nodes) -> Nodes {
        Nodes(self.0 & !other.0)
    }

    pub(super) fn iter(self) -> impl Iterator<Item = NodeId> + Clone {
        NodeId::all(Nodes::MAX).filter(move |node| self.0 & (1 << node.0) != 0)
    }
}

impl FromIterator<NodeId> for Nodes {
    fn from_iter<I: IntoIterator<Item = NodeId>>(nodes: I) -> Self {
        let mut set = Nodes::default();
        nodes.into_iter().for_each(|node| set.insert(node));
        set
    }
}

/// A learner's votes: who accepted which value in which ballot.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Votes(BTreeMap<(Ballot, Value), Nodes>);

impl Votes {
    /// Counts a vote; how many there are now for the same.
    pub(super) fn count(&mut self, by: NodeId, ballot: Ballot, value: Value) -> usize {
        let votes = self.0.entry((ballot, value)).or_default();
        votes.insert(by);
        votes.len()
    }

    /// Who has voted for this.
    pub(super) fn of(&self, ballot: Ballot, value: Value) -> Nodes {
        self.0.get(&(ballot, value)).copied().unwrap_or_default()
    }

    /// What so many of these have voted for in one ballot.
    pub(super) fn winner(&self, among: Nodes, quorum: usize) -> Option<Value> {
        let mut votes = self.0.iter();
        let won = votes.find(|(_, nodes)| nodes.both(among).len() >= quorum.max(1));
        won.map(|((_, value), _)| *value)
    }

    /// How many votes each value has in a ballot.
    pub(super) fn counts(&self, ballot: Ballot) -> impl Iterator<Item = usize> {
        let of_ballot = self.0.iter().filter(move |((n, _), _)| *n == ballot);
        of_ballot.map(|(_, nodes)| nodes.len())
    }

    /// Keeps the votes of these ballots only.
    pub(super) fn keep(&mut self, kept: impl Fn(Ballot) -> bool) {
        self.0.retain(|(ballot, _), _| kept(*ballot));
    }

    /// Who has voted in a ballot.
    pub(super) fn voters(&self, ballot: Ballot) -> Nodes {
        let voted = self.0.iter().filter(|((n, _), _)| *n == ballot);
        Nodes(voted.fold(0, |sum, (_, nodes)| sum | nodes.0))
    }

    pub(super) fn rename(&mut self, new: &dyn Fn(NodeId) -> NodeId) {
        for nodes in self.0.values_mut() {
            *nodes = nodes.iter().map(new).collect();
        }
    }

    /// Forgets all: what is chosen does not change.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        let votes = std::mem::take(&mut self.0).into_iter();
        self.0 = votes
            .map(|((mut ballot, value), nodes)| {
                visit(&mut ballot.round);
                ((ballot, value), nodes)
            })
            .collect();
    }
}
