//! Live runs: members on links, each node recording its own with a clock of its own, merged and replayed. Every algorithm,
//! under random schedules; and records that are altered, which must be noticed.

mod live_run;

use live_run::{Alteration, each_algorithm};
use testigo_lab::draw::View;
use testigo_lab::{Event, KnownAlgorithm, LabError, Trace, picture};
use testigo_protocol::{NodeId, Record};

const SEEDS: std::ops::Range<u64> = 0..6;
const STEPS: usize = 250;

/// The messages of a trace, one by one: link and label.
fn sent(trace: &Trace) -> Vec<(NodeId, NodeId, String)> {
    let sent = trace.events.iter().filter_map(|(_, event)| match event {
        Event::Send {
            from, to, label, ..
        } => Some((*from, *to, label.clone())),
        _ => None,
    });
    let mut sent: Vec<_> = sent.collect();
    // By link: between links the order of two nodes' steps is free.
    sent.sort_by_key(|(from, to, _)| (*from, *to));
    sent
}

fn stop(trace: &Trace) -> &str {
    match trace.events.last() {
        Some((_, Event::Stop(why))) => why,
        other => panic!("a live trace ends with a stop: {other:?}"),
    }
}

/// Whether a promise was broken. The order of requests, which Sanders' source promises, a slow voter breaks (`sanders.rs`
/// says so); and what rests on a bound of delays is safe only where timers keep to it, which these do not.
fn shows_wrong(trace: &Trace) -> bool {
    let known = KnownAlgorithm::find(&trace.header.algorithm).expect("known");
    let is_wrong =
        |(_, event): &(_, Event)| matches!(event, Event::Violation(kind, _) if kind != "order");
    !known.profile.needs_delay_bound && trace.events.iter().any(is_wrong)
}

fn replays(trace: &Trace) -> Result<u64, LabError> {
    let again = Trace::parse(&trace.to_string()).expect("its own text");
    assert_eq!(again, *trace);
    Ok(again.replay()?.entries)
}

#[test]
fn a_live_run_of_every_algorithm_is_replayed_message_by_message() {
    let mut algorithms = 0;
    each_algorithm(|name, start| {
        algorithms += 1;
        let mut entries = 0;
        for seed in SEEDS {
            let mut run = start(seed);
            run.play(STEPS);
            let trace = Trace::live(&run.records()).expect(name);
            let replayed = replays(&trace).unwrap_or_else(|why| panic!("{name} {seed}: {why}"));
            assert_eq!(replayed, run.entered(), "{name} {seed}");
            assert_eq!(sent(&trace), run.sent(), "{name} {seed}");
            assert_eq!(stop(&trace), "the record ends here", "{name} {seed}");
            assert!(!shows_wrong(&trace), "{name} {seed}:\n{trace}");
            entries += replayed;
            assert!(picture(&trace, View::default()).contains("milliseconds"));
        }
        assert!(entries > 0, "{name} did nothing");
    });
    assert!(algorithms > 12, "only {algorithms} algorithms");
}

/// Nodes are asked one after the other while the run goes on: what one has taken from another that was asked before is
/// left out.
#[test]
fn records_that_were_read_while_the_run_went_on_are_replayed_as_far_as_they_reach() {
    each_algorithm(|name, start| {
        let mut left_out = 0;
        for seed in SEEDS {
            let mut run = start(seed);
            let mut records: Vec<Record> = Vec::new();
            run.play(STEPS);
            for host in 0..run.hosts() {
                records.push(run.record(host));
                run.play(40);
            }
            let trace = Trace::live(&records).expect(name);
            replays(&trace).unwrap_or_else(|why| panic!("{name} {seed}: {why}"));
            left_out += usize::from(stop(&trace).contains("later steps are left out"));
        }
        assert!(left_out > 0, "{name}");
    });
}

