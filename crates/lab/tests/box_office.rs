//! The box office: writers alone, queries together, and how often each may be passed.

use testigo_lab::{CheckPlan, Checked, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::Setup;
use testigo_sim::{Generator, Latency, LinkOrder, Time};

fn setup(nodes: usize, classes: &str) -> Setup {
    Setup {
        classes: classes.parse().expect("classes"),
        ..Setup::new(nodes)
    }
}

fn check(setup: &Setup, entries: u32) -> Checked {
    let algorithm = KnownAlgorithm::find("box-office").expect("known");
    algorithm
        .check(setup, &CheckPlan::new(entries))
        .expect("valid")
}

/// No writer with anybody else, queries together, every grant in the order of the classes and within its
/// bounds, and nobody stuck.
fn exhausts(setup: &Setup, entries: u32) -> usize {
    let checked = check(setup, entries);
    let found = checked.counterexample.as_ref().map(|found| &found.what);
    assert!(
        checked.complete,
        "{setup:?}: {found:?}, {:?}",
        checked.notes
    );
    let verdicts = [
        Some(checked.safety),
        checked.bounds,
        Some(checked.deadlock_freedom),
    ];
    let found = checked.counterexample.map(|found| found.what);
    assert_eq!(verdicts, [Some(Verdict::Holds); 3], "{setup:?}: {found:?}");
    checked.states
}

/// Box office §16.3: every placement of four processes, each of any class, on two nodes.
#[test]
fn four_processes_on_two_nodes_are_exhausted() {
    let mut states = 0;
    for classes in [
        "any,any,any,any/",
        "any,any,any/any",
        "any,any",
        "any/any,any,any",
        "/any,any,any,any",
    ] {
        states += exhausts(&limited(setup(2, classes), 1, 1), 1);
    }
    assert!(states > 50_000, "{states}");
}

/// Every placement of three processes on three nodes.
#[test]
fn three_processes_on_three_nodes_are_exhausted() {
    let mut states = 0;
    for classes in [
        "any",
        "any,any/any/",
        "any,any//any",
        "any/any,any/",
        "any//any,any",
        "/any,any/any",
        "/any/any,any",
        "any,any,any//",
        "/any,any,any/",
        "//any,any,any",
    ] {
        states += exhausts(&limited(setup(3, classes), 1, 1), 1);
    }
    assert!(states > 10_000, "{states}");
}

fn limited(mut setup: Setup, overtakes: u32, burst: u32) -> Setup {
    (setup.overtakes, setup.burst) = (Some(overtakes), Some(burst));
    setup
}

/// Reservations that come again and again pass a query that is known at most MAX times, in every schedule.
#[test]
fn a_query_is_overtaken_at_most_as_often_as_chosen_in_every_schedule() {
    for overtakes in [1, 2] {
        exhausts(
            &limited(setup(2, "reservation,reservation/query"), overtakes, 4),
            3,
        );
        exhausts(
            &limited(setup(2, "reservation/reservation,query"), overtakes, 1),
            3,
        );
    }
    exhausts(&limited(setup(3, "reservation/reservation/query"), 1, 1), 2);
}

/// The W13 scenario: whose turn it is stands in the token, and node 2 is reached.
#[test]
fn turns_reach_every_node_in_every_schedule() {
    exhausts(
        &limited(setup(3, "cancel/reservation/reservation"), 5, 1),
        2,
    );
}

fn run(setup: &Setup, world: &World) -> Report {
    let algorithm = KnownAlgorithm::find("box-office").expect("known");
    let report = algorithm.run(setup, world, false).expect("valid").report;
    assert!(
        report.is_good(),
        "{setup:?}, {}: {:?}",
        world.seed,
        report.violations
    );
    assert_eq!(report.entries, world.entries);
    report
}

/// Box office §10.6: eight class mixes, 2 to 13 nodes, FIFO and not, several limits and bursts.
#[test]
fn three_thousand_random_schedules() {
    const MIXES: [&str; 8] = [
        "client,client",
        "any",
        "any,any,any",
        "cancel,reservation,query",
        "reservation,query",
        "reservation,reservation,query/query",
        "query,query",
        "cancel/reservation/query",
    ];
    for seed in 0..3_000 {
        let mut draw = Generator::for_purpose(seed, 7);
        let mut any = |list: &[u32]| list[draw.below(list.len() as u64) as usize];
        let nodes = 2 + (seed % 12) as usize;
        let mut setup = setup(nodes, MIXES[(seed / 12 % 8) as usize]);
        setup = limited(setup, any(&[1, 2, 3, 5]), any(&[1, 2, 5, 100]));
        setup.readers = ["0.1", "0.5", "0.9"][any(&[0, 1, 2]) as usize]
            .parse()
            .expect("share");
        let world = World {
            seed,
            entries: 60,
            latency: Latency::Uniform(Time(1), Time::units(4)),
            hold: Latency::Exponential(Time::units(1)),
            order: [LinkOrder::Any, LinkOrder::Fifo][any(&[0, 1]) as usize],
            arrivals: ["closed", "closed:exponential:5", "poisson:10"][any(&[0, 1, 2]) as usize]
                .parse()
                .expect("valid"),
            ..World::default()
        };
        run(&setup, &world);
    }
}

fn script(script: &str) -> World {
    let arrivals: testigo_lab::Arrivals = script.parse().expect("a script");
    World {
        entries: script.matches('@').count() as u64,
        arrivals,
        ..World::default()
    }
}

/// Box office §11 and §16.2: nothing with the idle token at hand, N for a remote writer, N+1 for a reader
/// by query token, nothing more for a recall.
#[test]
fn costs_are_those_of_the_specification() {
    for nodes in [2, 3, 7] {
        let writers = setup(nodes, "reservation");
        assert_eq!(run(&writers, &script("script:0@0")).messages, 0);
        assert_eq!(run(&writers, &script("script:1@0")).messages, nodes as u64);
        let readers = setup(nodes, "query");
        assert_eq!(run(&readers, &script("script:1@0")).messages, nodes as u64);
        let world = World {
            hold: Latency::Fixed(Time::units(9)),
            ..script("script:0@0,1@0")
        };
        let together = run(&readers, &world);
        assert_eq!(together.messages, nodes as u64 + 1);
        let kinds = [
            ("Request", nodes as u64 - 1),
            ("QueryToken", 1),
            ("QueryReturn", 1),
        ];
        for (kind, count) in kinds {
            assert_eq!(together.messages_by_kind.get(kind), Some(&count), "{nodes}");
        }
    }
    // The published ranges, as formulas of N.
    let report = run(&setup(7, "query"), &script("script:0@0"));
    let range = report.published_messages_per_entry.expect("published");
    assert_eq!((range.min, range.max), (0.0, 8.0));
    // A reader joins the session of its own node for nothing.
    let office = setup(2, "query,query");
    let world = World {
        hold: Latency::Fixed(Time::units(9)),
        ..script("script:0@0,2@0,1@3")
    };
    assert_eq!(run(&office, &world).messages, 3);
    // Two reservations of a node without the token ask once, a cancellation after them once more.
    let office = setup(3, "/reservation,reservation,cancel/");
    let report = run(&office, &script("script:0@0,1@0,2@0"));
    assert_eq!(report.messages_by_kind.get("Request"), Some(&4));
    assert_eq!(report.messages_by_kind.get("Token"), Some(&1));
}

/// C1: with queries only, all nodes read at the same time.
#[test]
fn queries_of_all_nodes_are_inside_together() {
    let world = World {
        hold: Latency::Fixed(Time::units(10)),
        ..script("script:0@0,1@0,2@0,3@0,4@0,5@0,6@0")
    };
    let report = run(&setup(7, "query"), &world);
    assert_eq!((report.inside_max, report.rounds), (Some(7), Some(1)));
}

/// Two saturated nodes take turns, by as many writers each as the burst allows.
#[test]
fn a_node_lets_in_as_many_writers_as_its_burst_allows() {
    for (burst, tokens) in [(1, 99), (4, 24)] {
        let office = limited(
            setup(
                2,
                "reservation,reservation,reservation,reservation,reservation",
            ),
            5,
            burst,
        );
        let report = run(&office, &World::default());
        let moved = report.messages_by_kind.get("Token").copied().unwrap_or(0);
        assert!(
            moved.abs_diff(tokens) <= 1,
            "burst {burst}: the token moved {moved} times"
        );
    }
}

/// Under a flood of reservations a query waits longer the more may pass it, and cancellations do not wait.
#[test]
fn the_limit_is_what_a_query_waits_for() {
    let waits = |overtakes| {
        let flood =
            "reservation,reservation,reservation,query/reservation,reservation,reservation,cancel";
        let world = World {
            entries: 2_000,
            arrivals: "closed:fixed:3".parse().expect("valid"),
            ..World::default()
        };
        let report = run(&limited(setup(4, flood), overtakes, 4), &world);
        let wait = |kind: usize| report.kinds[kind].waiting_time.expect("entries");
        [wait(0), wait(1), wait(2)]
    };
    let (few, many) = (waits(1), waits(10));
    assert!(few[2] < many[2], "queries: {few:?}, {many:?}");
    assert!(many[0] < many[2] && many[2] < many[1], "by class: {many:?}");
}

/// §1 and X5: nothing bounds cancellations but that there are no more of them than reservations.
#[test]
fn cancellations_without_end_would_lock_reservations_out() {
    let world = |entries| World {
        entries,
        ..World::default()
    };
    let served = |classes: &str| run(&setup(3, classes), &world(600)).kinds[1].entries;
    let (clients, flood) = (served("client,client"), served("cancel,reservation"));
    assert!(clients > 100, "{clients}");
    assert!(flood < clients / 2, "{flood}");
}

/// Everybody who waits is served in the end, at two nodes: request numbers do not hide that runs repeat.
#[test]
fn two_nodes_are_free_of_lockout() {
    for classes in [
        "client",
        "reservation/query",
        "query,reservation/query",
        "reservation,query/query,query",
    ] {
        let checked = check(&limited(setup(2, classes), 1, 1), 1);
        assert_eq!(
            checked.lockout_freedom,
            Verdict::Holds,
            "{classes}: {:?}",
            checked.notes
        );
        assert!(checked.notes.is_empty(), "{classes}: {:?}", checked.notes);
    }
}

/// What a person gets without options covers two nodes.
#[test]
fn the_telling_check_covers_lockout_freedom_of_two_nodes() {
    let checked = check(&Setup::new(2), 1);
    let covered = "lockout freedom holds with 2 nodes, users client".to_owned();
    assert!(checked.notes.contains(&covered), "{:?}", checked.notes);
}

/// Queries that come all the time pass a writer that is known: the report of a run says so.
#[test]
fn a_run_says_which_bound_was_broken() {
    let world = World {
        entries: 3_000,
        latency: Latency::Uniform(Time(1), Time::units(2)),
        hold: Latency::Exponential(Time::units(3)),
        ..World::default()
    };
    for (flaw, classes) in [
        ("never-reset", "query,query,reservation,reservation"),
        ("ignores-stop", "query,query,query,reservation"),
        ("growing-session", "query,query,query,reservation"),
        ("stops-for-cancels", "query,query,query,reservation"),
    ] {
        let office = setup(3, classes);
        let algorithm = KnownAlgorithm::find(&format!("box-office-{flaw}")).expect("known");
        let report = algorithm.run(&office, &world, false).expect("valid").report;
        assert_eq!(report.bounded, Some(false), "{flaw}");
        assert!(!report.is_good(), "{flaw}");
        let found = &report.violations[0];
        assert!(found.starts_with("bounds at "), "{flaw}: {found}");
        assert_eq!(run(&office, &world).bounded, Some(true));
    }
}
