//! `testigo flow simulate`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use testigo_flow::{EVENTS_MAX, Forecast, JOBS_MAX, Simulation, Span, model, simulate};

use super::model::{LoadOptions, lifetime, percent, print_notes, seconds};
use crate::exit::{Outcome, good_if};
use crate::lab::options::print_json;
use crate::lab::table::Table;

/// The longest run, in seconds of virtual time.
const SECONDS_MAX: f64 = 1e9;

/// Run a flow under a load in virtual time, and show the model beside it
///
/// Jobs are created, taken, passed and deleted one by one; workers die and come back, full queues
/// push back. One seed gives one run. With --running NAME the load is what a node has measured. A
/// run that overflows or stands still before the warm-up is over is counted from its start.
///
/// With --json, one object: simulation and model (as `testigo flow model` prints it, or null). The
/// simulation has processes, a list of name, workers, taken, utilisation, blocked, deaths; queues, a
/// list of name, arrivals, waiting, jobs, jobs_max; creators, a list of process, queue, created,
/// blocked; counted_from, seconds, created, deleted, rejected, left, time; stood_still, when it did,
/// or null, and stuck, the queues that stay full; overflowed, when it did, or null.
///
/// Exit code 0: the flow went on to the end; 1: it, or a part of it, stood still, or it overflowed,
/// or the flow or its load is invalid; 2: a file cannot be read, or there is no such flow; 69: no node reachable.
///
/// Example: testigo flow simulate orders.flow --load orders.load --time 3600
/// Example: testigo flow simulate --running orders --since 15m
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Simulate {
    #[command(flatten)]
    options: LoadOptions,
    /// The load's file; `testigo flow model --help` says what stands in it, and its --template prints
    /// one to fill in.
    #[arg(long, value_name = "FILE", required_unless_present = "running")]
    load: Option<PathBuf>,
    /// How long, in seconds of virtual time, behind the warm-up.
    #[arg(long, value_name = "S", default_value = "10000", value_parser = span)]
    time: f64,
    /// How long until counting starts; without it, a tenth of the time.
    #[arg(long, value_name = "S", value_parser = span)]
    warm_up: Option<f64>,
    /// The seed of all chance.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Print one object.
    #[arg(long)]
    json: bool,
}

fn span(text: &str) -> Result<f64, String> {
    let seconds = text
        .parse()
        .ok()
        .filter(|seconds| (0.0..=SECONDS_MAX).contains(seconds));
    seconds.ok_or(format!(
        "a number of seconds from 0 to {SECONDS_MAX} is wanted"
    ))
}

#[derive(Serialize)]
struct Both {
    simulation: Simulation,
    model: Option<Forecast>,
}

impl Simulate {
    pub(crate) fn run(self) -> Outcome {
        let (flow, load) = match self.options.read(self.load.as_deref())? {
            Ok(read) => read,
            Err(code) => return Ok(code),
        };
        let span = Span {
            seed: self.seed,
            seconds: self.time,
            warm_up: self.warm_up.unwrap_or(self.time / 10.0),
        };
        let both = Both {
            simulation: simulate(&flow, &load, span),
            model: model(&flow, &load, self.options.target).ok(),
        };
        if self.json {
            print_json(&both)?;
        } else {
            print(&both);
        }
        let Simulation {
            stood_still,
            overflowed,
            ..
        } = both.simulation;
        Ok(good_if(stood_still.is_none() && overflowed.is_none()))
    }
}

fn print(Both { simulation, model }: &Both) {
    let mut table = Table::new(&[
        "PROCESS", "WORKERS", "TAKEN", "USED", "MODEL", "DIFF", "BLOCKED", "DEATHS",
    ]);
    for (at, process) in simulation.processes.iter().enumerate() {
        let computed = model.as_ref().and_then(|model| model.processes.get(at));
        table.row([
            process.name.to_string(),
            process.workers.to_string(),
            format!("{:.3}/s", process.taken),
            percent(process.utilisation),
            computed.map_or("-".into(), |computed| percent(computed.utilisation)),
            difference(
                Some(process.utilisation),
                computed.map(|computed| computed.utilisation),
            ),
            percent(process.blocked),
            process.deaths.to_string(),
        ]);
    }
    table.print();
    println!();
    let mut table = Table::new(&[
        "QUEUE", "ARRIVALS", "WAITING", "MODEL", "DIFF", "JOBS", "MODEL", "MOST",
    ]);
    for (at, queue) in simulation.queues.iter().enumerate() {
        let computed = model.as_ref().and_then(|model| model.queues.get(at));
        table.row([
            queue.name.to_string(),
            format!("{:.3}/s", queue.arrivals),
            queue
                .waiting
                .map_or("-".into(), |waiting| format!("{waiting:.3} s")),
            computed.map_or("-".into(), |computed| seconds(computed.waiting)),
            difference(
                queue.waiting,
                computed.and_then(|computed| computed.waiting),
            ),
            format!("{:.2}", queue.jobs),
            computed
                .and_then(|computed| computed.jobs)
                .map_or("-".into(), |jobs| format!("{jobs:.2}")),
            queue.jobs_max.to_string(),
        ]);
    }
    table.print();
    println!();
    let mut table = Table::new(&["CREATOR", "QUEUE", "CREATED", "BLOCKED"]);
    for creator in &simulation.creators {
        table.row([
            creator.process.to_string(),
            creator.queue.to_string(),
            format!("{:.3}/s", creator.created),
            percent(creator.blocked),
        ]);
    }
    table.print();
    println!();
    let Simulation {
        created,
        deleted,
        rejected,
        left,
        ..
    } = simulation;
    println!(
        "jobs               {created} created, {deleted} deleted, {rejected} rejected, {left} left in the flow"
    );
    let computed = model.as_ref().map_or("-".into(), lifetime);
    let time = simulation
        .time
        .map_or("-".into(), |time| format!("{time:.3} s"));
    println!("time in the flow   {time}   model {computed}");
    print_end(simulation);
    if let Some(model) = model {
        print_notes(model);
    }
}

/// How it ended, if not well.
fn print_end(simulation: &Simulation) {
    if let Some(at) = simulation.stood_still {
        let stuck: Vec<String> = simulation
            .stuck
            .iter()
            .map(|name| format!("[{name}]"))
            .collect();
        println!(
            "STOOD STILL        at {at:.3} s: {} full for ever, because all who could take from there stand before one of them",
            stuck.join(" ")
        );
    }
    if let Some(at) = simulation.overflowed {
        let why = match simulation.left > JOBS_MAX as u64 {
            true => format!(
                "more than {JOBS_MAX} jobs in the flow, because some process cannot keep up"
            ),
            false => format!("more than {EVENTS_MAX} events; take a shorter --time"),
        };
        println!("OVERFLOWED         at {at:.3} s: {why}");
    }
    println!(
        "counted            {:.3} s, from {:.3} s on",
        simulation.seconds, simulation.counted_from
    );
}

/// How much more the simulation says than the model, of what the model says.
fn difference(simulated: Option<f64>, computed: Option<f64>) -> String {
    match simulated.zip(computed.filter(|computed| *computed > 1e-9)) {
        Some((simulated, computed)) => format!("{:+.0}%", 100.0 * (simulated / computed - 1.0)),
        None => "-".into(),
    }
}
