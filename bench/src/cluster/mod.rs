//! Three nodes on one machine beside three of etcd and of RabbitMQ: one run, the same closed-loop clients for all, spread
//! over the nodes, short rounds in turn, and medians. See `docs/benchmarks.md` for what is measured and how.

mod failover;
mod parts;
mod series;
mod systems;
mod trio;

pub(crate) use trio::Trio;

use std::path::PathBuf;
use std::time::Duration;

use crate::report::{Bar, Report, Unit, machine};
use crate::{disk, product};
use series::{Series, Travelled};
use systems::{Situation, System, Systems, WARM_UP};

const HELP: &str = "\
Usage: cargo xtask bench cluster [--rounds N] [--span MS] [PART]...

Measures three nodes on this machine beside three of etcd and of RabbitMQ, which it installs from Debian where they are
missing. Data is put where TMPDIR says, which must be on a disk. A PART is own (each client at a gate that its own node
owns), contended (one gate for all), jobs (create, take, delete), failover, or parts (what a fail-over consists of);
without one, all are measured.

Options:
  --rounds N  Rounds of each measurement; medians are printed (5)
  --span MS   How long each counts (1000)
  --node FILE Measure this binary; without it the product is built
  --rivals    Only the rivals, without bars

Exit code: 0 every bar is met, 1 a bar is missed, 2 something could not be measured.";

const PARTS: [&str; 5] = ["own", "contended", "jobs", "failover", "parts"];

struct Options {
    rounds: usize,
    span: Duration,
    node: Option<PathBuf>,
    rivals: bool,
    parts: Vec<String>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let mut options = Options {
        rounds: 5,
        span: Duration::from_millis(1_000),
        node: None,
        rivals: false,
        parts: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(true);
            }
            "--rounds" => options.rounds = crate::number(argument, rest.next())?,
            "--span" => {
                let span = crate::number(argument, rest.next())?;
                options.span = Duration::from_millis(span as u64);
            }
            "--node" => {
                let file = rest.next().ok_or("--node needs a file")?;
                options.node = Some(PathBuf::from(file));
            }
            "--rivals" => options.rivals = true,
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            other => return Err(format!("no part `{other}`\n\n{HELP}")),
        }
    }
    measure(&options)
}

fn measure(options: &Options) -> Result<bool, String> {
    disk::must_be_real()?;
    let binary = match &options.node {
        _ if options.rivals => None,
        Some(binary) => Some(binary.clone()),
        None => Some(product::build()?),
    };
    crate::locks::specimen::referee_sees()?;
    crate::jobs::specimen::referee_sees()?;
    println!("three nodes of each, clients over TCP, on {}", machine());
    let mut all = plan(options);
    if !all.is_empty() {
        let systems = Systems::start(binary.as_deref(), options.wants("jobs"))?;
        println!("beside {}", systems.versions());
        for round in 1..=options.rounds {
            eprint!("\rround {round} of {}", options.rounds);
            for series in &mut all {
                let (system, clients) = (series.system, series.clients);
                let before = system.using().map(|gate| systems.travelled(gate));
                let tally = systems.measure(system, series.situation, clients, options.span)?;
                series.tallies.push(tally);
                if let (Some(gate), Some(before)) = (system.using(), before) {
                    let (before, after) = (before?, systems.travelled(gate)?);
                    series.travelled.push(Travelled {
                        messages: after[0] - before[0],
                        hand_overs: after[1] - before[1],
                        burst: after[2],
                        forecast: systems.forecast(gate, WARM_UP + options.span),
                    });
                }
            }
        }
        eprintln!();
        Series::print_all(&all);
    }
    let title = format!("bars, medians of {} rounds", options.rounds);
    let Some(binary) = binary else {
        return Ok(true);
    };
    let mut report = Report::begin(&title);
    bars(&all, &mut report);
    if options.wants("failover") {
        failover::measure(&binary, &mut report)?;
    }
    if options.wants("parts") {
        parts::measure(&binary, &mut report)?;
    }
    Ok(report.end())
}

/// Every system with every number of clients, as far as it is asked for.
fn plan(options: &Options) -> Vec<Series> {
    let mut all = Vec::new();
    let wanted: [(&str, Situation, &[usize], &[System]); 3] = [
        (
            "own",
            Situation::Own,
            &[1, 16, 64],
            &[System::Testigo, System::Ping, System::Etcd],
        ),
        (
            "contended",
            Situation::Contended,
            &[16, 64],
            &[
                System::Testigo,
                System::Raymond,
                System::BoxOffice,
                System::Etcd,
            ],
        ),
        (
            "jobs",
            Situation::Jobs,
            &[16, 64],
            &[System::Testigo, System::Rabbit],
        ),
    ];
    for (part, situation, counts, systems) in wanted {
        let systems = systems
            .iter()
            .filter(|system| !options.rivals || system.is_rival());
        let systems: Vec<System> = systems.copied().collect();
        for clients in counts.iter().filter(|_| options.wants(part)) {
            all.extend(systems.iter().map(|system| Series {
                system: *system,
                situation,
                clients: *clients,
                tallies: Vec::new(),
                travelled: Vec::new(),
            }));
        }
    }
    all
}

fn bars(all: &[Series], report: &mut Report) {
    let rows: [(&str, Situation, usize, System, f64); 8] = [
        (
            "pairs to pairs of PING",
            Situation::Own,
            1,
            System::Ping,
            0.6,
        ),
        (
            "pairs to pairs of PING",
            Situation::Own,
            16,
            System::Ping,
            0.6,
        ),
        (
            "pairs to pairs of PING",
            Situation::Own,
            64,
            System::Ping,
            0.6,
        ),
        ("pairs to etcd's", Situation::Own, 1, System::Etcd, 10.0),
        (
            "grants to etcd's",
            Situation::Contended,
            16,
            System::Etcd,
            20.0,
        ),
        (
            "grants to etcd's",
            Situation::Contended,
            64,
            System::Etcd,
            20.0,
        ),
        (
            "loops to RabbitMQ's",
            Situation::Jobs,
            16,
            System::Rabbit,
            1.5,
        ),
        (
            "loops to RabbitMQ's",
            Situation::Jobs,
            64,
            System::Rabbit,
            1.5,
        ),
    ];
    for system in [System::Raymond, System::BoxOffice] {
        for clients in [16, 64] {
            let contended = Situation::Contended;
            let ratio = Series::ratio(all, contended, clients, system, System::Etcd);
            if let Some(ratio) = ratio {
                let using = system.using().unwrap_or_default();
                let what = format!("one gate using {using}, {clients} clients: grants to etcd's");
                report.row(&what, Bar::AtLeast(20.0, Unit::Ratio), ratio, "");
            }
            let is_this = |series: &&Series| {
                (series.system, series.clients, series.situation) == (system, clients, contended)
            };
            let series = all.iter().find(is_this);
            if let Some((off, detail)) = series.and_then(Series::off_forecast) {
                let using = system.using().unwrap_or_default();
                let what =
                    format!("one gate using {using}, {clients} clients: off its forecast, in ±");
                report.row(&what, Bar::AtMost(1.0, Unit::Ratio), off, &detail);
            }
        }
    }
    for (what, situation, clients, other, bar) in rows {
        if let Some(ratio) = Series::ratio(all, situation, clients, System::Testigo, other) {
            let what = format!("{}, {clients} clients: {what}", situation.name());
            report.row(&what, Bar::AtLeast(bar, Unit::Ratio), ratio, "");
        }
    }
}
