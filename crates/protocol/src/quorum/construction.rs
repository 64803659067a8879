//! How the nodes get their quorums for one entry at a time: every construction of the literature that
//! gives each node a quorum, by the name that a person chooses it by.
//!
//! Source: message exclusion §1.5.

use std::fmt;
use std::str::FromStr;

use super::structure::{Layout, Lines, QuorumSets};
use super::{
    AgrawalJalote, Composite, Family, KCohorts, NodeSet, PLANES, Structure, Tree, Triangle, Votes,
    grid, plane,
};
use crate::{NodeId, SetupError};

/// A way to build a quorum for every node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Construction {
    /// A finite projective plane: K(K−1)+1 nodes, quorums of K, any two meet in one node.
    Plane,
    /// The next larger plane, with its surplus points laid onto nodes: up to 91 nodes.
    FoldedPlane,
    /// A node's row and column; the last row may be incomplete.
    Grid,
    /// Rows of 1, 2, 3, … nodes; a row and the column down from its end.
    Triangle,
    /// Groups of which any two share a node, two for each node.
    AgrawalJalote,
    /// More than half of the nodes.
    Majority,
    /// More than half of the votes; without more said, node 0 has one more where N is even.
    Weighted,
    /// A path from the root of a binary tree to a leaf.
    Tree,
    /// All of one cohort, and a member of each later one.
    Cohorts,
}

impl Construction {
    pub const ALL: [Construction; 9] = [
        Construction::Plane,
        Construction::FoldedPlane,
        Construction::Grid,
        Construction::Triangle,
        Construction::AgrawalJalote,
        Construction::Majority,
        Construction::Weighted,
        Construction::Tree,
        Construction::Cohorts,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Construction::Plane => "plane",
            Construction::FoldedPlane => "folded-plane",
            Construction::Grid => "grid",
            Construction::Triangle => "triangle",
            Construction::AgrawalJalote => "agrawal-jalote",
            Construction::Majority => "majority",
            Construction::Weighted => "weighted",
            Construction::Tree => "tree",
            Construction::Cohorts => "cohorts",
        }
    }

    /// All quorums of this construction over at most [`NodeSet::NODES_MAX`] nodes.
    pub fn structure(self, nodes: usize) -> Result<Structure, SetupError> {
        if nodes == 0 || nodes > NodeSet::NODES_MAX {
            let most = NodeSet::NODES_MAX;
            return Err(SetupError(format!("use 1 to {most} nodes, not {nodes}")));
        }
        let rows = Layout::Rows(grid::width(nodes));
        let full = |side: usize| side * side == nodes;
        let (quorums, layout) = match self {
            Construction::Plane => (listed(nodes, &plane::lines(nodes)?, None)?, Layout::Row),
            Construction::FoldedPlane => {
                (listed(nodes, &plane::folded(nodes)?, None)?, Layout::Row)
            }
            Construction::Grid => {
                let square = Some(Lines::Square(grid::width(nodes)));
                let formula = square.filter(|_| full(grid::width(nodes)));
                (listed(nodes, &grid::crosses(nodes), formula)?, rows)
            }
            Construction::Triangle => {
                let triangle = Triangle::new(nodes)?;
                let formula = Some(Lines::Crossing(triangle.rows() + 1));
                (listed(nodes, &triangle.lines(), formula)?, Layout::Triangle)
            }
            Construction::AgrawalJalote => {
                let groups = AgrawalJalote::new(nodes);
                let count = groups.groups().len();
                let whole = count * (count - 1) / 2 == nodes;
                let formula = whole.then_some(Lines::Crossing(count));
                (listed(nodes, groups.groups(), formula)?, Layout::Row)
            }
            Construction::Majority => {
                let majority = Composite::majority(NodeSet::first(nodes));
                (QuorumSets::Composite(majority), Layout::Row)
            }
            Construction::Weighted => (QuorumSets::Votes(Votes::without_ties(nodes)?), Layout::Row),
            Construction::Tree => (
                QuorumSets::Composite(Tree::new(nodes).coterie()),
                Layout::Tree,
            ),
            Construction::Cohorts => {
                let sizes = KCohorts::usual_sizes(nodes, 1)?;
                (
                    QuorumSets::Cohorts(KCohorts::of_sizes(1, &sizes)?),
                    Layout::Row,
                )
            }
        };
        Ok(Structure {
            nodes,
            quorums,
            layout,
        })
    }

    /// A bound on the size of a quorum that a node is given.
    fn size_max(self, nodes: usize) -> usize {
        let root = grid::width(nodes);
        match self {
            Construction::Plane | Construction::FoldedPlane => root + 1,
            Construction::Grid | Construction::Triangle | Construction::AgrawalJalote => 2 * root,
            Construction::Majority | Construction::Weighted => nodes / 2 + 1,
            Construction::Tree => usize::BITS as usize,
            Construction::Cohorts => nodes,
        }
    }
}

