//! Raft, PBFT, two-phase commit and commit-reveal under random schedules, and what the checker says of them.
//! `TESTIGO_ROUNDS` sets how many seeds, `TESTIGO_SEED` the first.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::{Faults, Setup};
use testigo_sim::{Generator, Latency, LinkOrder, Time};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("TESTIGO_SEED", 1);
    first..first + number("TESTIGO_ROUNDS", 300)
}

fn run(name: &str, setup: Setup, world: &World) -> Report {
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..setup
    };
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let run = algorithm.run(&setup, world, false).expect("valid");
    run.report
}

fn world(seed: u64, entries: u64) -> World {
    World {
        seed,
        entries,
        latency: match seed % 3 {
            0 => Latency::Fixed(Time::units(1)),
            1 => Latency::Uniform(Time(1), Time::units(4)),
            _ => Latency::Exponential(Time::units(1)),
        },
        order: match seed % 2 {
            0 => LinkOrder::Any,
            _ => LinkOrder::Fifo,
        },
        ..World::default()
    }
}

/// Up to three crashes with stable storage, of a minority at a time, up to two partitions, and some loss and
/// duplication; everything heals.
fn hostile(seed: u64, nodes: usize) -> World {
    let mut world = world(seed, 12);
    let bound = world.delay_bound().0 / Time::UNIT + 1;
    // Slow enough that the faults happen in the middle of it.
    let thinks = format!("closed:exponential:{}", 20 * bound);
    world.arrivals = thinks.parse().expect("valid");
    let mut lot = Generator::for_purpose(seed, 7);
    let mut at = 0;
    let mut window = |lot: &mut Generator| {
        let from = at + lot.between(1, 40 * bound);
        at = from + lot.between(1, 30 * bound);
        (from, at)
    };
    for _ in 0..lot.between(0, 3) {
        let first = lot.between(0, nodes as u64 - 1);
        let (from, until) = window(&mut lot);
        for next in 0..lot.between(1, (nodes as u64 - 1) / 2) {
            let node = (first + next) % nodes as u64;
            let fault = format!("crash:{node}@{from}..{until}");
            world.faults.push(fault.parse().expect("valid"));
        }
    }
    for _ in 0..lot.between(0, 2) {
        let cut = lot.between(1, nodes as u64 - 1);
        let turn = lot.between(0, nodes as u64 - 1);
        let (from, until) = window(&mut lot);
        let side = |side: std::ops::Range<u64>| {
            let nodes = side.map(|node| ((node + turn) % nodes as u64).to_string());
            nodes.collect::<Vec<_>>().join(",")
        };
        let (one, other) = (side(0..cut), side(cut..nodes as u64));
        let cut = format!("{one}|{other}@{from}..{until}");
        world.partitions.push(cut.parse().expect("valid"));
    }
    if lot.chance(0.5) {
        world.loss = "0.05".parse().expect("valid");
        world.faults.push("duplicate:0.05".parse().expect("valid"));
    }
    world
}

fn is_good(name: &str, seed: u64, report: &Report) {
    assert!(
        report.is_good(),
        "{name}, {} nodes, seed {seed}: {:?}",
        report.nodes,
        report.violations
    );
}

#[test]
fn raft_stands_crashes_partitions_and_loss() {
    let mut decisions = 0;
    for seed in seeds() {
        let nodes = 3 + (seed % 4) as usize;
        let report = run("raft", Setup::new(nodes), &hostile(seed, nodes));
        is_good("raft", seed, &report);
        decisions += report.entries;
    }
    println!("{} seeds, {decisions} decisions", seeds().count());
}

/// The same schedules find what is wrong with a specimen: they do reach the cases that the rules are for.
#[test]
fn the_random_schedules_catch_a_raft_without_its_log_check() {
    let unsafe_runs = (1..=300).filter(|&seed| {
        let nodes = 3 + (seed % 4) as usize;
        let report = run(
            "raft-no-log-check",
            Setup::new(nodes),
            &hostile(seed, nodes),
        );
        !report.safe
    });
    assert!(unsafe_runs.count() > 0);
}

