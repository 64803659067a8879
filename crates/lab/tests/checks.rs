//! What the checker must exhaust, and what it must refute.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Verdict};
use testigo_protocol::Setup;

fn check(name: &str, nodes: usize, entries: u32) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    algorithm
        .check(&Setup::new(nodes), &CheckPlan::new(entries))
        .expect("valid")
}

/// The check that a person gets without flags.
fn check_telling(name: &str) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let plan = CheckPlan::telling(algorithm.profile);
    let setup = algorithm.profile.telling_setup();
    algorithm.check(&setup, &plan).expect("valid")
}

fn exhausts(name: &str, nodes: usize, entries: u32) -> Checked {
    let checked = check(name, nodes, entries);
    assert!(checked.complete, "{name}: {:?}", checked.notes);
    assert_eq!(
        (checked.safety, checked.deadlock_freedom),
        (Verdict::Holds, Verdict::Holds),
        "{name}"
    );
    assert_ne!(checked.lockout_freedom, Verdict::Refuted, "{name}");
    checked
}

#[test]
fn central_and_ring_are_exhausted_and_free_of_lockout() {
    for name in ["central", "token-ring"] {
        assert_eq!(
            exhausts(name, 3, 2).lockout_freedom,
            Verdict::Holds,
            "{name}"
        );
    }
}

#[test]
fn ricart_agrawala_is_exhausted() {
    exhausts("ricart-agrawala", 3, 2);
}

#[test]
fn lamport_is_exhausted() {
    exhausts("lamport", 3, 1);
    exhausts("lamport", 2, 3);
}

#[test]
fn quorum_algorithms_are_exhausted() {
    for name in ["maekawa", "sanders"] {
        exhausts(name, 3, 1);
        exhausts(name, 3, 2);
    }
}

/// The grid of four with all four asking: where telling `Failed` only on arrival deadlocks.
#[test]
fn the_settle_rule_holds_on_the_grid_of_four() {
    exhausts("sanders", 4, 1);
}

#[test]
fn two_nodes_are_free_of_lockout() {
    for name in ["ricart-agrawala", "lamport", "maekawa", "sanders"] {
        assert_eq!(check(name, 2, 1).lockout_freedom, Verdict::Holds, "{name}");
    }
}

/// Its search is too large: its own unit test plays the moves that lose an executed request.
const REFUTED_BY_A_RUN: [&str; 1] = ["pbft-no-commit"];

/// Each specimen is refuted in what it breaks, by a schedule no longer than the specification's.
#[test]
fn every_specimen_is_refuted() {
    let expected = [
        ("maekawa-slides", "safety", 6),
        ("maekawa-basic", "deadlock", 6),
        ("maekawa-published", "deadlock", 14),
        ("ricart-agrawala-no-update", "safety", 6),
        ("sanders-printed", "deadlock", 5),
        ("central-lifo", "lockout", 9),
        ("chang-adopting", "deadlock", 9),
        ("box-office-slides", "safety", 2),
        ("box-office-two-writers", "safety", 2),
        ("box-office-reader-beside-writer", "safety", 4),
        ("box-office-early-return", "safety", 9),
        ("box-office-second-token", "safety", 6),
        ("box-office-forgetful-list", "safety", 13),
        ("box-office-deaf-to-returns", "deadlock", 9),
        ("box-office-asks-others", "deadlock", 4),
        ("box-office-ring-from-holder", "bounds", 19),
        ("box-office-forgetful-token", "bounds", 8),
        ("box-office-no-limit", "bounds", 7),
        ("box-office-never-reset", "bounds", 14),
        ("box-office-ignores-stop", "bounds", 8),
        ("box-office-growing-session", "bounds", 5),
        ("box-office-stops-for-cancels", "bounds", 8),
        ("rooms-maekawa-printed", "safety", 28),
        ("rooms-maekawa-unmerged", "bounds", 38),
        ("rooms-impatient", "safety", 10),
        ("rooms-shut-door", "safety", 7),
        ("rooms-open-door", "lockout", 22),
        ("basic-multicast-agreeing", "deadlock", 5),
        ("reliable-multicast-deliver-first", "deadlock", 4),
        ("nack-multicast-from-zero", "deadlock", 6),
        ("nack-multicast-silent", "deadlock", 2),
        ("fifo-multicast-unheld", "safety", 3),
        ("causal-multicast-printed", "deadlock", 1),
        ("isis-ties-by-arrival", "safety", 8),
        ("sequencer-unnumbered", "safety", 6),
        ("ring-election-forwarding", "safety", 7),
        ("ring-election-silent", "deadlock", 4),
        ("bully-impatient", "safety", 6),
        ("bully-waiting", "deadlock", 7),
        ("raft-fixed-timeout", "lockout", 20),
        ("raft-old-term", "safety", 11),
        ("raft-no-log-check", "safety", 10),
        ("raft-forgets-vote", "safety", 8),
        ("pbft-three", "safety", 3),
        ("commit-reveal-patient", "deadlock", 2),
        ("commit-reveal-eager", "safety", 1),
        ("om-three", "safety", 4),
        ("om-one-round", "safety", 3),
        ("sm-forged", "safety", 6),
        ("paxos-any-accepted", "safety", 13),
        ("paxos-forgetful", "safety", 12),
        ("paxos-duel", "lockout", 13),
        ("multi-paxos-forgets-reports", "safety", 10),
        ("cheap-paxos-alone", "safety", 4),
        ("fast-paxos-small-quorums", "safety", 9),
        ("generalized-paxos-blind", "safety", 10),
        ("two-phase-commit-timid", "safety", 5),
    ];
    let specimens = KnownAlgorithm::all()
        .into_iter()
        .filter(|algorithm| algorithm.profile.specimen.is_some() && algorithm.sends_messages())
        .filter(|algorithm| !REFUTED_BY_A_RUN.contains(&algorithm.profile.name));
    let mut names: Vec<&str> = specimens.map(|algorithm| algorithm.profile.name).collect();
    names.sort_unstable();
    let mut known: Vec<&str> = expected.iter().map(|(name, ..)| *name).collect();
    known.sort_unstable();
    assert_eq!(names, known, "every specimen has its refutation here");
    for (name, breaks, steps) in expected {
        let checked = check_telling(name);
        let verdict = match breaks {
            "safety" => checked.safety,
            "bounds" => checked.bounds.expect("claimed"),
            "deadlock" => checked.deadlock_freedom,
            _ => checked.lockout_freedom,
        };
        assert_eq!(verdict, Verdict::Refuted, "{name}");
        if checked.deadlock_freedom == Verdict::Refuted {
            assert_eq!(checked.lockout_freedom, Verdict::Refuted, "{name}");
        }
        let found = checked.counterexample.expect("a schedule");
        assert!(found.steps <= steps, "{name}: {} steps", found.steps);
        let replayed = found.trace.replay().expect("a counterexample replays");
        assert!(
            !replayed.violations.is_empty(),
            "{name}: the schedule shows what it refutes"
        );
    }
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let algorithm = KnownAlgorithm::find("lamport").expect("known");
    let plan = CheckPlan {
        states_max: 10_000,
        ..CheckPlan::new(1)
    };
    let checked = algorithm.check(&Setup::new(3), &plan).expect("valid");
    assert!(!checked.complete);
    assert_eq!(checked.safety, Verdict::NotCovered);
    let generated = format!("after {} generated states", checked.generated);
    assert!(
        checked
            .notes
            .iter()
            .any(|note| note.contains(&generated) && note.contains("up to 8 steps")),
        "{:?}",
        checked.notes
    );
}
