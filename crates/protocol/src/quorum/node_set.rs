//! A set of nodes as the bits of one number, so that families of thousands of sets can be compared.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// A set of the nodes 0 to 127.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeSet(u128);

impl NodeSet {
    /// Nodes from this number on do not fit.
    pub const NODES_MAX: usize = 128;
    pub const EMPTY: NodeSet = NodeSet(0);

    /// The nodes `from` to `until − 1`; whatever lies beyond the limit is left out.
    pub fn span(from: usize, until: usize) -> NodeSet {
        NodeSet::first(until).minus(NodeSet::first(from))
    }

    /// The first `n` nodes.
    pub fn first(n: usize) -> NodeSet {
        match n {
            0 => NodeSet::EMPTY,
            n if n >= Self::NODES_MAX => NodeSet(u128::MAX),
            n => NodeSet(u128::MAX >> (Self::NODES_MAX - n)),
        }
    }

    pub fn single(node: usize) -> NodeSet {
        match node < Self::NODES_MAX {
            true => NodeSet(1 << node),
            false => NodeSet::EMPTY,
        }
    }

    /// The set whose members are the bits of `bits`.
    pub fn from_bits(bits: u128) -> NodeSet {
        NodeSet(bits)
    }

    pub fn bits(self) -> u128 {
        self.0
    }

    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, node: usize) -> bool {
        self.meets(NodeSet::single(node))
    }

    pub fn is_within(self, other: NodeSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the two have a node in common.
    pub fn meets(self, other: NodeSet) -> bool {
        self.0 & other.0 != 0
    }

    #[must_use]
    pub fn with(self, node: usize) -> NodeSet {
        self.union(NodeSet::single(node))
    }

    #[must_use]
    pub fn without(self, node: usize) -> NodeSet {
        self.minus(NodeSet::single(node))
    }

    /// The nodes of either.
    #[must_use]
    pub fn union(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 | other.0)
    }

    /// The nodes of both.
    #[must_use]
    pub fn intersection(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 & other.0)
    }

    #[must_use]
    pub fn minus(self, other: NodeSet) -> NodeSet {
        NodeSet(self.0 & !other.0)
    }

    /// The first `count` members, or all where there are fewer.
    #[must_use]
    pub fn take(self, count: usize) -> NodeSet {
        self.iter().take(count).collect()
    }

    /// The members in order.
    pub fn iter(self) -> impl Iterator<Item = usize> + Clone {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let node = rest.trailing_zeros() as usize;
            (rest != 0).then(|| {
                rest &= rest - 1;
                node
            })
        })
    }

    pub fn to_vec(self) -> Vec<NodeId> {
        self.iter().map(|node| NodeId(node as u32)).collect()
    }

    /// All subsets with `size` members, in the order of their members.
    pub fn subsets(self, size: usize) -> impl Iterator<Item = NodeSet> {
        let members: Vec<usize> = self.iter().collect();
        let mut next = (size <= members.len()).then(|| (0..size).collect::<Vec<usize>>());
        std::iter::from_fn(move || {
            let places = next.take()?;
            let set = places.iter().map(|&place| members[place]).collect();
            // The last place that can still move on takes those behind it along.
            let movable = (0..size).rfind(|&i| places[i] < members.len() - size + i);
            next = movable.map(|i| {
                let moved = |j: usize| places[i] + 1 + (j - i);
                (0..size)
                    .map(|j| if j < i { places[j] } else { moved(j) })
                    .collect()
            });
            Some(set)
        })
    }
}

impl FromIterator<usize> for NodeSet {
    fn from_iter<I: IntoIterator<Item = usize>>(nodes: I) -> NodeSet {
        nodes.into_iter().fold(NodeSet::EMPTY, NodeSet::with)
    }
}

impl fmt::Display for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, node) in self.iter().enumerate() {
            write!(f, "{}{node}", if i == 0 { "" } else { "," })?;
        }
        f.write_str("}")
    }
}

impl fmt::Debug for NodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_reaches_to_its_last_node_and_no_further() {
        assert_eq!(NodeSet::first(0), NodeSet::EMPTY);
        assert_eq!(NodeSet::first(128).len(), 128);
        assert!(NodeSet::single(127).contains(127));
        assert_eq!(NodeSet::single(128), NodeSet::EMPTY);
        assert_eq!(NodeSet::span(2, 5).to_string(), "{2,3,4}");
        assert_eq!(NodeSet::span(5, 2), NodeSet::EMPTY);
    }

    #[test]
    fn subsets_are_all_there_once() {
        let five = NodeSet::first(5);
        let counts: Vec<usize> = (0..=6).map(|size| five.subsets(size).count()).collect();
        assert_eq!(counts, [1, 5, 10, 10, 5, 1, 0]);
        let mut pairs: Vec<NodeSet> = five.subsets(2).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(pairs.len(), 10);
        assert!(pairs.iter().all(|pair| pair.len() == 2));
    }
}
