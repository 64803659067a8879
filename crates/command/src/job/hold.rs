//! `testigo job take|pass|back`: a job in the hands of a person or of a script. An opened session holds it from one
//! command to the next, and gives it back when it runs out.

use std::process::ExitCode;

use clap::Args;
use testigo_client::{Connection, Value};

use super::body::Body;
use super::data;
use crate::exit::{Outcome, WAIT_ENDED};
use crate::filesroot::FilesRoot;
use crate::reach::{Ended, Reach, label};
use crate::show::{print_fields, print_json};
use crate::span::Span;

/// Take a job, and print what is needed to pass it on.
///
/// The session that holds it lives for --ttl; then the job waits again, which counts like a death.
///
/// Exit code: 0 taken; 75 there was none; 2 bad input; 69 no node reachable.
///
/// Example: testigo job take orders/orders --wait 30s --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Take {
    /// The queues, the preferred one first.
    #[arg(required = true, value_name = "QUEUE")]
    queues: Vec<String>,
    /// Only the job of this name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// How long to wait for one.
    #[arg(long, value_name = "SPAN")]
    wait: Option<Span>,
    /// How long the job may be held.
    #[arg(long, value_name = "SPAN", default_value = "60s")]
    ttl: Span,
    /// As this process, with its rights: FLOW/PROCESS.
    #[arg(long = "as", value_name = "FLOW/PROCESS")]
    process: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Pass a job on that `testigo job take` took.
///
/// Exit code: 0 passed, and on disk; 75 the queue is full; 2 bad input; 69 no node reachable;
/// 76 unknown whether it was passed.
///
/// Example: testigo job pass 7 priced '{"item": 7, "price": 3}' --attempt 4294967297 --session 1234
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Pass {
    /// The job's id.
    id: u64,
    /// The queue.
    queue: String,
    #[command(flatten)]
    body: Body,
    #[command(flatten)]
    held: Held,
    #[command(flatten)]
    reach: Reach,
}

/// Give a job back that `testigo job take` took: it waits again.
///
/// Exit code: 0 it waits; 2 bad input; 69 no node reachable; 76 unknown whether it waits.
///
/// Example: testigo job back 7 --attempt 4294967297 --session 1234
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Back {
    /// The job's id.
    id: u64,
    /// It failed, which counts like a death of its worker.
    #[arg(long)]
    failed: bool,
    #[command(flatten)]
    held: Held,
    #[command(flatten)]
    reach: Reach,
}

/// By what a held job is known.
#[derive(Args)]
pub(super) struct Held {
    /// The attempt that the take printed.
    #[arg(long, value_name = "N")]
    attempt: u64,
    /// The session that the take printed.
    #[arg(long, value_name = "N", env = "TESTIGO_SESSION")]
    session: u64,
}

impl Take {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |node| self.talk(node).await)
    }

    async fn talk(&self, mut node: Connection) -> Result<ExitCode, Ended> {
        let ttl = self.ttl.0.as_millis().to_string();
        let label = label();
        let session = node
            .say(&["SESSION", "OPEN", "TTL", &ttl, "LABEL", &label])
            .await?;
        let taken = self.take(&mut node).await;
        if !matches!(&taken, Ok(Some(_))) {
            // There is nothing to hold; if it cannot be told, it runs out.
            let _ = node.say(&["SESSION", "CLOSE"]).await;
        }
        let Some(Value::List(fields)) = taken? else {
            let queues = self.queues.join(", ");
            return Err(Ended::new(WAIT_ENDED, format!("no job waits in {queues}")));
        };
        let names = ["id", "name", "queue", "attempt", "body"];
        let names = names.map(|name| Value::Text(name.into()));
        let mut job: Vec<(Value, Value)> = names.into_iter().zip(fields).collect();
        job.insert(4, (Value::Text("session".into()), session));
        match self.json {
            true => print_json(&Value::Map(job)),
            false => print_fields(&Value::Map(job)),
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn take(&self, node: &mut Connection) -> Result<Option<Value>, Ended> {
        if let Some(process) = &self.process {
            let Some((flow, process)) = process.split_once('/') else {
                let why = format!("--as {process}: write FLOW/PROCESS");
                return Err(Ended::bad_input(why));
            };
            node.present(flow, process).await?;
        }
        let queues = self.said(node).await?;
        let wait = self.wait.map(|Span(wait)| wait.as_millis().to_string());
        let mut words = vec!["JOB", "TAKE"];
        words.extend(queues.iter().map(String::as_str));
        words.extend(self.name.iter().flat_map(|name| ["NAME", name]));
        words.extend(wait.iter().flat_map(|wait| ["WAIT", wait]));
        let taken = node.say(&words).await?;
        Ok(Some(taken).filter(|taken| *taken != Value::Null))
    }

    /// The queues as the node is told: behind the first one, what is called like an option needs its whole name.
    async fn said(&self, node: &mut Connection) -> Result<Vec<String>, Ended> {
        let mut queues = self.queues.clone();
        let is_option = |queue: &String| ["name", "wait"].contains(&&*queue.to_lowercase());
        for queue in queues.iter_mut().skip(1).filter(|queue| is_option(queue)) {
            let shown = node.say(&["QUEUE", "SHOW", queue]).await?;
            if let Some(whole) = shown.field("name").and_then(Value::text) {
                whole.clone_into(queue);
            }
        }
        Ok(queues)
    }
}

impl Pass {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |node| {
            let body = self.body.read()?;
            let (id, attempt) = (self.id.to_string(), self.held.attempt.to_string());
            let mut words: Vec<&[u8]> = vec![b"JOB", b"PASS", id.as_bytes(), attempt.as_bytes()];
            words.push(self.queue.as_bytes());
            words.extend(body.as_deref());
            self.held.settle(node, &words).await
        })
    }
}

impl Back {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |node| {
            let (id, attempt) = (self.id.to_string(), self.held.attempt.to_string());
            let mut words: Vec<&[u8]> = vec![b"JOB", b"BACK", id.as_bytes(), attempt.as_bytes()];
            words.extend(self.failed.then_some(&b"FAILED"[..]));
            self.held.settle(node, &words).await
        })
    }
}

impl Held {
    /// Does the last thing with a held job, after which its session has nothing to live for.
    async fn settle(&self, mut node: Connection, words: &[&[u8]]) -> Result<ExitCode, Ended> {
        let session = self.session.to_string();
        node.say(&["SESSION", "RESUME", &session]).await?;
        node.ask(words).await?;
        let _ = node.say(&["SESSION", "CLOSE"]).await;
        Ok(ExitCode::SUCCESS)
    }
}

/// A job to delete that is held.
pub(super) async fn delete_held(
    mut node: Connection,
    root: &FilesRoot,
    id: u64,
    (attempt, session): (u64, u64),
) -> Result<ExitCode, Ended> {
    let file = data::file_of(&mut node, id).await;
    let (job, number) = (id.to_string(), attempt.to_string());
    let held = Held { attempt, session };
    let words: [&[u8]; 4] = [b"JOB", b"DELETE", job.as_bytes(), number.as_bytes()];
    let code = held.settle(node, &words).await?;
    data::remove(id, root, file.as_deref());
    Ok(code)
}
