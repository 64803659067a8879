//! `testigo cluster add` and `testigo cluster remove`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use testigo_client::{Client, NotDone, Value, Word};
use tokio::time::sleep;

use super::SAFE;
use crate::confirm::confirm;
use crate::exit::{NOT_GOOD, Outcome};
use crate::reach::{Ended, Reach, refused_for_good};
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
            wait_until(&client, self.id, self.wait, "a voter", is_in).await
        })
    }
}

impl Remove {
    pub(super) fn run(self) -> Outcome {
        self.reach.talk(async |client| {
            if !self.yes {
                confirm(&format!("remove node {} for good", self.id))?;
            }
            let id = self.id.to_string();
            client.call(["CLUSTER", "REMOVE", &id]).await?;
            let is_out = |member: Option<&Value>| {
                let is = |name| member.is_some_and(|member| flag(member, name));
                !is("voter") && !is("in_view")
            };
            wait_until(&client, self.id, self.wait, "out", is_out).await
        })
    }
}

/// Looks at the cluster until its member is as wanted.
async fn wait_until(
    client: &Client,
    id: u64,
    Span(wait): Span,
    what: &str,
    wanted: impl Fn(Option<&Value>) -> bool,
) -> Result<ExitCode, Ended> {
    let end = Instant::now() + wait;
    loop {
        match client.cluster_status().await {
            Ok(status) if wanted(member(&status, id)) => {
                println!("node {id} is {what}");
                return Ok(ExitCode::SUCCESS);
            }
            Ok(_) => {}
            // It may be the node itself that was asked, and has left.
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
