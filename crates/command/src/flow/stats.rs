//! `testigo flow stats`: how a flow on a node has been doing; and the same as a measured load.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use testigo_client::{Connection, Value};
use testigo_flow::{Flow, Measured, MeasuredProcess, MeasuredQueue, Name, parse};

use super::model::percent;
use crate::exit::Outcome;
use crate::lab::table::Table;
use crate::reach::{Ended, Reach};
use crate::show::print_json;
use crate::span::Span;

/// Show how a flow on the node has been doing: by queue what arrived, left and waited, by process
/// how long it worked, with how many workers, and how busy they were.
///
/// The node counts from its start on, the last hour by minutes and a day by hours; the time that is
/// shown is at least as long as was asked for, unless the node, or the flow on it, is younger. A queue
/// that an apply brought later has its RATE over the time since then. WAIT is from a job's arrival in
/// the queue to its being taken, WORK from there to its being passed on, deleted, given back or lost.
///
/// With --json, one object: name; since_ms, how long was counted; queues, a list of name, limit,
/// waiting, held, since_ms, arrivals, created, departures, deaths, rejects, full,
/// arrivals_per_second, departures_per_second, wait_mean_ms, wait_p50_ms, wait_p99_ms, wait_max_ms;
/// processes, a list of name, workers (now), workers_mean, ended, passed, deleted, given_back, died, busy_ms, present_ms,
/// utilisation, service_mean_ms, service_p50_ms, service_p99_ms, service_max_ms,
/// service_variability, ways (a list of queue, passed). What was not seen is null.
///
/// Exit code 0: shown; 2: there is no such flow; 69: no node reachable.
///
/// Example: testigo flow stats orders --since 15m
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Stats {
    /// The flow's name.
    name: String,
    /// How far back, up to a day.
    #[arg(long, value_name = "SPAN", default_value = "1h")]
    since: Span,
    /// Print one object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Stats {
    pub(crate) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let stats = ask(&mut node, &self.name, self.since).await?;
            match self.json {
                true => print_json(&stats),
                false => print(&stats),
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

async fn ask(node: &mut Connection, flow: &str, since: Span) -> Result<Value, Ended> {
    let since = since.0.as_millis().to_string();
    Ok(node.say(&["FLOW", "STATS", flow, "SINCE", &since]).await?)
}

fn print(stats: &Value) {
    let since = stats.field("since_ms").and_then(Value::number).unwrap_or(0);
    println!("counted over       {:.0} s\n", since as f64 / 1000.0);
    let mut table = Table::new(&[
        "PROCESS", "WORKERS", "ENDED", "USED", "WORK", "P50", "P99", "DEATHS", "BACK",
    ]);
    for row in rows(stats, "processes") {
        let used = row.field("utilisation").and_then(real);
        table.row([
            text(row, "name"),
            text(row, "workers"),
            text(row, "ended"),
            used.map_or("-".into(), percent),
            span(row, "service_mean_ms"),
            span(row, "service_p50_ms"),
            span(row, "service_p99_ms"),
            text(row, "died"),
            text(row, "given_back"),
        ]);
    }
    table.print();
    println!();
    let mut table = Table::new(&[
        "QUEUE", "WAITING", "HELD", "ARRIVED", "RATE", "LEFT", "WAIT", "P50", "P99", "DEATHS",
        "REJECTS", "FULL",
    ]);
    for row in rows(stats, "queues") {
        let rate = row.field("arrivals_per_second").and_then(real);
        table.row([
            text(row, "name"),
            text(row, "waiting"),
            text(row, "held"),
            text(row, "arrivals"),
            format!("{:.3}/s", rate.unwrap_or(0.0)),
            text(row, "departures"),
            span(row, "wait_mean_ms"),
            span(row, "wait_p50_ms"),
            span(row, "wait_p99_ms"),
            text(row, "deaths"),
            text(row, "rejects"),
            text(row, "full"),
        ]);
    }
    table.print();
}

/// The flow that a node runs, and what it has measured of it.
pub(super) async fn measure(
    node: &mut Connection,
    name: &str,
    since: Span,
) -> Result<(Flow, Measured), Ended> {
    let shown = node.say(&["FLOW", "SHOW", name]).await?;
    let flow = shown.field("text").and_then(Value::text);
    let flow = parse(flow.unwrap_or_default()).map_err(|_| {
        Ended::bad_input(format!(
            "this version does not read the flow {name} of the node"
        ))
    })?;
    let stats = ask(node, name, since).await?;
    Ok((flow, read(&stats)))
}

fn read(stats: &Value) -> Measured {
    let seconds = |counted: &Value| count(counted, "since_ms") as f64 / 1000.0;
    let queues = rows(stats, "queues").iter();
    let queues = queues.filter_map(|row| {
        let measured = MeasuredQueue {
            seconds: seconds(row),
            created: count(row, "created"),
        };
        Some((named(row, "name")?, measured))
    });
    let processes = rows(stats, "processes").iter();
    let processes = processes.filter_map(|row| {
        let ways = rows(row, "ways").iter();
        let ways = ways.filter_map(|way| Some((named(way, "queue")?, count(way, "passed"))));
        let service_ms = row.field("service_mean_ms").and_then(real);
        let measured = MeasuredProcess {
            workers: u32::try_from(count(row, "workers")).unwrap_or(u32::MAX),
            ended: count(row, "ended"),
            deleted: count(row, "deleted"),
            given_back: count(row, "given_back"),
            died: count(row, "died"),
            service: service_ms.unwrap_or(0.0) / 1000.0,
            variability: row
                .field("service_variability")
                .and_then(real)
                .unwrap_or(0.0),
            ways: ways.collect(),
        };
        Some((named(row, "name")?, measured))
    });
    Measured {
        seconds: seconds(stats),
        queues: queues.collect(),
        processes: processes.collect::<BTreeMap<Name, MeasuredProcess>>(),
    }
}

fn rows<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.field(name).and_then(Value::list).unwrap_or_default()
}

fn named(row: &Value, field: &str) -> Option<Name> {
    Name::new(row.field(field)?.text()?).ok()
}

fn count(row: &Value, field: &str) -> u64 {
    row.field(field).and_then(Value::number).unwrap_or(0)
}

fn text(row: &Value, field: &str) -> String {
    match row.field(field) {
        Some(Value::Text(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => "-".into(),
    }
}

fn real(value: &Value) -> Option<f64> {
    match value {
        Value::Real(real) => Some(*real),
        Value::Number(number) => Some(*number as f64),
        _ => None,
    }
}

/// A time in the unit that a person reads it in.
fn span(row: &Value, field: &str) -> String {
    match row.field(field).and_then(real) {
        None => "-".into(),
        Some(ms) if ms < 1000.0 => format!("{ms:.1} ms"),
        Some(ms) => format!("{:.3} s", ms / 1000.0),
    }
}
