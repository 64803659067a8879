//! Reductions save states and change no verdict.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm};
use testigo_protocol::{Faults, Setup};

fn both(algorithm: &KnownAlgorithm, setup: &Setup, plan: &CheckPlan) -> [Checked; 2] {
    [false, true].map(|reduces| {
        let plan = CheckPlan { reduces, ..*plan };
        algorithm.check(setup, &plan).expect("valid")
    })
}

/// Larger searches are cut short, with and without reductions.
const STATES_MAX: usize = 60_000;

#[test]
fn every_algorithm_and_specimen_has_the_same_verdicts_with_and_without() {
    let all = KnownAlgorithm::all().into_iter();
    for algorithm in all.filter(KnownAlgorithm::sends_messages) {
        let name = algorithm.profile.name;
        let plan = CheckPlan {
            states_max: STATES_MAX,
            ..CheckPlan::telling(algorithm.profile)
        };
        let setup = algorithm.profile.telling_setup();
        let [whole, reduced] = both(&algorithm, &setup, &plan);
        // Of two searches that are cut short, neither need have seen fewer.
        assert!(!whole.complete || reduced.states <= whole.states, "{name}");
        if whole.complete || whole.refuted() {
            let verdicts =
                |checked: &Checked| (checked.safety, checked.bounds, checked.deadlock_freedom);
            assert_eq!(verdicts(&whole), verdicts(&reduced), "{name}");
            // A delivery that goes alone may come before what is wrong without it.
            let steps = |checked: &Checked| checked.counterexample.as_ref().map(|c| c.steps);
            assert!(steps(&whole) <= steps(&reduced), "{name}");
        }
        if let Some(found) = &reduced.counterexample {
            let violations = found.trace.replay().expect("it replays").violations;
            assert!(!violations.is_empty(), "{name}");
        }
    }
}

#[test]
fn equal_clients_of_a_server_are_one() {
    let central = KnownAlgorithm::find("central").expect("known");
    let [whole, reduced] = both(&central, &Setup::new(3), &CheckPlan::new(2));
    // Three clients can change places in six ways; states in which some are alike have fewer.
    let saved = whole.states as f64 / reduced.states as f64;
    assert!(
        (3.0..=6.5).contains(&saved),
        "{} of {}",
        reduced.states,
        whole.states
    );
}

/// A proposer's acceptors, the commander's generals and the coordinator's participants are equal, and many of their
/// messages make the same difference in any order.
#[test]
fn agreement_is_reduced() {
    let still = CheckPlan {
        timeouts: Some(0),
        faults: Some(Faults::NONE),
        ..CheckPlan::new(1)
    };
    let lies = CheckPlan::new(1);
    for (name, nodes, proposers, plan, least) in [
        ("paxos", 3, Some(2), still, 3.0),
        ("paxos", 4, Some(1), still, 3.0),
        ("om", 4, Some(1), lies, 4.0),
        ("sm", 4, Some(1), lies, 2.0),
        ("two-phase-commit", 3, None, still, 1.5),
    ] {
        let algorithm = KnownAlgorithm::find(name).expect("known");
        let setup = Setup {
            proposers,
            ..Setup::new(nodes)
        };
        let [whole, reduced] = both(&algorithm, &setup, &plan);
        println!(
            "{name}, {nodes} nodes: {} states of {}",
            reduced.states, whole.states
        );
        assert!(whole.complete && reduced.complete, "{name}");
        assert_eq!(
            (whole.safety, whole.deadlock_freedom),
            (reduced.safety, reduced.deadlock_freedom),
            "{name}"
        );
        let saved = whole.states as f64 / reduced.states as f64;
        assert!(saved > least, "{name}, {nodes} nodes: {saved}");
    }
}

/// Its nodes compare ids, so what is saved is the order of messages on links that have none, and clocks.
#[test]
fn ricart_agrawala_is_reduced() {
    let algorithm = KnownAlgorithm::find("ricart-agrawala").expect("known");
    let [whole, reduced] = both(&algorithm, &Setup::new(3), &CheckPlan::new(2));
    assert!(whole.complete && reduced.complete);
    assert_eq!(whole.states, 2_461_911);
    assert!(reduced.states < whole.states);
    println!("{} of {}", reduced.states, whole.states);
}
