//! Quorums of the living: tree quorums, cohorts, and Agrawal and Jalote's two groups, with and without
//! dead nodes.

use testigo_lab::{CheckPlan, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::Setup;
use testigo_protocol::quorum::{AgrawalJalote, Construction, NodeSet};
use testigo_sim::{Fault, Generator, Latency, Time};

const NAMES: [&str; 3] = ["tree-quorum", "cohort-quorum", "agrawal-jalote"];

/// Runs with the bound that the world keeps; whatever happens, it must be safe.
fn run(name: &str, nodes: usize, world: &World) -> Report {
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..Setup::new(nodes)
    };
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let report = algorithm.run(&setup, world, false).expect("valid").report;
    let promises = (report.safe, report.well_formed);
    let (seed, faults, wrong) = (world.seed, &world.faults, &report.violations);
    assert_eq!(
        promises,
        (true, true),
        "{name}, {seed}, {faults:?}: {wrong:?}"
    );
    report
}

fn random_world(seed: u64) -> World {
    let arrivals = ["closed", "closed:exponential:5", "poisson:10"][seed as usize % 3];
    World {
        seed,
        entries: 40,
        latency: Latency::Uniform(Time(1), Time::units(4)),
        hold: Latency::Exponential(Time::units(1)),
        arrivals: arrivals.parse().expect("valid"),
        ..World::default()
    }
}

#[test]
fn all_stand_a_thousand_seeds() {
    for name in NAMES {
        for seed in 0..1_000 {
            let nodes = 3 + (seed / 3 % 11) as usize;
            let report = run(name, nodes, &random_world(seed));
            assert!(report.live, "{name}, {seed}: {:?}", report.violations);
            assert_eq!(report.entries, 40, "{name}, {nodes} nodes, seed {seed}");
        }
    }
}

fn exhausts(name: &str, setup: &Setup, entries: u32) {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let checked = algorithm
        .check(setup, &CheckPlan::new(entries))
        .expect("valid");
    assert!(checked.complete, "{name}: {:?}", checked.notes);
    let verdicts = (checked.safety, checked.deadlock_freedom);
    assert_eq!(verdicts, (Verdict::Holds, Verdict::Holds), "{name}");
    assert_ne!(checked.lockout_freedom, Verdict::Refuted, "{name}");
}

/// Without a bound there is no suspicion, and a state in which somebody waits and no message is under way
/// is stuck.
#[test]
fn all_are_exhausted_at_three_nodes() {
    for name in NAMES {
        exhausts(name, &Setup::new(3), 2);
    }
}

/// With one: patience may end at any time, and as many timers fire as leave the living unsuspected.
#[test]
fn suspicion_that_is_answered_harms_nobody() {
    for name in ["tree-quorum", "agrawal-jalote"] {
        let setup = Setup {
            delay_bound: 1,
            ..Setup::new(3)
        };
        exhausts(name, &setup, 1);
    }
}

/// 3(K−1): 3 log N, without the messages to oneself; nobody is probed under full load.
#[test]
fn complete_trees_cost_three_messages_for_each_other_node_of_a_path() {
    for (nodes, path) in [(3, 2.0), (7, 3.0), (15, 4.0), (31, 5.0)] {
        let report = run("tree-quorum", nodes, &World::default());
        assert!(report.live);
        let cost = report.messages_per_entry;
        assert_eq!(cost, Some(3.0 * (path - 1.0)), "{nodes} nodes");
    }
}

#[test]
fn costs_stay_inside_the_published_ranges() {
    for name in NAMES {
        for nodes in 3..=16 {
            let report = run(name, nodes, &World::default());
            let range = report.published_messages_per_entry.expect("published");
            let cost = report.messages_per_entry.expect("entries");
            let inside = range.min <= cost && cost <= range.max;
            assert!(inside, "{name}, {nodes} nodes: {cost}, {range:?}");
            assert!(report.overtakes_max <= Some(3), "{name}, {nodes} nodes");
        }
    }
}

fn halt(node: usize, at: &str) -> Fault {
    format!("halt:{node}@{at}").parse().expect("valid")
}

/// Every node of seven asks once; these are dead from the start.
fn with_dead(name: &str, dead: NodeSet) -> Report {
    let script: Vec<String> = (0..7).map(|node| format!("{node}@0")).collect();
    let script = format!("script:{}", script.join(","));
    let world = World {
        entries: 7,
        arrivals: script.parse().expect("valid"),
        faults: dead.iter().map(|node| halt(node, "0")).collect(),
        ..World::default()
    };
    run(name, 7, &world)
}

/// All 127 sets of seven nodes of which somebody lives, with the dead.
fn live_sets() -> impl Iterator<Item = (NodeSet, NodeSet)> {
    let all = NodeSet::first(7);
    (1..128).map(move |bits| {
        (
            NodeSet::from_bits(bits),
            all.minus(NodeSet::from_bits(bits)),
        )
    })
}

