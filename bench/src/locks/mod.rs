//! Locks beside their rivals: one run, the same 16 closed-loop clients for all, short rounds in turn so that noise hits
//! all alike, and medians. See `docs/benchmarks.md` for what is measured and how.

mod baton;
mod capacity;
pub(crate) mod dialect;
mod embedded;
pub(crate) mod etcd;
pub(crate) mod generator;
pub(crate) mod grpc;
mod hostile;
mod postgres;
mod referee;
pub(crate) mod resp;
mod rounds;
pub(crate) mod specimen;
mod systems;

use std::path::PathBuf;
use std::time::Duration;

use crate::number;
use crate::product;
use crate::report::{Bar, Report, Unit, machine};
use embedded::Embedded;
use rounds::Rounds;
use systems::{BATON_SERVER, CLIENTS, CONTENDED, DISTINCT, System, Systems};

const HELP: &str = "\
Usage: cargo xtask bench locks [--rounds N] [--span MS] [PART]...

Measures pairs of LOCK and UNLOCK beside PostgreSQL, etcd and Redis, which it installs from Debian where
they are missing. A PART is distinct, contended, embedded, gates, sessions or hostile; without one, all
are measured.

Options:
  --rounds N  Rounds of each measurement; medians are printed (9)
  --span MS   How long each counts (400)
  --node FILE Measure this binary; without it the product is built

Exit code: 0 every bar is met, 1 a bar is missed, 2 something could not be measured.";

const PARTS: [&str; 6] = [
    "distinct",
    "contended",
    "embedded",
    "gates",
    "sessions",
    "hostile",
];

struct Options {
    rounds: usize,
    span: Duration,
    node: Option<PathBuf>,
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
        span: Duration::from_millis(400),
        node: None,
        parts: Vec::new(),
    };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(true);
            }
            BATON_SERVER => return baton::serve(CLIENTS).map(|()| true),
            "--rounds" => options.rounds = number(argument, rest.next())?,
            "--span" => options.span = Duration::from_millis(number(argument, rest.next())? as u64),
            "--node" => {
                let file = rest.next().ok_or("--node needs a file")?;
                options.node = Some(PathBuf::from(file));
            }
            part if PARTS.contains(&part) => options.parts.push(part.to_owned()),
            other => return Err(format!("no part `{other}`\n\n{HELP}")),
        }
    }
    measure(&options)
}

fn measure(options: &Options) -> Result<bool, String> {
    let binary = match &options.node {
        Some(binary) => binary.clone(),
        None => product::build()?,
    };
    specimen::referee_sees()?;
    let distinct = if options.wants("distinct") {
        DISTINCT
    } else {
        &[]
    };
    let contended = if options.wants("contended") {
        CONTENDED
    } else {
        &[]
    };
    let mut embedded = match options.wants("embedded") {
        true => Some(Embedded::start()?),
        false => None,
    };
    let mut rounds = Rounds::new(options.span, distinct, contended);
    let rivals = !distinct.is_empty() || !contended.is_empty();
    let systems = if rivals {
        Some(Systems::start(&binary)?)
    } else {
        None
    };
    println!("locks, {CLIENTS} clients over TCP, on {}", machine());
    if let Some(systems) = &systems {
        println!("beside {}", systems.versions());
    }
    for round in 1..=options.rounds {
        eprint!("\rround {round} of {}", options.rounds);
        if let Some(systems) = &systems {
            rounds.one(systems)?;
        }
        if let Some(embedded) = &mut embedded {
            embedded.measure(options.span)?;
        }
    }
    eprintln!();
    drop(systems);
    rounds.print();
    let title = format!("bars, medians of {} rounds", options.rounds);
    let mut report = Report::begin(&title);
    if !distinct.is_empty() {
        distinct_bars(&rounds, &mut report);
    }
    if !contended.is_empty() {
        contended_bars(&rounds, &mut report);
    }
    if let Some(embedded) = embedded {
        embedded.report(&mut report)?;
    }
    if options.wants("gates") {
        capacity::gates(&binary, &mut report)?;
    }
    if options.wants("sessions") {
        capacity::sessions(&binary, &mut report)?;
    }
    if options.wants("hostile") {
        hostile::measure(&binary, options.rounds, options.span, &mut report)?;
    }
    Ok(report.end())
}

fn distinct_bars(rounds: &Rounds, report: &mut Report) {
    let ratio = |a, b| rounds.ratio(false, a, b);
    let mut row = |what: &str, bar, measured| report.row(what, bar, measured, "");
    row(
        "distinct gates: pairs to pairs of PING",
        Bar::AtLeast(0.8, Unit::Ratio),
        ratio(System::Testigo, System::TestigoPing),
    );
    for rival in [
        System::Postgres,
        System::Etcd,
        System::RedisAlways,
        System::RedisEachSecond,
    ] {
        row(
            &format!("distinct gates: to {}", rival.name()),
            Bar::Above(1.0, Unit::Ratio),
            ratio(System::Testigo, rival),
        );
    }
    row(
        "PING: to Redis' own",
        Bar::AtLeast(0.9, Unit::Ratio),
        ratio(System::TestigoPing, System::RedisPing),
    );
}

fn contended_bars(rounds: &Rounds, report: &mut Report) {
    for (rival, bar) in [
        (System::Baton, Bar::AtLeast(0.7, Unit::Ratio)),
        (System::Postgres, Bar::Above(1.0, Unit::Ratio)),
        (System::Etcd, Bar::AtLeast(50.0, Unit::Ratio)),
    ] {
        let name = rival.name().trim().trim_start_matches("limit: ");
        let what = format!("one contended gate: to {name}");
        report.row(&what, bar, rounds.ratio(true, System::Testigo, rival), "");
    }
}
