//! `testigo flow plan`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use testigo::node::Limits;
use testigo_client::{Connection, Value};
use testigo_flow::{AtWork, Flow, Name, parse, plan};

use super::file::FlowFile;
use crate::exit::{Failure, Outcome, good_if};
use crate::reach::{Ended, Reach, ended};

/// Say what would change if a flow took the place of another
///
/// Lines with + come, lines with - go, lines with ~ change. A queue that would vanish with jobs in
/// it is an obstacle: drain it, or move its jobs first. With --running, a line per client says that it
/// works as a process that would be gone or lose an arrow.
///
/// With --json, one object: changes, a list of kind (added, removed, changed) and what; stranded,
/// a list of queue, jobs and names (with --running, of the first of them); losing, a list of process,
/// arrows (none if the process goes) and clients (with --running: id, name, machine, jobs).
///
/// Exit code 0: nothing stands in the way; 1: jobs would be stranded, or a flow is invalid; 2: a
/// file cannot be read, or there is no such flow or queue; 69: no node reachable.
///
/// Example: testigo flow plan new.flow --running orders
/// Example: testigo flow plan new.flow --against old.flow --jobs orders=12
#[derive(Args)]
#[command(verbatim_doc_comment)]
#[group(skip)]
#[command(group(ArgGroup::new("base").required(true).args(["running", "against"])))]
pub(crate) struct Plan {
    /// The new flow's file; - is standard input.
    file: PathBuf,
    /// The flow on the node that it would replace, with its jobs as they are now.
    #[arg(long, value_name = "NAME", conflicts_with = "jobs")]
    running: Option<String>,
    /// The file of the flow that it would replace.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// How many jobs are in a queue of the old flow; may be repeated.
    #[arg(long, value_name = "QUEUE=N", value_parser = jobs)]
    jobs: Vec<(Name, u64)>,
    /// Print one object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

fn jobs(text: &str) -> Result<(Name, u64), String> {
    let wanted = "a queue and its jobs, such as orders=12, are wanted";
    let (queue, jobs) = text.split_once('=').ok_or(wanted)?;
    let queue = Name::new(queue).map_err(|error| error.to_string())?;
    Ok((queue, jobs.parse().map_err(|_| wanted)?))
}

impl Plan {
    pub(crate) fn run(self) -> Outcome {
        let new_file = FlowFile::open(&self.file)?;
        let new = new_file.read();
        let Some(new) = &new.flow else {
            return Ok(new_file.refuse(&new.findings));
        };
        if let Some(name) = &self.running {
            return self.reach.converse(async |mut node| {
                let (old, jobs) = running(&mut node, name).await?;
                let mut plan = plan(&old, new, &jobs);
                for stranded in &mut plan.stranded {
                    stranded.names = names(&mut node, name, &stranded.queue).await;
                }
                if !plan.losing.is_empty() {
                    name_clients(&mut node, name, &mut plan).await?;
                }
                self.show(&plan)
            });
        }
        let against = self.against.as_deref().unwrap_or(Path::new("-"));
        let old_file = FlowFile::open(against)?;
        let old = old_file.read();
        let Some(old) = &old.flow else {
            return Ok(old_file.refuse(&old.findings));
        };
        let jobs: BTreeMap<Name, u64> = self.jobs.iter().cloned().collect();
        if let Some(queue) = jobs.keys().find(|queue| !old.queues.contains_key(*queue)) {
            let known: Vec<&str> = old.queues.keys().map(Name::as_str).collect();
            let (name, known) = (&old_file.name, known.join(", "));
            return Err(Failure::from(format!(
                "--jobs: {name} has no queue {queue}; it has {known}"
            )));
        }
        ended(self.show(&plan(old, new, &jobs)))
    }

    fn show(&self, plan: &testigo_flow::Plan) -> Result<ExitCode, Ended> {
        let possible = plan.stranded.is_empty();
        if self.json {
            let text = serde_json::to_string_pretty(plan);
            println!("{}", text.map_err(|e| Ended::bad_input(e.to_string()))?);
            return Ok(good_if(possible));
        }
        for change in &plan.changes {
            println!("{change}");
        }
        for stranded in &plan.stranded {
            println!("{stranded}");
        }
        for losing in plan.losing.iter().filter(|one| !one.clients.is_empty()) {
            println!("{losing}");
        }
        if plan.is_empty() {
            println!("nothing would change");
        }
        Ok(good_if(possible))
    }
}

/// A flow as it runs, and how many jobs lie in its queues.
async fn running(node: &mut Connection, name: &str) -> Result<(Flow, BTreeMap<Name, u64>), Ended> {
    let shown = node.say(&["FLOW", "SHOW", name]).await?;
    let text = shown
        .field("text")
        .and_then(Value::text)
        .unwrap_or_default();
    let flow = parse(text).map_err(|_| {
        Ended::bad_input(format!(
            "this version does not read the flow {name} of the node"
        ))
    })?;
    let queues = shown.field("queues").and_then(Value::list);
    let jobs = queues.unwrap_or_default().iter().filter_map(|queue| {
        let name = Name::new(queue.field("name")?.text()?).ok()?;
        Some((name, queue.field("jobs")?.number()?))
    });
    Ok((flow, jobs.collect()))
}

/// What the first jobs in a queue are called; none if one may not look into it.
async fn names(node: &mut Connection, flow: &str, queue: &Name) -> Vec<String> {
    let (queue, most) = (
        format!("{flow}/{queue}"),
        Limits::STRANDED_NAMES.to_string(),
    );
    let found = node
        .say(&["JOB", "FIND", "*", "IN", &queue, "LIMIT", &most])
        .await;
    let found = found.unwrap_or(Value::Null);
    let rows = found.list().unwrap_or_default().iter();
    let names = rows.filter_map(|row| Some(row.list()?.get(1)?.text()?.to_owned()));
    names.collect()
}

/// Says who works as the processes that would vanish or lose an arrow.
async fn name_clients(
    node: &mut Connection,
    flow: &str,
    plan: &mut testigo_flow::Plan,
) -> Result<(), Ended> {
    let clients = node.say(&["FLOW", "CLIENTS", flow]).await?;
    let text = |row: &Value, field| row.field(field).and_then(Value::text).map(str::to_owned);
    for client in clients.list().unwrap_or_default() {
        let process = text(client, "process");
        let losing = plan.losing.iter_mut();
        let mut losing = losing.filter(|one| Some(one.process.as_str()) == process.as_deref());
        if let Some(losing) = losing.next() {
            let jobs = client.field("jobs").and_then(Value::list);
            let jobs = jobs.unwrap_or_default().iter();
            losing.clients.push(AtWork {
                id: client.field("id").and_then(Value::number).unwrap_or(0),
                name: text(client, "name").unwrap_or_default(),
                machine: text(client, "machine").unwrap_or_default(),
                jobs: jobs.filter_map(|job| text(job, "name")).collect(),
            });
        }
    }
    Ok(())
}
