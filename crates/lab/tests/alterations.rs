//! Altered traces: a replay refuses whatever is no run any more. Every line of several traces is deleted,
//! doubled, moved in time and swapped with the next, messages of a link change places, and the header lies.
//! An oracle reads the text by itself and says which alterations are still runs, by chance.

use std::collections::BTreeMap;

use testigo_lab::{CheckPlan, KnownAlgorithm, Trace, World};
use testigo_protocol::Setup;
use testigo_sim::{Latency, Time};

fn simulated(name: &str, world: &World) -> String {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let setup = Setup {
        delay_bound: world.delay_bound().0,
        ..Setup::new(3)
    };
    let run = algorithm.run(&setup, world, true).expect("valid");
    run.trace.expect("asked for").to_string()
}

fn checked(name: &str) -> String {
    let algorithm = KnownAlgorithm::find(name).expect("known");
    let plan = CheckPlan::new(algorithm.profile.telling.entries as u32);
    let checked = algorithm.check(&algorithm.profile.telling_setup(), &plan);
    let found = checked.expect("valid").counterexample;
    found.expect("a specimen").trace.to_string()
}

fn world(latency: &str, entries: u64) -> World {
    World {
        entries,
        latency: latency.parse().expect("a span"),
        hold: Latency::Exponential(Time::units(1)),
        ..World::default()
    }
}

fn stormy(entries: u64) -> World {
    World {
        loss: "0.02".parse().expect("a share"),
        faults: [
            "crash:1@6..9",
            "pause:2@3..5",
            "duplicate:0.05",
            "late:0.05:2",
        ]
        .map(|fault| fault.parse().expect("a fault"))
        .into(),
        partitions: vec!["0|1,2@12..14".parse().expect("a partition")],
        events_max: 300,
        ..world("uniform:0.5:3", entries)
    }
}

/// Traces of several algorithms and worlds, each with its name.
fn traces() -> Vec<(String, String)> {
    let mut traces = Vec::new();
    for name in [
        "central",
        "ricart-agrawala",
        "lamport",
        "maekawa",
        "raymond",
        "token-ring",
        "tree-quorum",
        "box-office",
        "rooms-over:central",
    ] {
        traces.push((
            format!("{name}, calm"),
            simulated(name, &world("fixed:1", 5)),
        ));
        let uneven = world("uniform:0.5:3", 5);
        traces.push((format!("{name}, uneven"), simulated(name, &uneven)));
        traces.push((format!("{name}, stormy"), simulated(name, &stormy(5))));
    }
    let any_order = World {
        order: testigo_sim::LinkOrder::Any,
        ..world("uniform:0:4", 8)
    };
    let reordered = simulated("box-office", &any_order);
    traces.push(("box-office, any order".into(), reordered));
    for name in [
        "maekawa-slides",
        "central-lifo",
        "sanders-printed",
        "box-office-no-limit",
    ] {
        traces.push((format!("{name}, checked"), checked(name)));
    }
    traces
}

/// So many lines of a trace are altered, one after the other.
const LINES_MAX: usize = 80;

