//! The triangular grid: row r has r nodes, and a quorum is a row up to its end and the column down
//! from there. About √(2N) nodes, and any two quorums meet in one.
//!
//! Source: message exclusion §1.5, figures 4.3 and 4.4 (Luk and Wong), with the lines of its formula:
//! L_t = {(t,c): c ≤ t} ∪ {(r,t+1): r > t} for t = 0 to k.

use super::construction::nearest;
use crate::SetupError;

/// A triangle of nodes, numbered from the top, row by row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triangle {
    rows: usize,
}

impl Triangle {
    pub fn new(nodes: usize) -> Result<Triangle, SetupError> {
        match rows(nodes) {
            Some(rows) if rows > 0 => Ok(Triangle { rows }),
            _ => Err(nearest("a triangle", nodes, |n| {
                rows(n).is_some_and(|r| r > 0)
            })),
        }
    }

    /// k, which is also the size of a quorum.
    pub fn rows(self) -> usize {
        self.rows
    }

    /// L_0 to L_k.
    pub fn lines(self) -> Vec<Vec<usize>> {
        (0..=self.rows).map(|t| self.line(t)).collect()
    }

    fn line(self, t: usize) -> Vec<usize> {
        let row = (1..=t).map(|c| at(t, c));
        let column = (t + 1..=self.rows).map(|r| at(r, t + 1));
        row.chain(column).collect()
    }

    /// F_i: from the left edge along the node's row, and down from its end.
    pub fn row_quorum(self, node: usize) -> Vec<usize> {
        self.line(place(node).0)
    }

    /// C_i: from the bottom up the node's column, and left from its top.
    pub fn column_quorum(self, node: usize) -> Vec<usize> {
        self.line(place(node).1 - 1)
    }

    /// The row or the column quorum, so that all lines are used about equally often.
    pub fn quorum(self, node: usize) -> Vec<usize> {
        let (row, column) = place(node);
        match (row + column) % 2 {
            0 => self.row_quorum(node),
            _ => self.column_quorum(node),
        }
    }
}

/// The number of rows that exactly `nodes` nodes fill.
fn rows(nodes: usize) -> Option<usize> {
    let rows = (2 * nodes).isqrt();
    (rows * (rows + 1) / 2 == nodes).then_some(rows)
}

/// The node in a row and a column, both from 1.
fn at(row: usize, column: usize) -> usize {
    row * (row - 1) / 2 + column - 1
}

fn place(node: usize) -> (usize, usize) {
    let above = (1..).take_while(|row| row * (row + 1) / 2 <= node).count();
    (above + 1, node - above * (above + 1) / 2 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_one(line: Vec<usize>) -> Vec<usize> {
        line.into_iter().map(|node| node + 1).collect()
    }

    #[test]
    fn the_worked_example_of_ten_nodes() {
        let ten = Triangle::new(10).expect("four rows");
        let lines: Vec<Vec<usize>> = ten.lines().into_iter().map(from_one).collect();
        assert_eq!(
            lines,
            [
                [1, 2, 4, 7],
                [1, 3, 5, 8],
                [2, 3, 6, 9],
                [4, 5, 6, 10],
                [7, 8, 9, 10]
            ]
        );
        let rows = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4];
        let columns = [0, 0, 1, 0, 1, 2, 0, 1, 2, 3];
        let mut appearances = [0; 10];
        for node in 0..10 {
            assert_eq!(from_one(ten.row_quorum(node)), lines[rows[node]]);
            assert_eq!(from_one(ten.column_quorum(node)), lines[columns[node]]);
            for quorum in [ten.row_quorum(node), ten.column_quorum(node)] {
                assert!(quorum.contains(&node));
                quorum.iter().for_each(|&member| appearances[member] += 1);
            }
        }
        assert_eq!(appearances, [8; 10], "equal effort: 2k of the 20 quorums");
    }

    #[test]
    fn rows_only_or_columns_only_are_unequal_effort() {
        let ten = Triangle::new(10).expect("four rows");
        let effort = |quorum: &dyn Fn(usize) -> Vec<usize>| {
            let mut appearances = [0; 10];
            for node in 0..10 {
                quorum(node)
                    .iter()
                    .for_each(|&member| appearances[member] += 1);
            }
            appearances
        };
        let unequal = |numbers: [i32; 10]| numbers.iter().any(|&number| number != numbers[0]);
        assert!(unequal(effort(&|node| ten.row_quorum(node))));
        assert!(unequal(effort(&|node| ten.column_quorum(node))));
    }

    #[test]
    fn any_two_lines_meet_in_one_node_and_every_node_is_on_two() {
        for rows in 1..=12 {
            let triangle = Triangle::new(rows * (rows + 1) / 2).expect("a triangle");
            let lines = triangle.lines();
            for (a, one) in lines.iter().enumerate() {
                assert_eq!(one.len(), rows);
                for other in &lines[a + 1..] {
                    let shared = one.iter().filter(|node| other.contains(node));
                    assert_eq!(shared.count(), 1, "{rows} rows");
                }
            }
            for node in 0..rows * (rows + 1) / 2 {
                let on = lines.iter().filter(|line| line.contains(&node));
                assert_eq!(on.count(), 2);
                assert!(triangle.quorum(node).contains(&node));
            }
        }
    }

    #[test]
    fn other_numbers_are_told_the_nearest_triangles() {
        let error = Triangle::new(8).expect_err("no triangle");
        assert!(error.0.contains("6 or 10"), "{error}");
        assert!(Triangle::new(0).is_err());
    }
}
