//! `testigo queue`: shows and lists the queues of flows.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use testigo_client::Value;

use crate::exit::Outcome;
use crate::reach::Reach;
use crate::show::{print_fields, print_json, print_rows};

/// Show the queues of flows: how many jobs wait, for how long, and who waits for jobs.
///
/// Example: testigo queue list
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Queue {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Show(Show),
    List(List),
}

/// Show a queue: its rules, how many jobs wait and are in hand, how old the next is, who waits, and
/// what arrived, left, died and was refused since the node started; rates are of the last 10 seconds.
///
/// Exit code: 0; 2 there is no such queue; 69 no node reachable.
///
/// Example: testigo queue show orders/priced
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Show {
    /// The queue: FLOW/QUEUE, or its name alone if only one flow has it.
    queue: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List queues: depth, age, rates over the last 10 seconds, deaths, rejects and refusals when full.
///
/// Exit code: 0; 69 no node reachable.
///
/// Example: testigo queue list 'orders/*' --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct List {
    /// Only those whose whole name fits; * is any text.
    #[arg(default_value = "*")]
    pattern: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

const COLUMNS: [&str; 13] = [
    "name",
    "waiting",
    "held",
    "limit",
    "age_ms",
    "takers",
    "arrivals_per_second",
    "departures_per_second",
    "deaths",
    "rejects",
    "full",
    "reject",
    "data",
];

impl Queue {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Action::Show(show) => show.reach.converse(async |mut node| {
                let queue = node.say(&["QUEUE", "SHOW", &show.queue]).await?;
                match show.json {
                    true => print_json(&queue),
                    false => {
                        print_fields(&queue);
                        let takers = queue.field("takers").and_then(Value::list);
                        let takers = takers.unwrap_or_default();
                        println!("\ntakers: {}", takers.len());
                        if !takers.is_empty() {
                            print_rows(takers, &["session", "waits_ms"]);
                        }
                    }
                }
                Ok(ExitCode::SUCCESS)
            }),
            Action::List(list) => list.reach.converse(async |mut node| {
                let queues = node.say(&["QUEUE", "LIST", &list.pattern]).await?;
                match list.json {
                    true => print_json(&queues),
                    false => print_rows(queues.list().unwrap_or_default(), &COLUMNS),
                }
                Ok(ExitCode::SUCCESS)
            }),
        }
    }
}