/// Exactly the sets of live nodes that contain a quorum go on, so what is measured is the formula's
/// availability.
#[test]
fn trees_and_cohorts_go_on_exactly_while_a_quorum_is_alive() {
    for (name, construction) in [
        ("tree-quorum", Construction::Tree),
        ("cohort-quorum", Construction::Cohorts),
    ] {
        let structure = construction.structure(7).expect("seven nodes");
        let quorums = structure.list().expect("few quorums");
        let mut alive = Vec::new();
        for (live, dead) in live_sets() {
            let report = with_dead(name, dead);
            let goes_on = quorums.serves(live);
            let expected = if goes_on { live.len() } else { 0 };
            assert_eq!(report.entries, expected as u64, "{name}, {dead} dead");
            assert_eq!(report.live, goes_on, "{name}, {dead} dead");
            alive.extend(report.live.then_some(live.len() as i32));
        }
        for p in [0.7_f64, 0.9, 0.95] {
            let chance = |&up: &i32| p.powi(up) * (1.0 - p).powi(7 - up);
            let measured: f64 = alive.iter().map(chance).sum();
            let formula = structure.formula(p).expect("a formula");
            assert!((measured - formula).abs() < 1e-9, "{name}: {measured}");
        }
    }
}

#[test]
fn a_node_of_agrawal_and_jalote_goes_on_exactly_while_one_of_its_groups_is_alive() {
    let groups = AgrawalJalote::new(7);
    for (live, dead) in live_sets() {
        let whole = |group: &[usize]| group.iter().all(|&node| live.contains(node));
        let serves = |node| {
            groups
                .of(node)
                .is_some_and(|two| two.into_iter().any(whole))
        };
        let served = live.iter().filter(|&node| serves(node)).count();
        let report = with_dead("agrawal-jalote", dead);
        assert_eq!(report.entries, served as u64, "{dead} dead");
        assert_eq!(report.live, served == live.len(), "{dead} dead");
    }
}

/// Nodes stop at any time: inside, waiting, or with a permission lent.
#[test]
fn deaths_in_the_middle_of_a_run_stop_nobody_while_a_quorum_is_alive() {
    for (name, construction) in [
        ("tree-quorum", Construction::Tree),
        ("cohort-quorum", Construction::Cohorts),
    ] {
        let structure = construction.structure(7).expect("seven nodes");
        let quorums = structure.list().expect("few quorums");
        for seed in 0..500 {
            let mut draw = Generator::for_purpose(seed, 9);
            let dead = NodeSet::from_bits(u128::from(draw.bits() & draw.bits() & 0x7f));
            let mut at = || draw.between(0, 100).to_string();
            let faults = dead.iter().map(|node| halt(node, &at())).collect();
            let world = World {
                faults,
                ..random_world(seed)
            };
            let report = run(name, 7, &world);
            let live = NodeSet::first(7).minus(dead);
            let wrong = &report.violations;
            assert!(
                report.live || !quorums.serves(live),
                "{name}, {seed}: {wrong:?}"
            );
        }
    }
}

/// Every node crashes and comes back, some of them more than once and several at a time.
#[test]
fn nodes_that_come_back_with_their_stable_storage_bring_everybody_in() {
    for name in NAMES {
        for seed in 0..1_000 {
            let mut draw = Generator::for_purpose(seed, 10);
            let outage = |node: u64| {
                let from = draw.between(0, 120);
                let until = from + draw.between(1, [5, 80][seed as usize % 2]);
                let text = format!("crash:{}@{from}..{until}", node % 7);
                text.parse().expect("valid")
            };
            let world = World {
                entries: 60,
                faults: (0..10).map(outage).collect(),
                hold: Latency::Exponential(Time::units([1, 20][seed as usize / 2 % 2])),
                ..random_world(seed)
            };
            let report = run(name, 7, &world);
            assert!(report.live, "{name}, {seed}: {:?}", report.violations);
        }
    }
}

/// A node that waits long for a busy one asks whether it lives, and believes it.
#[test]
fn a_long_section_is_not_a_death() {
    for name in NAMES {
        let world = World {
            entries: 14,
            hold: "fixed:500".parse().expect("valid"),
            ..World::default()
        };
        let report = run(name, 7, &world);
        assert!(report.live && report.entries == 14, "{name}");
        let count = |kind| report.messages_by_kind.get(kind).copied();
        assert!(count("Probe") > Some(0), "{name} became suspicious");
        assert_eq!(count("Probe"), count("Alive"), "{name}: all answered");
    }
}

/// Safety needs the bound: a node that is only slow is taken for dead, and two are inside.
#[test]
fn messages_slower_than_the_bound_can_let_two_in() {
    let algorithm = KnownAlgorithm::find("tree-quorum").expect("known");
    let world = World {
        arrivals: "script:1@0,2@1".parse().expect("valid"),
        entries: 2,
        hold: "fixed:100".parse().expect("valid"),
        faults: vec!["pause:1@3..80".parse().expect("valid")],
        ..World::default()
    };
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..Setup::new(3)
    };
    assert!(
        !algorithm
            .run(&setup, &world, false)
            .expect("valid")
            .report
            .safe
    );
}

#[test]
fn every_size_is_run_or_refused_with_a_reason() {
    let algorithm = |name| KnownAlgorithm::find(name).expect("known");
    let shape = |name, nodes| algorithm(name).shape(&Setup::new(nodes));
    for name in NAMES {
        assert!(shape(name, 7).is_ok(), "{name}");
        assert!(shape(name, 1).is_err(), "{name}");
    }
    let two = shape("cohort-quorum", 2).expect_err("no cohorts of two");
    assert!(two.to_string().contains('3'), "{two}");
    let many = shape("cohort-quorum", 129).expect_err("too many");
    assert!(many.to_string().contains("128"), "{many}");
}