/// What was altered, and the altered text.
fn alterations(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines
        .iter()
        .position(|line| line.is_empty())
        .expect("a header")
        + 1;
    let mut altered = Vec::new();
    let mut add = |what: String, lines: Vec<String>| altered.push((what, lines.join("\n") + "\n"));
    let own = |lines: &[&str]| -> Vec<String> { lines.iter().map(ToString::to_string).collect() };
    // All lines of a short trace; of a long one its ends, and some between them.
    let apart = (lines.len() - first).div_ceil(LINES_MAX);
    let ends = |at: &usize| at - first < 10 || lines.len() - at < 10;
    for at in (first..lines.len()).filter(|at| at % apart == 0 || ends(at)) {
        let line = lines[at];
        let mut deleted = own(&lines);
        deleted.remove(at);
        add(format!("deleted: {line}"), deleted);
        let mut doubled = own(&lines);
        doubled.insert(at, line.into());
        add(format!("doubled: {line}"), doubled);
        if at + 1 < lines.len() && lines[at + 1] != line {
            let mut swapped = own(&lines);
            swapped.swap(at, at + 1);
            add(format!("swapped with the next: {line}"), swapped);
        }
        let (time, rest) = line.split_once(' ').expect("a time");
        let ticks = ticks(time);
        for moved in [
            0,
            ticks.saturating_sub(250_000),
            ticks + 250_000,
            ticks + 9_000_000,
        ] {
            if moved != ticks {
                let mut late = own(&lines);
                late[at] = format!("{} {rest}", Time(moved));
                add(format!("moved to {}: {line}", Time(moved)), late);
            }
        }
    }
    for (one, other) in of_one_link(&lines) {
        let mut swapped = own(&lines);
        let number = |line: &str| line.rsplit_once('#').expect("a number").1.to_owned();
        let (a, b) = (number(lines[one]), number(lines[other]));
        swapped[one] = lines[one].replace(&format!("#{a}"), &format!("#{b}"));
        swapped[other] = lines[other].replace(&format!("#{b}"), &format!("#{a}"));
        add(
            format!("out of order: {} and {}", lines[one], lines[other]),
            swapped,
        );
    }
    for (from, to) in [
        ("delay-bound 1", "delay-bound 2"),
        ("delay-bound 3", "delay-bound 2.5"),
        ("delay-bound 3", "delay-bound 0"),
        ("latency fixed:1", "latency fixed:0.5"),
        ("latency uniform:0.5:3", "latency uniform:0.5:2"),
        ("links any-order", "links fifo"),
        ("names p0", "names q0"),
        ("users ", "users 1"),
    ] {
        if text.contains(from) {
            altered.push((format!("{from} to {to}"), text.replacen(from, to, 1)));
        }
    }
    altered
}

/// Pairs of deliveries on one link.
fn of_one_link(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut links: BTreeMap<String, String> = BTreeMap::new();
    let mut last: BTreeMap<String, usize> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [_, "send", number, link, ..] => {
                links.insert(number.into(), link.into());
            }
            [_, "copy", of, number] => {
                links.insert(number.into(), links[of].clone());
            }
            [_, "deliver", number] => {
                if let Some(before) = last.insert(links[number].clone(), at) {
                    pairs.push((before, at));
                }
            }
            _ => {}
        }
    }
    pairs
}

fn ticks(time: &str) -> u64 {
    time.parse::<Time>().expect("a time").0
}

