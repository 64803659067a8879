//! All that can be said about a structure: its quorums, their sizes, the load on nodes, availability,
//! and what kind of structure it is, checked where it is small enough and by construction elsewhere.

use serde::Serialize;

use super::{
    Blueprint, Coterie, Curve, Demand, Domination, Family, Flaw, HkArbiter, KArbiter, KCoterie,
    NodeSet, Structure, sizes_are_safe, uniform_size,
};
use crate::SetupError;

/// More quorums than this are not held against each other.
pub const JUDGED_MAX: usize = 8_192;
/// The probabilities of a live node at which availability is reported.
pub const PROBABILITIES: [f64; 5] = [0.5, 0.7, 0.9, 0.95, 0.99];

/// What was found out.
#[derive(Clone, Debug, Serialize)]
pub struct Study {
    pub construction: &'static str,
    pub nodes: usize,
    pub k: usize,
    /// How many quorums there are.
    pub quorums: u128,
    pub size: Sizes,
    pub load: Load,
    pub availability: Vec<Point>,
    /// How availability was found.
    pub availability_method: String,
    pub verdicts: Vec<Verdict>,
    /// The first quorums, up to the limit that was asked for.
    pub sets: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Sizes {
    pub min: usize,
    pub max: usize,
    pub mean: f64,
}

/// The share of all quorums that a node is in.
#[derive(Clone, Debug, Serialize)]
pub struct Load {
    /// Of the node that is asked least.
    pub best: f64,
    /// Of the node that is asked most.
    pub worst: f64,
    pub by_node: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// The probability that a node is alive.
    pub p: f64,
    /// The probability that a quorum is.
    pub available: f64,
}

/// One thing that holds or does not.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    pub property: String,
    /// Nothing where it is not known.
    pub holds: Option<bool>,
    /// What shows it.
    pub because: String,
}

impl Study {
    /// Studies a structure and returns its quorums, where they can be listed, and its curve. `draw` gives
    /// numbers from 0 to 1.
    pub fn new(
        blueprint: Blueprint,
        demand: &Demand,
        sets_max: usize,
        draw: impl FnMut() -> f64,
    ) -> Result<(Study, Structure, Curve), SetupError> {
        let structure = blueprint.build(demand)?;
        let listed = structure.list();
        let Some(curve) = Curve::of(&structure, listed.as_ref(), draw) else {
            return Err(SetupError("nothing is known of its availability".into()));
        };
        let counts = structure.counts();
        let by_node = structure.loads();
        let shown = listed.iter().flat_map(Family::sets).take(sets_max);
        let sets = shown.map(|set| set.iter().collect()).collect();
        let study = Study {
            construction: blueprint.name(),
            nodes: demand.nodes,
            k: demand.k,
            quorums: counts.iter().copied().fold(0, u128::saturating_add),
            size: sizes(&counts),
            load: Load {
                best: by_node.iter().copied().fold(f64::INFINITY, f64::min),
                worst: by_node.iter().copied().fold(0.0, f64::max),
                by_node,
            },
            availability: PROBABILITIES
                .map(|p| Point {
                    p,
                    available: curve.at(p),
                })
                .into(),
            availability_method: curve.method(),
            verdicts: match blueprint {
                Blueprint::Arbiter => arbiter_verdicts(demand, listed),
                _ => coterie_verdicts(demand.k, &structure, listed),
            },
            sets,
        };
        Ok((study, structure, curve))
    }
}

fn sizes(counts: &[u128]) -> Sizes {
    let some = || counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let all: f64 = some().map(|(_, &count)| count as f64).sum();
    let members: f64 = some()
        .map(|(size, &count)| size as f64 * count as f64)
        .sum();
    Sizes {
        min: some().map(|(size, _)| size).min().unwrap_or(0),
        max: some().map(|(size, _)| size).max().unwrap_or(0),
        mean: members / all,
    }
}

