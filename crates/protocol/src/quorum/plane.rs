//! Finite projective planes: quorums of about √N nodes of which any two meet in exactly one.
//!
//! Source: message exclusion §1.5 (Maekawa). A plane of order K−1 has N = K(K−1)+1 nodes; for other N
//! the next plane is folded.

use super::construction::nearest;
use crate::SetupError;

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

/// The line of each node, with the node on it.
pub(super) fn lines(nodes: usize) -> Result<Vec<Vec<usize>>, SetupError> {
    match PLANES.iter().find(|(n, _)| *n == nodes) {
        Some((_, differences)) => Ok(cyclic(nodes, differences)),
        None => Err(SetupError(format!(
            "there is no plane of {nodes} nodes: use {} nodes, or another construction",
            PLANES.map(|(n, _)| n.to_string()).join(", ")
        ))),
    }
}

/// The next larger plane, with its surplus points laid onto nodes that there are. Where two lines
/// meet in a surplus point, they meet in the node that stands for it.
pub(super) fn folded(nodes: usize) -> Result<Vec<Vec<usize>>, SetupError> {
    let plane = PLANES.iter().find(|(n, _)| *n >= nodes);
    let Some((points, differences)) = plane.filter(|_| nodes > 0) else {
        let fits = |n: usize| n > 0 && PLANES.iter().any(|(points, _)| *points >= n);
        return Err(nearest("a folded plane", nodes, fits));
    };
    let mut lines = cyclic(*points, differences);
    lines.truncate(nodes);
    for line in &mut lines {
        line.iter_mut().for_each(|point| *point %= nodes);
        line.sort_unstable();
        line.dedup();
    }
    Ok(lines)
}

fn cyclic(nodes: usize, differences: &[u32]) -> Vec<Vec<usize>> {
    let shifted = |i: usize| {
        let mut line: Vec<usize> = (differences.iter())
            .map(|&d| (i + d as usize) % nodes)
            .collect();
        line.sort_unstable();
        line
    };
    (0..nodes).map(shifted).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Coterie, Domination, Family, NodeSet};
    use super::*;

    fn sets(lines: &[Vec<usize>]) -> Vec<NodeSet> {
        let set = |line: &Vec<usize>| line.iter().copied().collect();
        lines.iter().map(set).collect()
    }

    /// (a) any two meet, here in one node; (b) the owner is in; (c) one size K; (d) every node is in
    /// K sets.
    fn assert_all_four_properties(quorums: &[NodeSet], size: usize) {
        for (i, set) in quorums.iter().enumerate() {
            assert!(set.contains(i), "{set} of {i}");
            assert_eq!(set.len(), size);
            let with_me = quorums.iter().filter(|other| other.contains(i));
            assert_eq!(with_me.count(), size);
            for other in quorums.iter().filter(|other| *other != set) {
                assert_eq!(set.intersection(*other).len(), 1);
            }
        }
    }

    #[test]
    fn planes_have_all_four_properties() {
        for (n, differences) in PLANES {
            let size = differences.len();
            assert_eq!(n, size * (size - 1) + 1, "the most nodes for this size");
            assert_all_four_properties(&sets(&lines(n).expect("a plane")), size);
        }
    }

    #[test]
    fn the_tables_of_maekawa_have_all_four_properties() {
        let table = |rows: &[&[usize]]| -> Vec<NodeSet> {
            let set = |row: &&[usize]| row.iter().map(|node| node - 1).collect();
            rows.iter().map(set).collect()
        };
        let seven = table(&[
            &[1, 2, 3],
            &[2, 4, 6],
            &[3, 5, 6],
            &[1, 4, 5],
            &[2, 5, 7],
            &[1, 6, 7],
            &[3, 4, 7],
        ]);
        assert_all_four_properties(&seven, 3);
        let thirteen = table(&[
            &[1, 2, 3, 4],
            &[2, 5, 8, 11],
            &[3, 6, 8, 13],
            &[4, 6, 10, 11],
            &[1, 5, 6, 7],
            &[2, 6, 9, 12],
            &[2, 7, 10, 13],
            &[1, 8, 9, 10],
            &[3, 7, 9, 11],
            &[3, 5, 10, 12],
            &[1, 11, 12, 13],
            &[4, 7, 8, 12],
            &[4, 5, 9, 13],
        ]);
        assert_all_four_properties(&thirteen, 4);
    }

    #[test]
    fn only_the_smallest_planes_are_non_dominated() {
        for (n, _) in PLANES {
            let family = Family::new(n, sets(&lines(n).expect("a plane"))).expect("a family");
            let domination = Coterie::new(family).expect("a coterie").domination();
            match n {
                3 | 7 => assert_eq!(domination, Domination::NonDominated),
                _ => assert!(matches!(domination, Domination::Dominated(_)), "N = {n}"),
            }
        }
    }

    #[test]
    fn folded_planes_meet_at_every_size() {
        for n in 1..=91 {
            let quorums = sets(&folded(n).expect("up to 91"));
            assert_eq!(quorums.len(), n);
            let family = Family::new(n, quorums.iter().copied()).expect("a family");
            assert_eq!(family.disjoint_pair(), None, "N = {n}");
            assert!(quorums.iter().enumerate().all(|(i, set)| set.contains(i)));
        }
        let full = folded(13).expect("a plane");
        assert_eq!(full, lines(13).expect("a plane"));
        let error = folded(92).expect_err("too many");
        assert!(error.0.contains("91"), "{error}");
    }

    #[test]
    fn a_missing_plane_names_those_there_are() {
        let error = lines(8).expect_err("no plane of 8");
        assert!(error.0.contains("3, 7, 13, 21"), "{error}");
    }
}
