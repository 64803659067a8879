//! Traces: the same seed gives the same bytes, a replay sees every difference, and counterexamples
//! that were found once stay found.

use testigo_lab::draw::View;
use testigo_lab::{KnownAlgorithm, LabError, Trace, World, picture};
use testigo_protocol::Setup;

fn run(name: &str, nodes: usize, world: &World) -> Trace {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..Setup::new(nodes)
    };
    algorithm
        .run(&setup, world, true)
        .expect("valid")
        .trace
        .expect("asked for")
}

/// Every algorithm whose nodes send messages.
fn all() -> impl Iterator<Item = KnownAlgorithm> {
    let all = KnownAlgorithm::all().into_iter();
    all.filter(KnownAlgorithm::sends_messages)
}

fn stormy(seed: u64) -> World {
    World {
        seed,
        entries: 12,
        latency: "uniform:0.5:3".parse().expect("valid"),
        loss: "0.02".parse().expect("valid"),
        faults: vec![
            "crash:1@20..30".parse().expect("valid"),
            "pause:2@5..9".parse().expect("valid"),
            "duplicate:0.05".parse().expect("valid"),
        ],
        partitions: vec!["0|1,2@40..45".parse().expect("valid")],
        events_max: 10_000,
        ..World::default()
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_byte_for_byte() {
    for algorithm in all() {
        let name = algorithm.profile.name;
        let first = run(name, 4, &stormy(7)).to_string();
        assert_eq!(first, run(name, 4, &stormy(7)).to_string(), "{name}");
        assert_ne!(
            first,
            run(name, 4, &stormy(8)).to_string(),
            "{name}: the seed matters"
        );
    }
}

/// Pinned across machines and versions: a change here changes every recorded run.
#[test]
fn a_recorded_run_is_still_the_run_of_its_seed() {
    let recorded = include_str!("traces/ricart-agrawala.trace");
    let world = World {
        entries: 6,
        seed: 42,
        latency: "exponential:1".parse().expect("valid"),
        ..World::default()
    };
    assert_eq!(run("ricart-agrawala", 3, &world).to_string(), recorded);
}

#[test]
fn every_run_replays_with_all_its_faults() {
    for algorithm in all() {
        for seed in 0..20 {
            let trace = run(algorithm.profile.name, 4, &stormy(seed));
            let text = trace.to_string();
            let parsed = Trace::parse(&text).expect("what is printed can be read");
            assert_eq!(parsed, trace);
            parsed
                .replay()
                .unwrap_or_else(|error| panic!("{}, seed {seed}: {error}", algorithm.profile.name));
        }
    }
}

#[test]
fn a_replay_sees_a_changed_line() {
    let trace = run(
        "ricart-agrawala",
        3,
        &World {
            entries: 3,
            ..World::default()
        },
    );
    let text = trace.to_string();
    for (from, to) in [
        ("Request(1,0)", "Request(2,0)"),
        ("enter 0 Entered", "enter 0 Wanted"),
        ("deliver #1\n", "deliver #99\n"),
        ("leave 0 Leave", "leave 1 Leave"),
        ("enter 0 Entered", "serve 0 Entered"),
    ] {
        assert!(text.contains(from), "{from}");
        let changed = Trace::parse(&text.replacen(from, to, 1)).expect("still a trace");
        assert!(
            matches!(changed.replay(), Err(LabError::Differs(_))),
            "{from} -> {to}"
        );
    }
    let mut cut = trace.clone();
    cut.events
        .retain(|(_, event)| !event.to_string().starts_with("send"));
    assert!(matches!(cut.replay(), Err(LabError::Differs(_))));
}

/// Counterexamples that the checker found, kept as they were saved.
#[test]
fn kept_counterexamples_still_show_what_they_showed() {
    for (text, shows) in [
        (
            include_str!("traces/maekawa-slides.trace"),
            "safety: p0 and p1 are inside together",
        ),
        (
            include_str!("traces/maekawa-basic.trace"),
            "liveness: p0 and p1 and p2 wait for ever",
        ),
        (
            include_str!("traces/ricart-agrawala-no-update.trace"),
            "safety: p0 and p1 are inside together",
        ),
        (
            include_str!("traces/sanders-printed.trace"),
            "liveness: p0 and p1 wait for ever",
        ),
        (
            include_str!("traces/central-lifo.trace"),
            "liveness: p0 waits for ever while others are served",
        ),
    ] {
        let replayed = Trace::parse(text)
            .expect("readable")
            .replay()
            .expect("as written");
        assert_eq!(replayed.violations, [shows]);
    }
}

#[test]
fn a_picture_has_a_lane_a_node_and_an_arrow_a_message() {
    let trace = run(
        "central",
        3,
        &World {
            entries: 4,
            ..World::default()
        },
    );
    let svg = picture(&trace, View::default());
    for name in ["p0", "p1", "p2", "server"] {
        assert!(svg.contains(&format!(">{name}<")), "{name}");
    }
    assert!(svg.contains("inside"), "bars are in the legend");
    assert_eq!(
        svg,
        picture(&trace, View::default()),
        "the same trace gives the same picture"
    );
}
