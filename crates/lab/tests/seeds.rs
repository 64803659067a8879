//! A thousand seeds each, with random latency, under the algorithm's own channel assumption.

use testigo_lab::{KnownAlgorithm, World};
use testigo_protocol::{Channels, Setup};
use testigo_sim::{Latency, LinkOrder, Time};

const SEEDS: u64 = 1_000;

/// Runs the seeds at 2 to 13 nodes, with links as unordered as the algorithm allows.
fn stands_all_seeds(name: &str) {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    for seed in 0..SEEDS {
        let world = World {
            seed,
            entries: 40,
            latency: Latency::Uniform(Time(1), Time::units(4)),
            hold: Latency::Exponential(Time::units(1)),
            order: match algorithm.profile.channels {
                Channels::AnyOrder if seed % 2 == 0 => LinkOrder::Any,
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
        };
        let nodes = 2 + (seed % 12) as usize;
        let report = algorithm
            .run(&Setup::new(nodes), &world, false)
            .expect("valid")
            .report;
        assert!(
            report.is_good(),
            "{name}, {nodes} nodes, seed {seed}: {:?}",
            report.violations
        );
        assert_eq!(report.entries, 40, "{name}, {nodes} nodes, seed {seed}");
        if name != "sanders" {
            assert_ne!(
                report.ordered,
                Some(false),
                "{name}, {nodes} nodes, seed {seed}"
            );
        }
    }
}

macro_rules! seeds {
    ($($test:ident: $name:literal),+ $(,)?) => {
        $(#[test] fn $test() { stands_all_seeds($name); })+
    };
}

seeds! {
    central: "central",
    token_ring: "token-ring",
    lamport: "lamport",
    ricart_agrawala: "ricart-agrawala",
    maekawa: "maekawa",
    sanders: "sanders",
    ring_election: "ring-election",
    bully: "bully",
}

/// Coordination and agreement §2.5.4: the course's claim that Sanders keeps happened-before order
/// does not hold; a slow voter is enough.
#[test]
fn sanders_does_not_keep_happened_before_order() {
    let algorithm = KnownAlgorithm::find("sanders").expect("known");
    let broken = (0..50).filter(|&seed| {
        let latency = Latency::Exponential(Time::units(1));
        let world = World {
            seed,
            latency,
            ..World::default()
        };
        let report = algorithm
            .run(&Setup::new(7), &world, false)
            .expect("valid")
            .report;
        assert!(report.is_good());
        report.ordered == Some(false)
    });
    assert!(broken.count() > 0);
}