fn listed(
    nodes: usize,
    lines: &[Vec<usize>],
    formula: Option<Lines>,
) -> Result<QuorumSets, SetupError> {
    let sets = lines.iter().map(|line| line.iter().copied().collect());
    match Family::new(nodes, sets) {
        Ok(family) => Ok(QuorumSets::Listed(family, formula)),
        Err(error) => Err(SetupError(error.to_string())),
    }
}

/// One quorum a node, each with its owner in it, sorted; any two meet. Where a construction knows more
/// quorums than nodes, the owner's is a smallest one that it is in, or close to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quorums(pub Vec<Vec<NodeId>>);

impl Quorums {
    /// More members of all quorums together would take the machine's memory.
    pub const MEMBERS_MAX: usize = 100_000_000;

    /// Built as asked, or by default on a plane where there is one of this size, else on a grid.
    pub fn build(construction: Option<Construction>, nodes: usize) -> Result<Quorums, SetupError> {
        let plane = PLANES.iter().any(|(n, _)| *n == nodes);
        let construction = construction.unwrap_or(match plane {
            true => Construction::Plane,
            false => Construction::Grid,
        });
        let members = nodes.saturating_mul(construction.size_max(nodes));
        if members > Self::MEMBERS_MAX {
            return Err(SetupError(format!(
                "{nodes} nodes are too many for {construction}: their quorums have up to {members} members in all"
            )));
        }
        let sets = match construction {
            Construction::Plane => plane::lines(nodes)?,
            Construction::FoldedPlane => plane::folded(nodes)?,
            Construction::Grid => grid::crosses(nodes),
            Construction::Triangle => {
                let triangle = Triangle::new(nodes)?;
                (0..nodes).map(|node| triangle.quorum(node)).collect()
            }
            Construction::AgrawalJalote => {
                let groups = AgrawalJalote::new(nodes);
                let first = |node| groups.of(node).map(|[first, _]| first.to_vec());
                (0..nodes).filter_map(first).collect()
            }
            Construction::Majority => windows(nodes),
            Construction::Weighted => {
                let votes = Votes::without_ties(nodes)?;
                let own = |node| votes.quorum_of(node).iter().collect();
                (0..nodes).map(own).collect()
            }
            Construction::Tree => (0..nodes).map(|node| Tree::new(nodes).path(node)).collect(),
            Construction::Cohorts => {
                let sizes = KCohorts::usual_sizes(nodes, 1)?;
                let cohorts = KCohorts::of_sizes(1, &sizes)?;
                let own = |node| cohorts.quorum_of(node).map(|set| set.iter().collect());
                (0..nodes).filter_map(own).collect()
            }
        };
        let named = |mut set: Vec<usize>| {
            set.sort_unstable();
            set.into_iter().map(|node| NodeId(node as u32)).collect()
        };
        Ok(Quorums(sets.into_iter().map(named).collect()))
    }

    /// The sizes of the smallest and the largest quorum: K, where they are equal.
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = || self.0.iter().map(Vec::len);
        (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
    }
}

/// More than half of the nodes, from each node on: every node is asked by equally many.
fn windows(nodes: usize) -> Vec<Vec<usize>> {
    let window = |node| (node..node + nodes / 2 + 1).map(|other| other % nodes);
    (0..nodes).map(|node| window(node).collect()).collect()
}

