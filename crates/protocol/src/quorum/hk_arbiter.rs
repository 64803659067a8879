//! An (h,k)-arbiter: a family of quorums for every number h of units that a request may ask of k.
//! Whoever together asks for too much meets in one node, which refuses the last.
//!
//! Source: message exclusion §1.4, theorem 4.7. The thesis gives no construction; the sizes here are
//! proved in the comment beside them.

use rustc_hash::FxHashSet;

use super::k_arbiter::common;
use super::{Family, FamilyError, Flaw, KArbiter, NodeSet};

/// Families that have been found to be safe together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HkArbiter {
    /// The quorums for h = 1 to k.
    families: Vec<Family>,
}

impl HkArbiter {
    /// More units make more patterns than anybody wants to check.
    pub const UNITS_MAX: usize = 40;

    /// Theorem 4.7: safe exactly when the quorums of every critical pattern have a common node,
    /// whichever quorums are chosen.
    pub fn new(families: Vec<Family>) -> Result<HkArbiter, Flaw> {
        match families.len() {
            0 => return Err(Flaw::NoPlaces),
            k if k > Self::UNITS_MAX => return Err(Flaw::TooLarge),
            _ => {}
        }
        for pattern in critical_patterns(families.len()) {
            let mut cores = FxHashSet::default();
            cores.insert(NodeSet::first(NodeSet::NODES_MAX));
            for units in pattern {
                cores = common(&families[units - 1], &cores)?;
            }
        }
        Ok(HkArbiter { families })
    }

    /// A k-arbiter for every h: a critical pattern has at most k+1 members.
    pub fn from_k_arbiter(arbiter: &KArbiter) -> HkArbiter {
        HkArbiter {
            families: vec![arbiter.family().clone(); arbiter.k()],
        }
    }

    /// For each h, all sets of the size of [`uniform_size`].
    pub fn uniform(nodes: usize, k: usize) -> Result<Vec<Family>, FamilyError> {
        let sets = |h| NodeSet::first(nodes).subsets(uniform_size(nodes, h, k));
        (1..=k).map(|h| Family::new(nodes, sets(h))).collect()
    }

    /// The quorums for a request of `h` units.
    pub fn family(&self, h: usize) -> Option<&Family> {
        self.families.get(h.checked_sub(1)?)
    }
}

/// ⌊n·(k+1−h)/(k+2−h)⌋ + 1. A critical pattern with h in it has at most k+2−h members, so each of its
/// quorums misses fewer nodes than n divided by its members, and together they miss fewer than n.
pub fn uniform_size(nodes: usize, h: usize, k: usize) -> usize {
    let others = (k + 1).saturating_sub(h);
    nodes * others / (others + 1) + 1
}

/// Whether families of all sets of these sizes, for h = 1 to k, are safe: what the quorums of a
/// critical pattern miss must leave a node over.
pub fn sizes_are_safe(nodes: usize, sizes: &[usize]) -> bool {
    let missed = |h: usize| nodes.saturating_sub(sizes[h - 1]);
    critical_patterns(sizes.len())
        .iter()
        .all(|pattern| pattern.iter().map(|&h| missed(h)).sum::<usize>() < nodes)
}

/// The bags of requests that together ask for more than k units, and of which any one could be
/// dropped to make them fit; each in ascending order.
pub fn critical_patterns(k: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    grow(k, &mut Vec::new(), 0, &mut found);
    found
}

/// Members come in ascending order, so a pattern is critical when it fits without its first.
fn grow(k: usize, pattern: &mut Vec<usize>, sum: usize, found: &mut Vec<Vec<usize>>) {
    for units in pattern.last().copied().unwrap_or(1)..=k {
        let smallest = pattern.first().copied().unwrap_or(units);
        pattern.push(units);
        if sum + units <= k {
            grow(k, pattern, sum + units, found);
        } else if sum + units - smallest <= k {
            found.push(pattern.clone());
        }
        pattern.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_critical_patterns_are_those_of_the_source() {
        assert_eq!(
            critical_patterns(2),
            [vec![1, 1, 1], vec![1, 2], vec![2, 2]]
        );
        assert_eq!(
            critical_patterns(3),
            [
                vec![1, 1, 1, 1],
                vec![1, 1, 2],
                vec![1, 3],
                vec![2, 2],
                vec![2, 3],
                vec![3, 3]
            ]
        );
        let counts: Vec<usize> = (1..=8).map(|k| critical_patterns(k).len()).collect();
        assert_eq!(counts, [1, 3, 6, 11, 17, 27, 38, 55]);
    }

    #[test]
    fn uniform_sizes_are_those_of_the_source_and_safe() {
        let sizes = |n, k| -> Vec<usize> { (1..=k).map(|h| uniform_size(n, h, k)).collect() };
        assert_eq!(sizes(12, 2), [9, 7]);
        assert_eq!(sizes(12, 3), [10, 9, 7]);
        assert_eq!(sizes(12, 4), [10, 10, 9, 7]);
        for k in 1..=12 {
            for nodes in 1..60 {
                assert!(
                    sizes_are_safe(nodes, &sizes(nodes, k)),
                    "k = {k}, n = {nodes}"
                );
            }
        }
    }

    #[test]
    fn the_tempting_size_is_unsafe() {
        let tempting = |n: usize, h: usize, k: usize| {
            let members = (k + 1).div_ceil(h);
            n * (members - 1) / members + 1
        };
        let sizes: Vec<usize> = (1..=5).map(|h| tempting(7, h, 5)).collect();
        assert!(!sizes_are_safe(7, &sizes));
        let missed: usize = [2, 2, 3].iter().map(|&h| 7 - tempting(7, h, 5)).sum();
        assert!(missed >= 7, "the pattern 2, 2, 3 has no common node");
    }

    #[test]
    fn theorem_4_7_agrees_with_the_count_of_missed_nodes() {
        for (nodes, k) in [(4, 2), (5, 2), (6, 3)] {
            let families = HkArbiter::uniform(nodes, k).expect("few sets");
            let arbiter = HkArbiter::new(families.clone()).expect("safe");
            assert_eq!(arbiter.family(k), Some(&families[k - 1]));
            assert_eq!(arbiter.family(0), None);
            // A size less for h = 1 is one too small.
            let size = uniform_size(nodes, 1, k) - 1;
            let mut smaller = families;
            smaller[0] = Family::new(nodes, NodeSet::first(nodes).subsets(size)).expect("few");
            let sizes: Vec<usize> = smaller.iter().map(|f| f.sets()[0].len()).collect();
            assert_eq!(
                HkArbiter::new(smaller).is_ok(),
                sizes_are_safe(nodes, &sizes)
            );
            assert!(!sizes_are_safe(nodes, &sizes), "n = {nodes}, k = {k}");
        }
    }

    #[test]
    fn a_k_arbiter_serves_every_h() {
        let family = KArbiter::uniform(5, 3).expect("few sets");
        let arbiter = KArbiter::new(family, 3).expect("a 3-arbiter");
        let all = HkArbiter::from_k_arbiter(&arbiter);
        assert_eq!(HkArbiter::new(all.families.clone()), Ok(all));
    }
}