/// A node that was killed has taken its record with it: what the others did is still replayed, with what they heard of it.
#[test]
fn a_run_whose_node_was_killed_is_replayed_without_its_record() {
    each_algorithm(|name, start| {
        let mut heard = 0;
        for seed in SEEDS {
            for lost in 0..3 {
                let mut run = start(seed);
                run.play(STEPS);
                let mut records = run.records();
                records.remove(lost);
                let trace = Trace::live(&records).expect(name);
                replays(&trace).unwrap_or_else(|why| panic!("{name} {seed} {lost}: {why}"));
                assert!(!shows_wrong(&trace), "{name} {seed}:\n{trace}");
                let lost = format!("that of n{lost} is lost");
                assert!(stop(&trace).contains(&lost), "{}", stop(&trace));
                let is_heard = |(_, event): &&(_, Event)| matches!(event, Event::Heard { .. });
                heard += trace.events.iter().filter(is_heard).count();
                let whole: Vec<_> = run.sent();
                assert!(sent(&trace).iter().all(|message| whole.contains(message)));
            }
        }
        assert!(heard > 0, "{name}");
    });
}

#[test]
fn a_record_that_was_cut_is_replayed_with_what_the_others_heard() {
    each_algorithm(|name, start| {
        let mut cut = 0;
        for seed in SEEDS {
            let mut run = start(seed);
            run.allow(1, 300);
            run.play(STEPS);
            let trace = Trace::live(&run.records()).expect(name);
            replays(&trace).unwrap_or_else(|why| panic!("{name} {seed}: {why}"));
            cut += usize::from(stop(&trace).contains("that of n1 is cut"));
        }
        assert!(cut > 0, "{name}");
    });
}

/// Specimens: records that say something else than what happened.
#[test]
fn every_altered_record_is_noticed() {
    for alteration in [
        Alteration::MessageSent,
        Alteration::MessageOnBothSides,
        Alteration::OrderOfSends,
        Alteration::StepLeftOut,
        Alteration::TellLeftOut,
        Alteration::TellAdded,
    ] {
        let mut altered = 0;
        each_algorithm(|name, start| {
            for seed in SEEDS {
                let mut run = start(seed);
                run.alter(alteration);
                run.play(STEPS);
                if !run.is_altered() {
                    continue;
                }
                altered += 1;
                let replayed = Trace::live(&run.records()).and_then(|trace| replays(&trace));
                assert!(replayed.is_err(), "{name} {seed}: {alteration:?}");
            }
        });
        assert!(altered > 20, "{alteration:?} only {altered} times");
    }
}

/// A trace of a live run is held to the rules of one, and a trace of another kind is not let off.
#[test]
fn a_live_trace_keeps_the_rules_of_a_run() {
    each_algorithm(|name, start| {
        let mut run = start(1);
        run.play(60);
        let trace = Trace::live(&run.records()).expect(name);
        let text = trace.to_string();
        let refused = |text: &str| {
            let trace = Trace::parse(text).expect("readable");
            trace.replay().is_err()
        };
        assert!(!refused(&text), "{name}");
        assert!(refused(&text.replace("time milliseconds", "time units")));
        let body: Vec<&str> = text.lines().collect();
        for (at, line) in body.iter().enumerate() {
            let word = line.split(' ').nth(1).unwrap_or("");
            let is_event = line.starts_with(|c: char| c.is_ascii_digit());
            if is_event && ["start", "send", "tell", "timer", "stop"].contains(&word) {
                let mut without = body.clone();
                without.remove(at);
                assert!(refused(&without.join("\n")), "{name} without {line}");
            }
            if is_event && ["start", "deliver", "send", "stop"].contains(&word) {
                let mut twice = body.clone();
                twice.insert(at, line);
                assert!(refused(&twice.join("\n")), "{name} twice {line}");
            }
        }
        for more in [
            "crash 0 pause",
            "lose #1 down",
            "end",
            "cycle",
            "cut 0|1@0..9",
        ] {
            let with = text.replace(" stop ", &format!(" {more}\n999999 stop "));
            assert!(refused(&with), "{name}: {more}");
        }
    });
}

#[test]
fn records_of_two_runs_or_of_none_are_refused() {
    let mut runs = Vec::new();
    each_algorithm(|_, start| {
        let mut run = start(1);
        run.play(STEPS);
        runs.push(run.records());
    });
    let refusal = |records: &[Record]| Trace::live(records).expect_err("refused").to_string();
    assert!(refusal(&[]).contains("no node has one"));
    let (one, other) = (runs[0][0].clone(), runs[1][1].clone());
    assert!(refusal(&[one.clone(), other]).contains("records of two runs"));
    assert!(refusal(&[one.clone(), one]).contains("two records of member"));
}
