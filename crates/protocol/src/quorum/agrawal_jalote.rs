//! Agrawal and Jalote's groups: the nodes are the pairs {i, j} of n groups, so two groups share
//! exactly one node and every node has a second group for when the first has lost a member.
//!
//! Source: message exclusion §1.5. For N that is no n(n−1)/2, the thesis only asks that all groups
//! still meet; here a pair without a node of its own is given to a member of one of its groups.

/// The groups and who is in them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgrawalJalote {
    groups: Vec<Vec<usize>>,
    /// The two groups of each node's own pair.
    pairs: Vec<(usize, usize)>,
}

impl AgrawalJalote {
    /// For at least one node.
    pub fn new(nodes: usize) -> AgrawalJalote {
        let count = (2..)
            .find(|n| n * (n - 1) / 2 >= nodes)
            .expect("pairs grow without end");
        let pairs = || (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (node, (i, j)) in pairs().take(nodes).enumerate() {
            groups[i].push(node);
            groups[j].push(node);
        }
        let mut extra = vec![0; nodes];
        for (i, j) in pairs().skip(nodes) {
            if groups[i].iter().any(|node| groups[j].contains(node)) {
                continue;
            }
            // A member of one group joins the other: the one that has joined the fewest.
            let members = groups[i].iter().chain(&groups[j]).copied();
            let Some(node) = members.min_by_key(|&node| (extra[node], node)) else {
                continue;
            };
            extra[node] += 1;
            let joined = if groups[i].contains(&node) { j } else { i };
            groups[joined].push(node);
        }
        groups.iter_mut().for_each(|group| group.sort_unstable());
        AgrawalJalote {
            groups,
            pairs: pairs().take(nodes).collect(),
        }
    }

    pub fn groups(&self) -> &[Vec<usize>] {
        &self.groups
    }

    /// A node's groups: the one it asks, and the one it asks when a member of the first has failed.
    pub fn of(&self, node: usize) -> Option<[&[usize]; 2]> {
        let &(i, j) = self.pairs.get(node)?;
        let (first, second) = if (i + j) % 2 == 0 { (i, j) } else { (j, i) };
        Some([&self.groups[first], &self.groups[second]])
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Family, NodeSet};
    use super::*;

    fn sets(groups: &AgrawalJalote) -> Vec<NodeSet> {
        let set = |group: &Vec<usize>| group.iter().copied().collect();
        groups.groups().iter().map(set).collect()
    }

    #[test]
    fn the_example_of_ten_nodes() {
        let ten = AgrawalJalote::new(10);
        let from_one = |group: &Vec<usize>| group.iter().map(|node| node + 1).collect();
        let groups: Vec<Vec<usize>> = ten.groups().iter().map(from_one).collect();
        assert_eq!(
            groups,
            [
                [1, 2, 3, 4],
                [1, 5, 6, 7],
                [2, 5, 8, 9],
                [3, 6, 8, 10],
                [4, 7, 9, 10]
            ]
        );
    }

    #[test]
    fn full_groups_share_one_node_and_every_node_is_in_two() {
        for n in 2..=15 {
            let nodes = n * (n - 1) / 2;
            let full = AgrawalJalote::new(nodes);
            let groups = sets(&full);
            assert_eq!(groups.len(), n);
            for (a, one) in groups.iter().enumerate() {
                assert_eq!(one.len(), n - 1);
                let mut others = groups[a + 1..].iter();
                assert!(others.all(|other| one.intersection(*other).len() == 1));
            }
            for node in 0..nodes {
                assert_eq!(groups.iter().filter(|set| set.contains(node)).count(), 2);
            }
        }
    }

    #[test]
    fn groups_of_any_number_of_nodes_meet() {
        for nodes in 1..=100 {
            let groups = AgrawalJalote::new(nodes);
            let family = Family::new(nodes, sets(&groups)).expect("a family");
            assert_eq!(family.disjoint_pair(), None, "N = {nodes}");
            for node in 0..nodes {
                let [first, second] = groups.of(node).expect("a node");
                assert!(first.contains(&node) && second.contains(&node));
            }
            assert_eq!(groups.of(nodes), None);
        }
    }

    #[test]
    fn one_failure_leaves_everybody_a_group_and_two_can_strand_a_node() {
        let ten = AgrawalJalote::new(10);
        let stranded = |dead: &[usize]| {
            let hit = |group: &[usize]| group.iter().any(|node| dead.contains(node));
            let alone = |&node: &usize| ten.of(node).is_some_and(|both| both.into_iter().all(hit));
            let live = (0..10).filter(|node| !dead.contains(node));
            live.filter(alone).collect::<Vec<usize>>()
        };
        for dead in 0..10 {
            assert_eq!(stranded(&[dead]), []);
        }
        // Nodes 2 and 10 of the thesis are in groups 1, 3 and 4, 5: node 4 is of groups 1 and 5.
        assert!(stranded(&[1, 9]).contains(&3));
    }
}
