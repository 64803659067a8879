//! Pools: a take and a give at the owner of the slots, beside bare `PING`s and beside a semaphore on etcd; and a large pool on many
//! simulated nodes. See `docs/benchmarks.md` for what is measured and how.

mod dialects;
mod embedded;
mod large;

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cluster::Trio;
use crate::locks::dialect::Dialect;
use crate::locks::generator::{Load, drive};
use crate::locks::resp::Ping;
use crate::locks::specimen;
use crate::report::{Bar, Report, Unit, machine};
use crate::service::{self, Service};
use crate::tally::{Tally, median};
use crate::wire::Asker;
use crate::{disk, number, product};
use dialects::Semaphore;
pub(crate) use dialects::Slots;

const HELP: &str = "\
Usage: cargo xtask bench pools [--rounds N] [--span MS] [PART]...

Measures pairs of POOL TAKE and POOL GIVE beside pairs of PING, and beside a semaphore with as many permits on three nodes
of etcd, which is installed from Debian if it is missing. Data goes to TMPDIR, which must be on a disk. A PART is embedded,
socket, semaphore or large; without one, all are measured.

Options:
  --rounds N  Rounds of each measurement; medians are printed (5)
  --span MS   How long each counts (1000)
  --node FILE Measure this binary; without it the product is built

Exit code: 0 every bar is met, 1 a bar is missed, 2 something could not be measured.";

const PARTS: [&str; 4] = ["embedded", "socket", "semaphore", "large"];

const CLIENTS: usize = 16;
const PERMITS: u32 = 64;
const POOL: &str = "permits";
const WARM_UP: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (mut rounds, mut span, mut node, mut parts) = (5, 1_000, None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(true);
            }
            "--rounds" => rounds = number(argument, rest.next())?,
            "--span" => span = number(argument, rest.next())?,
            "--node" => node = Some(PathBuf::from(rest.next().ok_or("--node needs a file")?)),
            part if PARTS.contains(&part) => parts.push(part),
            other => return Err(format!("no part `{other}`\n\n{HELP}")),
        }
    }
    let wants = |part| parts.is_empty() || parts.contains(&part);
    let span = Duration::from_millis(span as u64);
    specimen::referee_sees()?;
    let mut report = Report::begin(&format!("pools, medians of {rounds} rounds"));
    if wants("embedded") {
        embedded::measure(rounds, span, &mut report)?;
    }
    if wants("large") {
        large::measure(&mut report)?;
    }
    if wants("socket") || wants("semaphore") {
        disk::must_be_real()?;
        let binary = node.map_or_else(product::build, Ok)?;
        if wants("socket") {
            socket(&binary, rounds, span, &mut report)?;
        }
        if wants("semaphore") {
            semaphore(&binary, rounds, span, &mut report)?;
        }
    }
    Ok(report.end())
}

/// One node, which owns all the slots.
fn socket(binary: &Path, rounds: usize, span: Duration, report: &mut Report) -> Result<(), String> {
    let node = service::testigo::start(binary)?;
    create(node.address)?;
    let (mut pairs, mut pings) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        pairs.push(run_one(&[node.address], span, |_| {
            Box::new(Slots::new(POOL))
        })?);
        pings.push(run_one(&[node.address], span, |_| Box::<Ping>::default())?);
    }
    let what = "over the socket: pairs to pairs of PING";
    let detail = beside(&pairs, &pings);
    let bar = Bar::AtLeast(0.8, Unit::Ratio);
    report.row(what, bar, ratio(&pairs, &pings), &detail);
    Ok(())
}

/// Three nodes each.
fn semaphore(
    binary: &Path,
    rounds: usize,
    span: Duration,
    report: &mut Report,
) -> Result<(), String> {
    let trio = Trio::start(binary)?;
    create(trio.address(0)?)?;
    // No two clients share a key or a lease.
    let leases = Cell::new(0);
    let lease = || {
        leases.set(leases.get() + 1);
        leases.get()
    };
    let etcd =
        service::etcd::start_three(|stream| Semaphore::new("probe", 1, lease()).greet(stream))?;
    let etcd_at: Vec<SocketAddr> = etcd.iter().map(|server: &Service| server.address).collect();
    let (mut pairs, mut rival) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        pairs.push(run_one(&trio.addresses(), span, |_| {
            Box::new(Slots::new(POOL))
        })?);
        let semaphore = |_| Box::new(Semaphore::new(POOL, PERMITS, lease())) as Box<dyn Dialect>;
        rival.push(run_one(&etcd_at, span, semaphore)?);
    }
    let what = format!("{PERMITS} slots, {CLIENTS} clients: takes to etcd's");
    let detail = beside(&pairs, &rival);
    let bar = Bar::AtLeast(10.0, Unit::Ratio);
    report.row(&what, bar, ratio(&pairs, &rival), &detail);
    Ok(())
}

fn create(address: SocketAddr) -> Result<(), String> {
    let slots = PERMITS.to_string();
    let create = ["POOL", "CREATE", POOL, "SLOTS", &slots];
    let created = Asker::connect(address, PATIENCE)?.ask(&create, |_| ());
    created.map_err(|why| format!("{create:?}: {why:?}"))
}

fn run_one(
    servers: &[SocketAddr],
    span: Duration,
    dialect: impl Fn(usize) -> Box<dyn Dialect>,
) -> Result<Tally, String> {
    let load = Load {
        contended: false,
        slots: true,
        warm_up: WARM_UP,
        span,
    };
    drive(servers, (0..CLIENTS).map(dialect).collect(), load)
}

fn ratio(one: &[Tally], other: &[Tally]) -> f64 {
    let pairs = one.iter().zip(other);
    median(pairs.map(|(one, other)| one.rate() / other.rate()))
}

fn beside(one: &[Tally], other: &[Tally]) -> String {
    let rate = |all: &[Tally]| Unit::PerSecond.show(median(all.iter().map(Tally::rate)));
    format!("{} and {}, on {}", rate(one), rate(other), machine())
}
