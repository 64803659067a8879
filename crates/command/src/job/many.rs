//! `testigo job move|retry|delete`: what an administrator does with jobs that wait.

use std::process::ExitCode;

use clap::Args;
use testigo_client::{Connection, Value};

use super::chosen::Chosen;
use super::data;
use super::hold::delete_held;
use crate::exit::{NOT_GOOD, Outcome};
use crate::reach::{Ended, Reach};

/// Move jobs that wait to another queue of their flow.
///
/// Exit code: 0 all are moved, and on disk; 1 some are not, each said; 2 bad input; 69 no node
/// reachable.
///
/// Examples:
///
///     testigo job move 7 8 --to orders
///     testigo job move --find 'order-*' --in orders/failed --to rework --yes
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Move {
    #[command(flatten)]
    chosen: Chosen,
    /// The queue.
    #[arg(long, value_name = "QUEUE")]
    to: String,
    #[command(flatten)]
    reach: Reach,
}

/// Move rejected jobs back to the queues that they were rejected from. Their deaths are forgotten.
///
/// Exit code: 0 all are moved, and on disk; 1 some are not, each said; 2 bad input; 69 no node
/// reachable.
///
/// Examples:
///
///     testigo job retry 7
///     testigo job retry --find '*' --in orders/failed --yes
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Retry {
    #[command(flatten)]
    chosen: Chosen,
    #[command(flatten)]
    reach: Reach,
}

/// Delete jobs that wait, or one that `testigo job take` took.
///
/// A data file that `testigo job create --data` or `testigo work --files` has written for the job is
/// removed after it; any other stays.
///
/// Exit code: 0 all are deleted, and that is on disk; 1 some are not, each said; 2 bad input; 69 no
/// node reachable.
///
/// Examples:
///
///     testigo job delete 7 8
///     testigo job delete --find 'test-*' --yes
///     testigo job delete 7 --attempt 4294967297 --session 1234
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Delete {
    #[command(flatten)]
    chosen: Chosen,
    /// The attempt that the take printed.
    #[arg(long, value_name = "N", requires = "session", conflicts_with = "find")]
    attempt: Option<u64>,
    /// The session that the take printed.
    #[arg(long, value_name = "N")]
    session: Option<u64>,
    #[command(flatten)]
    reach: Reach,
}

impl Move {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let verb = format!("move to {}", self.to);
            let ids = self.chosen.ids(&mut node, &verb).await?;
            let mut count = Tally::default();
            for id in ids {
                let moved = node.say(&["JOB", "MOVE", &id.to_string(), &self.to]).await;
                count.note(id, moved.map_err(Ended::from))?;
            }
            count.end("moved")
        })
    }
}

impl Retry {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let ids = self.chosen.ids(&mut node, "retry").await?;
            let mut count = Tally::default();
            for id in ids {
                let moved = retry(&mut node, id).await;
                count.note(id, moved)?;
            }
            count.end("moved back")
        })
    }
}

async fn retry(node: &mut Connection, id: u64) -> Result<Value, Ended> {
    let id = id.to_string();
    let job = node.say(&["JOB", "SHOW", &id]).await?;
    let Some(queue) = job.field("rejected_from").and_then(Value::text) else {
        return Err(Ended::bad_input("it was not rejected"));
    };
    Ok(node.say(&["JOB", "MOVE", &id, queue]).await?)
}

impl Delete {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            if let (Some(attempt), Some(session)) = (self.attempt, self.session) {
                return match self.chosen.ids[..] {
                    [id] => delete_held(node, id, attempt, session).await,
                    _ => Err(Ended::bad_input("--attempt is of one job")),
                };
            }
            let ids = self.chosen.ids(&mut node, "delete").await?;
            let mut count = Tally::default();
            for id in ids {
                let file = data::file_of(&mut node, id).await;
                let deleted = node.say(&["JOB", "DELETE", &id.to_string()]).await;
                if deleted.is_ok() {
                    data::remove(id, file.as_deref());
                }
                count.note(id, deleted.map_err(Ended::from))?;
            }
            count.end("deleted")
        })
    }
}

/// How many were done, and how many not.
#[derive(Default)]
struct Tally {
    done: u64,
    refused: u64,
}

impl Tally {
    /// A refusal is said and the rest goes on; when the node is lost, nothing does.
    fn note(&mut self, id: u64, done: Result<Value, Ended>) -> Result<(), Ended> {
        match done {
            Ok(_) => self.done += 1,
            Err(ended) if ended.unknown => return Err(ended),
            Err(ended) => {
                eprintln!("testigo: job {id}: {}", ended.why);
                self.refused += 1;
            }
        }
        Ok(())
    }

    fn end(self, what: &str) -> Result<ExitCode, Ended> {
        println!("{} {what}", self.done);
        Ok(match self.refused {
            0 => ExitCode::SUCCESS,
            _ => ExitCode::from(NOT_GOOD),
        })
    }
}
