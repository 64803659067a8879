//! The groups that are multicast to, and who is in them.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{NodeId, SetupError};

/// A group, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Group(pub u32);

impl Group {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The groups of a run. A single group has everybody. Of several, group g has everybody but node g: so every two
/// overlap, and from three groups on they overlap in a circle, which is what an order over all groups must stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Groups {
    nodes: u32,
    count: u32,
}

impl Groups {
    pub fn new(nodes: usize, count: Option<usize>) -> Result<Groups, SetupError> {
        let count = count.unwrap_or(1);
        if count == 0 || count > 1 && (nodes < 3 || count > nodes) {
            let most = if nodes < 3 { 1 } else { nodes };
            return Err(SetupError(format!(
                "{count} groups of {nodes} nodes: it can have 1 to {most}"
            )));
        }
        Ok(Groups {
            nodes: nodes as u32,
            count: count as u32,
        })
    }

    pub fn nodes(&self) -> usize {
        self.nodes as usize
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    pub fn has(&self, group: Group, node: NodeId) -> bool {
        group.0 < self.count && node.0 < self.nodes && (self.count == 1 || group.0 != node.0)
    }

    pub fn members(&self, group: Group) -> impl Iterator<Item = NodeId> + use<> {
        let groups = *self;
        NodeId::all(self.nodes()).filter(move |&node| groups.has(group, node))
    }

    /// How many are in a group.
    pub fn size(&self, group: Group) -> usize {
        match group.0 < self.count {
            true => self.nodes() - usize::from(self.count > 1),
            false => 0,
        }
    }

    /// The groups that a node is in.
    pub fn of(&self, node: NodeId) -> impl Iterator<Item = Group> + use<> {
        let groups = *self;
        (0..self.count)
            .map(Group)
            .filter(move |&group| groups.has(group, node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(groups: Groups) -> Vec<Vec<u32>> {
        let of = |group| groups.members(Group(group)).map(|node| node.0).collect();
        (0..groups.count).map(of).collect()
    }

    #[test]
    fn one_group_has_everybody_and_several_overlap() {
        let one = Groups::new(3, None).expect("valid");
        assert_eq!(members(one), [vec![0, 1, 2]]);
        let three = Groups::new(3, Some(3)).expect("valid");
        assert_eq!(members(three), [vec![1, 2], vec![0, 2], vec![0, 1]]);
        let of = |node| three.of(NodeId(node)).map(|g| g.0).collect::<Vec<_>>();
        assert_eq!(of(0), [1, 2]);
        assert!((0..3).all(|g| three.size(Group(g)) == 2) && three.size(Group(3)) == 0);
        assert!(!three.has(Group(3), NodeId(0)) && !three.has(Group(0), NodeId(3)));
    }

    #[test]
    fn groups_that_cannot_be_are_refused() {
        for (nodes, count) in [(4, 0), (4, 5), (2, 2)] {
            let error = Groups::new(nodes, Some(count)).expect_err("refused");
            assert!(error.0.contains("it can have 1 to"), "{error}");
        }
    }
}
