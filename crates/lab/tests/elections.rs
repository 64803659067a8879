//! Elections: what the checker exhausts, the two problems of the bully that it finds, and random runs with crashes.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Timing, Verdict, World, figures};
use testigo_protocol::{Faults, Setup};
use testigo_sim::{Latency, Time};

fn check(name: &str, nodes: usize, plan: &CheckPlan) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    algorithm.check(&Setup::new(nodes), plan).expect("valid")
}

fn holds(checked: &Checked) {
    assert!(checked.complete, "{:?}", checked.notes);
    let verdicts = [
        checked.safety,
        checked.deadlock_freedom,
        checked.lockout_freedom,
    ];
    let found = checked.counterexample.as_ref().map(|found| &found.what);
    assert_eq!(
        verdicts,
        [Verdict::Holds; 3],
        "{found:?} {:?}",
        checked.notes
    );
}

#[test]
fn a_ring_elects_the_largest_and_tells_everybody() {
    holds(&check("ring-election", 3, &CheckPlan::new(2)));
    holds(&check("ring-election", 4, &CheckPlan::new(1)));
}

/// §3.2: the winner crashes before it has told anybody, and the others wait for ever.
#[test]
fn a_ring_stands_no_crash() {
    let plan = CheckPlan {
        faults: Some(Faults::crashes(1)),
        ..CheckPlan::new(1)
    };
    let checked = check("ring-election", 2, &plan);
    assert_eq!(checked.deadlock_freedom, Verdict::Refuted);
}

#[test]
fn the_bully_stands_a_crash_while_messages_are_quick() {
    let checked = check("bully", 3, &CheckPlan::new(1));
    assert_eq!(
        (checked.faults, checked.timing),
        (Faults::crashes(1), Timing::Synchronous)
    );
    holds(&checked);
}

/// §3.3, problem 1: a process comes back while another is being announced. The trace is kept.
#[test]
fn the_bully_is_not_safe_when_a_process_comes_back() {
    let plan = CheckPlan {
        faults: Some(Faults {
            crashes: 1,
            restarts: 1,
            ..Faults::NONE
        }),
        ..CheckPlan::new(1)
    };
    shows(
        &check("bully", 3, &plan),
        include_str!("traces/bully-recovery.trace"),
    );
}

/// §3.3, problem 2: a timeout that is too short. The trace is kept.
#[test]
fn the_bully_is_not_safe_when_messages_are_slow() {
    let plan = CheckPlan {
        faults: Some(Faults::NONE),
        timing: Some(Timing::Asynchronous),
        ..CheckPlan::new(1)
    };
    shows(
        &check("bully", 3, &plan),
        include_str!("traces/bully-timeout.trace"),
    );
}

/// The schedule is as it was kept, and still shows a process that takes the wrong one for elected.
fn shows(checked: &Checked, kept: &str) {
    assert_eq!(checked.safety, Verdict::Refuted);
    let trace = &checked.counterexample.as_ref().expect("a schedule").trace;
    assert_eq!(trace.to_string(), kept);
    let violations = trace.replay().expect("as written").violations;
    let wrong = "safety: p0 takes p1 for elected, and p2 lives";
    assert_eq!(violations, [wrong]);
}

/// More with TESTIGO_SEEDS.
fn seeds() -> u64 {
    let seeds = std::env::var("TESTIGO_SEEDS").ok();
    seeds.map_or(300, |seeds| seeds.parse().expect("a number of seeds"))
}

#[test]
fn random_runs_of_the_bully_stand_a_crash() {
    let bully = KnownAlgorithm::find("bully").expect("known");
    for seed in 0..seeds() {
        let nodes = 3 + seed % 5;
        let (node, at) = ((seed / 5) % nodes, (seed / 7) % 60);
        let world = World {
            seed,
            entries: 12,
            latency: Latency::Uniform(Time(1), Time::units(3)),
            faults: vec![format!("halt:{node}@{at}").parse().expect("a fault")],
            arrivals: "closed:exponential:5".parse().expect("arrivals"),
            ..World::default()
        };
        let run = bully.run(&Setup::new(nodes as usize), &world, false);
        let report = run.expect("valid").report;
        assert!(report.is_good(), "seed {seed}: {:?}", report.violations);
    }
}

#[test]
fn four_nodes_with_random_latency_are_safe_and_live() {
    for name in ["ring-election", "bully"] {
        let algorithm = KnownAlgorithm::find(name).expect("known");
        for seed in 0..seeds() {
            let world = World {
                seed,
                entries: 20,
                latency: Latency::Exponential(Time::units(1)),
                ..World::default()
            };
            let report = algorithm
                .run(&Setup::new(4), &world, false)
                .expect("valid")
                .report;
            assert!(
                report.is_good(),
                "{name}, seed {seed}: {:?}",
                report.violations
            );
            assert_eq!(report.entries, 20, "{name}, seed {seed}");
        }
    }
}

/// §3.3: what is published is the cost of replacing a leader that has crashed, from the best caller to the worst.
#[test]
fn only_elections_without_the_largest_are_held_against_the_published_cost() {
    let bully = KnownAlgorithm::find("bully").expect("known");
    let run = bully.run(&Setup::new(7), &World::default(), false);
    assert_eq!(run.expect("valid").report.as_published, None);
    let found = figures(&bully).expect("valid");
    assert!(found.iter().all(|finding| finding.holds), "{found:?}");
    assert_eq!(found[1].measured_value, Some(41.0), "7² - 7 - 1");
}
