//! A coterie: any two quorums meet and none lies in another, so one at a time can be inside.
//!
//! Source: message exclusion §1.1, theorem 4.1.

use super::{Domination, Family, Flaw};

/// A family that has been found to be a coterie.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coterie(Family);

impl Coterie {
    pub fn new(family: Family) -> Result<Coterie, Flaw> {
        if let Some((a, b)) = family.disjoint_pair() {
            return Err(Flaw::Disjoint(a, b));
        }
        match family.nested_pair() {
            Some((a, b)) => Err(Flaw::Nested(a, b)),
            None => Ok(Coterie(family)),
        }
    }

    pub fn family(&self) -> &Family {
        &self.0
    }

    /// Theorem 4.1: a coterie is dominated exactly when some set meets every quorum and contains
    /// none. Such a set is itself a quorum of a better coterie.
    pub fn domination(&self) -> Domination {
        let sets = self.0.sets();
        Domination::search(sets, sets, |_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::family::tests::family;
    use super::super::{NodeSet, antichains};
    use super::*;

    fn coterie(nodes: usize, sets: &[&str]) -> Coterie {
        Coterie::new(family(nodes, sets)).expect("a coterie")
    }

    #[test]
    fn the_example_of_three_nodes_is_non_dominated() {
        let three = coterie(3, &["12", "13", "23"]);
        assert_eq!(three.domination(), Domination::NonDominated);
    }

    #[test]
    fn quorums_must_meet_and_not_nest() {
        let apart = Coterie::new(family(4, &["12", "34"]));
        let (a, b) = (NodeSet::first(2), NodeSet::span(2, 4));
        assert_eq!(apart, Err(Flaw::Disjoint(a, b)));
        let nested = Coterie::new(family(3, &["12", "123"]));
        assert_eq!(nested, Err(Flaw::Nested(a, NodeSet::first(3))));
    }

    #[test]
    fn the_wheel_dominates_three_of_four_and_survives_the_cut_that_it_does_not() {
        let wheel = coterie(4, &["12", "13", "14", "234"]);
        let three_of_four = coterie(4, &["123", "124", "134", "234"]);
        assert!(wheel.family().dominates(three_of_four.family()));
        assert!(!three_of_four.family().dominates(wheel.family()));
        assert!(!wheel.family().dominates(wheel.family()));
        // The links fail so that {1,3} and {2,4} are left.
        let side: NodeSet = [0, 2].into_iter().collect();
        assert!(wheel.family().serves(side));
        assert!(!three_of_four.family().serves(side));
        assert_eq!(wheel.domination(), Domination::NonDominated);
        assert!(matches!(
            three_of_four.domination(),
            Domination::Dominated(_)
        ));
    }

    #[test]
    fn theorem_4_1_holds_for_every_coterie_of_up_to_five_nodes() {
        for nodes in 1..=5 {
            let coteries: Vec<Coterie> = antichains(nodes)
                .into_iter()
                .filter_map(|family| Coterie::new(family).ok())
                .collect();
            let all = NodeSet::first(nodes);
            let every_set = || (0..1_u128 << nodes).map(NodeSet::from_bits);
            for one in &coteries {
                let better = |other: &Coterie| other.family().dominates(one.family());
                let dominated = coteries.iter().any(better);
                // Equivalent: of every set and the rest, exactly one has a quorum.
                let serves = |set| one.family().serves(set);
                let exactly_one = every_set().all(|set| serves(set) != serves(all.minus(set)));
                assert_eq!(dominated, !exactly_one);
                match one.domination() {
                    Domination::NonDominated => assert!(!dominated, "{one:?}"),
                    Domination::Dominated(set) => {
                        let improved = Coterie::new(one.family().improved_by(set));
                        assert!(better(&improved.expect("a coterie")), "{one:?}");
                    }
                    unclear => panic!("{unclear:?} at {nodes} nodes"),
                }
            }
        }
    }
}