/// Coordination and agreement §5.6, negative test 4: with random timeouts two servers elect a leader, with equal ones
/// never.
#[test]
fn equal_timeouts_split_the_votes_for_ever() {
    let world = World {
        entries: 2,
        ..World::default()
    };
    is_good("raft", 1, &run("raft", Setup::new(2), &world));
    let report = run("raft-fixed-timeout", Setup::new(2), &world);
    assert!(report.safe && !report.live, "{:?}", report.violations);
    assert_eq!(report.entries, 0);
}

/// One of four lies, now and then or always, or says nothing at all; the others are safe, and are served.
#[test]
fn pbft_stands_a_liar() {
    let mut decisions = 0;
    for seed in seeds() {
        let mut lot = Generator::for_purpose(seed, 8);
        let mut world = world(seed, 100);
        let bound = world.delay_bound().0 / Time::UNIT + 1;
        let nodes = 4 + (seed % 2) as usize;
        let liar = lot.between(0, 3);
        let fault = match lot.between(0, 3) {
            0 => format!("arbitrary:{liar}:0.2"),
            1 => format!("arbitrary:{liar}:0.6"),
            2 => format!("arbitrary:{liar}:1"),
            _ => format!("omit-send:{liar}:1"),
        };
        world.faults.push(fault.parse().expect("valid"));
        let mut requests = Vec::new();
        for user in (0..nodes as u64).filter(|user| *user != liar) {
            let requested = (0..4).map(|_| format!("{user}@{}", lot.between(0, 60 * bound)));
            requests.extend(requested);
        }
        let script = format!("script:{}", requests.join(","));
        world.arrivals = script.parse().expect("valid");
        let report = run("pbft", Setup::new(nodes), &world);
        is_good(&format!("pbft with {fault}"), seed, &report);
        assert_eq!(
            report.entries,
            requests.len() as u64,
            "seed {seed}, {fault}"
        );
        decisions += report.entries;
    }
    println!("{} seeds, {decisions} decisions", seeds().count());
}

/// With three replicas the same lies do harm.
#[test]
fn the_random_lies_catch_three_replicas() {
    let unsafe_runs = (1..=300).filter(|&seed| {
        let mut world = world(seed, 12);
        let fault = format!("arbitrary:{}:0.5", seed % 3);
        world.faults.push(fault.parse().expect("valid"));
        !run("pbft-three", Setup::new(3), &world).safe
    });
    assert!(unsafe_runs.count() > 0);
}

/// Everybody may crash and come back; who comes back goes on from its log.
#[test]
fn two_phase_commit_stands_crashes_with_restarts() {
    for seed in seeds() {
        let nodes = 2 + (seed % 4) as usize;
        let mut lot = Generator::for_purpose(seed, 9);
        let mut world = world(seed, 24);
        let bound = world.delay_bound().0 / Time::UNIT + 1;
        let mut at = 0;
        for _ in 0..lot.between(0, 3) {
            let node = lot.between(0, nodes as u64 - 1);
            let from = at + lot.between(1, 10 * bound);
            at = from + lot.between(1, 10 * bound);
            let fault = format!("crash:{node}@{from}..{at}");
            world.faults.push(fault.parse().expect("valid"));
        }
        if lot.chance(0.5) {
            world.faults.push("duplicate:0.1".parse().expect("valid"));
        }
        let report = run("two-phase-commit", Setup::new(nodes), &world);
        is_good("two-phase-commit", seed, &report);
    }
}

#[test]
fn commit_reveal_stands_players_that_stop() {
    for seed in seeds() {
        let nodes = 2 + (seed % 4) as usize;
        let mut lot = Generator::for_purpose(seed, 10);
        let mut world = world(seed, 24);
        if lot.chance(0.7) {
            let bound = world.delay_bound().0 / Time::UNIT + 1;
            let node = lot.between(0, nodes as u64 - 1);
            let fault = format!("halt:{node}@{}", lot.between(1, 20 * bound));
            world.faults.push(fault.parse().expect("valid"));
        }
        if lot.chance(0.3) {
            world.arrivals = "closed:exponential:10".parse().expect("valid");
        }
        let report = run("commit-reveal", Setup::new(nodes), &world);
        is_good("commit-reveal", seed, &report);
    }
}

