//! The square grid: a node's row and column, 2·√N − 1 nodes; the last row may be incomplete.
//!
//! Source: message exclusion §1.5, figure 4.2. The thesis says that two quorums share two nodes; where
//! their owners are in one row or column they share all of it, √N.

/// How many nodes a row has.
pub(super) fn width(nodes: usize) -> usize {
    let root = nodes.isqrt();
    if root * root == nodes { root } else { root + 1 }
}

/// The row and the column of each node. Two nodes of different rows meet where the row that is
/// complete crosses the other's column.
pub(super) fn crosses(nodes: usize) -> Vec<Vec<usize>> {
    let width = width(nodes);
    let cross = |node: usize| {
        let (row, column) = (node / width, node % width);
        let above = (0..row).map(|r| r * width + column);
        let across = row * width..nodes.min((row + 1) * width);
        let below = (row + 1..).map(|r| r * width + column);
        let below = below.take_while(|&other| other < nodes);
        above.chain(across).chain(below).collect()
    };
    (0..nodes).map(cross).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Family, NodeSet};
    use super::*;

    fn sets(nodes: usize) -> Vec<NodeSet> {
        let set = |cross: Vec<usize>| cross.into_iter().collect();
        crosses(nodes).into_iter().map(set).collect()
    }

    #[test]
    fn grids_of_any_size_intersect() {
        for n in 1..=60 {
            let quorums = sets(n);
            assert!(quorums.iter().enumerate().all(|(i, set)| set.contains(i)));
            let family = Family::new(n, quorums).expect("a family");
            assert_eq!(family.disjoint_pair(), None, "N = {n}");
        }
    }

    #[test]
    fn two_crosses_share_two_nodes_or_a_whole_row_or_column() {
        for side in 2..=8 {
            let quorums = sets(side * side);
            for (a, one) in quorums.iter().enumerate() {
                assert_eq!(one.len(), 2 * side - 1, "K = 2·√N − 1");
                for (b, other) in quorums.iter().enumerate().filter(|&(b, _)| b != a) {
                    let in_line = a / side == b / side || a % side == b % side;
                    let shared = one.intersection(*other).len();
                    assert_eq!(shared, if in_line { side } else { 2 });
                }
            }
        }
    }
}
