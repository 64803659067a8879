//! Generals and the Paxos family: runs with crashes and lies, and what the checker must exhaust.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::{Faults, Setup};
use testigo_sim::{Fault, Latency, LinkOrder, Time};

const GENERALS: [&str; 2] = ["om", "sm"];
const PAXOS: [&str; 5] = [
    "paxos",
    "multi-paxos",
    "cheap-paxos",
    "fast-paxos",
    "generalized-paxos",
];

/// How many seeds each algorithm is run with; 10,000 for a long test.
const SEEDS: &str = "TESTIGO_AGREEMENT_SEEDS";

fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var(SEEDS).ok();
    0..seeds.map_or(100, |seeds| {
        seeds.parse().expect("TESTIGO_AGREEMENT_SEEDS is a number")
    })
}

fn run(name: &str, nodes: usize, world: &World) -> Report {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..Setup::new(nodes)
    };
    let run = algorithm.run(&setup, world, false);
    run.expect("valid").report
}

fn world(seed: u64) -> World {
    World {
        seed,
        entries: 24,
        latency: Latency::Uniform(Time(1), Time::units(4)),
        order: match seed % 2 {
            0 => LinkOrder::Any,
            _ => LinkOrder::Fifo,
        },
        arrivals: match seed % 3 {
            0 => "closed",
            1 => "closed:exponential:5",
            _ => "poisson:10",
        }
        .parse()
        .expect("valid"),
        ..World::default()
    }
}

/// Every name runs with four nodes, safe and live, whatever the latency.
#[test]
fn four_nodes_agree_by_default() {
    for name in GENERALS.into_iter().chain(PAXOS) {
        let plain = World {
            entries: 24,
            ..World::default()
        };
        for world in [plain].into_iter().chain(seeds().take(100).map(world)) {
            let report = run(name, 4, &world);
            let seed = world.seed;
            assert!(
                report.is_good(),
                "{name}, seed {seed}: {:?}",
                report.violations
            );
            assert_eq!(report.entries, 24, "{name}, seed {seed}");
        }
    }
}

/// As many nodes crash as are tolerated, and half of them come back.
#[test]
fn the_paxos_family_survives_crashes() {
    for name in PAXOS {
        let profile = KnownAlgorithm::find(name).expect("known").profile;
        for seed in seeds() {
            let nodes = 3 + (seed % 5) as usize;
            let crashes = (profile.tolerates)(&Setup::new(nodes)).crashes;
            let fault = |crash: u32| {
                let node = (seed as u32 / 5 + crash) % nodes as u32;
                let from = 1 + (seed + u64::from(crash) * 7) % 23;
                let fault = match (seed + u64::from(crash)) % 2 {
                    0 => format!("halt:{node}@{from}"),
                    _ => format!("crash:{node}@{from}..{}", from + 5 + seed % 13),
                };
                fault.parse::<Fault>().expect("valid")
            };
            let world = World {
                faults: (0..crashes).map(fault).collect(),
                ..world(seed)
            };
            let report = run(name, nodes, &world);
            assert!(
                report.is_good(),
                "{name}, {nodes} nodes, seed {seed}, {:?}: {:?}",
                world.faults,
                report.violations
            );
        }
    }
}

/// One of the generals tells any lie, in every second message on average.
#[test]
fn generals_stand_a_liar() {
    for name in GENERALS {
        for seed in seeds() {
            let fault = format!("arbitrary:{}:0.5", seed % 4);
            let world = World {
                faults: vec![fault.parse().expect("valid")],
                ..world(seed)
            };
            let report = run(name, 4, &world);
            assert!(
                report.is_good(),
                "{name}, seed {seed}: {:?}",
                report.violations
            );
        }
    }
}

fn check(name: &str, change: impl FnOnce(&mut CheckPlan, &mut Setup)) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let mut plan = CheckPlan::new(algorithm.profile.telling.entries as u32);
    let mut setup = algorithm.profile.telling_setup();
    change(&mut plan, &mut setup);
    let checked = algorithm.check(&setup, &plan).expect("valid");
    println!("{name}: {} states, {:?}", checked.states, checked.notes);
    checked
}

/// Every lie of any one liar in every message, in every order: four generals stand it with oral messages, three with signed
/// ones.
#[test]
fn every_lie_is_stood() {
    for (name, nodes) in [("om", 4), ("sm", 3)] {
        let checked = check(name, |_, _| {});
        assert_eq!(
            (checked.nodes, checked.faults),
            (nodes, Faults::liars(1)),
            "{name}"
        );
        assert!(checked.complete, "{name}: {:?}", checked.notes);
        assert_eq!(checked.safety, Verdict::Holds, "{name}");
        assert_eq!(checked.deadlock_freedom, Verdict::Holds, "{name}");
    }
}

/// Three generals with oral messages do not stand a liar: it is a lieutenant.
#[test]
fn three_generals_do_not_stand_a_lie() {
    let checked = check("om", |plan, setup| {
        (setup.users, setup.faulty) = (3, Some(1));
        plan.faults = Some(Faults::liars(1));
    });
    assert_eq!(checked.safety, Verdict::Refuted);
    let what = checked.counterexample.expect("a schedule").what;
    assert!(what.contains("its loyal commander ordered v1"), "{what}");
}

/// Two proposers and three acceptors, with a ballot each and one more for every timer. With two timers, two ballots
/// each, it takes minutes: TESTIGO_TIMEOUTS=2.
#[test]
fn paxos_is_exhausted() {
    let timeouts = std::env::var("TESTIGO_TIMEOUTS").ok();
    let timeouts = timeouts.map_or(1, |timeouts| timeouts.parse().expect("a number of timers"));
    let checked = check("paxos", |plan, _| {
        plan.timeouts = Some(timeouts);
        plan.faults = Some(Faults::NONE);
        plan.reduces = true;
        plan.states_max = 100_000_000;
    });
    assert!(checked.complete, "{:?}", checked.notes);
    assert_eq!(checked.safety, Verdict::Holds);
    assert_eq!(checked.deadlock_freedom, Verdict::Holds);
}

/// Duelling proposers: the liveness pass finds the cycle, modulo the numbers of their ballots.
#[test]
fn duelling_proposers_are_a_lasso() {
    let checked = check("paxos-duel", |_, _| {});
    assert!(checked.complete);
    assert_eq!(
        (checked.safety, checked.lockout_freedom),
        (Verdict::Holds, Verdict::Refuted)
    );
    let found = checked.counterexample.expect("a schedule");
    assert!(
        !found
            .trace
            .replay()
            .expect("it replays")
            .violations
            .is_empty()
    );
}