#[test]
fn every_name_runs_with_defaults_and_with_random_latency() {
    for name in ["raft", "pbft", "two-phase-commit", "commit-reveal"] {
        for (seed, nodes) in [(1, 4), (2, 4), (3, 4), (4, 5), (5, 7)] {
            let report = run(name, Setup::new(nodes), &world(seed, 40));
            is_good(name, seed, &report);
            assert_eq!(report.entries, 40, "{name}");
            assert_ne!(report.as_published, Some(false), "{name}, {nodes} nodes");
        }
    }
}

fn check(name: &str, plan: impl FnOnce(&mut CheckPlan, &mut Setup)) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let mut planned = CheckPlan::new(algorithm.profile.telling.entries as u32);
    let mut setup = algorithm.profile.telling_setup();
    plan(&mut planned, &mut setup);
    let checked = algorithm.check(&setup, &planned).expect("valid");
    println!(
        "{name}: {} states, {} generated, complete {}, safety {:?}, deadlock {:?}, notes {:?}, {:?}",
        checked.states,
        checked.generated,
        checked.complete,
        checked.safety,
        checked.deadlock_freedom,
        checked.notes,
        checked
            .counterexample
            .as_ref()
            .map(|found| (&found.what, found.steps)),
    );
    checked
}

/// Two proposers, two terms and a crash with a restart: two million states of it, in order of depth.
#[test]
fn raft_is_checked_to_a_depth() {
    let checked = check("raft", |plan, setup| {
        setup.proposers = Some(2);
        plan.timeouts = Some(2);
        plan.states_max = 2_000_000;
    });
    assert_eq!(checked.faults.crashes, 1);
    assert_ne!(checked.safety, Verdict::Refuted);
    assert_ne!(checked.deadlock_freedom, Verdict::Refuted);
}

#[test]
fn pbft_is_checked_with_every_lie_to_a_depth() {
    let checked = check("pbft", |plan, _| plan.states_max = 1_000_000);
    assert_eq!(checked.faults.liars, 1);
    assert_ne!(checked.safety, Verdict::Refuted);
}

/// §5.8: a participant that is ready waits for ever for a coordinator that has crashed; nobody commits what another
/// aborts.
#[test]
fn two_phase_commit_blocks_but_never_disagrees() {
    let crash = |restarts| Faults {
        restarts,
        ..Faults::crashes(1)
    };
    let blocked = check("two-phase-commit", |plan, _| plan.faults = Some(crash(0)));
    assert_eq!(blocked.deadlock_freedom, Verdict::Refuted);
    assert_ne!(blocked.safety, Verdict::Refuted);
    let sound = check("two-phase-commit", |_, _| {});
    assert!(sound.complete);
    assert_eq!(sound.safety, Verdict::Holds);
    // Whoever crashes, and comes back or not.
    for restarts in [0, 1] {
        let sound = check("two-phase-commit", |plan, setup| {
            setup.users = 3;
            plan.faults = Some(crash(restarts));
            plan.timeouts = Some(1);
            plan.safety_only = true;
            plan.reduces = true;
        });
        assert!(sound.complete, "{:?}", sound.notes);
        assert_eq!(sound.safety, Verdict::Holds);
        assert_eq!(sound.deadlock_freedom, Verdict::NotCovered);
    }
}

/// §5.9. A timeout lets a turn end without a silent player, but it is no agreement on who was silent: a player that
/// crashes while it tells the others divides them.
#[test]
fn commit_reveal_is_exhausted_and_divided_by_a_crash_while_it_tells() {
    let checked = check("commit-reveal", |_, _| {});
    assert!(checked.complete, "{:?}", checked.notes);
    assert_eq!(checked.safety, Verdict::Holds);
    assert_ne!(checked.deadlock_freedom, Verdict::Refuted);
    let crash = |plan: &mut CheckPlan, _: &mut Setup| plan.faults = Some(Faults::crashes(1));
    assert_eq!(check("commit-reveal", crash).safety, Verdict::Refuted);
}
