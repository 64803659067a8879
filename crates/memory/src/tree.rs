//! The tree of a tournament: leaves 0 to n−1 below a complete binary tree, which need not be full.

use std::ops::Range;

/// The tree over so many leaves. Levels count from 1, just above the leaves, to the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tree {
    leaves: usize,
    levels: usize,
}

impl Tree {
    /// The tree over so many leaves, at least one.
    pub fn new(leaves: usize) -> Tree {
        let levels = leaves.next_power_of_two().trailing_zeros();
        Tree {
            leaves,
            levels: levels as usize,
        }
    }

    /// How many levels there are: the logarithm of the leaves, rounded up.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// How many inner nodes a full tree of this height has; a node's number is below that.
    pub fn nodes(&self) -> usize {
        (1 << self.levels) - 1
    }

    /// The inner node where a leaf plays at a level; the root is 0.
    pub fn node(&self, leaf: usize, level: usize) -> usize {
        self.heap(leaf, level) - 1
    }

    /// The node of the other side: where the rival of a leaf at a level comes from, one level below.
    pub fn rival(&self, leaf: usize, level: usize) -> usize {
        (self.heap(leaf, level - 1) ^ 1) - 1
    }

    /// From which side a leaf comes to its node at a level: 0 is left.
    pub fn role(&self, leaf: usize, level: usize) -> usize {
        leaf >> (level - 1) & 1
    }

    /// The leaves that may come to the node of a leaf from the other side.
    pub fn opponents(&self, leaf: usize, level: usize) -> Range<usize> {
        let first = ((leaf >> (level - 1)) ^ 1) << (level - 1);
        let until = first + (1 << (level - 1));
        first.min(self.leaves)..until.min(self.leaves)
    }

    /// The guard of fig. 3.7, which is wrong: it can be false where there are opponents.
    pub fn guard_of_fig_3_7(&self, leaf: usize, level: usize) -> bool {
        self.role(leaf, level) != 0 || leaf + level <= self.leaves
    }

    /// The guard of fig. 3.9, which is wrong for fewer sizes.
    pub fn guard_of_fig_3_9(&self, leaf: usize, level: usize) -> bool {
        self.guard_of_fig_3_7(leaf, level) || leaf < 1 << self.levels >> 1
    }

    fn heap(&self, leaf: usize, level: usize) -> usize {
        (1 << self.levels | leaf) >> level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes up to 37 at which a guard keeps a leaf from looking at opponents that it has.
    fn wrong_sizes(guard: fn(&Tree, usize, usize) -> bool) -> Vec<usize> {
        let wrong = |&leaves: &usize| {
            let tree = Tree::new(leaves);
            let mut games =
                (0..leaves).flat_map(|leaf| (1..=tree.levels()).map(move |level| (leaf, level)));
            games.any(|(leaf, level)| {
                !guard(&tree, leaf, level) && !tree.opponents(leaf, level).is_empty()
            })
        };
        (2..=37).filter(wrong).collect()
    }

    #[test]
    fn the_printed_guards_fail_exactly_where_the_specification_says() {
        assert_eq!(
            wrong_sizes(Tree::guard_of_fig_3_7),
            [5, 9, 10, 13, 17, 18, 19, 21, 25, 26, 29, 33, 34, 35, 36, 37]
        );
        assert_eq!(
            wrong_sizes(Tree::guard_of_fig_3_9),
            [13, 21, 25, 26, 29, 37]
        );
    }

    #[test]
    fn opponents_are_those_of_the_thesis() {
        let tree = Tree::new(8);
        assert_eq!(tree.levels(), 3);
        assert_eq!(tree.opponents(5, 2), 6..8);
        assert_eq!(tree.opponents(7, 2), 4..6);
        assert_eq!(Tree::new(16).opponents(5, 4), 8..16);
        assert_eq!(tree.node(5, 2), tree.node(7, 2));
        assert_eq!((tree.role(5, 2), tree.role(7, 2)), (0, 1));
        assert_eq!(Tree::new(13).opponents(12, 1), 13..13);
        assert_eq!(Tree::new(13).opponents(12, 3), 8..12);
    }

    #[test]
    fn every_pair_meets_at_one_node() {
        for leaves in 1..=64 {
            let tree = Tree::new(leaves);
            for one in 0..leaves {
                let met: usize = (1..=tree.levels())
                    .map(|level| tree.opponents(one, level).len())
                    .sum();
                assert_eq!(met, leaves - 1, "{leaves} leaves");
            }
        }
    }
}
