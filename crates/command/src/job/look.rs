//! `testigo job show|history|find|list|count`: what only looks.

use std::process::ExitCode;

use clap::Args;
use testigo_client::{Call, Connection, Value};

use crate::exit::{Outcome, complain};
use crate::reach::{Ended, Reach};
use crate::show::{named, print_fields, print_json, print_rows};
use crate::visible::Output;

/// What a row of `JOB FIND` and `JOB LIST` says, in order.
pub(super) const COLUMNS: [&str; 5] = ["id", "name", "queue", "state", "deaths"];

/// Show a job: where it is, in whose hands, its body, and every hop that it made.
///
/// Exit code: 0; 2 there is no such job; 69 no node reachable.
///
/// Example: testigo job show 7
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Show {
    /// The job's id.
    id: u64,
    /// Print JSON.
    #[arg(long, conflicts_with = "body")]
    json: bool,
    /// Print the body alone, byte for byte.
    #[arg(long)]
    body: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Tell the whole way of a job: every hand that it was in, for how long, and how that ended.
///
/// Also of a job that has ended, as long as the node remembers it: the last 10,000 since its start.
/// HOW is passed, deleted, given back, died (its worker), rejected (by the node) or moved (by hand).
///
/// With --json, one object: id, name, queue, state (waiting, held, settling or ended), by and held_ms
/// of who has it in hand, deaths, created, creator, ended, life_ms; hops, a list of queue, since,
/// waited_ms, taken, by, held_ms, until, how. Times are milliseconds since 1970.
///
/// Exit code: 0; 2 there is no such job, or its end is forgotten; 69 no node reachable.
///
/// Example: testigo job history 7
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct History {
    /// The job's id.
    id: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Find living jobs by their names, the oldest first, in whatever queue and hands they are.
///
/// Exit code: 0, also when none fits; 69 no node reachable; 2 bad input.
///
/// Example: testigo job find 'order-*' --in orders/failed
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Find {
    /// What their names fit; * is any text.
    pattern: String,
    /// Only in this queue.
    #[arg(long = "in", value_name = "QUEUE")]
    queue: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// List the jobs that wait in a queue, the next one first.
///
/// Exit code: 0; 2 there is no such queue; 69 no node reachable.
///
/// Example: testigo job list orders/orders --limit 10
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct List {
    /// The queue.
    queue: String,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Print how many jobs wait, in one queue or in all.
///
/// Exit code: 0; 2 there is no such queue; 69 no node reachable.
///
/// Example: testigo job count orders/orders
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Count {
    /// The queue.
    queue: Option<String>,
    #[command(flatten)]
    reach: Reach,
}

impl Show {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let job = node.say(&["JOB", "SHOW", &self.id.to_string()]).await?;
            if self.body {
                use std::io::Write;
                let body = job.field("body").and_then(Value::bytes);
                let written = Output.write_all(body.unwrap_or_default());
                written.map_err(|error| Ended::bad_input(error.to_string()))?;
            } else if self.json {
                print_json(&job);
            } else {
                print_fields(&job);
                let hops = job.field("hops").and_then(Value::list).unwrap_or_default();
                println!("\nhops: {}", hops.len());
                if !hops.is_empty() {
                    print_rows(hops, &["queue", "arrived", "left", "held_ms", "by"]);
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl History {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let history = node.say(&["JOB", "HISTORY", &self.id.to_string()]).await?;
            if self.json {
                print_json(&history);
                return Ok(ExitCode::SUCCESS);
            }
            print_fields(&history);
            let hops = history.field("hops").and_then(Value::list);
            let hops = hops.unwrap_or_default();
            println!("\nhops: {}", hops.len());
            if !hops.is_empty() {
                let columns = ["queue", "waited_ms", "by", "held_ms", "how", "until"];
                print_rows(hops, &columns);
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl Find {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let queue = self.queue.as_deref();
            let found = find(&mut node, &self.pattern, queue, self.limit).await?;
            print(&found.rows, self.json);
            if found.more {
                let limit = self.limit;
                complain!("testigo: more fit than these {limit}; --limit N shows N");
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl List {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let words = ["JOB", "LIST", &self.queue];
            let found = rows(&mut node, &words, self.limit).await?;
            print(&found.rows, self.json);
            if found.more {
                let count = node.say(&["JOB", "COUNT", &self.queue]).await?;
                let count = count.number().unwrap_or_default();
                let limit = self.limit;
                complain!("testigo: {count} wait, of which these are {limit}; --limit N shows N");
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl Count {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let mut words = vec!["JOB", "COUNT"];
            words.extend(self.queue.as_deref());
            let count = node.say(&words).await?;
            println!("{}", count.number().unwrap_or_default());
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// The first rows of a list.
pub(super) struct Found {
    /// With names.
    pub(super) rows: Vec<Value>,
    /// Whether there are more.
    pub(super) more: bool,
}

/// The rows of `JOB FIND`.
pub(super) async fn find(
    node: &mut Connection,
    pattern: &str,
    queue: Option<&str>,
    limit: u64,
) -> Call<Found> {
    let mut words = vec!["JOB", "FIND", pattern];
    words.extend(queue.iter().flat_map(|queue| ["IN", queue]));
    rows(node, &words, limit).await
}

/// Asks for one page after the other.
async fn rows(node: &mut Connection, words: &[&str], limit: u64) -> Call<Found> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
    while found.len() < limit {
        let most = PAGE_ROWS.min(limit - found.len()).to_string();
        let page = ["CURSOR", &cursor, "LIMIT", &most];
        let answer = node.say(&[words, &page].concat()).await?;
        let [next, rows] = answer.list().unwrap_or_default() else {
            break;
        };
        found.extend(named(rows, &COLUMNS));
        cursor = next.text().unwrap_or("0").to_owned();
        if cursor == "0" {
            break;
        }
    }
    Ok(Found {
        more: cursor != "0",
        rows: found,
    })
}

/// Rows that are asked for at a time.
const PAGE_ROWS: usize = 1_000;

fn print(rows: &[Value], json: bool) {
    match json {
        true => print_json(&Value::List(rows.to_vec())),
        false => print_rows(rows, &COLUMNS),
    }
}
