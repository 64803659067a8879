//! Algorithms whose token travels on request: Raymond's tree and Chang's pointers.

use testigo_lab::{CheckPlan, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::{Setup, SpanningTree};
use testigo_sim::{Latency, LinkOrder, Time};

fn run(name: &str, setup: &Setup, world: &World) -> Report {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let report = algorithm.run(setup, world, false).expect("valid").report;
    let (nodes, seed) = (setup.users, world.seed);
    let wrong = &report.violations;
    assert!(report.is_good(), "{name}, {nodes} nodes, {seed}: {wrong:?}");
    assert_eq!(report.entries, world.entries, "{name}, {nodes} nodes");
    report
}

fn on_tree(nodes: usize, tree: SpanningTree) -> Setup {
    Setup {
        tree,
        ..Setup::new(nodes)
    }
}

/// Random latency and links out of order, at 3 to 13 nodes.
fn stands_a_thousand_seeds(name: &str) {
    for seed in 0..1_000 {
        let arrivals = ["closed", "closed:exponential:5", "poisson:10"][seed as usize % 3];
        let order = [LinkOrder::Any, LinkOrder::Fifo][seed as usize % 2];
        let world = World {
            seed,
            entries: 40,
            latency: Latency::Uniform(Time(1), Time::units(4)),
            hold: Latency::Exponential(Time::units(1)),
            order,
            arrivals: arrivals.parse().expect("valid"),
            ..World::default()
        };
        let nodes = 3 + (seed / 6 % 11) as usize;
        let tree = SpanningTree::ALL[(seed / 66 % 3) as usize];
        run(name, &on_tree(nodes, tree), &world);
    }
}

#[test]
fn raymond_stands_a_thousand_seeds() {
    stands_a_thousand_seeds("raymond");
}

#[test]
fn chang_stands_a_thousand_seeds() {
    stands_a_thousand_seeds("chang");
}

fn exhausts(name: &str, setup: &Setup, entries: u32) {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let checked = algorithm
        .check(setup, &CheckPlan::new(entries))
        .expect("valid");
    assert!(checked.complete, "{name}: {:?}", checked.notes);
    let verdicts = [
        checked.safety,
        checked.deadlock_freedom,
        checked.lockout_freedom,
    ];
    assert_eq!(verdicts, [Verdict::Holds; 3], "{name}, {setup:?}");
}

#[test]
fn raymond_is_exhausted_on_every_tree() {
    for tree in SpanningTree::ALL {
        exhausts("raymond", &on_tree(3, tree), 3);
        exhausts("raymond", &on_tree(4, tree), 1);
    }
}

#[test]
fn chang_is_exhausted() {
    exhausts("chang", &Setup::new(3), 3);
    exhausts("chang", &Setup::new(4), 1);
}

/// One user after the other, with nobody else near: the costs without load.
fn light_load(entries: u64) -> World {
    World {
        entries,
        arrivals: "poisson:100000".parse().expect("valid"),
        ..World::default()
    }
}

/// At most 2D messages for an entry; 2(N−1) on a line, where the token goes from end to end.
#[test]
fn the_token_of_raymond_crosses_a_line_for_two_messages_an_edge() {
    let across = |nodes: usize| {
        let last = nodes - 1;
        let world = World {
            arrivals: format!("script:{last}@0").parse().expect("valid"),
            entries: 1,
            ..World::default()
        };
        run("raymond", &on_tree(nodes, SpanningTree::Line), &world).messages
    };
    assert_eq!([2, 3, 8, 13].map(across), [2, 4, 14, 24]);
}

#[test]
fn raymond_never_needs_more_than_twice_the_diameter() {
    for tree in SpanningTree::ALL {
        for nodes in 2..=16 {
            let setup = on_tree(nodes, tree);
            let worst = 2.0 * tree.diameter(nodes) as f64;
            for world in [World::default(), light_load(100)] {
                let measured = run("raymond", &setup, &world).messages_per_entry;
                let measured = measured.expect("entries");
                assert!(measured <= worst, "{tree}, {nodes} nodes: {measured}");
            }
        }
    }
}

/// About 4 under full load, whatever the tree.
#[test]
fn raymond_needs_less_than_four_messages_under_full_load() {
    let world = World {
        entries: 1_000,
        ..World::default()
    };
    for tree in SpanningTree::ALL {
        let measured = run("raymond", &on_tree(15, tree), &world).messages_per_entry;
        let measured = measured.expect("entries");
        assert!((3.5..4.0).contains(&measured), "{tree}: {measured}");
    }
}

/// Under full load the mean tends to 4; one at a time it grows by about ln 2 with every doubling.
#[test]
fn the_mean_of_chang_stays_below_log_n_up_to_1024_nodes() {
    let mut before = 0.0;
    for nodes in (1..=10).map(|bits| 1 << bits) {
        let setup = Setup::new(nodes);
        let bound = (nodes as f64).log2() + 1.0;
        let loaded = World {
            entries: 5_000,
            ..World::default()
        };
        let full = run("chang", &setup, &loaded).messages_per_entry;
        let light = run("chang", &setup, &light_load(5_000)).messages_per_entry;
        let (full, light) = (full.expect("entries"), light.expect("entries"));
        assert!(full <= bound.min(4.0), "{nodes} nodes: {full}");
        assert!(light <= bound, "{nodes} nodes: {light}");
        let growth = light - before;
        assert!((0.3..1.0).contains(&growth), "{nodes} nodes: {growth}");
        before = light;
    }
}

#[test]
fn chang_hands_over_in_one_message_time() {
    let report = run("chang", &Setup::new(7), &World::default());
    assert_eq!(report.synchronisation_delay, Some(1.0));
    assert_eq!(report.overtakes_max, Some(0), "first come, first served");
}
