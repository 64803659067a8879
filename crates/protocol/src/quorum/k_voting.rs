//! Voting with more than one place: `Maj_k`, which for k = 1 is the majority, `MAJ_r` and DIV.
//!
//! Source: message exclusion §1.5. The thesis claims that `Maj_k` is always a k-coterie; with fewer than
//! k·q nodes it is not, because k disjoint quorums do not fit.

use super::construction::nearest;
use super::{Composite, NodeSet};
use crate::SetupError;

/// ⌈(N+1)/(k+1)⌉ = ⌊N/(k+1)⌋ + 1.
pub fn maj_k_size(nodes: usize, k: usize) -> usize {
    nodes / (k + 1) + 1
}

/// `Maj_k`: all sets of [`maj_k_size`] nodes. MAJ is the same.
pub fn maj_k(nodes: usize, k: usize) -> Result<Composite, SetupError> {
    let fits = |nodes| nodes > 0 && nodes >= k * maj_k_size(nodes, k);
    if k == 0 || !fits(nodes) {
        return Err(nearest(&format!("a majority with k = {k}"), nodes, fits));
    }
    let size = maj_k_size(nodes, k);
    Ok(Composite::any(size, NodeSet::first(nodes)))
}

/// `MAJ_r`: r equal classes, and in one of them all sets of q_r = ⌊iN/(i+1)⌋ + 1 nodes, where r·i = k and
/// a class has iN nodes. `MAJ_1` is MAJ, `MAJ_k` is DIV.
pub fn maj_r(nodes: usize, k: usize, classes: usize) -> Result<Composite, SetupError> {
    if k == 0 || classes == 0 || !k.is_multiple_of(classes) {
        return Err(SetupError(format!(
            "the number of classes must divide k: {classes} does not divide {k}"
        )));
    }
    let fits = |nodes: usize| nodes > 0 && nodes.is_multiple_of(k);
    if !fits(nodes) {
        return Err(nearest(&format!("equal classes with k = {k}"), nodes, fits));
    }
    let each = nodes / classes;
    let size = maj_k_size(each, k / classes);
    let class = |i: usize| Composite::any(size, NodeSet::span(i * each, (i + 1) * each));
    Ok(match classes {
        1 => class(0),
        _ => Composite::union((0..classes).map(class).collect()),
    })
}

/// Theorem 4.6: k majorities over odd numbers of nodes that share none, a non-dominated k-coterie. A
/// node that would make a class even is left out of all quorums.
pub fn joined_majorities(nodes: usize, k: usize) -> Result<Composite, SetupError> {
    let fits = |nodes: usize| k > 0 && nodes >= k;
    if !fits(nodes) {
        return Err(nearest(
            &format!("joined majorities with k = {k}"),
            nodes,
            fits,
        ));
    }
    let mut from = 0;
    let mut parts = Vec::new();
    for left in (1..=k).rev() {
        let fair = (nodes - from) / left;
        let size = if fair % 2 == 1 { fair } else { fair - 1 };
        parts.push(Composite::majority(NodeSet::span(from, from + size)));
        from += size;
    }
    Ok(Composite::union(parts))
}

#[cfg(test)]
mod tests {
    use super::super::{Coterie, Domination, Family, Flaw, KCoterie};
    use super::*;

    fn listed(nodes: usize, composite: &Composite) -> Family {
        Family::new(nodes, composite.quorums()).expect("few sets")
    }

    #[test]
    fn majorities_are_coteries_and_the_odd_ones_non_dominated() {
        for n in 1..=11 {
            let majority = maj_k(n, 1).expect("any number");
            assert_eq!(majority, Composite::majority(NodeSet::first(n)));
            let coterie = Coterie::new(listed(n, &majority)).expect("a coterie");
            let domination = coterie.domination();
            match n % 2 {
                1 => assert_eq!(domination, Domination::NonDominated, "N = {n}"),
                _ => assert!(matches!(domination, Domination::Dominated(_)), "N = {n}"),
            }
        }
    }

    #[test]
    fn maj_k_is_a_k_coterie_exactly_when_k_quorums_fit() {
        for k in 1..=4 {
            for n in 1..=9 {
                let size = maj_k_size(n, k);
                assert_eq!(size, (n + 1).div_ceil(k + 1));
                let sets = NodeSet::first(n).subsets(size);
                let found = KCoterie::new(Family::new(n, sets).expect("few sets"), k);
                assert_eq!(found.is_ok(), n >= k * size, "N = {n}, k = {k}");
                assert_eq!(maj_k(n, k).is_ok(), found.is_ok());
            }
        }
        for (n, k) in [(3, 2), (4, 3), (5, 3), (8, 3)] {
            let sets = NodeSet::first(n).subsets(maj_k_size(n, k));
            let refused = KCoterie::new(Family::new(n, sets).expect("few sets"), k);
            assert!(
                matches!(refused, Err(Flaw::NoneFree(_))),
                "N = {n}, k = {k}"
            );
        }
        let error = maj_k(8, 3).expect_err("only two disjoint quorums fit");
        assert!(error.0.contains("7 or 9"), "{error}");
    }

