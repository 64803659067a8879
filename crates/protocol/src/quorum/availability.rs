//! How often the live nodes contain a quorum, when each node is alive with probability p on its own.
//! Exact by enumeration where there are few nodes, by inclusion and exclusion where there are few
//! quorums, by formula where the construction has one; else the share of random samples.
//!
//! Source: message exclusion §1.6; the formulas of grid and triangle are derived here.

use super::{Family, NodeSet};

/// With more nodes than this, sets of live nodes are not enumerated.
pub const ENUMERATED_NODES_MAX: usize = 20;
/// With more quorums than this, sets of quorums are not enumerated.
pub const ENUMERATED_QUORUMS_MAX: usize = 20;
/// How many sets of live nodes are drawn where nothing exact is feasible.
pub const SAMPLES: usize = 100_000;

/// Σ C(m,j)·p^j·(1−p)^(m−j) for j from q: at least q of m nodes are alive.
pub fn at_least(nodes: usize, need: usize, p: f64) -> f64 {
    let mut alive = vec![0.0; need + 1];
    alive[0] = 1.0;
    for _ in 0..nodes {
        for count in (0..need).rev() {
            let up = alive[count] * p;
            alive[count + 1] += up;
            alive[count] -= up;
        }
    }
    alive[need]
}

/// How many sets of live nodes contain a quorum, by the number of live nodes; nothing where there are
/// too many nodes.
pub fn by_live_nodes(family: &Family) -> Option<Vec<u64>> {
    let nodes = family.nodes();
    if nodes > ENUMERATED_NODES_MAX {
        return None;
    }
    let mut serves = vec![false; 1 << nodes];
    for set in family.sets() {
        serves[set.bits() as usize] = true;
    }
    let mut counts = vec![0; nodes + 1];
    for live in 0..1_usize << nodes {
        // A set serves if it does with one node less; smaller sets come first.
        let smaller = |node: usize| live & (1 << node) != 0 && serves[live & !(1 << node)];
        serves[live] = serves[live] || (0..nodes).any(smaller);
        counts[live.count_ones() as usize] += u64::from(serves[live]);
    }
    Some(counts)
}

/// What [`by_live_nodes`] counted, as a probability.
pub fn of_counts(counts: &[u64], p: f64) -> f64 {
    let nodes = counts.len().saturating_sub(1) as i32;
    let term = |(live, &count): (usize, &u64)| {
        let live = live as i32;
        count as f64 * p.powi(live) * (1.0 - p).powi(nodes - live)
    };
    counts.iter().enumerate().map(term).sum()
}

/// By inclusion and exclusion: the coefficient of each power of p; nothing where there are too many
/// quorums.
pub fn by_quorums(family: &Family) -> Option<Vec<f64>> {
    fn include(rest: &[NodeSet], together: NodeSet, sign: f64, coefficients: &mut [f64]) {
        for (i, set) in rest.iter().enumerate() {
            let larger = together.union(*set);
            coefficients[larger.len()] += sign;
            include(&rest[i + 1..], larger, -sign, coefficients);
        }
    }
    if family.sets().len() > ENUMERATED_QUORUMS_MAX {
        return None;
    }
    let mut coefficients = vec![0.0; family.nodes() + 1];
    include(family.sets(), NodeSet::EMPTY, 1.0, &mut coefficients);
    Some(coefficients)
}

/// The polynomial of [`by_quorums`] at `p`.
pub fn of_coefficients(coefficients: &[f64], p: f64) -> f64 {
    let horner = |sum: f64, coefficient: &f64| sum * p + coefficient;
    coefficients.iter().rev().fold(0.0, horner)
}

/// For each of [`SAMPLES`] draws, the least p at which a quorum would have been alive, in order. A node
/// lives when its draw, from 0 to 1, is below p, so that one sample serves every p.
pub fn sampled(family: &Family, mut draw: impl FnMut() -> f64) -> Vec<f64> {
    let members: Vec<Vec<usize>> = family
        .sets()
        .iter()
        .map(|set| set.iter().collect())
        .collect();
    let mut lives = vec![0.0; family.nodes()];
    let mut least: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            lives.iter_mut().for_each(|life| *life = draw());
            let weakest =
                |set: &Vec<usize>| set.iter().map(|&node| lives[node]).fold(0.0, f64::max);
            members.iter().map(weakest).fold(1.0, f64::min)
        })
        .collect();
    least.sort_by(f64::total_cmp);
    least
}

