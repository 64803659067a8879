//! Algorithms of shared memory: what the checker exhausts and refutes, and what is counted.

use testigo_lab::draw::{MarkKind, View};
use testigo_lab::threads::{ACCESS_EXPERIMENTS, AccessReport, run_replicated};
use testigo_lab::{
    CheckPlan, Checked, Event, KnownAlgorithm, Report, Trace, Verdict, World, claims, diagram,
    picture,
};
use testigo_protocol::Setup;

fn threads() -> impl Iterator<Item = KnownAlgorithm> {
    let all = KnownAlgorithm::all().into_iter();
    all.filter(|algorithm| !algorithm.sends_messages())
}

fn check(name: &str, nodes: usize, entries: u32) -> Checked {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let plan = CheckPlan::new(entries);
    algorithm.check(&Setup::new(nodes), &plan).expect("valid")
}

fn check_telling(algorithm: &KnownAlgorithm) -> Checked {
    let plan = CheckPlan::new(algorithm.profile.telling.entries as u32);
    let setup = algorithm.profile.telling_setup();
    algorithm.check(&setup, &plan).expect("valid")
}

/// Each specimen is refuted in what it breaks, and its schedule can be played again.
#[test]
fn every_specimen_of_threads_is_refuted() {
    let expected = [
        ("peterson-n-printed", "safety", 30),
        ("tournament-printed", "safety", 20),
        ("tsm-printed", "safety", 40),
        ("tsm-frozen", "safety", 40),
        ("lamport-hasty", "safety", 10),
        ("adaptive-bakery-printed", "deadlock", 30),
        ("one-actor-printed", "deadlock", 30),
        ("emg-tournament-printed", "safety", 60),
        ("emg-tournament-returning", "lockout", 80),
        ("adaptive-gme-printed", "safety", 60),
        ("adaptive-gme-local-printed", "safety", 60),
    ];
    let specimens = threads().filter(|algorithm| algorithm.profile.specimen.is_some());
    let names: Vec<&str> = specimens.map(|algorithm| algorithm.profile.name).collect();
    assert_eq!(names, expected.map(|(name, ..)| name));
    for (name, breaks, steps) in expected {
        let checked = check_telling(&KnownAlgorithm::find(name).expect("known"));
        let verdict = match breaks {
            "safety" => checked.safety,
            "lockout" => checked.lockout_freedom,
            _ => checked.deadlock_freedom,
        };
        assert_eq!(verdict, Verdict::Refuted, "{name}");
        let found = checked.counterexample.expect("a schedule");
        println!("{name}: {} steps", found.steps);
        assert!(found.steps <= steps, "{name}: {} steps", found.steps);
        let text = found.trace.to_string();
        let read = Trace::parse(&text).expect("what is printed can be read");
        assert_eq!(read, found.trace, "{name}");
        let replayed = read.replay().expect("a counterexample replays");
        assert!(!replayed.violations.is_empty(), "{name}");
    }
}

/// What is claimed holds in every interleaving of the telling size, and what is not claimed is refuted: Dijkstra
/// and Lamport let somebody starve.
#[test]
fn every_algorithm_of_threads_is_exhausted() {
    for algorithm in threads().filter(|algorithm| algorithm.profile.specimen.is_none()) {
        let name = algorithm.profile.name;
        let checked = check_telling(&algorithm);
        println!(
            "{name}: {} states, {} with processes that ask for ever, lockout {} {:?}",
            checked.states,
            checked.liveness_states,
            checked.lockout_freedom.word(),
            checked.notes
        );
        assert!(checked.complete, "{name}: {:?}", checked.notes);
        assert_eq!(checked.safety, Verdict::Holds, "{name}");
        assert_eq!(checked.deadlock_freedom, Verdict::Holds, "{name}");
        let starves = ["dijkstra", "lamport-fast", "lamport-timed"].contains(&name);
        let refuted = checked.lockout_freedom == Verdict::Refuted;
        assert_eq!(refuted, starves, "{name}: {:?}", checked.notes);
        if let Some(found) = checked.counterexample {
            found.trace.replay().expect("a lasso replays");
        }
    }
}

