//! `testigo client`: who works on flows, and how one is made to stop.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use testigo_client::Value;

use crate::confirm::confirm;
use crate::exit::{NOT_GOOD, Outcome};
use crate::reach::{Ended, Reach};
use crate::show::{print_json, print_rows};

/// Show who works on flows and what they hold, and end those that hang.
///
/// Example: testigo client list --process price
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Client {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(List),
    End(End),
}

/// List the clients of flows with the jobs that they hold and since when.
///
/// Exit code: 0; 2 there is no such flow or process; 69 no node reachable.
///
/// Example: testigo client list --machine 10.0.0.7
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct List {
    /// Only those of this flow.
    #[arg(long, value_name = "FLOW")]
    flow: Option<String>,
    /// Only those that are this process.
    #[arg(long, value_name = "PROCESS")]
    process: Option<String>,
    /// Only those that come from this address; `local` is a Unix socket.
    #[arg(long, value_name = "ADDRESS")]
    machine: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// End a client, or all of a machine. Their jobs wait again at once, or go to the reject queue; a harness stops its
/// programs and connects again.
///
/// On a terminal it asks first.
///
/// Exit code: 0 ended; 1 there is none; 69 no node reachable; 76 unknown whether it was
/// ended; 2 bad input.
///
/// Example: testigo client end 17
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct End {
    /// The client's id, as `testigo client list` shows it.
    #[arg(required_unless_present = "machine", conflicts_with = "machine")]
    id: Option<u64>,
    /// All clients of flows that come from this address.
    #[arg(long, value_name = "ADDRESS")]
    machine: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    reach: Reach,
}

const COLUMNS: [&str; 9] = [
    "id",
    "flow",
    "process",
    "machine",
    "name",
    "connected_ms",
    "job",
    "queue",
    "held_ms",
];

impl Client {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Action::List(list) => list.reach.converse(async |mut node| {
                let mut words = vec!["FLOW", "CLIENTS"];
                words.extend(list.flow.as_deref());
                let clients = node.say(&words).await?;
                let clients: Vec<Value> = clients
                    .list()
                    .unwrap_or_default()
                    .iter()
                    .filter(|client| list.fits(client))
                    .cloned()
                    .collect();
                match list.json {
                    true => print_json(&Value::List(clients)),
                    false => {
                        let rows: Vec<Value> = clients.iter().flat_map(rows).collect();
                        print_rows(&rows, &COLUMNS);
                    }
                }
                Ok(ExitCode::SUCCESS)
            }),
            Action::End(end) => end.reach.converse(async |mut node| {
                let id = end.id.map(|id| id.to_string());
                if !end.yes {
                    confirm(&end.question())?;
                }
                let mut words = vec!["CLIENT", "END"];
                words.extend(id.as_deref());
                words.extend(end.machine.iter().flat_map(|machine| ["MACHINE", machine]));
                let ended = node.say(&words).await?.number().unwrap_or(0);
                match ended {
                    0 => Err(Ended::new(
                        NOT_GOOD,
                        "no client of a flow is that; see: testigo client list",
                    )),
                    ended => {
                        println!("{ended} ended");
                        Ok(ExitCode::SUCCESS)
                    }
                }
            }),
        }
    }
}

impl End {
    fn question(&self) -> String {
        match (&self.id, &self.machine) {
            (Some(id), _) => format!("end client {id}"),
            (None, machine) => {
                let machine = machine.as_deref().unwrap_or_default();
                format!("end all clients of flows that come from {machine}")
            }
        }
    }
}

impl List {
    fn fits(&self, client: &Value) -> bool {
        let is = |field: &str, wanted: &Option<String>| match wanted {
            Some(wanted) => client.field(field).and_then(Value::text) == Some(wanted),
            None => true,
        };
        is("process", &self.process) && is("machine", &self.machine)
    }
}

/// A client in a row for each job that it holds, or in one.
fn rows(client: &Value) -> Vec<Value> {
    let Value::Map(fields) = client else {
        return Vec::new();
    };
    let plain = fields.iter().filter(|(_, value)| value.list().is_none());
    let plain: Vec<(Value, Value)> = plain.cloned().collect();
    let jobs = client
        .field("jobs")
        .and_then(Value::list)
        .unwrap_or_default();
    if jobs.is_empty() {
        return vec![Value::Map(plain)];
    }
    let row = |job: &Value| {
        let mut row = plain.clone();
        for (from, to) in [("name", "job"), ("queue", "queue"), ("held_ms", "held_ms")] {
            let value = job.field(from).cloned().unwrap_or(Value::Null);
            row.push((Value::Text(to.into()), value));
        }
        Value::Map(row)
    };
    jobs.iter().map(row).collect()
}
