//! A k-arbiter: any k+1 quorums have a node in common, which can lend k permits and no more.
//!
//! Source: message exclusion §1.3, theorem 4.3.

use rustc_hash::FxHashSet;

use super::flaw::within_reach;
use super::{Domination, Family, FamilyError, Flaw, NodeSet};

/// A family that has been found to be a k-arbiter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KArbiter {
    family: Family,
    k: usize,
    /// What any k quorums have in common.
    cores: Vec<NodeSet>,
}

impl KArbiter {
    pub fn new(family: Family, k: usize) -> Result<KArbiter, Flaw> {
        if k == 0 {
            return Err(Flaw::NoPlaces);
        }
        if let Some((a, b)) = family.nested_pair() {
            return Err(Flaw::Nested(a, b));
        }
        let mut cores: FxHashSet<NodeSet> = family.sets().iter().copied().collect();
        for _ in 1..k {
            cores = common(&family, &cores)?;
        }
        common(&family, &cores)?;
        let mut cores: Vec<NodeSet> = cores.into_iter().collect();
        cores.sort_unstable();
        Ok(KArbiter { family, k, cores })
    }

    /// One node decides.
    pub fn singleton(nodes: usize, k: usize, node: usize) -> Result<KArbiter, Flaw> {
        let family = Family::new(nodes, [NodeSet::single(node)]);
        KArbiter::new(family.map_err(|_| Flaw::TooLarge)?, k)
    }

    /// All sets of [`KArbiter::uniform_size`] nodes.
    pub fn uniform(nodes: usize, k: usize) -> Result<Family, FamilyError> {
        let size = KArbiter::uniform_size(nodes, k);
        Family::new(nodes, NodeSet::first(nodes).subsets(size))
    }

    /// ⌊k·n/(k+1)⌋ + 1: each of k+1 quorums misses fewer than a (k+1)th of the nodes.
    pub fn uniform_size(nodes: usize, k: usize) -> usize {
        k * nodes / (k + 1) + 1
    }

    pub fn family(&self) -> &Family {
        &self.family
    }

    pub fn k(&self) -> usize {
        self.k
    }

    /// Theorem 4.3: dominated exactly when some set contains no quorum and meets what any k quorums
    /// have in common. Such a set is itself a quorum of a better k-arbiter.
    pub fn domination(&self) -> Domination {
        Domination::search(&self.cores, self.family.sets(), |_| true)
    }
}

/// What each of `cores` has in common with each quorum.
pub(super) fn common(
    family: &Family,
    cores: &FxHashSet<NodeSet>,
) -> Result<FxHashSet<NodeSet>, Flaw> {
    within_reach(cores.len(), family.sets().len())?;
    let mut smaller = FxHashSet::default();
    for &core in cores {
        for &set in family.sets() {
            let shared = core.intersection(set);
            if shared.is_empty() {
                return Err(Flaw::NoCommonNode(core, set));
            }
            smaller.insert(shared);
        }
        within_reach(smaller.len(), 1)?;
    }
    Ok(smaller)
}

#[cfg(test)]
mod tests {
    use super::super::antichains;
    use super::super::family::tests::family;
    use super::*;

    fn uniform(nodes: usize, k: usize) -> KArbiter {
        let family = KArbiter::uniform(nodes, k).expect("few sets");
        KArbiter::new(family, k).expect("a k-arbiter")
    }

    #[test]
    fn singletons_and_uniform_families_are_k_arbiters() {
        for nodes in 1..=7 {
            for k in 1..=nodes {
                KArbiter::singleton(nodes, k, nodes - 1).expect("a k-arbiter");
                // With k = n there are as many permits as nodes, and no quorum is large enough.
                if KArbiter::uniform_size(nodes, k) <= nodes {
                    assert!(uniform(nodes, k).family().is_symmetric());
                }
            }
        }
    }

    #[test]
    fn pairs_that_meet_are_not_enough_for_two_permits() {
        let pairs = family(3, &["12", "13", "23"]);
        assert!(KArbiter::new(pairs.clone(), 1).is_ok());
        assert!(matches!(
            KArbiter::new(pairs, 2),
            Err(Flaw::NoCommonNode(..))
        ));
    }

    #[test]
    fn some_uniform_arbiters_are_dominated() {
        for (nodes, k) in [(3, 1), (4, 2), (5, 3)] {
            assert_eq!(uniform(nodes, k).domination(), Domination::NonDominated);
        }
        for (nodes, k) in [(5, 2), (6, 2)] {
            let domination = uniform(nodes, k).domination();
            assert!(matches!(domination, Domination::Dominated(_)));
        }
    }

    #[test]
    fn theorem_4_3_holds_up_to_four_nodes() {
        for nodes in 1..=4 {
            for k in 1..=3 {
                let found: Vec<KArbiter> = antichains(nodes)
                    .into_iter()
                    .filter_map(|family| KArbiter::new(family, k).ok())
                    .collect();
                for one in &found {
                    let better = |other: &KArbiter| other.family.dominates(&one.family);
                    let dominated = found.iter().any(better);
                    let theorem = matches!(one.domination(), Domination::Dominated(_));
                    assert_eq!(theorem, dominated, "{one:?}");
                }
            }
        }
    }
}
