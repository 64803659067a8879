//! Whatever happens in a state happens in the canonical state, too, and nothing else.

use std::collections::BTreeSet;

use testigo_protocol::{
    Algorithm, Faults, Problem, Setup, agreement, election, multicast, mutex, readers, rooms,
};

use super::super::model::{Bounds, Model, Step};
use super::super::report::{CheckPlan, bounds};
use super::super::state::State;

/// How many states were looked at, or the first whose canonical state leads elsewhere.
fn same_steps<Q: Problem>(
    algorithm: &Algorithm<Q>,
    setup: &Setup,
    plan: CheckPlan,
    states_max: usize,
) -> Result<usize, String> {
    let machine = (algorithm.machine)(setup).expect("valid");
    let plan = CheckPlan {
        reduces: true,
        ..plan
    };
    let bounds = bounds(&algorithm.profile, &*machine, setup, &plan).expect("valid");
    if !bounds.reduced {
        return Ok(0);
    }
    let bounds = Bounds {
        renames: false,
        alone: false,
        ..bounds
    };
    let model = Model::new(&*machine, bounds, |_| {});
    let steps = |state: &State| -> Vec<Step> {
        let mut steps = Vec::new();
        model.steps(state, &mut steps);
        steps
    };
    let ends = |state: &State| -> BTreeSet<State> {
        let ends = steps(state).into_iter();
        ends.map(|step| model.canonical(model.take(state, step)))
            .collect()
    };
    let wrong = |state: &State| {
        (
            model.violation(state).is_some(),
            model.stuck(state).is_some(),
        )
    };
    let mut states = indexmap::IndexSet::from([model.first()]);
    let mut at = 0;
    while at < states.len() {
        let state = states[at].clone();
        let canonical = model.canonical(state.clone());
        if canonical != state {
            let leads = |from: &State| {
                let mut ends = ends(from);
                // A message that is left out changes nothing when it is delivered.
                ends.remove(&canonical);
                ends
            };
            if wrong(&state) != wrong(&canonical) || leads(&state) != leads(&canonical) {
                let name = algorithm.profile.name;
                return Err(format!("{name}: state {at} of {}", states.len()));
            }
        }
        if states.len() < states_max {
            for step in steps(&state) {
                states.insert(model.take(&state, step));
            }
        }
        at += 1;
    }
    Ok(states.len())
}

fn all<Q: Problem>(algorithms: &[&Algorithm<Q>]) {
    for algorithm in algorithms {
        let setup = algorithm.profile.telling_setup();
        let plan = CheckPlan::telling(&algorithm.profile);
        let same = same_steps(algorithm, &setup, plan, 3_000);
        assert!(same.is_ok(), "{same:?}");
    }
}

/// Raft is not among them: once somebody leads, its users know a term, and terms stay as they are.
#[test]
fn canonical_states_lead_where_the_others_do() {
    all(agreement::ALGORITHMS);
    all(election::ALGORITHMS);
    all(multicast::ALGORITHMS);
    all(mutex::ALGORITHMS);
    all(readers::ALGORITHMS);
    all(rooms::ALGORITHMS);
}

/// A proposer that comes late begins in round 0, however far the others are.
#[test]
fn a_late_proposer_begins_in_round_zero() {
    let mut known = agreement::ALGORITHMS.iter();
    let paxos = known.find(|algorithm| algorithm.profile.name == "paxos");
    let paxos = paxos.expect("known");
    let setup = Setup {
        proposers: Some(2),
        ..Setup::new(2)
    };
    let plan = CheckPlan {
        timeouts: Some(2),
        faults: Some(Faults::NONE),
        ..CheckPlan::new(1)
    };
    let same = same_steps(paxos, &setup, plan, 20_000);
    assert!(
        same.as_ref().is_ok_and(|states| *states >= 20_000),
        "{same:?}"
    );
}
