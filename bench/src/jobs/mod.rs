//! Durable jobs beside their rivals: one run, the same closed-loop clients for all, short rounds in turn so that noise hits
//! all alike, and medians. See `docs/benchmarks.md` for what is measured and how.

mod amqp;
mod bare;
mod body;
pub(crate) mod dialect;
mod flushes;
pub(crate) mod generator;
mod million;
mod nats;
mod pipeline;
mod postgres;
pub(crate) mod rabbit;
mod referee;
pub(crate) mod resp;
mod rounds;
pub(crate) mod specimen;
mod systems;

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::report::{Bar, Report, Unit, machine};
use crate::{disk, product};
use flushes::Flushes;
use rounds::{CLIENTS, Rounds};
use systems::{BARE_LOG_SERVER, RIVALS, System, Systems};

const HELP: &str = "\
Usage: cargo xtask bench jobs [--rounds N] [--span MS] [PART]...

Measures the durable loop of a job (create, take, delete; bodies of 1 KiB) beside PostgreSQL, Redis streams,
RabbitMQ and NATS JetStream, which it installs from Debian where they are missing. Data is put where TMPDIR
says, which must be on a disk. A PART is loop, pipeline or million; without one, all are measured.

Options:
  --rounds N  Rounds of each measurement; medians are printed (9)
  --span MS   How long each counts (1000)
  --node FILE Measure this binary; without it the product is built
  --alone     Without rivals, while one works on the product; the bars against them are missed

Exit code: 0 every bar is met, 1 a bar is missed, 2 something could not be measured. For example:

  cargo xtask bench jobs --rounds 3 loop";

/// What is to be reached of a log that keeps no jobs, with each number of clients.
const OF_BARE_LOG: [f64; 2] = [0.7, 0.6];

const PARTS: [&str; 3] = ["loop", "pipeline", "million"];

struct Options {
    rounds: usize,
    span: Duration,
    node: Option<PathBuf>,
    alone: bool,
    parts: Vec<String>,
}

impl Options {
    fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let mut options = Options {
        rounds: 9,
        span: Duration::from_millis(1_000),
        node: None,
        alone: false,
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
            "--alone" => options.alone = true,
            BARE_LOG_SERVER => return bare::serve().map(|()| true),
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            other => return Err(format!("no part `{other}`\n\n{HELP}")),
        }
    }
    measure(&options)
}

fn measure(options: &Options) -> Result<bool, String> {
    disk::must_be_real()?;
    let binary = match &options.node {
        Some(binary) => binary.clone(),
        None => product::build()?,
    };
    specimen::referee_sees()?;
    println!("jobs, durable, on {}", machine());
    let measured = match options.wants("loop") {
        true => Some(loops(options, &binary)?),
        false => None,
    };
    let title = match measured {
        Some(_) => format!("bars, medians of {} rounds", options.rounds),
        None => "bars".to_owned(),
    };
    let mut report = Report::begin(&title);
    if let Some((rounds, equals)) = measured {
        bars(&rounds, &equals, &mut report);
    }
    if options.wants("pipeline") {
        let Options {
            rounds,
            span,
            alone,
            ..
        } = *options;
        pipeline::measure(&binary, rounds, span, alone, &mut report)?;
    }
    if options.wants("million") {
        million::measure(&binary, &mut report)?;
    }
    Ok(report.end())
}

/// The rounds, and the rivals whose loop waits for both flushes.
fn loops(options: &Options, binary: &Path) -> Result<(Rounds, Vec<System>), String> {
    let systems = Systems::start(binary, options.alone)?;
    if !options.alone {
        println!("beside {}", systems.versions());
    }
    for (rival, why) in &systems.skipped {
        println!("SKIPPED: {}: {}", rival.name(), why.trim());
    }
    Flushes::print_head();
    let mut equals = Vec::new();
    for system in systems.all() {
        if system == System::TestigoPing {
            continue;
        }
        let flushes = Flushes::measure(&systems, system)?;
        flushes.print(system);
        if RIVALS.contains(&system) && flushes.both() {
            equals.push(system);
        }
    }
    let mut rounds = Rounds::new(options.span, &systems)?;
    for round in 1..=options.rounds {
        eprint!("\rround {round} of {}", options.rounds);
        rounds.one(&systems)?;
    }
    eprintln!();
    rounds.print();
    Ok((rounds, equals))
}

fn bars(rounds: &Rounds, equals: &[System], report: &mut Report) {
    for (clients, of_bare_log) in CLIENTS.into_iter().zip(OF_BARE_LOG) {
        report.row(
            &format!("{clients} clients: loops to a bare log's"),
            Bar::AtLeast(of_bare_log, Unit::Ratio),
            rounds.ratio(clients, System::Testigo, System::BareLog),
            "",
        );
        report.show(
            &format!("{clients} clients: loops to what is possible"),
            rounds.of_possible(clients),
            Unit::Ratio,
            &rounds.possible(clients),
        );
        let ratio = |rival| rounds.ratio(clients, System::Testigo, rival);
        let rivals = equals.iter().copied();
        let best = rivals.min_by(|one, other| ratio(*one).total_cmp(&ratio(*other)));
        let what = format!("{clients} clients: loops to the best equal's");
        let (measured, detail) = match best {
            Some(best) => (ratio(best), best.name()),
            None => (
                f64::NAN,
                "no rival that waits for both flushes could be measured",
            ),
        };
        report.row(&what, Bar::AtLeast(1.5, Unit::Ratio), measured, detail);
    }
}
