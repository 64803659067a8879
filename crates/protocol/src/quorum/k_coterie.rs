//! A k-coterie: never more than k disjoint quorums, and always a free one while fewer than k are in
//! use, so at most k are inside and no place is wasted.
//!
//! Source: message exclusion §1.2, theorem 4.2. The thesis prints the theorem as "if and only if" and
//! then denies one direction; here the witness is tried, and what is not proved is called so.

use rustc_hash::FxHashSet;

use super::flaw::within_reach;
use super::{Domination, Family, Flaw, NodeSet};

/// A family that has been found to be a k-coterie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KCoterie {
    family: Family,
    k: usize,
    /// The unions of k disjoint quorums.
    full: Vec<NodeSet>,
}

impl KCoterie {
    pub fn new(family: Family, k: usize) -> Result<KCoterie, Flaw> {
        if k == 0 {
            return Err(Flaw::NoPlaces);
        }
        if let Some((a, b)) = family.nested_pair() {
            return Err(Flaw::Nested(a, b));
        }
        // What h disjoint quorums take, for h from 0 to k: which quorums took it does not matter.
        let mut taken: FxHashSet<NodeSet> = FxHashSet::default();
        taken.insert(NodeSet::EMPTY);
        for _ in 0..k {
            within_reach(taken.len(), family.sets().len())?;
            let mut more = FxHashSet::default();
            for &used in &taken {
                let mut free = family
                    .sets()
                    .iter()
                    .filter(|set| !set.meets(used))
                    .peekable();
                if free.peek().is_none() {
                    return Err(Flaw::NoneFree(used));
                }
                more.extend(free.map(|set| set.union(used)));
                within_reach(more.len(), 1)?;
            }
            taken = more;
        }
        within_reach(taken.len(), family.sets().len())?;
        let mut full: Vec<NodeSet> = taken.into_iter().collect();
        full.sort_unstable();
        for &used in &full {
            if let Some(set) = family.sets().iter().find(|set| !set.meets(used)) {
                return Err(Flaw::TooManyDisjoint(used.union(*set)));
            }
        }
        Ok(KCoterie { family, k, full })
    }

    pub fn family(&self) -> &Family {
        &self.family
    }

    pub fn k(&self) -> usize {
        self.k
    }

    /// Theorem 4.2: non-dominated where no set contains no quorum and yet meets any k disjoint
    /// ones together.
    pub fn domination(&self) -> Domination {
        let improves = |set| KCoterie::new(self.family.improved_by(set), self.k).is_ok();
        Domination::search(&self.full, self.family.sets(), improves)
    }
}

#[cfg(test)]
mod tests {
    use super::super::antichains;
    use super::super::family::tests::family;
    use super::*;

    fn two(sets: &[&str]) -> KCoterie {
        KCoterie::new(family(4, sets), 2).expect("a 2-coterie")
    }

    #[test]
    fn the_examples_of_four_nodes_are_two_coteries() {
        let example = two(&["13", "14", "23", "24"]);
        assert_eq!((example.k(), example.family().sets().len()), (2, 4));
        let a = two(&["12", "34", "13", "24"]);
        let b = two(&["12", "34", "13", "24", "14", "23"]);
        let c = two(&["12", "13", "23", "4"]);
        assert!(b.family().dominates(a.family()));
        assert!(c.family().dominates(a.family()));
        assert!(c.family().dominates(b.family()));
        assert!(!b.family().dominates(c.family()));
        assert_eq!(c.domination(), Domination::NonDominated);
        assert!(matches!(b.domination(), Domination::Dominated(_)));
    }

    #[test]
    fn each_property_is_missed_when_it_is_missing() {
        let refused = |sets: &[&str], k| KCoterie::new(family(4, sets), k).expect_err("no");
        assert!(matches!(refused(&["12", "123"], 1), Flaw::Nested(..)));
        assert!(matches!(
            refused(&["1", "2", "3"], 2),
            Flaw::TooManyDisjoint(_)
        ));
        assert!(matches!(refused(&["12", "23", "13"], 2), Flaw::NoneFree(_)));
        assert_eq!(refused(&["12"], 0), Flaw::NoPlaces);
    }

    #[test]
    fn theorem_4_2_holds_both_ways_up_to_five_nodes() {
        for nodes in 1..=5 {
            let families = antichains(nodes);
            for k in 1..=4 {
                let found: Vec<KCoterie> = families
                    .iter()
                    .filter_map(|family| KCoterie::new(family.clone(), k).ok())
                    .collect();
                for one in &found {
                    let better = |other: &KCoterie| other.family.dominates(&one.family);
                    let dominated = found.iter().any(better);
                    match one.domination() {
                        Domination::NonDominated => assert!(!dominated, "{one:?}"),
                        Domination::Dominated(_) | Domination::Perhaps(_) => {
                            assert!(dominated, "{one:?}");
                        }
                        Domination::Unknown => panic!("{nodes} nodes are few"),
                    }
                }
            }
        }
    }
}
