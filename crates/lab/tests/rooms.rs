//! Rooms: one room in use at a time, its users together, and doors that keep what they promise.

use testigo_lab::{CheckPlan, KnownAlgorithm, Report, Verdict, World};
use testigo_protocol::rooms::Door;
use testigo_protocol::{Channels, Setup};
use testigo_sim::{Latency, LinkOrder, Time};

/// Every algorithm of the problem that is not a specimen.
fn names() -> Vec<&'static str> {
    let rooms = |algorithm: &KnownAlgorithm| {
        algorithm.problem() == "rooms" && algorithm.profile.specimen.is_none()
    };
    let names = KnownAlgorithm::all().into_iter().filter(rooms);
    names.map(|algorithm| algorithm.profile.name).collect()
}

/// Cohorts cannot be made of two.
fn two_groups_if_possible(name: &str) -> usize {
    if name.ends_with("cohort-quorum") {
        3
    } else {
        2
    }
}

fn setup(processes: usize, groups: usize, door: Door) -> Setup {
    Setup {
        groups: Some(groups),
        door,
        ..Setup::new(processes)
    }
}

#[test]
fn there_are_rooms_over_every_mutex() {
    let mut expected = vec!["rooms-maekawa".to_owned()];
    let mutexes = KnownAlgorithm::all()
        .into_iter()
        .filter(|algorithm| algorithm.problem() == "mutex");
    let mutexes = mutexes.filter(|algorithm| algorithm.profile.specimen.is_none());
    expected.extend(mutexes.map(|algorithm| format!("rooms-over:{}", algorithm.profile.name)));
    assert_eq!(names(), expected);
}

/// Three processes that choose between two rooms, in every schedule and by either door.
#[test]
fn three_processes_and_two_groups_are_exhausted() {
    for name in names() {
        for door in Door::ALL {
            let algorithm = KnownAlgorithm::find(name).expect("known");
            let checked = algorithm
                .check(
                    &setup(3, two_groups_if_possible(name), door),
                    &CheckPlan::new(1),
                )
                .expect("valid");
            let found = checked.counterexample.map(|found| found.what);
            assert!(checked.complete, "{name}, {door}: {:?}", checked.notes);
            let verdicts = (checked.safety, checked.deadlock_freedom);
            assert_eq!(
                verdicts,
                (Verdict::Holds, Verdict::Holds),
                "{name}, {door}: {found:?}"
            );
            assert_ne!(
                checked.lockout_freedom,
                Verdict::Refuted,
                "{name}, {door}: {found:?}"
            );
        }
    }
}

fn run(name: &str, setup: &Setup, world: &World) -> Report {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..setup.clone()
    };
    let report = algorithm.run(&setup, world, false).expect("valid").report;
    let (seed, wrong) = (world.seed, &report.violations);
    assert!(report.is_good(), "{name}, {setup:?}, {seed}: {wrong:?}");
    assert_eq!(report.entries, world.entries, "{name}, {setup:?}");
    report
}

/// A thousand seeds for each, at 3 to 13 processes, with as many groups as there are by default or others.
#[test]
fn all_stand_a_thousand_seeds() {
    for name in names() {
        let channels = KnownAlgorithm::find(name).expect("known").profile.channels;
        for seed in 0..1_000 {
            let arrivals = ["closed", "closed:exponential:5", "poisson:10"][seed as usize % 3];
            let world = World {
                seed,
                entries: 30,
                latency: Latency::Uniform(Time(1), Time::units(4)),
                hold: Latency::Exponential(Time::units(1)),
                order: match channels {
                    Channels::AnyOrder if seed % 2 == 0 => LinkOrder::Any,
                    _ => LinkOrder::Fifo,
                },
                arrivals: arrivals.parse().expect("valid"),
                ..World::default()
            };
            let processes = 3 + (seed / 6 % 11) as usize;
            let door = Door::ALL[(seed / 66 % 2) as usize];
            let fewest = two_groups_if_possible(name);
            let groups = [None, Some(fewest), Some(5)][(seed / 132 % 3) as usize];
            let setup = Setup {
                groups,
                door,
                ..Setup::new(processes)
            };
            run(name, &setup, &world);
        }
    }
}

/// 3l + 3(K−1) to 3l + 5(K−1), and at most K−1 demands, for a round under any load.
#[test]
fn rounds_cost_what_is_published() {
    for (groups, k) in [(7, 3.0), (13, 4.0), (21, 5.0)] {
        for processes in [1, 2, 5, 12, 30] {
            let world = World {
                entries: 500,
                ..World::default()
            };
            let report = run(
                "rooms-maekawa",
                &setup(processes, groups, Door::Leader),
                &world,
            );
            let per_round = report.messages_behind.expect("groups");
            let range = 3.0 * (k - 1.0)..=6.0 * (k - 1.0);
            assert!(
                range.contains(&per_round),
                "{groups}, {processes}: {per_round}"
            );
            let of_processes =
                report.messages as f64 - per_round * report.rounds.unwrap_or(0) as f64;
            assert!((of_processes - 3.0 * 500.0).abs() < 1e-6, "{of_processes}");
        }
    }
}

/// The degree of concurrency: with few rooms and many processes, most of those who wait go in together.
#[test]
fn more_processes_are_inside_together_where_rooms_are_few() {
    let mean = |groups| {
        let world = World {
            entries: 1_000,
            ..World::default()
        };
        let report = run("rooms-maekawa", &setup(24, groups, Door::Leader), &world);
        assert!(report.switches < report.rounds);
        report.entries as f64 / report.rounds.unwrap_or(0) as f64
    };
    let (few, many) = (mean(3), mean(13));
    assert!(few > 2.0 * many && few > 4.0, "{few}, {many}");
}

/// A door that shuts at once breaks the promise of either policy, and the check sees it.
#[test]
fn a_shut_door_is_refuted_by_either_promise() {
    for door in Door::ALL {
        let algorithm = KnownAlgorithm::find("rooms-shut-door").expect("known");
        let plan = CheckPlan::new(1);
        let checked = algorithm.check(&setup(2, 2, door), &plan).expect("valid");
        assert_eq!(checked.safety, Verdict::Refuted, "{door}");
    }
}
