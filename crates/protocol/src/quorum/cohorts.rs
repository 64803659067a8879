//! Cohorts for one entry at a time: all of one cohort and a member of each later one. The later the
//! whole one, the smaller the quorum.
//!
//! Source: message exclusion §1.5 and §3.4, figure 4.5 (Jiang). Cohorts may overlap here; those of
//! `KCohorts` may not. The figure drops superfluous members only as far as the cohorts that it has asked
//! show; where cohorts overlap that can leave a quorum that is not minimal, so all are looked at here.

use super::{Family, FamilyError, NodeSet};
use crate::SetupError;

/// Coh(k) = (C_1 … C_k).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cohorts {
    cohorts: Vec<NodeSet>,
}

impl Cohorts {
    /// The first cohort has one member, the others at least two, and none lies in another.
    pub fn new(cohorts: Vec<NodeSet>) -> Result<Cohorts, SetupError> {
        let refuse = |why: String| Err(SetupError(why));
        let Some(first) = cohorts.first() else {
            return refuse("there must be at least one cohort".into());
        };
        if first.len() != 1 {
            return refuse(format!("the first cohort must have one member: {first}"));
        }
        if let Some(small) = cohorts[1..].iter().find(|cohort| cohort.len() < 2) {
            return refuse(format!("a later cohort needs two members: {small}"));
        }
        for (i, one) in cohorts.iter().enumerate() {
            let mut others = cohorts.iter().enumerate().filter(|(j, _)| *j != i);
            if let Some((_, other)) = others.find(|(_, other)| one.is_within(**other)) {
                return refuse(format!("cohort {one} lies in cohort {other}"));
            }
        }
        Ok(Cohorts { cohorts })
    }

    /// D1 and D2: all of some cohort, and a member of each later one.
    pub fn is_quorum(&self, set: NodeSet) -> bool {
        (0..self.cohorts.len()).any(|primary| {
            let mut supporting = self.cohorts[primary + 1..].iter();
            self.cohorts[primary].is_within(set) && supporting.all(|cohort| cohort.meets(set))
        })
    }

    /// A minimal quorum of live nodes, if the live nodes contain one. Whatever is alive and not in it
    /// need not be asked.
    pub fn quorum(&self, live: NodeSet) -> Option<NodeSet> {
        let mut kept = NodeSet::EMPTY;
        for &cohort in self.cohorts.iter().rev() {
            let asked = cohort.minus(kept);
            let granted = asked.intersection(live);
            if granted == asked {
                return Some(self.reduced(kept.union(granted)));
            }
            if !kept.union(granted).meets(cohort) {
                return None;
            }
            if !cohort.meets(kept) {
                kept = kept.union(granted.take(1));
            }
        }
        None
    }

    /// Without the members that it is a quorum without.
    fn reduced(&self, set: NodeSet) -> NodeSet {
        set.iter().fold(set, |kept, node| {
            let fewer = kept.without(node);
            if self.is_quorum(fewer) { fewer } else { kept }
        })
    }

