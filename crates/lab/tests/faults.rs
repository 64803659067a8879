//! What each kind of fault does to a run: four to ten lines each.

use testigo_lab::{KnownAlgorithm, Report, World};
use testigo_protocol::Setup;

fn run(name: &str, nodes: usize, change: impl FnOnce(&mut World)) -> Report {
    let mut world = World {
        entries: 10,
        ..World::default()
    };
    change(&mut world);
    KnownAlgorithm::find(name)
        .expect("known")
        .run(&Setup::new(nodes), &world, false)
        .expect("valid")
        .report
}

fn fault(text: &str) -> impl FnOnce(&mut World) + '_ {
    move |world| world.faults = vec![text.parse().expect("valid")]
}

#[test]
fn a_halted_server_stops_everybody_and_harms_nobody() {
    let report = run("central", 3, fault("halt:3@4"));
    assert!(report.safe && !report.live);
    assert!(
        report.violations[0].contains("wait for ever"),
        "{:?}",
        report.violations
    );
}

#[test]
fn a_halted_peer_stops_ricart_agrawala() {
    assert!(!run("ricart-agrawala", 3, fault("halt:2@5")).live);
}

#[test]
fn a_client_that_halts_outside_does_not_stop_a_central_server() {
    let report = run("central", 3, |world| {
        world.arrivals = "script:0@0,1@0,0@20,1@20".parse().expect("valid");
        world.faults = vec!["halt:2@1".parse().expect("valid")];
    });
    assert!(report.is_good(), "{:?}", report.violations);
    assert_eq!(report.entries, 4);
}

#[test]
fn a_pause_only_delays() {
    for name in [
        "central",
        "lamport",
        "ricart-agrawala",
        "maekawa",
        "sanders",
        "token-ring",
    ] {
        let report = run(name, 3, fault("pause:1@2..50"));
        assert!(report.is_good(), "{name}: {:?}", report.violations);
        assert_eq!(report.entries, 10, "{name}");
        assert!(report.time > 50.0, "{name} had to wait for the paused node");
    }
}

#[test]
fn a_server_with_amnesia_lets_two_in() {
    let report = run("central", 3, |world| {
        world.hold = "fixed:20".parse().expect("valid");
        world.faults = vec!["amnesia:3@5..6".parse().expect("valid")];
        world.arrivals = "script:0@0,1@8".parse().expect("valid");
    });
    assert!(!report.safe, "the server forgot that somebody is inside");
}

#[test]
fn lost_messages_stop_algorithms_that_count_on_them() {
    for text in ["omit-send:1:1", "omit-receive:1:1", "omit-channel:1>0:1"] {
        let report = run("ricart-agrawala", 3, fault(text));
        assert!(report.safe && !report.live, "{text}");
    }
    assert!(
        !run("ricart-agrawala", 3, |world| world.loss =
            "1".parse().expect("valid"))
        .live
    );
}

#[test]
fn a_duplicated_token_breaks_a_ring() {
    let report = run("token-ring", 3, |world| {
        world.hold = "fixed:3".parse().expect("valid");
        world.faults = vec!["duplicate:0.2".parse().expect("valid")];
    });
    assert!(!report.safe);
}

#[test]
fn lateness_beyond_the_bound_harms_nobody_who_assumes_no_bound() {
    let report = run("ricart-agrawala", 4, fault("late:0.3:25"));
    assert!(report.is_good());
}

#[test]
fn a_partition_loses_what_crosses_it() {
    let report = run("lamport", 3, |world| {
        world.partitions = vec!["0|1,2@1..3".parse().expect("valid")];
    });
    assert!(report.safe && !report.live);
}

#[test]
fn bad_input_is_refused_and_says_what_would_be_right() {
    let algorithm = KnownAlgorithm::find("lamport").expect("known");
    let refused = |setup: &Setup, change: fn(&mut World)| {
        let mut world = World::default();
        change(&mut world);
        algorithm
            .run(setup, &world, false)
            .expect_err("bad input")
            .to_string()
    };
    let three = Setup::new(3);
    assert!(refused(&Setup::new(1), |_| {}).contains("at least 2"));
    assert!(refused(&Setup::new(1_000_000), |_| {}).contains("at most"));
    assert!(refused(&three, |world| world.order = testigo_sim::LinkOrder::Any).contains("FIFO"));
    assert!(refused(&three, |world| world.entries = 0).contains("at least 1"));
    let liar = |world: &mut World| world.faults = vec!["wrong:1:1".parse().expect("valid")];
    assert!(refused(&three, liar).contains("liar"));
    let nobody = |world: &mut World| world.faults = vec!["halt:7@1".parse().expect("valid")];
    assert!(refused(&three, nobody).contains("0 to 2"));
}

#[test]
fn a_run_without_an_end_is_stopped_and_is_not_live() {
    let report = run("token-ring", 3, |world| {
        world.faults = vec!["halt:1@0.5".parse().expect("valid")];
        world.arrivals = "script:0@0".parse().expect("valid");
        world.entries = 1;
        world.events_max = 1_000;
    });
    assert!(!report.live);
}

/// After the partition nobody remembers what was lost, and whoever waits asks ever more rarely.
#[test]
fn a_run_that_gets_nowhere_is_stopped_early() {
    for name in ["tree-quorum", "cohort-quorum", "agrawal-jalote"] {
        let world = World {
            entries: 3,
            partitions: vec!["0|1,2@1..2".parse().expect("valid")],
            ..World::default()
        };
        let setup = Setup {
            delay_bound: world.delay_bound().0,
            ..Setup::new(3)
        };
        let run = KnownAlgorithm::find(name)
            .expect("known")
            .run(&setup, &world, true);
        let run = run.expect("a report, not an error");
        let report = run.report;
        assert!(
            report.safe && !report.live,
            "{name}: {:?}",
            report.violations
        );
        assert!(
            report.violations[0].contains("no progress"),
            "{name}: {:?}",
            report.violations
        );
        assert!(
            report.messages < 5_000,
            "{name}: {} messages",
            report.messages
        );
        let trace = run.trace.expect("asked for");
        trace.replay().expect("a run that was stopped replays");
    }
}
