//! `testigo cluster add` and `testigo cluster remove`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use testigo_client::{Connection, NotDone, Target, Value, Word};
use tokio::time::sleep;

use super::SAFE;
use crate::confirm::confirm;
use crate::exit::{NOT_GOOD, Outcome};
use crate::reach::{Ended, Reach, connection_name, refused_for_good};
use crate::span::Span;

/// How often to look whether it is done.
const LOOK: Duration = Duration::from_millis(200);

/// Say how a node joins, and wait until it is a voter.
///
/// Checks that the number and the address are free, prints the command to start the node with,
/// and waits until that node votes and is in the view.
///
/// Exit code: 0 it is a voter; 1 it was not in time, or the number or the address is taken; 69 no node reachable; 2 bad input.
///
/// Example: testigo cluster add 4 node4:7700
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Add {
    /// The new node's number.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..=255))]
    id: u64,
    /// Where the other nodes will reach it.
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// How long to wait for it; 0 only checks.
    #[arg(long, value_name = "SPAN", default_value = "2m")]
    wait: Span,
    #[command(flatten)]
    reach: Reach,
}

/// Remove a node from the cluster for good.
///
/// What it owns goes to the others, its sessions are resumed there or run out, and it stops by
/// itself. A node that is only down for a while need not be removed. Its number can be used
/// again, with an empty data directory. On a terminal it asks first.
///
/// Exit code: 0 it is out; 1 it was not in time; 69 no node reachable; 76 unknown; 2 bad input.
///
/// Example: testigo cluster remove 3
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Remove {
    /// The node's number.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..=255))]
    id: u64,
    /// How long to wait until it is out.
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    wait: Span,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Add {
    pub(super) fn run(self) -> Outcome {
        self.reach.talk(async |client| {
            let id = self.id.to_string();
            let join = client.call(["CLUSTER", "ADD", &id, &self.address]).await;
            let join = join.map_err(refused_for_good)?;
            let (join, address) = (join.text().unwrap_or_default(), &self.address);
            println!(
                "start it with: testigo up --data DIR --id {id} --peer {address} --join {join} {SAFE}"
            );
            let is_in = |member: Option<&Value>| {
                let is = |name| member.is_some_and(|member| flag(member, name));
                is("voter") && is("in_view")
            };
            let look = async || client.cluster_status().await;
            wait_until(look, self.id, self.wait, "a voter", is_in).await
        })
    }
}

impl Remove {
    pub(super) fn run(self) -> Outcome {
        self.reach.end_with(async {
            let mut node = self.reach.open().await?;
            if !self.yes {
                confirm(&format!("remove node {} for good", self.id))?;
            }
            let status = node.say(&["CLUSTER", "STATUS"]).await?;
            let target = self.others(&status)?;
            let id = self.id.to_string();
            let removed = node.say(&["CLUSTER", "REMOVE", &id]).await;
            // The node itself may be gone before it can say that it is removed; the others know.
            let unknown = match removed {
                Err(unknown @ NotDone::Unknown(_)) => Some(unknown),
                removed => removed.map(|_| None)?,
            };
            let look = async || {
                let mut node = Connection::open(&target, &connection_name()).await?;
                node.say(&["CLUSTER", "STATUS"]).await
            };
            let is_out = |member: Option<&Value>| {
                let is = |name| member.is_some_and(|member| flag(member, name));
                !is("voter") && !is("in_view")
            };
            let end = wait_until(look, self.id, self.wait, "out", is_out).await;
            match (end, unknown) {
                (Err(ended), Some(unknown)) if ended.code == NOT_GOOD => Err(unknown.into()),
                (end, _) => end,
            }
        })
    }

    /// Whom to ask whether it is out: it may have been the node itself that was asked, and is gone then.
    fn others(&self, status: &Value) -> Result<Target, Ended> {
        let members = status.field("members").and_then(Value::list);
        let others = members.unwrap_or_default().iter();
        let others =
            others.filter(|member| member.field("id").and_then(Value::number) != Some(self.id));
        let clients = others.filter_map(|member| member.field("client").and_then(Value::text));
        let given = self.reach.resp.to_string();
        let all: Vec<&str> = clients.chain([given.as_str()]).collect();
        let mut target = self.reach.target()?;
        // What the members say of themselves need not be an address here.
        if let Ok(addresses) = all.join(",").parse() {
            target.addresses = addresses;
        }
        Ok(target)
    }
}

/// Looks at the cluster until its member is as wanted.
async fn wait_until(
    look: impl AsyncFn() -> Result<Value, NotDone>,
    id: u64,
    Span(wait): Span,
    what: &str,
    wanted: impl Fn(Option<&Value>) -> bool,
) -> Result<ExitCode, Ended> {
    let end = Instant::now() + wait;
    loop {
        match look().await {
            Ok(status) if wanted(member(&status, id)) => {
                println!("node {id} is {what}");
                return Ok(ExitCode::SUCCESS);
            }
            Ok(_) => {}
            // A node may be gone, or not know a majority for a moment.
            Err(NotDone::Refused(refusal)) if refusal.word == Word::Unavailable => {}
            Err(NotDone::Unknown(_)) => {}
            Err(not_done) => return Err(not_done.into()),
        }
        if Instant::now() >= end {
            return match wait.is_zero() {
                true => Ok(ExitCode::SUCCESS),
                false => Err(Ended::new(
                    NOT_GOOD,
                    format!("node {id} is not {what} yet; see: testigo cluster status"),
                )),
            };
        }
        sleep(LOOK).await;
    }
}

fn member(status: &Value, id: u64) -> Option<&Value> {
    let members = status.field("members").and_then(Value::list)?;
    let is = |member: &&Value| member.field("id").and_then(Value::number) == Some(id);
    members.iter().find(is)
}

fn flag(member: &Value, name: &str) -> bool {
    member.field(name).and_then(Value::number) == Some(1)
}
