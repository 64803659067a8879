//! The laboratory's bars: how fast it simulates, explores, draws and judges, on one core. Where speed
//! could be bought with correctness, the row says what the measured run itself found.

use std::process::Command;
use std::time::Instant;

use testigo_lab::draw::View;
use testigo_lab::{CheckPlan, KnownAlgorithm, LabError, Trace, World, claims, picture};
use testigo_protocol::Setup;

use crate::report::{Bar, Report, Unit, fastest, memory_peak};

const HELP: &str = "\
Usage: cargo xtask bench lab [--rounds N] [ROW]...

Measures the laboratory, each row N times (3), and prints the best. A ROW is the beginning of a row's
name: simulate, scale, memory, check, draw, claims or specimens; without one, all are measured.";

const ROUNDS_DEFAULT: usize = 3;
/// The argument that makes this program the child whose memory is measured.
const CHILD: &str = "--memory-of-ring";

const MIB: f64 = 1_048_576.0;

type Row = fn(usize, &mut Report) -> Result<(), String>;

const ROWS: &[(&str, Row)] = &[
    ("simulate", simulate),
    ("scale", scale),
    ("memory", memory),
    ("check", check),
    ("draw", draw),
    ("claims", all_claims),
    ("specimens", specimens),
];

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let mut rounds = ROUNDS_DEFAULT;
    let mut chosen: Vec<Row> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(true);
            }
            CHILD => return ring().map(|()| true),
            "--rounds" => {
                rounds = rest
                    .next()
                    .and_then(|n| n.parse().ok())
                    .ok_or("--rounds needs a number")?;
            }
            name => {
                let row = ROWS.iter().find(|(row, _)| row.starts_with(name));
                let (_, row) = row.ok_or(format!("no row `{name}`\n\n{HELP}"))?;
                chosen.push(*row);
            }
        }
    }
    if chosen.is_empty() {
        chosen.extend(ROWS.iter().map(|(_, row)| *row));
    }
    let mut report = Report::begin(&format!("lab, one core, best of {rounds}"));
    for row in chosen {
        row(rounds, &mut report)?;
    }
    Ok(report.end())
}

/// Delivered messages a second, with the observer watching safety, liveness and order.
fn simulate(rounds: usize, report: &mut Report) -> Result<(), String> {
    const NODES: usize = 64;
    const ENTRIES: u64 = 200_000;
    let algorithm = find("ricart-agrawala")?;
    for latency in ["fixed:1", "uniform:0.5:1.5"] {
        let world = World {
            entries: ENTRIES,
            latency: latency.parse().map_err(|e| format!("{e}"))?,
            ..World::default()
        };
        let (taken, run) = fastest(rounds, || {
            algorithm
                .run(&Setup::new(NODES), &world, false)
                .map_err(words)
        })?;
        let run = run.report;
        if run.entries != ENTRIES || !run.is_good() {
            let (entries, wrong) = (run.entries, run.violations.join("; "));
            return Err(format!("{entries} of {ENTRIES} entries happened: {wrong}"));
        }
        let ordered = run.ordered.map_or("not watched", word);
        report.row(
            &format!("simulate ricart-agrawala, 64 nodes, {latency}"),
            Bar::AtLeast(3e6, Unit::PerSecond),
            run.messages as f64 / taken.wall,
            &format!(
                "{} messages in {taken}; safe {}, live {}, ordered {ordered}",
                run.messages,
                word(run.safe),
                word(run.live),
            ),
        );
    }
    Ok(())
}

