//! Message costs under full load, against the published formulas.

use testigo_lab::{KnownAlgorithm, Report, World};
use testigo_protocol::Setup;
use testigo_protocol::quorum::Construction;

fn full_load(name: &str, setup: &Setup) -> Report {
    let algorithm = KnownAlgorithm::find(name).expect("a known algorithm");
    algorithm
        .run(setup, &World::default(), false)
        .expect("a valid setup")
        .report
}

#[test]
fn exact_costs_for_every_size() {
    for n in 2..=16 {
        let peers = n as f64 - 1.0;
        for (name, published) in [
            ("central", 3.0),
            ("ricart-agrawala", 2.0 * peers),
            ("lamport", 3.0 * peers),
        ] {
            let report = full_load(name, &Setup::new(n));
            assert!(
                report.is_good(),
                "{name} with {n} nodes: {:?}",
                report.violations
            );
            assert_eq!(report.entries, 100);
            assert_eq!(
                report.messages_per_entry,
                Some(published),
                "{name} with {n} nodes"
            );
        }
    }
}

#[test]
fn quorum_algorithms_stay_inside_their_published_range_on_planes() {
    for name in ["maekawa", "sanders"] {
        for n in [7, 13] {
            let setup = Setup {
                quorum: Some(Construction::Plane),
                ..Setup::new(n)
            };
            let report = full_load(name, &setup);
            let range = report
                .published_messages_per_entry
                .expect("a published range");
            let measured = report.messages_per_entry.expect("entries");
            assert!(report.is_good());
            assert!(
                range.min <= measured && measured <= range.max,
                "{name}, {n} nodes: {measured}, {range:?}"
            );
        }
    }
}

#[test]
fn published_ranges_have_the_values_of_the_specification() {
    let range = |name: &str, n| {
        let range = full_load(name, &Setup::new(n))
            .published_messages_per_entry
            .expect("published");
        (range.min, range.max)
    };
    assert_eq!(
        range("maekawa", 7),
        (6.0, 10.0),
        "K = 3, without messages to oneself"
    );
    assert_eq!(range("maekawa", 13), (9.0, 15.0), "K = 4");
    assert_eq!(range("maekawa", 9), (12.0, 20.0), "a grid, K = 5");
    assert_eq!(range("ricart-agrawala", 8), (14.0, 14.0));
    assert_eq!(range("lamport", 8), (21.0, 21.0));
}

/// The worked example of the course: two of three want in, the third does not.
#[test]
fn two_entries_of_ricart_agrawala_cost_eight_messages() {
    let world = World {
        arrivals: "script:1@0,2@0".parse().expect("valid"),
        entries: 2,
        ..World::default()
    };
    let algorithm = KnownAlgorithm::find("ricart-agrawala").expect("known");
    let report = algorithm
        .run(&Setup::new(3), &world, false)
        .expect("valid")
        .report;
    assert_eq!(report.messages, 8);
    assert_eq!(report.messages_by_kind.get("Request"), Some(&4));
    assert_eq!(report.messages_by_kind.get("Reply"), Some(&4));
}

#[test]
fn handing_over_takes_the_published_number_of_message_times() {
    for (name, published) in [
        ("central", 2.0),
        ("ricart-agrawala", 1.0),
        ("lamport", 1.0),
        ("token-ring", 1.0),
    ] {
        assert_eq!(
            full_load(name, &Setup::new(5)).synchronisation_delay,
            Some(published),
            "{name}"
        );
    }
}

/// (N-1)² where all messages are equally fast. Else an order may come by a relay first, which is then not passed on.
#[test]
fn signed_generals_send_no_more_than_published() {
    assert_eq!(
        full_load("sm", &Setup::new(4)).messages_per_entry,
        Some(9.0)
    );
    let algorithm = KnownAlgorithm::find("sm").expect("known");
    for seed in 0..20 {
        let world = World {
            seed,
            latency: "exponential:1".parse().expect("valid"),
            ..World::default()
        };
        let setup = Setup {
            delay_bound: world.delay_bound().0,
            ..Setup::new(4)
        };
        let report = algorithm.run(&setup, &world, false).expect("valid").report;
        assert_eq!(report.as_published, Some(true), "seed {seed}");
        assert!(report.messages_per_entry < Some(9.0), "seed {seed}");
    }
}