#[test]
fn two_processes_with_several_entries_are_exhausted() {
    for name in ["peterson-2", "tsm", "bakery", "adaptive-bakery"] {
        let checked = check(name, 2, 3);
        assert!(
            checked.complete && !checked.refuted(),
            "{name}: {checked:?}"
        );
        assert_eq!(checked.deadlock_freedom, Verdict::Holds, "{name}");
    }
}

/// Two processes that ask for ever, for any room: nobody starves.
#[test]
fn no_algorithm_of_rooms_starves_one_of_two_processes() {
    let rooms = threads().filter(|algorithm| {
        algorithm.problem() == "threads-rooms" && algorithm.profile.specimen.is_none()
    });
    let names: Vec<&str> = rooms.map(|algorithm| algorithm.profile.name).collect();
    assert_eq!(names.len(), 6);
    for name in names {
        let checked = check(name, 2, 2);
        assert!(checked.complete, "{name}: {:?}", checked.notes);
        assert_eq!(checked.safety, Verdict::Holds, "{name}");
        assert_eq!(checked.lockout_freedom, Verdict::Holds, "{name}");
    }
}

#[test]
fn a_tournament_of_four_is_exhausted() {
    let checked = check("tournament", 4, 1);
    assert!(
        checked.complete && !checked.refuted(),
        "{:?}",
        checked.notes
    );
}

/// Counted accesses equal the exact numbers of the specification.
#[test]
fn accesses_of_a_lone_entry_are_as_published() {
    // Another test exhausts the telling size of two actors, which claims would do again.
    let soon = |algorithm: &KnownAlgorithm| algorithm.profile.telling_groups != Some(3);
    let right = threads().filter(|algorithm| algorithm.profile.specimen.is_none());
    for algorithm in right.filter(soon) {
        let name = algorithm.profile.name;
        for finding in claims(&algorithm).expect(name) {
            println!("{finding:?}");
            assert!(finding.holds, "{finding:?}");
        }
    }
    let lone = |name: &str, nodes: usize| {
        let algorithm = KnownAlgorithm::find(name).expect("known");
        let world = World {
            entries: 1,
            arrivals: "script:1@0".parse().expect("valid"),
            ..World::default()
        };
        let run = algorithm.run(&Setup::new(nodes), &world, false);
        let report = run.expect("valid").report;
        assert!(report.is_good(), "{name}");
        report.accesses.expect("threads").lone_max.expect("alone")
    };
    assert_eq!([2, 4, 8, 16].map(|n| lone("tournament", n)), [4, 8, 14, 24]);
    assert_eq!([5, 6, 13].map(|n| lone("tournament", n)), [11, 12, 21]);
    assert_eq!([2, 4, 8, 5, 6].map(|n| lone("tsm", n)), [3, 7, 13, 10, 11]);
    assert_eq!([2, 3, 8].map(|n| lone("peterson-n", n)), [4, 9, 64]);
    assert_eq!([2, 3, 8].map(|n| lone("dijkstra", n)), [8, 9, 14]);
    assert_eq!(lone("lamport-fast", 8), 7);
    assert_eq!(lone("lamport-timed", 8), 5);
    assert_eq!(lone("peterson-2", 2), 4);
}

fn accesses(name: &str, nodes: usize, arrivals: &str, hold: &str) -> AccessReport {
    let world = World {
        entries: 1,
        arrivals: arrivals.parse().expect("valid"),
        hold: hold.parse().expect("valid"),
        ..World::default()
    };
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let run = algorithm.run(&Setup::new(nodes), &world, false);
    run.expect("valid").report.accesses.expect("threads")
}

/// A second look after a write of one's own is no wait: of Dijkstra's 9 accesses two read the turn.
#[test]
fn a_retry_of_a_process_that_waits_for_nobody_is_counted() {
    let alone = accesses("dijkstra", 3, "script:1@0", "fixed:1");
    assert_eq!(alone.per_entry, Some(9.0));
    assert_eq!(alone.once_per_entry, alone.per_entry);
    // A wait is counted once, however long it takes.
    let waits = |hold| accesses("peterson-2", 2, "script:0@0,1@2", hold);
    let (short, long) = (waits("fixed:20"), waits("fixed:200"));
    assert!(short.per_entry < long.per_entry);
    // With two actors a process waits for its group even with nobody else there.
    for name in ["emg-tournament", "adaptive-gme", "adaptive-gme-local"] {
        let alone = accesses(name, 4, "script:1@0", "fixed:1");
        assert_eq!(alone.once_per_entry, Some(3.0), "{name}");
        assert!(alone.per_entry > alone.once_per_entry, "{name}");
    }
    assert!(short.once_per_entry < short.per_entry);
    assert_eq!(short.once_per_entry, long.once_per_entry);
}