/// How much slower a message gets with many nodes: the rate with 10 nodes by that with more. The
/// observer watches all the while.
fn scale(rounds: usize, report: &mut Report) -> Result<(), String> {
    const ENTRIES: u64 = 1_000_000;
    const LATENCIES: [&str; 2] = ["fixed:1", "uniform:0.5:1.5"];
    for name in ["central", "token-ring", "raymond", "chang"] {
        let few = LATENCIES.map(|latency| rate(name, 10, ENTRIES, latency, rounds));
        for (nodes, words, factor_max) in [(10_000, "10,000", 3.0), (100_000, "100,000", 10.0)] {
            let (mut worst, mut details) = (0.0_f64, Vec::new());
            for (latency, few) in LATENCIES.iter().zip(&few) {
                let few = few.as_ref().map_err(String::clone)?;
                let many = rate(name, nodes, ENTRIES, latency, rounds)?;
                worst = worst.max(few / many);
                let [few, many] = [*few, many].map(|rate| Unit::PerSecond.show(rate));
                details.push(format!("{latency} {few} to {many}"));
            }
            report.row(
                &format!("scale {name}, 10 to {words} nodes"),
                Bar::AtMost(factor_max, Unit::Ratio),
                worst,
                &format!("messages: {}", details.join(", ")),
            );
        }
    }
    Ok(())
}

/// Delivered messages a second of a good run.
fn rate(
    name: &str,
    nodes: usize,
    entries: u64,
    latency: &str,
    rounds: usize,
) -> Result<f64, String> {
    let algorithm = find(name)?;
    let world = World {
        entries,
        latency: latency.parse().map_err(|e| format!("{e}"))?,
        ..World::default()
    };
    let (taken, run) = fastest(rounds, || {
        algorithm
            .run(&Setup::new(nodes), &world, false)
            .map_err(words)
    })?;
    let run = run.report;
    if run.entries != entries || !run.is_good() {
        let (happened, wrong) = (run.entries, run.violations.join("; "));
        return Err(format!(
            "{name}: {happened} of {entries} entries happened: {wrong}"
        ));
    }
    Ok(run.messages as f64 / taken.wall)
}

/// The memory of a large run, in a process of its own: the peak of this one would include every
/// row before.
fn memory(_: usize, report: &mut Report) -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot find this program: {e}"))?;
    let child = Command::new(own).args(["lab", CHILD]).output();
    let child = child.map_err(|e| format!("cannot start a child: {e}"))?;
    let text = String::from_utf8_lossy(&child.stdout);
    let (peak, detail) = text
        .trim()
        .split_once(' ')
        .filter(|_| child.status.success())
        .ok_or_else(|| format!("the child said: {}", String::from_utf8_lossy(&child.stderr)))?;
    report.row(
        "memory of token-ring, 10,000 nodes",
        Bar::AtMost(1024.0 * MIB, Unit::Bytes),
        peak.parse()
            .map_err(|_| format!("the child said `{peak}`"))?,
        detail,
    );
    Ok(())
}

/// The child of [`memory`]: prints the peak in bytes, and what the run was.
fn ring() -> Result<(), String> {
    let world = World {
        entries: 20_000,
        ..World::default()
    };
    let begin = Instant::now();
    let run = find("token-ring")?.run(&Setup::new(10_000), &world, false);
    let run = run.map_err(words)?.report;
    println!(
        "{} {} entries, {} messages in {:.2} s; safe {}, live {}",
        memory_peak()?,
        run.entries,
        run.messages,
        begin.elapsed().as_secs_f64(),
        word(run.safe),
        word(run.live),
    );
    Ok(())
}

/// Generated states a second. The whole check counts, the liveness pass and its states too.
fn check(rounds: usize, report: &mut Report) -> Result<(), String> {
    for (name, nodes, entries) in [("ricart-agrawala", 3, 2), ("lamport", 3, 1)] {
        let algorithm = find(name)?;
        let (taken, checked) = fastest(rounds, || {
            let plan = CheckPlan::new(entries);
            algorithm.check(&Setup::new(nodes), &plan).map_err(words)
        })?;
        report.row(
            &format!("check {name}, {nodes} nodes, {entries} entries"),
            Bar::AtLeast(2e5, Unit::PerSecond),
            checked.generated as f64 / taken.wall,
            &format!(
                "{} generated, {} distinct, {} for liveness in {taken}; complete {}, safety {}, \
                 lockout freedom {}",
                checked.generated,
                checked.states,
                checked.liveness_states,
                word(checked.complete),
                checked.safety.word(),
                checked.lockout_freedom.word(),
            ),
        );
    }
    Ok(())
}

