//! Tree quorums: a path from the root to a leaf, where a dead node is replaced by quorums of both
//! its subtrees.
//!
//! Source: message exclusion §1.5 and §3.5, figure 4.6 (Agrawal and El Abbadi). The source asks for a
//! complete tree; here the last level may be incomplete. A node with a single child then counts as a
//! leaf, as the printed procedure has it, and the child, the last node, is in no minimal quorum.

use super::Composite;
use crate::NodeId;

/// A binary tree of nodes numbered level by level: node i has the children 2i+1 and 2i+2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    nodes: usize,
}

impl Tree {
    pub fn new(nodes: usize) -> Tree {
        Tree { nodes }
    }

    /// Both children, where there are two.
    fn children(self, node: usize) -> Option<(usize, usize)> {
        (2 * node + 2 < self.nodes).then_some((2 * node + 1, 2 * node + 2))
    }

    /// A path from the root through the node to a leaf: a quorum with its owner in it.
    pub fn path(self, node: usize) -> Vec<usize> {
        let up = std::iter::successors(Some(node), |&i| (i > 0).then(|| (i - 1) / 2));
        // Alternate sides, so that the inner nodes do not all choose the same leaf.
        let down = std::iter::successors(Some(node), |&i| {
            let (left, right) = self.children(i)?;
            Some(if node % 2 == 1 { left } else { right })
        });
        let mut path: Vec<usize> = up.chain(down.skip(1)).collect();
        path.sort_unstable();
        path
    }

    /// A quorum of nodes that are alive, if there is one.
    pub fn quorum(self, alive: impl Fn(NodeId) -> bool) -> Option<Vec<NodeId>> {
        if self.nodes == 0 {
            return None;
        }
        let mut found = self.below(0, &alive)?;
        found.sort_unstable();
        Some(found)
    }

    fn below(self, node: usize, alive: &impl Fn(NodeId) -> bool) -> Option<Vec<NodeId>> {
        let grants = alive(NodeId(node as u32));
        let Some((left, right)) = self.children(node) else {
            return grants.then(|| vec![NodeId(node as u32)]);
        };
        if grants {
            let mut path = self
                .below(left, alive)
                .or_else(|| self.below(right, alive))?;
            path.push(NodeId(node as u32));
            return Some(path);
        }
        let mut both = self.below(left, alive)?;
        both.extend(self.below(right, alive)?);
        Some(both)
    }

    /// The coterie: at every inner node, two of the node and its two subtrees.
    pub fn coterie(self) -> Composite {
        self.part(0)
    }

    fn part(self, node: usize) -> Composite {
        match self.children(node) {
            None => Composite::Node(node),
            Some((left, right)) => Composite::Of {
                need: 2,
                parts: vec![Composite::Node(node), self.part(left), self.part(right)],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::tests::family;
    use super::super::{Coterie, Domination, Family, NodeSet};
    use super::*;

    fn listed(nodes: usize) -> Family {
        let sets = Tree::new(nodes).coterie().quorums();
        Family::new(nodes, sets).expect("few sets")
    }

    #[test]
    fn the_example_of_seven_nodes() {
        let seven = listed(7);
        let printed = [
            "124", "125", "136", "137", "145", "167", "2346", "2347", "2356", "2357", "2467",
            "2567", "3456", "3457", "4567",
        ];
        assert!(seven.same_sets(&family(7, &printed)));
    }

    #[test]
    fn tree_coteries_are_non_dominated_and_their_numbers_square() {
        let counts: Vec<usize> = [1, 3, 7, 15].map(|n| listed(n).sets().len()).into();
        assert_eq!(counts, [1, 3, 15, 255], "q(h) = 2q(h−1) + q(h−1)²");
        for n in 1..=15 {
            let coterie = Coterie::new(listed(n)).expect("a coterie");
            assert_eq!(coterie.domination(), Domination::NonDominated, "N = {n}");
        }
    }

    #[test]
    fn sizes_run_from_the_height_to_half_of_all() {
        for n in [3, 7, 15] {
            let sizes = || {
                listed(n)
                    .sets()
                    .iter()
                    .map(|set| set.len())
                    .collect::<Vec<_>>()
            };
            assert_eq!(sizes().into_iter().min(), Some((n + 1).ilog2() as usize));
            assert_eq!(sizes().into_iter().max(), Some(n.div_ceil(2)));
        }
    }

    #[test]
    fn a_quorum_is_found_exactly_when_the_live_nodes_contain_one() {
        for n in 1..=13 {
            let quorums = listed(n);
            for bits in 0..1_u128 << n {
                let live = NodeSet::from_bits(bits);
                let found = Tree::new(n).quorum(|node| live.contains(node.index()));
                assert_eq!(found.is_some(), quorums.serves(live), "N = {n}, {live}");
                if let Some(found) = found {
                    let found: NodeSet = found.into_iter().map(NodeId::index).collect();
                    assert!(found.is_within(live) && quorums.sets().contains(&found));
                }
            }
        }
    }

    #[test]
    fn a_path_of_live_nodes_outlives_all_others() {
        // Up to n − log n failures: only one path of the 15 nodes is left.
        let path = [0, 2, 5, 12];
        let found = Tree::new(15).quorum(|node| path.contains(&node.index()));
        assert_eq!(found.map(|quorum| quorum.len()), Some(4));
    }

    #[test]
    fn every_node_has_a_path_with_itself_on_it() {
        for n in 1..=40 {
            let coterie = Tree::new(n).coterie();
            for node in 0..n {
                let path: NodeSet = Tree::new(n).path(node).into_iter().collect();
                assert!(path.contains(node) && path.contains(0));
                assert!(coterie.serves(path), "N = {n}, node {node}");
            }
        }
        assert_eq!(Tree::new(0).quorum(|_| true), None);
    }
}