/// Where registers may hold too many things at first, the report says so.
#[test]
fn first_values_that_are_not_tried_are_told() {
    let check = |nodes| {
        let plan = CheckPlan {
            states_max: 100,
            ..CheckPlan::new(1)
        };
        let algorithm = KnownAlgorithm::find("peterson-n").expect("known");
        let checked = algorithm.check(&Setup::new(nodes), &plan).expect("valid");
        assert!(!checked.complete && checked.safety == Verdict::NotCovered);
        checked.notes
    };
    let told = "it began with 1 of 117649 combinations of first values".to_owned();
    assert!(check(7).contains(&told), "7 values of 6 turns");
    assert_eq!(check(6).len(), 1, "6 values of 5 turns are all tried");
}

/// One seed gives one run, and a run can be played again to the letter.
#[test]
fn runs_of_threads_repeat_and_replay() {
    for algorithm in threads() {
        let name = algorithm.profile.name;
        let run = |seed| {
            let world = World {
                seed,
                entries: 12,
                latency: "exponential:1".parse().expect("valid"),
                ..World::default()
            };
            let setup = algorithm.profile.telling_setup();
            let run = algorithm.run(&setup, &world, true);
            run.expect("valid").trace.expect("asked for")
        };
        let trace = run(7);
        assert_eq!(trace, run(7), "{name}");
        assert_ne!(trace, run(8), "{name}: the seed matters");
        let read = Trace::parse(&trace.to_string()).expect("readable");
        assert_eq!(read, trace, "{name}");
        read.replay().expect(name);
        let mut other = trace.clone();
        let first = other.events.remove(1);
        other.events.insert(2, first);
        assert!(other.replay().is_err(), "{name}: a change is seen");
    }
}

#[test]
fn what_threads_cannot_have_is_refused() {
    let algorithm = KnownAlgorithm::find("dijkstra").expect("known");
    let world = World {
        loss: "0.1".parse().expect("valid"),
        ..World::default()
    };
    let refused = algorithm.run(&Setup::new(3), &world, false);
    let refused = refused.expect_err("nothing is lost").to_string();
    assert!(refused.contains("shares memory"), "{refused}");
    let pair = KnownAlgorithm::find("peterson-2").expect("known");
    assert!(pair.shape(&Setup::new(3)).is_err());
}

/// The lone counts, tables 5.1 and 5.7, and equation 5.3 of the thesis are what is counted.
#[test]
fn published_accesses_are_counted() {
    for experiment in ACCESS_EXPERIMENTS {
        let found = experiment.reproduce().expect(experiment.name);
        assert!(found.rows.len() > 40, "{}", experiment.name);
        for row in &found.rows {
            assert_ne!(row.reached, Some(false), "{row:?}");
        }
        assert!(found.chart.to_svg().contains("</svg>"));
    }
}

/// The adaptive groups are counted too: alone their processes make 3 accesses, and their groups make more.
#[test]
fn adaptive_groups_are_drawn_against_contention() {
    let contention = ACCESS_EXPERIMENTS
        .iter()
        .find(|one| one.name == "threads-contention");
    let found = contention.expect("known").reproduce().expect("valid");
    for name in ["adaptive-gme", "adaptive-gme-local"] {
        let of = format!("{name}, interval contention");
        let rows: Vec<_> = found.rows.iter().filter(|row| row.what == of).collect();
        assert!(rows.len() > 4, "{name}: {rows:?}");
        assert!(rows.iter().all(|row| row.counted > 3.0), "{name}: {rows:?}");
    }
}