/// Reading a saved run and drawing it.
fn draw(rounds: usize, report: &mut Report) -> Result<(), String> {
    const EVENTS: usize = 20_000;
    let world = World {
        entries: 600,
        latency: "uniform:0.5:1.5".parse().map_err(|e| format!("{e}"))?,
        ..World::default()
    };
    let run = find("ricart-agrawala")?.run(&Setup::new(10), &world, true);
    let trace = run.map_err(words)?.trace.ok_or("the run kept no trace")?;
    let events = trace.events.len();
    if events < EVENTS {
        return Err(format!("a trace of {events} events is too short"));
    }
    let text = trace.to_string();
    let (taken, drawn) = fastest(rounds, || {
        let whole = View {
            whole: true,
            ..View::default()
        };
        let trace = Trace::parse(&text).map_err(|e| format!("{e}"))?;
        Ok(picture(&trace, whole))
    })?;
    report.row(
        &format!("draw a trace of {events} events"),
        Bar::AtMost(2.0, Unit::Seconds),
        taken.wall,
        &format!("read and drawn; {:.1} MiB of SVG", drawn.len() as f64 / MIB),
    );
    Ok(())
}

fn all_claims(rounds: usize, report: &mut Report) -> Result<(), String> {
    let (taken, (findings, slowest)) = fastest(rounds, || {
        let mut findings = 0;
        let mut slowest = Slowest::default();
        for algorithm in KnownAlgorithm::all() {
            let begin = Instant::now();
            findings += claims(&algorithm).map_err(words)?.len();
            slowest.see(algorithm.profile.name, begin.elapsed().as_secs_f64());
        }
        Ok((findings, slowest))
    })?;
    report.row(
        "claims of all algorithms",
        Bar::AtMost(60.0, Unit::Seconds),
        taken.wall,
        &format!("{findings} claims; slowest {slowest}"),
    );
    Ok(())
}

/// The slowest refutation of an algorithm that is kept in order to be refuted.
fn specimens(rounds: usize, report: &mut Report) -> Result<(), String> {
    let mut slowest = Slowest::default();
    let mut count = 0;
    for algorithm in KnownAlgorithm::all() {
        let profile = algorithm.profile;
        if profile.specimen.is_none() {
            continue;
        }
        let plan = CheckPlan::new(profile.telling.entries as u32);
        let (taken, checked) = fastest(rounds, || {
            algorithm
                .check(&Setup::new(profile.telling.nodes), &plan)
                .map_err(words)
        })?;
        if !checked.refuted() {
            return Err(format!("{} was not refuted", profile.name));
        }
        slowest.see(profile.name, taken.wall);
        count += 1;
    }
    report.row(
        "specimens, the slowest refutation",
        Bar::AtMost(2.0, Unit::Seconds),
        slowest.seconds,
        &format!("{count} specimens, all refuted; slowest {slowest}"),
    );
    Ok(())
}

#[derive(Clone, Copy, Debug, Default)]
struct Slowest {
    name: &'static str,
    seconds: f64,
}

impl Slowest {
    fn see(&mut self, name: &'static str, seconds: f64) {
        if seconds >= self.seconds {
            *self = Slowest { name, seconds };
        }
    }
}

impl std::fmt::Display for Slowest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {}", self.name, Unit::Seconds.show(self.seconds))
    }
}

fn find(name: &str) -> Result<KnownAlgorithm, String> {
    KnownAlgorithm::find(name).map_err(words)
}

fn words(error: LabError) -> String {
    error.to_string()
}

fn word(holds: bool) -> &'static str {
    if holds { "yes" } else { "NO" }
}
