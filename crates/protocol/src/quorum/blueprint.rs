//! Everything with quorums by name: the constructions for one entry, and those for k entries and for
//! h of k units, with what a person may choose about them.

use std::fmt;
use std::str::FromStr;

use super::construction::nearest;
use super::structure::{Layout, QuorumSets};
use super::{
    Composite, Construction, HkArbiter, KCohorts, NodeSet, Structure, Votes, joined_majorities,
    maj_k, maj_r, uniform_size,
};
use crate::SetupError;

/// A structure by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blueprint {
    /// Of these, majority and cohorts serve k entries as well.
    Entry(Construction),
    /// `MAJ_r`: equal classes, and enough of the nodes of one.
    MajR,
    /// As many classes as entries, and a majority of one.
    Div,
    /// Majorities of odd classes: non-dominated.
    Joined,
    /// The uniform (h,k)-arbiter; for one unit, the uniform k-arbiter.
    Arbiter,
}

/// What a structure is asked to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    pub nodes: usize,
    /// How many may be inside, or how many units there are.
    pub k: usize,
    /// For `MAJ_r`.
    pub classes: Option<usize>,
    /// For an arbiter: how many units a request asks for.
    pub units: usize,
    /// For weighted voting.
    pub votes: Option<Vec<usize>>,
    /// For cohorts: their sizes.
    pub cohorts: Option<Vec<usize>>,
}

impl Demand {
    pub fn new(nodes: usize, k: usize) -> Demand {
        Demand {
            nodes,
            k,
            classes: None,
            units: 1,
            votes: None,
            cohorts: None,
        }
    }
}

impl Blueprint {
    const FOR_K: [Blueprint; 4] = [
        Blueprint::MajR,
        Blueprint::Div,
        Blueprint::Joined,
        Blueprint::Arbiter,
    ];

    pub fn all() -> impl Iterator<Item = Blueprint> {
        let entry = Construction::ALL.into_iter().map(Blueprint::Entry);
        entry.chain(Self::FOR_K)
    }

    pub fn name(self) -> &'static str {
        match self {
            Blueprint::Entry(construction) => construction.name(),
            Blueprint::MajR => "maj-r",
            Blueprint::Div => "div",
            Blueprint::Joined => "joined",
            Blueprint::Arbiter => "arbiter",
        }
    }

    pub fn build(self, demand: &Demand) -> Result<Structure, SetupError> {
        let &Demand { nodes, k, .. } = demand;
        let most = NodeSet::NODES_MAX;
        if nodes == 0 || nodes > most || k == 0 || k > most {
            return Err(SetupError(format!(
                "use 1 to {most} nodes, and a k of 1 to {most}"
            )));
        }
        self.refuse_foreign_choices(demand)?;
        let quorums = match self {
            Blueprint::Entry(Construction::Majority) => QuorumSets::Composite(maj_k(nodes, k)?),
            Blueprint::Entry(Construction::Cohorts) => cohorts(demand)?,
            Blueprint::Entry(Construction::Weighted) if demand.votes.is_some() => votes(demand)?,
            Blueprint::Entry(construction) if k == 1 => return construction.structure(nodes),
            Blueprint::Entry(construction) => {
                return Err(SetupError(format!(
                    "{construction} admits one: for k = {k} use majority, cohorts, maj-r, div or joined"
                )));
            }
            Blueprint::MajR => QuorumSets::Composite(maj_r(nodes, k, demand.classes.unwrap_or(1))?),
            Blueprint::Div => QuorumSets::Composite(maj_r(nodes, k, k)?),
            Blueprint::Joined => QuorumSets::Composite(joined_majorities(nodes, k)?),
            Blueprint::Arbiter => arbiter(demand)?,
        };
        Ok(Structure {
            nodes,
            quorums,
            layout: Layout::Row,
        })
    }

    /// A choice that would have no effect is a mistake.
    fn refuse_foreign_choices(self, demand: &Demand) -> Result<(), SetupError> {
        let is = |construction| self == Blueprint::Entry(construction);
        let foreign = [
            (
                demand.classes.is_some() && self != Blueprint::MajR,
                "classes",
            ),
            (demand.units != 1 && self != Blueprint::Arbiter, "units"),
            (
                demand.votes.is_some() && !is(Construction::Weighted),
                "votes",
            ),
            (
                demand.cohorts.is_some() && !is(Construction::Cohorts),
                "cohorts",
            ),
        ];
        match foreign.iter().find(|(foreign, _)| *foreign) {
            Some((_, what)) => Err(SetupError(format!("{self} has no {what} to choose"))),
            None => Ok(()),
        }
    }
}

