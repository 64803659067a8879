//! Multicasts: costs, random runs with crashes and losses, and the specimens that the checker must refute.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Report, Timing, Verdict, World};
use testigo_protocol::multicast::{Delivery, Over};
use testigo_protocol::{Faults, Setup};
use testigo_sim::{Latency, LinkOrder, Time};

const NAMES: [&str; 7] = [
    "basic-multicast",
    "reliable-multicast",
    "nack-multicast",
    "fifo-multicast",
    "causal-multicast",
    "isis",
    "sequencer",
];

/// Random runs of each kind; more with TESTIGO_SEEDS.
fn seeds() -> u64 {
    let seeds = std::env::var("TESTIGO_SEEDS").ok();
    seeds.map_or(200, |seeds| {
        seeds.parse().expect("TESTIGO_SEEDS is a number")
    })
}

fn run(name: &str, setup: &Setup, world: &World) -> Report {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..setup.clone()
    };
    algorithm.run(&setup, world, false).expect("valid").report
}

#[test]
fn every_name_runs_with_defaults_and_with_random_latency() {
    for name in NAMES {
        for latency in ["fixed:1", "exponential:1"] {
            let world = World {
                latency: latency.parse().expect("valid"),
                ..World::default()
            };
            let report = run(name, &Setup::new(4), &world);
            assert!(
                report.is_good(),
                "{name}, {latency}: {:?}",
                report.violations
            );
            assert_eq!(report.entries, 100, "{name}, {latency}");
        }
    }
}

#[test]
fn exact_costs_for_every_size() {
    for n in 2..=16 {
        let peers = n as f64 - 1.0;
        for (name, over, published) in [
            ("basic-multicast", Over::Basic, 2.0 * peers),
            ("reliable-multicast", Over::Basic, n as f64 * peers),
            ("fifo-multicast", Over::Basic, peers),
            ("fifo-multicast", Over::Reliable, n as f64 * peers),
            ("causal-multicast", Over::Basic, peers),
            ("causal-multicast", Over::Reliable, n as f64 * peers),
            ("isis", Over::Basic, 3.0 * peers),
            ("isis", Over::Reliable, (2.0 * n as f64 + 1.0) * peers),
            ("sequencer", Over::Basic, 2.0 * peers),
        ] {
            let setup = Setup {
                over,
                ..Setup::new(n)
            };
            let report = run(
                name,
                &setup,
                &World {
                    entries: 20,
                    ..World::default()
                },
            );
            assert!(
                report.is_good(),
                "{name}, {n} nodes: {:?}",
                report.violations
            );
            assert_eq!(
                report.messages_per_entry,
                Some(published),
                "{name} over {over}, {n} nodes"
            );
            assert_eq!(
                report.as_published,
                Some(true),
                "{name} over {over}, {n} nodes"
            );
        }
    }
}

/// As many acknowledgements as sends, all of them to the sender: the ack implosion.
#[test]
fn every_basic_multicast_is_acknowledged_by_everybody() {
    for n in [4, 16, 64] {
        let report = run(
            "basic-multicast",
            &Setup::new(n),
            &World {
                entries: 20,
                ..World::default()
            },
        );
        let each = 20 * (n as u64 - 1);
        let kinds: Vec<_> = report.messages_by_kind.into_iter().collect();
        assert_eq!(
            kinds,
            [("Ack".into(), each), ("Message".into(), each)],
            "{n} nodes"
        );
    }
}

/// What a seed makes of a run: links as unordered as can be, users that ask at once or now and then, one group or several.
fn drawn(seed: u64, over: Over) -> (Setup, World) {
    let nodes = 2 + (seed % 5) as usize;
    let setup = Setup {
        over,
        groups: match seed / 5 % 3 {
            1 if nodes > 2 => Some(2),
            2 if nodes > 2 => Some(nodes),
            _ => None,
        },
        delivery: Delivery::ALL[(seed / 3 % 2) as usize],
        ..Setup::new(nodes)
    };
    let world = World {
        seed,
        entries: 16,
        latency: Latency::Uniform(Time(1), Time::units(4)),
        order: if seed.is_multiple_of(4) {
            LinkOrder::Fifo
        } else {
            LinkOrder::Any
        },
        arrivals: ["closed:exponential:1", "poisson:4", "closed"][(seed % 3) as usize]
            .parse()
            .expect("valid"),
        ..World::default()
    };
    (setup, world)
}

/// Halts some of the nodes, at times within the run; at least one is left.
fn crashes(seed: u64, nodes: usize) -> Vec<testigo_sim::Fault> {
    let halted = 1 + (seed / 7) as usize % (nodes - 1);
    let halt = |place: usize| {
        let node = (seed as usize / 11 + place) % nodes;
        let tenths = (seed / 13 + 17 * place as u64) % 120;
        format!("halt:{node}@{}.{}", tenths / 10, tenths % 10)
    };
    let faults = (0..halted).map(halt);
    faults.map(|fault| fault.parse().expect("valid")).collect()
}