    /// All minimal quorums over `nodes` nodes.
    pub fn family(&self, nodes: usize) -> Result<Family, FamilyError> {
        let mut found: Vec<NodeSet> = Vec::new();
        for (i, &primary) in self.cohorts.iter().enumerate() {
            let mut open = vec![primary];
            for &cohort in &self.cohorts[i + 1..] {
                let support = |set: NodeSet| {
                    let members = if cohort.meets(set) {
                        NodeSet::EMPTY
                    } else {
                        cohort
                    };
                    let extended = members.iter().map(move |node| set.with(node));
                    extended.chain(cohort.meets(set).then_some(set))
                };
                open = open.into_iter().flat_map(support).collect();
                if open.len() > Family::SETS_MAX {
                    return Err(FamilyError::TooMany);
                }
            }
            found.extend(open);
        }
        Ok(Family::new(nodes, found)?.minimal())
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::tests::family;
    use super::super::{Coterie, Domination};
    use super::*;

    fn cohorts(nodes: usize, sets: &[&str]) -> Cohorts {
        Cohorts::new(family(nodes, sets).sets().to_vec()).expect("cohorts")
    }

    #[test]
    fn the_example_of_three_cohorts() {
        let three = cohorts(4, &["1", "23", "34"]).family(4).expect("few");
        assert!(three.same_sets(&family(4, &["124", "13", "23", "34"])));
        let coterie = Coterie::new(three).expect("a coterie");
        assert_eq!(coterie.domination(), Domination::NonDominated);
    }

    #[test]
    fn cohorts_out_of_shape_are_refused() {
        cohorts(1, &["1"]);
        cohorts(4, &["1", "234"]);
        let refused = |nodes, sets: &[&str]| {
            Cohorts::new(family(nodes, sets).sets().to_vec()).expect_err("refused")
        };
        refused(2, &["12"]);
        refused(3, &["1", "2"]);
        refused(4, &["1", "23", "234"]);
        refused(2, &["1", "12"]);
        assert!(Cohorts::new(vec![]).is_err());
    }

    /// Figure 4.5 for every set of live nodes.
    fn assert_found_exactly_when_alive(cohorts: &Cohorts, nodes: usize) {
        let quorums = cohorts.family(nodes).expect("few");
        for bits in 0..1_u128 << nodes {
            let live = NodeSet::from_bits(bits);
            assert_eq!(cohorts.is_quorum(live), quorums.serves(live));
            match cohorts.quorum(live) {
                None => assert!(!quorums.serves(live), "{cohorts:?}, {live} alive"),
                Some(found) => {
                    assert!(found.is_within(live));
                    assert!(quorums.sets().contains(&found), "{cohorts:?}, {live} alive");
                }
            }
        }
    }

    #[test]
    fn a_quorum_is_found_exactly_when_the_live_nodes_contain_one() {
        for sets in [
            &["1"][..],
            &["1", "234"],
            &["1", "23", "34"],
            &["1", "23", "45", "67"],
            &["1", "234", "567"],
            &["1", "23", "345", "567"],
            &["1", "26", "36", "456"],
        ] {
            assert_found_exactly_when_alive(&cohorts(7, sets), 7);
        }
    }

    #[test]
    fn overlapping_cohorts_need_a_look_at_all_of_them() {
        // With {2,4} whole, the figure keeps node 3 for {3,5} and returns {2,3,4}; but {2,3} is whole
        // as well and supports both.
        let set = |nodes: &[usize]| nodes.iter().copied().collect();
        let sets = [&[0][..], &[2, 3], &[2, 4], &[3, 5]];
        let cohorts = Cohorts::new(sets.map(set).to_vec()).expect("cohorts");
        let found = cohorts.quorum(set(&[2, 3, 4]));
        assert_eq!(found, Some(set(&[2, 3])));
    }

    #[test]
    fn the_minimal_quorums_are_a_non_dominated_coterie_whatever_the_cohorts() {
        // Overlapping cohorts of six nodes, from the bits of a fixed sequence.
        let mut bits: u32 = 0x9e37_79b9;
        let mut tried = 0;
        while tried < 300 {
            let mut draw = || {
                bits ^= bits << 13;
                bits ^= bits >> 17;
                bits ^= bits << 5;
                NodeSet::from_bits(u128::from(bits >> 8 & 0x3f))
            };
            let mut sets = vec![NodeSet::single(0)];
            sets.extend((0..3).map(|_| draw()));
            let Ok(cohorts) = Cohorts::new(sets) else {
                continue;
            };
            tried += 1;
            let coterie = Coterie::new(cohorts.family(6).expect("few")).expect("a coterie");
            assert_eq!(
                coterie.domination(),
                Domination::NonDominated,
                "{cohorts:?}"
            );
            assert_found_exactly_when_alive(&cohorts, 6);
        }
    }
}
