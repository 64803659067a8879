//! How quorums are built: the finite projective plane and the square grid.
//!
//! Source: message exclusion §1.5.

use std::fmt;
use std::str::FromStr;

use crate::{NodeId, SetupError};

/// A way to build a quorum for every node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Construction {
    /// A finite projective plane: K(K−1)+1 nodes, quorums of K, any two meet in one node.
    Plane,
    /// A node's row and column; the last row may be incomplete.
    Grid,
}

/// Perfect difference sets: the quorum of node i is {i + d mod N}.
pub const PLANES: [(usize, &[u32]); 8] = [
    (3, &[0, 1]),
    (7, &[0, 1, 3]),
    (13, &[0, 1, 3, 9]),
    (21, &[0, 1, 4, 14, 16]),
    (31, &[0, 1, 3, 8, 12, 18]),
    (57, &[0, 1, 3, 13, 32, 36, 43, 52]),
    (73, &[0, 1, 3, 7, 15, 31, 36, 54, 63]),
    (91, &[0, 1, 3, 9, 27, 49, 56, 61, 77, 81]),
];

/// One quorum a node, each with its owner in it, sorted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Quorums(pub Vec<Vec<NodeId>>);

impl Quorums {
    /// Built as asked, or by default on a plane where there is one of this size, else on a grid.
    pub fn build(construction: Option<Construction>, nodes: usize) -> Result<Quorums, SetupError> {
        let plane = PLANES.iter().find(|(n, _)| *n == nodes);
        match (construction, plane) {
            (Some(Construction::Grid), _) | (None, None) => Ok(Self::grid(nodes)),
            (_, Some((_, differences))) => Ok(Self::cyclic(nodes, differences)),
            (Some(Construction::Plane), None) => Err(SetupError(format!(
                "there is no plane of {nodes} nodes: use {} nodes, or --quorum grid",
                PLANES.map(|(n, _)| n.to_string()).join(", ")
            ))),
        }
    }

    fn cyclic(nodes: usize, differences: &[u32]) -> Quorums {
        let shifted = |i: u32| {
            differences
                .iter()
                .map(|d| NodeId((i + d) % nodes as u32))
                .collect()
        };
        Self::sorted((0..nodes as u32).map(shifted).collect())
    }

    /// Two nodes of different rows meet where the row that is complete crosses the other's column.
    fn grid(nodes: usize) -> Quorums {
        let width = (1..)
            .find(|width| width * width >= nodes)
            .expect("squares grow without end");
        let crosses = |a: usize, b: usize| a / width == b / width || a % width == b % width;
        let cross = |i| {
            (0..nodes)
                .filter(|&j| crosses(i, j))
                .map(|j| NodeId(j as u32))
                .collect()
        };
        Self::sorted((0..nodes).map(cross).collect())
    }

    fn sorted(mut sets: Vec<Vec<NodeId>>) -> Quorums {
        sets.iter_mut().for_each(|set| set.sort_unstable());
        Quorums(sets)
    }

    /// The sizes of the smallest and the largest quorum: K, where they are equal.
    pub fn sizes(&self) -> (usize, usize) {
        let sizes = || self.0.iter().map(Vec::len);
        (sizes().min().unwrap_or(0), sizes().max().unwrap_or(0))
    }
}

impl FromStr for Construction {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Construction, SetupError> {
        match text {
            "plane" => Ok(Construction::Plane),
            "grid" => Ok(Construction::Grid),
            _ => Err(SetupError(format!(
                "`{text}` is not a quorum construction: plane or grid"
            ))),
        }
    }
}

impl fmt::Display for Construction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Construction::Plane => "plane",
            Construction::Grid => "grid",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meeting(a: &[NodeId], b: &[NodeId]) -> usize {
        a.iter().filter(|node| b.contains(node)).count()
    }

    #[test]
    fn planes_have_all_four_properties() {
        for (n, differences) in PLANES {
            let Quorums(sets) = Quorums::build(Some(Construction::Plane), n).expect("a plane");
            for (i, set) in sets.iter().enumerate() {
                assert!(set.contains(&NodeId(i as u32)));
                assert_eq!(set.len(), differences.len());
                let member_of = sets
                    .iter()
                    .filter(|other| other.contains(&NodeId(i as u32)));
                assert_eq!(member_of.count(), differences.len());
                for other in sets.iter().filter(|other| *other != set) {
                    assert_eq!(meeting(set, other), 1, "N = {n}");
                }
            }
        }
    }

    #[test]
    fn grids_of_any_size_intersect() {
        for n in 1..=60 {
            let Quorums(sets) = Quorums::build(Some(Construction::Grid), n).expect("any size");
            for (i, set) in sets.iter().enumerate() {
                assert!(set.contains(&NodeId(i as u32)));
                assert!(sets.iter().all(|other| meeting(set, other) >= 1), "N = {n}");
            }
        }
        let nine = Quorums::build(Some(Construction::Grid), 9).expect("any size");
        assert_eq!(nine.sizes(), (5, 5), "K = 2·√N − 1");
    }

    #[test]
    fn a_missing_plane_names_those_there_are() {
        let error = Quorums::build(Some(Construction::Plane), 8).expect_err("no plane of 8");
        assert!(error.0.contains("3, 7, 13, 21"), "{error}");
    }
}