#[test]
fn random_runs_without_faults() {
    for name in NAMES {
        for seed in 0..seeds() {
            for over in Over::ALL {
                let (mut setup, world) = drawn(seed, over);
                if name == "sequencer" && over == Over::Nack {
                    setup.groups = None;
                }
                let report = run(name, &setup, &world);
                assert!(
                    report.is_good(),
                    "{name}, {setup:?}, seed {seed}: {:?}",
                    report.violations
                );
                assert_eq!(report.entries, world.entries, "{name}, seed {seed}");
            }
        }
    }
}

#[test]
fn random_runs_with_crashes() {
    for name in NAMES {
        let overs: &[Over] = match name {
            "fifo-multicast" => &[Over::Basic, Over::Reliable],
            "causal-multicast" | "isis" => &Over::ALL,
            "sequencer" => &[Over::Basic, Over::Reliable],
            _ => &[Over::Basic],
        };
        for seed in 0..seeds() {
            for &over in overs {
                let (setup, mut world) = drawn(seed, over);
                world.faults = crashes(seed, setup.users);
                let report = run(name, &setup, &world);
                let algorithm = KnownAlgorithm::find(name).expect("known");
                let told = format!("{name}, {setup:?}, seed {seed}: {:?}", report.violations);
                assert!(report.safe && report.well_formed, "{told}");
                // Whoever does not stand a crash may stop, and still delivers nothing that is wrong.
                if (algorithm.profile.tolerates)(&setup).crashes > 0 {
                    assert!(report.live, "{told}");
                }
            }
        }
    }
}

#[test]
fn random_runs_with_losses() {
    for (name, over) in [
        ("nack-multicast", Over::Basic),
        ("fifo-multicast", Over::Nack),
        ("causal-multicast", Over::Nack),
    ] {
        for seed in 0..seeds() {
            let (setup, mut world) = drawn(seed, over);
            world.loss = ["0.05", "0.3", "0.6"][(seed / 2 % 3) as usize]
                .parse()
                .expect("valid");
            let duplicates = ["duplicate:0.2", "duplicate:0.01"][(seed % 2) as usize];
            world.faults = vec![duplicates.parse().expect("valid")];
            let algorithm = KnownAlgorithm::find(name).expect("known");
            if (algorithm.profile.tolerates)(&setup).crashes > 0 && seed % 5 < 3 {
                world.faults.extend(crashes(seed, setup.users));
            }
            let report = run(name, &setup, &world);
            assert!(
                report.is_good(),
                "{name}, {setup:?}, seed {seed}: {:?}",
                report.violations
            );
        }
    }
}

/// Checks every interleaving, with the faults that the algorithm says it stands in this setup.
fn check(name: &str, setup: &Setup, plan: &CheckPlan) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let checked = algorithm.check(setup, plan).expect("valid");
    let found = checked.counterexample.as_ref().map(|found| &found.what);
    println!(
        "{name}: {} states, {:?} {found:?}",
        checked.states, checked.faults
    );
    assert!(
        checked.complete,
        "{name}, {setup:?}: {found:?} {:?}",
        checked.notes
    );
    assert_eq!(checked.safety, Verdict::Holds, "{name}, {setup:?}");
    checked
}

fn holds(name: &str, setup: &Setup, entries: u32) {
    let checked = check(name, setup, &CheckPlan::new(entries));
    assert_eq!(
        checked.deadlock_freedom,
        Verdict::Holds,
        "{name}, {setup:?}: {:?}",
        checked.notes
    );
}

#[test]
fn crashes_are_exhausted() {
    holds("basic-multicast", &Setup::new(2), 2);
    holds("basic-multicast", &Setup::new(3), 1);
    holds("reliable-multicast", &Setup::new(2), 2);
    holds("fifo-multicast", &Setup::new(2), 2);
    for name in ["fifo-multicast", "causal-multicast"] {
        let reliable = Setup {
            over: Over::Reliable,
            ..Setup::new(2)
        };
        holds(name, &reliable, 2);
    }
}

#[test]
fn orders_are_exhausted() {
    for name in ["fifo-multicast", "causal-multicast", "sequencer", "isis"] {
        let plain = CheckPlan {
            faults: Some(Faults::NONE),
            ..CheckPlan::new(1)
        };
        for groups in [1, 3] {
            let setup = Setup {
                groups: Some(groups),
                ..Setup::new(3)
            };
            let checked = check(name, &setup, &plain);
            assert_eq!(
                checked.deadlock_freedom,
                Verdict::Holds,
                "{name}, {groups} groups"
            );
        }
    }
}

/// One loss and one copy of two messages, either way to deliver: at any time, and with timers that are slower than messages,
/// where it is seen that everything comes in the end.
#[test]
fn losses_are_exhausted() {
    for delivery in Delivery::ALL {
        let setup = Setup {
            delivery,
            ..Setup::new(2)
        };
        let faults = Faults {
            losses: 1,
            copies: 1,
            ..Faults::NONE
        };
        let plan = CheckPlan {
            faults: Some(faults),
            ..CheckPlan::new(1)
        };
        check(
            "nack-multicast",
            &setup,
            &CheckPlan {
                timeouts: Some(2),
                ..plan
            },
        );
        let synchronous = CheckPlan {
            timing: Some(Timing::Synchronous),
            ..plan
        };
        let checked = check("nack-multicast", &setup, &synchronous);
        assert_eq!(
            checked.deadlock_freedom,
            Verdict::Holds,
            "{delivery}: {:?}",
            checked.notes
        );
    }
}