/// Refuses a number of nodes, and names the nearest that can be used.
pub(super) fn nearest(name: &str, nodes: usize, fits: impl Fn(usize) -> bool) -> SetupError {
    /// Numbers further away are not looked at.
    const AWAY_MAX: usize = 1_000;
    let below = (nodes.saturating_sub(AWAY_MAX)..nodes)
        .rev()
        .find(|&n| fits(n));
    let above = (nodes + 1..=nodes.saturating_add(AWAY_MAX)).find(|&n| fits(n));
    let usable: Vec<String> = (below.into_iter().chain(above))
        .map(|n| n.to_string())
        .collect();
    SetupError(match usable.is_empty() {
        true => format!("{nodes} nodes do not make {name}"),
        false => format!(
            "{nodes} nodes do not make {name}: use {} nodes",
            usable.join(" or ")
        ),
    })
}

impl FromStr for Construction {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Construction, SetupError> {
        let named = |construction: &Construction| construction.name() == text;
        match Construction::ALL.into_iter().find(named) {
            Some(construction) => Ok(construction),
            None => Err(SetupError(format!(
                "`{text}` is not a quorum construction: use {}",
                Construction::ALL.map(Construction::name).join(", ")
            ))),
        }
    }
}

impl fmt::Display for Construction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(a: &[NodeId], b: &[NodeId]) -> usize {
        a.iter().filter(|node| b.contains(node)).count()
    }

    #[test]
    fn every_construction_gives_every_node_a_quorum_with_itself_in_it() {
        for construction in Construction::ALL {
            let mut built = 0;
            for n in 1..=60 {
                let Ok(Quorums(sets)) = Quorums::build(Some(construction), n) else {
                    continue;
                };
                built += 1;
                assert_eq!(sets.len(), n, "{construction}");
                let structure = construction.structure(n).expect("it was built");
                let serves = |set: &[NodeId]| {
                    let set: NodeSet = set.iter().map(|node| node.index()).collect();
                    match &structure.quorums {
                        QuorumSets::Listed(family, _) => family.serves(set),
                        QuorumSets::Composite(composite) => composite.serves(set),
                        QuorumSets::Cohorts(cohorts) => cohorts.quorum(set).is_some(),
                        QuorumSets::Votes(votes) => votes.serves(set),
                    }
                };
                for (i, set) in sets.iter().enumerate() {
                    assert!(set.contains(&NodeId(i as u32)), "{construction}, N = {n}");
                    assert!(set.is_sorted() && serves(set), "{construction}, N = {n}");
                    let meet = |other: &Vec<NodeId>| meeting(set, other) >= 1;
                    assert!(sets.iter().all(meet), "{construction}, N = {n}");
                }
            }
            assert!(built >= 6, "{construction}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for construction in Construction::ALL {
            assert_eq!(construction.to_string().parse(), Ok(construction));
        }
        let error = "ring".parse::<Construction>().expect_err("no such name");
        assert!(error.0.contains("agrawal-jalote"), "{error}");
    }

    #[test]
    fn the_default_is_a_plane_where_there_is_one() {
        let seven = Quorums::build(None, 7).expect("any size");
        assert_eq!(seven.sizes(), (3, 3));
        let nine = Quorums::build(None, 9).expect("any size");
        assert_eq!(nine.sizes(), (5, 5), "K = 2·√N − 1");
        let ten = Quorums::build(Some(Construction::Triangle), 10).expect("a triangle");
        assert_eq!(ten.sizes(), (4, 4));
    }

    #[test]
    fn quorums_that_would_fill_the_memory_are_refused() {
        let error = Quorums::build(Some(Construction::Majority), 100_000).expect_err("too large");
        assert!(error.0.contains("too many"), "{error}");
        assert!(Quorums::build(Some(Construction::Tree), 100_000).is_ok());
        assert!(Construction::Grid.structure(129).is_err());
        assert!(Construction::Grid.structure(0).is_err());
    }
}