fn verdict(
    property: impl Into<String>,
    holds: Option<bool>,
    because: impl Into<String>,
) -> Verdict {
    Verdict {
        property: property.into(),
        holds,
        because: because.into(),
    }
}

fn coterie_verdicts(k: usize, structure: &Structure, listed: Option<Family>) -> Vec<Verdict> {
    let name = match k {
        1 => "coterie".to_string(),
        k => format!("{k}-coterie"),
    };
    let checked = listed
        .filter(|family| family.sets().len() <= JUDGED_MAX)
        .map(|family| match k {
            1 => Coterie::new(family).map(|coterie| coterie.domination()),
            _ => KCoterie::new(family, k).map(|coterie| coterie.domination()),
        });
    let promise = structure.promise();
    let promised = promise.k == Some(k);
    match checked {
        Some(Ok(domination)) => vec![
            verdict(name, Some(true), "every quorum was compared"),
            domination_verdict(domination, promise.non_dominated),
        ],
        None | Some(Err(Flaw::TooLarge)) => {
            let why = match promised {
                true => "by construction; too large to be checked",
                false => "too large to be checked",
            };
            let holds = promised.then_some(true);
            vec![
                verdict(name, holds, why),
                domination_verdict(Domination::Unknown, promise.non_dominated),
            ]
        }
        Some(Err(flaw)) => {
            let safe = match &flaw {
                // What is wrong costs messages, not safety.
                Flaw::Nested(..) if k == 1 => format!("{flaw}; any two quorums meet all the same"),
                _ => flaw.to_string(),
            };
            vec![verdict(name, Some(false), safe)]
        }
    }
}

fn domination_verdict(domination: Domination, promised: Option<bool>) -> Verdict {
    let improved = |set: NodeSet| format!("{set} could be a quorum as well");
    match domination {
        Domination::NonDominated => verdict("non-dominated", Some(true), "no witness exists"),
        Domination::Dominated(set) => verdict("non-dominated", Some(false), improved(set)),
        Domination::Perhaps(set) => verdict(
            "non-dominated",
            None,
            format!("{set} fits the theorem, whose converse is not proved"),
        ),
        Domination::Unknown => match promised {
            Some(_) => verdict("non-dominated", promised, "by construction"),
            None => verdict("non-dominated", None, "too large to be searched"),
        },
    }
}

