//! A family of quorums, before anything is claimed about it: what meets what, what lies in what,
//! how large the sets are and how often a node is asked.

use std::fmt;

use super::NodeSet;

/// Some non-empty sets of nodes, none of them twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Family {
    nodes: usize,
    sets: Vec<NodeSet>,
}

impl Family {
    /// More sets than this are counted, not listed.
    pub const SETS_MAX: usize = 65_536;

    /// A family over the first `nodes` nodes. A set that comes twice is kept once.
    pub fn new(
        nodes: usize,
        sets: impl IntoIterator<Item = NodeSet>,
    ) -> Result<Family, FamilyError> {
        let all = NodeSet::first(nodes);
        let mut kept: Vec<NodeSet> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for set in sets {
            if set.is_empty() {
                return Err(FamilyError::EmptyQuorum);
            }
            if !set.is_within(all) {
                return Err(FamilyError::Outside(set));
            }
            if seen.insert(set) {
                kept.push(set);
            }
            if kept.len() > Self::SETS_MAX {
                return Err(FamilyError::TooMany);
            }
        }
        match kept.is_empty() {
            true => Err(FamilyError::Empty),
            false => Ok(Family { nodes, sets: kept }),
        }
    }

    /// How many nodes there are, in quorums or not.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    pub fn sets(&self) -> &[NodeSet] {
        &self.sets
    }

    /// Two quorums without a common node, if there are any.
    pub fn disjoint_pair(&self) -> Option<(NodeSet, NodeSet)> {
        self.pair(|a, b| !a.meets(b))
    }

    /// A quorum and another one that contains it, if there are any.
    pub fn nested_pair(&self) -> Option<(NodeSet, NodeSet)> {
        let (a, b) = self.pair(|a, b| a.is_within(b) || b.is_within(a))?;
        Some(if a.is_within(b) { (a, b) } else { (b, a) })
    }

    fn pair(&self, holds: impl Fn(NodeSet, NodeSet) -> bool) -> Option<(NodeSet, NodeSet)> {
        let behind = |i: usize| self.sets[i + 1..].iter().copied();
        (self.sets.iter().enumerate())
            .find_map(|(i, &a)| behind(i).find(|&b| holds(a, b)).map(|b| (a, b)))
    }

    /// The family without the quorums that contain another one.
    pub fn minimal(&self) -> Family {
        let mut sets = self.sets.clone();
        sets.sort_by_key(|set| set.len());
        let mut kept: Vec<NodeSet> = Vec::new();
        for set in sets {
            if !kept.iter().any(|small| small.is_within(set)) {
                kept.push(set);
            }
        }
        Family {
            nodes: self.nodes,
            sets: kept,
        }
    }

    /// The family with one more quorum, reduced to what is minimal.
    pub fn improved_by(&self, set: NodeSet) -> Family {
        let mut more = self.clone();
        more.sets.push(set);
        more.minimal()
    }

    /// Whether the live nodes contain a quorum.
    pub fn serves(&self, live: NodeSet) -> bool {
        self.sets.iter().any(|set| set.is_within(live))
    }

    /// Different from `other`, and every quorum of `other` contains a quorum of this one.
    pub fn dominates(&self, other: &Family) -> bool {
        !self.same_sets(other) && other.sets.iter().all(|&set| self.serves(set))
    }

    /// The same quorums, in any order.
    pub fn same_sets(&self, other: &Family) -> bool {
        self.sets.len() == other.sets.len() && self.sets.iter().all(|set| other.sets.contains(set))
    }

    /// How many quorums each node is in.
    pub fn memberships(&self) -> Vec<usize> {
        let of = |node| self.sets.iter().filter(|set| set.contains(node)).count();
        (0..self.nodes).map(of).collect()
    }

    /// Every node is in the same number of quorums, and all quorums have one size.
    pub fn is_symmetric(&self) -> bool {
        let equal = |numbers: &[usize]| numbers.windows(2).all(|pair| pair[0] == pair[1]);
        let sizes: Vec<usize> = self.sets.iter().map(|set| set.len()).collect();
        equal(&sizes) && equal(&self.memberships())
    }
}

/// Why some sets are no family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FamilyError {
    Empty,
    EmptyQuorum,
    Outside(NodeSet),
    TooMany,
}

impl fmt::Display for FamilyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FamilyError::Empty => f.write_str("there is no quorum"),
            FamilyError::EmptyQuorum => f.write_str("a quorum has no member"),
            FamilyError::Outside(set) => write!(f, "{set} has members that do not exist"),
            FamilyError::TooMany => {
                write!(f, "there are more than {} quorums", Family::SETS_MAX)
            }
        }
    }
}

impl std::error::Error for FamilyError {}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A family as the thesis writes it: nodes from 1, a digit each.
    pub(crate) fn family(nodes: usize, sets: &[&str]) -> Family {
        let set = |text: &&str| {
            let digits = text.chars().map(|c| c.to_digit(10).expect("a digit"));
            digits.map(|digit| digit as usize - 1).collect::<NodeSet>()
        };
        Family::new(nodes, sets.iter().map(set)).expect("a family")
    }

    #[test]
    fn sets_that_make_no_family_are_refused() {
        assert_eq!(Family::new(3, []), Err(FamilyError::Empty));
        let empty = Family::new(3, [NodeSet::EMPTY]);
        assert_eq!(empty, Err(FamilyError::EmptyQuorum));
        let outside = NodeSet::single(3);
        let error = Family::new(3, [outside]);
        assert_eq!(error, Err(FamilyError::Outside(outside)));
        let many = (1..=Family::SETS_MAX as u128 + 1).map(NodeSet::from_bits);
        assert_eq!(Family::new(128, many), Err(FamilyError::TooMany));
        let twice = Family::new(3, [NodeSet::first(2), NodeSet::first(2)]);
        assert_eq!(twice.expect("a family").sets().len(), 1);
    }

    #[test]
    fn minimal_keeps_the_small_ones() {
        let redundant = family(4, &["123", "12", "34", "1234"]);
        assert_eq!(
            redundant.nested_pair(),
            Some((NodeSet::first(2), NodeSet::first(3)))
        );
        assert!(redundant.minimal().same_sets(&family(4, &["12", "34"])));
        assert!(redundant.minimal().nested_pair().is_none());
    }

    #[test]
    fn symmetric_means_equal_effort_and_equal_size() {
        assert!(family(3, &["12", "13", "23"]).is_symmetric());
        assert!(!family(4, &["12", "13", "14", "234"]).is_symmetric());
        assert_eq!(family(4, &["12", "13"]).memberships(), [2, 1, 1, 0]);
    }
}