/// Says why a text is no run, from the text alone. What nodes do in answer is for the replay to say.
fn illegal(text: &str) -> Option<String> {
    let (header, events) = text.split_once("\n\n").expect("a header");
    let field = |word: &str| {
        let mut lines = header.lines().filter_map(|line| line.split_once(' '));
        lines
            .find(|(first, _)| *first == word)
            .map(|(_, value)| value)
    };
    let events: Vec<Vec<&str>> = events
        .lines()
        .map(|line| line.split(' ').collect())
        .collect();
    let inputs = ["send", "tell", "timer", "violation"];
    let is_input = |event: &&Vec<&str>| !inputs.contains(&event[1]);
    let nodes = field("names").expect("names").split(' ').count();
    let words: Vec<&str> = events
        .iter()
        .filter(is_input)
        .map(|event| event[1])
        .collect();
    if !events.iter().map(|event| ticks(event[0])).is_sorted() {
        return Some("time runs backwards".into());
    }
    let count = |word: &str| words.iter().filter(|other| **other == word).count();
    let starts: Vec<&str> = events
        .iter()
        .filter(|e| e[1] == "start")
        .map(|e| e[2])
        .collect();
    if starts != (0..nodes).map(|node| node.to_string()).collect::<Vec<_>>() {
        return Some("it does not start once".into());
    }
    let steps = field("time") == Some("steps");
    if count("end") > 1 || count("end") == 1 && words.last() != Some(&"end") {
        return Some("it does not end once".into());
    }
    if !steps && count("end") == 0 {
        return Some("it does not end".into());
    }
    if steps {
        return None;
    }
    let latency: Latency = field("latency").expect("latency").parse().expect("a span");
    if field("delay-bound") != Some(&latency.longest().to_string()) {
        return Some("its delay bound is not that of its links".into());
    }
    let late = match header.contains("fault late:") {
        true => Time::units(2),
        false => Time::ZERO,
    };
    let (mut sent, mut links) = (BTreeMap::new(), BTreeMap::<&str, Vec<&str>>::new());
    let mut last: BTreeMap<&str, Time> = BTreeMap::new();
    for event in &events {
        let now = Time(ticks(event[0]));
        match event[1] {
            "send" => {
                sent.insert(event[2], (now, event[3]));
                links.entry(event[3]).or_default().push(event[2]);
            }
            "copy" => {
                let (at, link) = *sent.get(event[2])?;
                sent.insert(event[3], (at, link));
                let queue = links.entry(link).or_default();
                let place = queue.iter().position(|number| *number == event[2])?;
                queue.insert(place + 1, event[3]);
            }
            "deliver" | "lose" => {
                let Some((at, link)) = sent.remove(event[2]) else {
                    return Some("a message that was not sent arrives".into());
                };
                let queue = links.entry(link).or_default();
                let first = queue.first() == Some(&event[2]);
                queue.retain(|number| *number != event[2]);
                if event[1] == "lose" && at == now {
                    continue;
                }
                if !first && field("links") == Some("fifo") {
                    return Some(format!("{} overtakes on {link}", event[2]));
                }
                let behind = last
                    .insert(link, now)
                    .filter(|_| field("links") == Some("fifo"));
                let latest = (at + latency.longest() + late).max(behind.unwrap_or_default());
                // Whoever is paused receives later: the pause ends at 5.
                let latest = match header.contains("fault pause:2@3..5") && link.ends_with(">2") {
                    true if latest >= Time::units(3) => latest.max(Time::units(5)),
                    _ => latest,
                };
                if now < at + latency.shortest() || now > latest {
                    return Some(format!("{} takes from {at} to {now}", event[2]));
                }
            }
            _ => {}
        }
    }
    let stopped = events
        .iter()
        .any(|event| event[1] == "end" && event.len() > 2);
    let for_ever = field("algorithm") == Some("token-ring");
    if !sent.is_empty() && !stopped && !for_ever {
        return Some("messages are under way at its end".into());
    }
    None
}

#[test]
fn an_altered_trace_that_is_no_run_is_refused() {
    let (mut altered, mut swaps, mut by_chance) = (0, 0, 0);
    for (name, text) in traces() {
        let whole = Trace::parse(&text).expect("readable");
        whole
            .replay()
            .unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        assert_eq!(illegal(&text), None, "{name}: the oracle knows a run");
        for (what, text) in alterations(&text) {
            altered += 1;
            swaps += usize::from(what.starts_with("out of order"));
            let accepted = Trace::parse(&text).is_ok_and(|trace| trace.replay().is_ok());
            if accepted {
                by_chance += 1;
                assert_eq!(illegal(&text), None, "{name}, {what}");
            }
            let never = [
                "deleted: 0 start",
                "doubled: 0 start",
                "delay-bound",
                "names",
                "users",
            ];
            let end = what.ends_with(" end") && !what.starts_with("moved");
            let refused = never.iter().any(|never| what.starts_with(never)) || end;
            assert!(!accepted || !refused, "{name}, {what}");
        }
    }
    println!("{altered} altered, {swaps} of them swaps on a link; {by_chance} are runs by chance");
    assert!(altered > 10_000 && swaps > 300, "{altered}, {swaps}");
    assert!(by_chance * 20 < altered, "{by_chance} of {altered} pass");
}