fn arbiter_verdicts(demand: &Demand, listed: Option<Family>) -> Vec<Verdict> {
    let &Demand {
        nodes, k, units, ..
    } = demand;
    let sizes: Vec<usize> = (1..=k).map(|h| uniform_size(nodes, h, k)).collect();
    let safe = k <= HkArbiter::UNITS_MAX && sizes_are_safe(nodes, &sizes);
    let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let because = format!("sizes {} for h = 1 to {k}", words.join(", "));
    let mut verdicts = vec![verdict(format!("(h,{k})-arbiter"), Some(safe), because)];
    if units > 1 {
        return verdicts;
    }
    let few = listed.filter(|family| family.sets().len() <= JUDGED_MAX);
    match few.map(|family| KArbiter::new(family, k)) {
        None | Some(Err(Flaw::TooLarge)) => verdicts.push(verdict(
            format!("{k}-arbiter"),
            Some(true),
            "by construction; too large to be checked",
        )),
        Some(Err(flaw)) => {
            verdicts.push(verdict(
                format!("{k}-arbiter"),
                Some(false),
                flaw.to_string(),
            ));
        }
        Some(Ok(arbiter)) => {
            verdicts.push(verdict(
                format!("{k}-arbiter"),
                Some(true),
                "every quorum was compared",
            ));
            verdicts.push(domination_verdict(arbiter.domination(), None));
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(name: &str, nodes: usize, k: usize) -> Study {
        let blueprint = name.parse().expect("a name");
        let never = || panic!("nothing is drawn where an exact method exists");
        let study = Study::new(blueprint, &Demand::new(nodes, k), 10, never);
        study.expect("a structure").0
    }

    fn verdicts(study: &Study) -> Vec<String> {
        let words = |verdict: &Verdict| match verdict.holds {
            Some(true) => verdict.property.clone(),
            Some(false) => format!("not {}", verdict.property),
            None => format!("{}?", verdict.property),
        };
        study.verdicts.iter().map(words).collect()
    }

    #[test]
    fn the_plane_of_seven() {
        let seven = study("plane", 7, 1);
        assert_eq!((seven.quorums, seven.sets.len()), (7, 7));
        assert_eq!((seven.size.min, seven.size.max), (3, 3));
        assert!((seven.load.worst - 3.0 / 7.0).abs() < 1e-12);
        assert!((seven.availability[2].available - 0.993_190).abs() < 5e-7);
        assert_eq!(seven.availability_method, "exact, by enumeration");
        assert_eq!(verdicts(&seven), ["coterie", "non-dominated"]);
    }

    #[test]
    fn structures_too_large_to_list_are_known_by_construction() {
        let majority = study("majority", 101, 1);
        assert!(majority.quorums > 1 << 90 && majority.sets.is_empty());
        assert_eq!(majority.availability_method, "exact, by formula");
        assert_eq!(verdicts(&majority), ["coterie", "non-dominated"]);
        let tree = study("tree", 127, 1);
        assert_eq!(tree.quorums, 18_446_744_073_709_551_615, "q(6) = 2^64 − 1");
        assert_eq!((tree.size.min, tree.size.max), (7, 64));
        assert_eq!(
            verdicts(&study("joined", 100, 4)),
            ["4-coterie", "non-dominated"]
        );
    }

    #[test]
    fn what_is_not_minimal_or_not_best_says_so() {
        let three = study("grid", 3, 1);
        assert_eq!(verdicts(&three), ["not coterie"]);
        assert!(three.verdicts[0].because.contains("meet all the same"));
        assert_eq!(
            verdicts(&study("grid", 9, 1)),
            ["coterie", "not non-dominated"]
        );
        assert_eq!(
            verdicts(&study("cohorts", 5, 2)),
            ["2-coterie", "not non-dominated"]
        );
        let arbiter = study("arbiter", 5, 2);
        assert_eq!(
            verdicts(&arbiter),
            ["(h,2)-arbiter", "2-arbiter", "not non-dominated"]
        );
    }

    #[test]
    fn load_and_sizes_agree_with_the_list() {
        for (name, nodes, k) in [
            ("tree", 7, 1),
            ("tree", 12, 1),
            ("majority", 9, 2),
            ("maj-r", 8, 2),
            ("div", 8, 4),
            ("joined", 9, 2),
            ("cohorts", 10, 1),
            ("weighted", 8, 1),
            ("arbiter", 7, 2),
        ] {
            let demand = Demand::new(nodes, k);
            let blueprint: Blueprint = name.parse().expect("a name");
            let structure = blueprint.build(&demand).expect("a structure");
            let family = structure.list().expect("few sets");
            let count = family.sets().len() as f64;
            for (load, members) in structure.loads().into_iter().zip(family.memberships()) {
                assert!((load - members as f64 / count).abs() < 1e-9, "{name}");
            }
            let found = study(name, nodes, k);
            assert_eq!(found.quorums, family.sets().len() as u128, "{name}");
            let members: usize = family.sets().iter().map(|set| set.len()).sum();
            assert!(
                (found.size.mean - members as f64 / count).abs() < 1e-9,
                "{name}"
            );
        }
    }

    #[test]
    fn a_large_plane_is_sampled() {
        let mut next = 0.0_f64;
        let golden = || {
            next = (next + 0.618_033_988_749_895) % 1.0;
            next
        };
        let demand = Demand::new(31, 1);
        let plane = "plane".parse().expect("a name");
        let (study, ..) = Study::new(plane, &demand, 10, golden).expect("a plane");
        assert!(
            study
                .availability_method
                .starts_with("estimated from 100000")
        );
        assert_eq!(study.sets.len(), 10);
    }
}
