//! `testigo job move|retry|delete`: what an administrator does with jobs that wait.

use clap::Args;
use testigo_client::{Connection, Value};

use super::chosen::Chosen;
use super::data;
use super::hold::delete_held;
use crate::exit::Outcome;
use crate::filesroot::{FilesRoot, FilesRootOption};
use crate::reach::{Ended, Reach};

/// Move jobs that wait to another queue of their flow.
///
/// On a terminal it asks first.
///
/// Exit code: 0 all are moved, and on disk; 1 some are not, each said; 2 bad input; 69 no node
/// reachable; 76 the answer for one is unknown: the rest was not tried.
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
/// On a terminal it asks first.
///
/// Exit code: 0 all are moved, and on disk; 1 some are not, each said; 2 bad input; 69 no node
/// reachable; 76 the answer for one is unknown: the rest was not tried.
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
/// On a terminal it asks first, but not about a job that was taken.
///
/// A data file that `testigo job create --data` or `testigo work --files` has written for the job is
/// removed after it; any other stays.
///
/// Exit code: 0 all are deleted, and that is on disk; 1 some are not, each said; 2 bad input; 69 no
/// node reachable; 76 the answer for one is unknown: the rest was not tried.
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
    files_root: FilesRootOption,
    #[command(flatten)]
    reach: Reach,
}

impl Move {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let verb = format!("move to {}", self.to);
            let step = async |node: &mut Connection, id: u64| {
                let moved = node.say(&["JOB", "MOVE", &id.to_string(), &self.to]).await;
                Ok(moved.map(drop)?)
            };
            self.chosen.each(&mut node, &verb, "moved", step).await
        })
    }
}

impl Retry {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let chosen = &self.chosen;
            chosen.each(&mut node, "retry", "moved back", retry).await
        })
    }
}

async fn retry(node: &mut Connection, id: u64) -> Result<(), Ended> {
    let id = id.to_string();
    let job = node.say(&["JOB", "SHOW", &id]).await?;
    let Some(queue) = job.field("rejected_from").and_then(Value::text) else {
        return Err(Ended::bad_input("it was not rejected"));
    };
    // No name has a blank.
    if queue.contains(' ') {
        let why = format!("it was rejected from {queue}; testigo job move puts it elsewhere");
        return Err(Ended::bad_input(why));
    }
    Ok(node.say(&["JOB", "MOVE", &id, queue]).await.map(drop)?)
}

impl Delete {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let root = &self.files_root.open()?;
            if let (Some(attempt), Some(session)) = (self.attempt, self.session) {
                return match self.chosen.ids[..] {
                    [id] => delete_held(node, root, id, (attempt, session)).await,
                    _ => Err(Ended::bad_input("--attempt is of one job")),
                };
            }
            let chosen = &self.chosen;
            let step = async |node: &mut Connection, id: u64| delete(node, root, id).await;
            chosen.each(&mut node, "delete", "deleted", step).await
        })
    }
}

async fn delete(node: &mut Connection, root: &FilesRoot, id: u64) -> Result<(), Ended> {
    let file = data::file_of(node, id).await;
    node.say(&["JOB", "DELETE", &id.to_string()]).await?;
    data::remove(id, root, file.as_deref());
    Ok(())
}