fn cohorts(demand: &Demand) -> Result<QuorumSets, SetupError> {
    let sizes = match &demand.cohorts {
        None => KCohorts::usual_sizes(demand.nodes, demand.k)?,
        Some(sizes) => sizes.clone(),
    };
    let members = sizes.iter().copied().fold(0, usize::saturating_add);
    if members != demand.nodes {
        return Err(SetupError(format!(
            "the cohorts have {members} members: use {members} nodes, not {}",
            demand.nodes
        )));
    }
    Ok(QuorumSets::Cohorts(KCohorts::of_sizes(demand.k, &sizes)?))
}

fn votes(demand: &Demand) -> Result<QuorumSets, SetupError> {
    let votes = demand.votes.clone().unwrap_or_default();
    match (votes.len(), demand.k) {
        (voters, _) if voters != demand.nodes => Err(SetupError(format!(
            "there are votes for {voters} nodes: use {voters} nodes, not {}",
            demand.nodes
        ))),
        (_, 1) => Ok(QuorumSets::Votes(Votes::new(votes)?)),
        (_, k) => Err(SetupError(format!("weighted voting admits one, not {k}"))),
    }
}

fn arbiter(demand: &Demand) -> Result<QuorumSets, SetupError> {
    let &Demand {
        nodes, k, units, ..
    } = demand;
    if k > HkArbiter::UNITS_MAX || units == 0 || units > k {
        return Err(SetupError(format!(
            "an arbiter of k units needs a k of 1 to {}, and 1 to k units a request",
            HkArbiter::UNITS_MAX
        )));
    }
    let size = uniform_size(nodes, units, k);
    match size <= nodes {
        true => {
            let any = Composite::any(size, NodeSet::first(nodes));
            Ok(QuorumSets::Composite(any))
        }
        false => Err(nearest("an arbiter", nodes, |n| {
            n > 0 && uniform_size(n, units, k) <= n
        })),
    }
}

impl FromStr for Blueprint {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Blueprint, SetupError> {
        match Blueprint::all().find(|blueprint| blueprint.name() == text) {
            Some(blueprint) => Ok(blueprint),
            None => {
                let names: Vec<&str> = Blueprint::all().map(Blueprint::name).collect();
                Err(SetupError(format!(
                    "`{text}` is not a construction: use {}",
                    names.join(", ")
                )))
            }
        }
    }
}

impl fmt::Display for Blueprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_builds_at_some_number_of_nodes_and_never_panics() {
        for blueprint in Blueprint::all() {
            assert_eq!(blueprint.name().parse(), Ok(blueprint));
            let mut built = 0;
            for nodes in (0..=16).chain([31, 57, 91, 100, 105, 120, 127, 128, 129]) {
                for k in [0, 1, 2, 3, 7, 128] {
                    let demand = Demand::new(nodes, k);
                    let Ok(structure) = blueprint.build(&demand) else {
                        continue;
                    };
                    built += 1;
                    let all: u128 = structure.counts().iter().sum();
                    assert!(all > 0, "{blueprint}, N = {nodes}, k = {k}");
                    assert_eq!(structure.loads().len(), nodes);
                }
            }
            assert!(built >= 5, "{blueprint}");
        }
    }

    #[test]
    fn choices_that_have_no_effect_are_refused() {
        let demand = Demand {
            votes: Some(vec![1, 1, 1]),
            ..Demand::new(3, 1)
        };
        let weighted = Blueprint::Entry(Construction::Weighted);
        assert!(weighted.build(&demand).is_ok());
        let error = Blueprint::Div.build(&demand).expect_err("no votes");
        assert_eq!(error.0, "div has no votes to choose");
        let wrong = Demand { nodes: 4, ..demand };
        assert!(weighted.build(&wrong).expect_err("3 votes").0.contains('3'));
    }

    #[test]
    fn one_entry_only_says_what_else_there_is() {
        let plane = Blueprint::Entry(Construction::Plane);
        let error = plane.build(&Demand::new(7, 2)).expect_err("one entry");
        assert!(error.0.contains("joined"), "{error}");
    }
}