/// The share of the samples of [`sampled`] in which a quorum was alive.
pub fn of_samples(least: &[f64], p: f64) -> f64 {
    let alive = least.partition_point(|&needed| needed < p);
    alive as f64 / least.len().max(1) as f64
}

/// Lines of which any two meet in one node and each node is on two, as in a triangle and in Agrawal
/// and Jalote's groups: j of `lines` lines cover j·size − j(j−1)/2 nodes.
pub fn of_lines(lines: usize, p: f64) -> f64 {
    let size = lines.saturating_sub(1) as i32;
    let mut choices = 1.0;
    let term = |j: usize| {
        choices *= (lines + 1 - j) as f64 / j as f64;
        let j = j as i32;
        let sign = if j % 2 == 1 { 1.0 } else { -1.0 };
        sign * choices * p.powi(j * size - j * (j - 1) / 2)
    };
    (1..=lines).map(term).sum()
}

/// A square grid: some row and some column are whole. Given which rows are whole, a column must be
/// alive in the others.
pub fn of_square(side: usize, p: f64) -> f64 {
    let mut choices = 1.0;
    let mut sum = 0.0;
    // Inclusion and exclusion over i rows; the columns that cross them are independent elsewhere.
    for i in 1..=side {
        choices *= (side + 1 - i) as f64 / i as f64;
        let sign = if i % 2 == 1 { 1.0 } else { -1.0 };
        let rows = p.powi((i * side) as i32);
        let no_column = (1.0 - p.powi((side - i) as i32)).powi(side as i32);
        sum += sign * choices * rows * (1.0 - no_column);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::super::{AgrawalJalote, Composite, KCohorts, Tree, Triangle, grid, maj_r, plane};
    use super::*;

    const PROBABILITIES: [f64; 7] = [0.0, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0];

    fn assert_exactly(family: &Family, formula: impl Fn(f64) -> f64) {
        let counts = by_live_nodes(family).expect("few nodes");
        for p in PROBABILITIES {
            let (exact, formula) = (of_counts(&counts, p), formula(p));
            assert!((exact - formula).abs() < 1e-9, "{p}: {exact}, {formula}");
        }
    }

    fn listed(nodes: usize, sets: impl IntoIterator<Item = NodeSet>) -> Family {
        Family::new(nodes, sets).expect("few sets")
    }

    fn lines(nodes: usize, lines: &[Vec<usize>]) -> Family {
        listed(
            nodes,
            lines.iter().map(|line| line.iter().copied().collect()),
        )
    }

    #[test]
    fn the_numbers_of_seven_nodes() {
        let tree = Tree::new(7).coterie();
        let majority = Composite::majority(NodeSet::first(7));
        let plane = lines(7, &plane::lines(7).expect("a plane"));
        let plane = by_live_nodes(&plane).expect("few nodes");
        let rows = [
            (0.7, 0.851738, 0.873964, 0.848033),
            (0.9, 0.993773, 0.997272, 0.993190),
            (0.95, 0.999228, 0.999806, 0.999131),
        ];
        for (p, of_tree, of_majority, of_plane) in rows {
            assert!((tree.availability(p) - of_tree).abs() < 5e-7);
            assert!((majority.availability(p) - of_majority).abs() < 5e-7);
            assert!((of_counts(&plane, p) - of_plane).abs() < 5e-7);
        }
    }

    #[test]
    fn formulas_agree_with_enumeration() {
        for n in 1..=13 {
            let majority = Composite::majority(NodeSet::first(n));
            assert_exactly(&listed(n, majority.quorums()), |p| {
                at_least(n, n / 2 + 1, p)
            });
            assert_exactly(&listed(n, majority.quorums()), |p| majority.availability(p));
        }
        for n in [1, 2, 3, 5, 7, 8, 13] {
            let tree = Tree::new(n).coterie();
            assert_exactly(&listed(n, tree.quorums()), |p| tree.availability(p));
        }
        for rows in 1..=5 {
            let n = rows * (rows + 1) / 2;
            let triangle = Triangle::new(n).expect("a triangle");
            assert_exactly(&lines(n, &triangle.lines()), |p| of_lines(rows + 1, p));
            let groups = AgrawalJalote::new(n);
            assert_exactly(&lines(n, groups.groups()), |p| of_lines(rows + 1, p));
        }
        for side in 1..=4 {
            let grid = lines(side * side, &grid::crosses(side * side));
            assert_exactly(&grid, |p| of_square(side, p));
        }
        for (k, sizes) in [(1, &[1, 2, 3][..]), (2, &[2, 3, 5]), (3, &[3, 5])] {
            let cohorts = KCohorts::of_sizes(k, sizes).expect("cohorts");
            let family = listed(sizes.iter().sum(), cohorts.quorums());
            assert_exactly(&family, |p| cohorts.availability(p));
        }
    }

    #[test]
    fn the_printed_recursions_are_the_composite() {
        // A(h) = p(1 − (1−A)²) + (1−p)A².
        let mut tree = 0.8;
        for height in 1..=6 {
            tree = 0.8 * (1.0 - (1.0 - tree) * (1.0 - tree)) + 0.2 * tree * tree;
            let composite = Tree::new((2 << height) - 1).coterie();
            assert!((composite.availability(0.8) - tree).abs() < 1e-12);
        }
        // 1 − (1 − B(iN, q_r))^r.
        for (n, k, r) in [(8, 2, 2), (8, 4, 2), (12, 3, 3), (12, 6, 2)] {
            let composite = maj_r(n, k, r).expect("it divides");
            let (class, i) = (n / r, k / r);
            let one = at_least(class, class / (i + 1) + 1, 0.8);
            let all = 1.0 - (1.0 - one).powi(r as i32);
            assert!((composite.availability(0.8) - all).abs() < 1e-12);
        }
    }

    #[test]
    fn maj_beats_div_with_one_exception_unless_nodes_fail_often() {
        let availability = |n, r, p| maj_r(n, 2, r).expect("it divides").availability(p);
        let gain = |n, p| availability(n, 1, p) - availability(n, 2, p);
        for p in [0.2, 0.5, 0.9, 0.95] {
            for n in (4..=30).step_by(2) {
                // The source knows no exception; by rounding, six nodes in two threes are better.
                assert_eq!(gain(n, p) < -1e-12, n == 6, "n = {n}, p = {p}");
            }
        }
        assert!(gain(10, 0.1) < 0.0 && gain(18, 0.1) < 0.0);
        assert!(gain(28, 0.9) < gain(16, 0.9) && gain(16, 0.9) < gain(8, 0.9));
    }

    #[test]
    fn inclusion_and_exclusion_agree_with_enumeration() {
        for n in 1..=13 {
            let groups = lines(n, AgrawalJalote::new(n).groups());
            let coefficients = by_quorums(&groups).expect("few quorums");
            assert_exactly(&groups, |p| of_coefficients(&coefficients, p));
        }
    }

    #[test]
    fn samples_come_close() {
        // A fixed sequence in place of chance.
        let mut bits: u64 = 0x9e37_79b9_7f4a_7c15;
        let draw = || {
            bits ^= bits << 13;
            bits ^= bits >> 7;
            bits ^= bits << 17;
            (bits >> 11) as f64 / (1_u64 << 53) as f64
        };
        let plane = lines(13, &plane::lines(13).expect("a plane"));
        let samples = sampled(&plane, draw);
        let counts = by_live_nodes(&plane).expect("few nodes");
        for p in PROBABILITIES {
            let off = of_samples(&samples, p) - of_counts(&counts, p);
            assert!(off.abs() < 0.01, "{p}: {off}");
        }
    }
}