    #[test]
    fn theorem_4_5_maj_k_of_tight_numbers_is_non_dominated() {
        for k in 1..=4 {
            for n in 1..=7 {
                let Ok(composite) = maj_k(n, k) else { continue };
                let coterie = KCoterie::new(listed(n, &composite), k).expect("a k-coterie");
                let tight = n + 1 == (k + 1) * maj_k_size(n, k);
                if tight {
                    assert_eq!(coterie.domination(), Domination::NonDominated);
                }
                assert_eq!(composite.promise().k, Some(k));
                let promised = composite.promise().non_dominated;
                match (tight, k) {
                    (true, _) => assert_eq!(promised, Some(true)),
                    (false, 1) => assert_eq!(promised, Some(false)),
                    (false, _) => assert_eq!(promised, None),
                }
            }
        }
    }

    #[test]
    fn maj_r_are_k_coteries_of_the_counted_sizes() {
        for (n, k) in [(4, 2), (6, 2), (8, 2), (8, 4), (6, 3)] {
            for r in (1..=k).filter(|r| k % r == 0) {
                let composite = maj_r(n, k, r).expect("it divides");
                let found = KCoterie::new(listed(n, &composite), k);
                assert!(found.is_ok(), "n = {n}, k = {k}, r = {r}");
            }
        }
        let counts = |n, k, r| {
            let composite = maj_r(n, k, r).expect("it divides");
            let sets = composite.quorums();
            (sets[0].len(), sets.len())
        };
        assert_eq!((counts(8, 2, 2), counts(8, 2, 1)), ((3, 8), (3, 56)));
        assert_eq!((counts(8, 4, 4), counts(8, 4, 2)), ((2, 4), (2, 12)));
        assert_eq!(counts(8, 4, 1), (2, 28));
        assert_eq!((counts(6, 2, 2), counts(6, 2, 1)), ((2, 6), (3, 20)));
    }

    #[test]
    fn div_quorums_are_never_larger_than_those_of_maj() {
        for k in 2..=5 {
            for n in (k..=60).step_by(k) {
                let size = |r| maj_k_size(n / r, k / r);
                assert_eq!(size(k), n / (2 * k) + 1, "DIV");
                assert!(size(k) <= size(1), "n = {n}, k = {k}");
            }
        }
        let sizes = [1, 2, 4].map(|r| maj_k_size(8 / r, 4 / r));
        assert_eq!(sizes, [2, 2, 2], "equal by rounding");
    }

    #[test]
    fn theorem_4_6_unions_of_non_dominated_parts_are_non_dominated() {
        for (n, k) in [(2, 2), (4, 2), (6, 2), (7, 2), (5, 3), (9, 3)] {
            let composite = joined_majorities(n, k).expect("enough nodes");
            let coterie = KCoterie::new(listed(n, &composite), k).expect("a k-coterie");
            assert_eq!(coterie.domination(), Domination::NonDominated);
            let promise = composite.promise();
            assert_eq!((promise.k, promise.non_dominated), (Some(k), Some(true)));
        }
        // Two places of `Maj_2` over five nodes, and one of a majority of three.
        let two = maj_k(5, 2).expect("tight");
        let one = Composite::majority(NodeSet::span(5, 8));
        let three = Composite::union(vec![two, one]);
        let coterie = KCoterie::new(listed(8, &three), 3).expect("a 3-coterie");
        assert_eq!(coterie.domination(), Domination::NonDominated);
    }

    #[test]
    fn a_majority_of_majorities_is_a_non_dominated_coterie() {
        let thirds = (0..3).map(|i| Composite::majority(NodeSet::span(3 * i, 3 * i + 3)));
        let composite = Composite::Of {
            need: 2,
            parts: thirds.collect(),
        };
        let coterie = Coterie::new(listed(9, &composite)).expect("a coterie");
        assert_eq!(coterie.domination(), Domination::NonDominated);
        assert_eq!(composite.promise().non_dominated, Some(true));
    }

    #[test]
    fn numbers_that_do_not_fit_are_told_which_do() {
        assert!(maj_r(7, 2, 1).expect_err("odd").0.contains("6 or 8"));
        assert!(maj_r(8, 4, 3).is_err());
        assert!(maj_r(8, 0, 0).is_err() && maj_k(8, 0).is_err());
        assert!(joined_majorities(2, 3).expect_err("few").0.contains('3'));
    }
}
