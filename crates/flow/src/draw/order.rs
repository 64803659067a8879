//! The order within the columns: as few crossings as sweeping to and fro finds, each node going to the middle of its
//! neighbours, and then as exchanging neighbours finds.

use super::layers::Layers;

const SWEEPS: usize = 24;
const EXCHANGES: usize = 16;

pub(super) fn untangle(layers: &mut Layers) {
    let mut best = layers.columns.clone();
    let mut fewest = crossings(layers);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let columns: Vec<usize> = match sweep % 2 {
            0 => (1..layers.columns.len()).collect(),
            _ => (0..layers.columns.len().saturating_sub(1)).rev().collect(),
        };
        for column in columns {
            sort(layers, column, sweep % 2 == 0);
        }
        let crossed = crossings(layers);
        if crossed < fewest {
            fewest = crossed;
            best.clone_from(&layers.columns);
        }
    }
    layers.columns = best.clone();
    for round in 0..EXCHANGES {
        if fewest == 0 {
            break;
        }
        // Every other round goes sideways too, which gets out of corners.
        exchange(layers, round % 2 == 1);
        let crossed = crossings(layers);
        if crossed < fewest {
            fewest = crossed;
            best.clone_from(&layers.columns);
        }
    }
    layers.columns = best;
}

/// Exchanges neighbours in every column where that makes fewer crossings, or not more.
fn exchange(layers: &mut Layers, sideways: bool) {
    let mut places = places(layers);
    for column in &mut layers.columns {
        for at in 1..column.len() {
            let (upper, lower) = (column[at - 1], column[at]);
            let crossed = |upper: usize, lower: usize| -> usize {
                let sides = [&layers.left, &layers.right];
                let side = |near: &&Vec<Vec<usize>>| -> usize {
                    let above = |place: usize| {
                        near[lower]
                            .iter()
                            .filter(|other| places[**other] < place)
                            .count()
                    };
                    near[upper].iter().map(|other| above(places[*other])).sum()
                };
                sides.iter().map(side).sum()
            };
            let (now, then) = (crossed(upper, lower), crossed(lower, upper));
            if then < now || (sideways && then == now) {
                column.swap(at - 1, at);
                places.swap(upper, lower);
            }
        }
    }
}

/// By node: its place in its column.
fn places(layers: &Layers) -> Vec<usize> {
    let mut places = vec![0; layers.column.len()];
    for column in &layers.columns {
        for (at, node) in column.iter().enumerate() {
            places[*node] = at;
        }
    }
    places
}

fn sort(layers: &mut Layers, column: usize, by_left: bool) {
    let places = places(layers);
    let neighbours = if by_left { &layers.left } else { &layers.right };
    let middle = |node: &usize| -> f64 {
        let near = &neighbours[*node];
        match near.len() {
            // Who has no neighbours there stays about where it is.
            0 => places[*node] as f64,
            n => near.iter().map(|other| places[*other] as f64).sum::<f64>() / n as f64,
        }
    };
    let mut sorted: Vec<(f64, usize)> = layers.columns[column]
        .iter()
        .map(|n| (middle(n), *n))
        .collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    layers.columns[column] = sorted.into_iter().map(|(_, node)| node).collect();
}

/// How many pairs of arrows cross between columns, counted by inversions of their ends.
fn crossings(layers: &Layers) -> usize {
    let places = places(layers);
    let between = |column: &Vec<usize>| {
        let mut ends = Vec::new();
        for node in column {
            let mut right: Vec<usize> = layers.right[*node].iter().map(|n| places[*n]).collect();
            right.sort_unstable();
            ends.extend(right);
        }
        inversions(&ends)
    };
    layers.columns.iter().map(between).sum()
}

/// Pairs in the wrong order, with a tree of sums.
fn inversions(ends: &[usize]) -> usize {
    let size = ends.iter().max().map_or(0, |max| max + 1);
    let mut sums = vec![0; size + 1];
    let mut found = 0;
    for (seen, end) in ends.iter().enumerate() {
        let (mut at, mut not_above) = (end + 1, 0);
        while at > 0 {
            not_above += sums[at];
            at &= at - 1;
        }
        found += seen - not_above;
        let mut at = end + 1;
        while at <= size {
            sums[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_the_pairs_in_wrong_order() {
        assert_eq!(inversions(&[]), 0);
        assert_eq!(inversions(&[0, 1, 1, 2]), 0);
        assert_eq!(inversions(&[2, 1, 0]), 3);
        assert_eq!(inversions(&[1, 0, 3, 2, 0]), 5);
    }
}