/// Accesses stand where messages would: squares in the colour of their register, and a wait is one square.
#[test]
fn a_picture_shows_accesses_and_folds_waits() {
    let algorithm = KnownAlgorithm::find("peterson-2").expect("known");
    let world = World {
        entries: 2,
        hold: "fixed:30".parse().expect("valid"),
        ..World::default()
    };
    let run = algorithm.run(&Setup::new(2), &world, true).expect("valid");
    let trace = run.trace.expect("asked for");
    let diagram = diagram(&trace);
    let reads = diagram
        .marks
        .iter()
        .filter(|mark| mark.kind == MarkKind::Read);
    let folded = reads.filter(|mark| mark.label.contains('×')).count();
    assert!(folded > 0, "{:?}", diagram.marks);
    let accesses = trace
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Access(..)));
    assert!(diagram.marks.len() < accesses.count());
    let svg = picture(&trace, View::default());
    assert!(svg.contains("glyph write h") && svg.contains("glyph read h"));
}

fn across_nodes(name: &str, nodes: usize, seed: u64, faults: &[&str]) -> Report {
    let world = World {
        entries: 5 * nodes as u64,
        seed,
        latency: "exponential:1".parse().expect("valid"),
        hold: "exponential:2".parse().expect("valid"),
        faults: faults
            .iter()
            .map(|fault| fault.parse().expect("valid"))
            .collect(),
        ..World::default()
    };
    run_replicated(name, &Setup::new(nodes), &world).expect(name)
}

/// Registers replicated on a majority are memory enough: programs exclude across nodes, and go on with a minority
/// dead. An access with everybody alive is two rounds of questions and answers, four messages per other node.
#[test]
fn programs_run_across_nodes_over_replicated_registers() {
    for (name, nodes) in [
        ("peterson-2", 2),
        ("peterson-n", 3),
        ("bakery", 3),
        ("fife", 3),
        ("ctp", 3),
        ("one-actor", 4),
    ] {
        for seed in 0..10 {
            let report = across_nodes(name, nodes, seed, &[]);
            assert!(report.is_good(), "{name}: {:?}", report.violations);
            assert_eq!(report.entries, 5 * nodes as u64, "{name}");
            let accesses = report.accesses.expect("threads");
            let accesses = accesses.reads + accesses.writes;
            assert_eq!(report.messages, accesses * 4 * (nodes as u64 - 1), "{name}");
        }
    }
    let broken = (0..20).any(|seed| !across_nodes("tournament-printed", 5, seed, &[]).safe);
    assert!(broken, "a specimen breaks across nodes, too");
}

#[test]
fn across_nodes_a_minority_may_be_dead() {
    let survivors = across_nodes("peterson-n", 3, 1, &["halt:2@0"]);
    assert!(survivors.is_good(), "{:?}", survivors.violations);
    assert!(survivors.entries >= 10, "{}", survivors.entries);
    let minority = across_nodes("peterson-n", 3, 1, &["halt:1@0", "halt:2@0"]);
    assert_eq!(minority.entries, 0, "one of three is no majority");
    assert!(!minority.live);
    // Who dies inside takes its registers along: the others spin, and the run says so.
    let inside = across_nodes("peterson-n", 3, 1, &["halt:0@200"]);
    assert!(inside.safe);
}

/// A lone entry of peterson-n is N² accesses, and each is 4(N−1) messages.
#[test]
fn a_lone_entry_across_nodes_has_its_messages() {
    let world = World {
        entries: 1,
        arrivals: "script:1@0".parse().expect("valid"),
        ..World::default()
    };
    let lone = |name, nodes| run_replicated(name, &Setup::new(nodes), &world).expect(name);
    assert_eq!(lone("peterson-n", 3).messages, 9 * 8);
    assert_eq!(lone("lamport-fast", 5).messages, 7 * 16);
    for (name, why) in [
        ("emg-tournament", "more than the memory of its processes"),
        ("lamport-timed", "more than the memory of its processes"),
        ("maekawa", "shares no memory"),
        ("petersen-n", "peterson-n"),
    ] {
        let refused = run_replicated(name, &Setup::new(3), &world).expect_err(name);
        assert!(refused.to_string().contains(why), "{refused}");
    }
}
