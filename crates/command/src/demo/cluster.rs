//! `testigo demo cluster`: three nodes on this machine, and what to try with them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use testigo_client::{Addresses, Connection, Target, Value};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use super::nodes::{DemoNode, nodes};
use crate::cluster::print_status;
use crate::exit::Outcome;
use crate::reach::{Ended, connection_name, ended, runtime};
use crate::show::{json, plain, with_truths};
use crate::span::Span;

/// How often the cluster is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long a look may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(2);
/// A node that was killed is started again after this long: time to see what the others do.
const AGAIN: Duration = Duration::from_secs(10);

/// Run a cluster on this machine, of three nodes unless told otherwise, and say what to try.
///
/// Shows how the cluster stands whenever that changes, until Ctrl-C. A node that is killed is
/// started again 10 s later. Without --dir everything is gone afterwards.
///
/// Exit code: 0; 2 a node did not start.
///
/// Example: testigo demo cluster
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct DemoCluster {
    /// How many nodes.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=9))]
    nodes: u64,
    /// Keep the nodes' data here.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// End after that long.
    #[arg(long = "for", value_name = "SPAN")]
    lasts: Option<Span>,
    /// Print JSON: a line with the nodes when all are ready, then the status whenever it changes.
    #[arg(long)]
    json: bool,
}

impl DemoCluster {
    pub(super) fn run(self) -> Outcome {
        let given = self.dir.clone();
        let dir = match &given {
            Some(dir) => {
                std::fs::create_dir_all(dir)?;
                dir.clone()
            }
            None => new_dir()?,
        };
        let mut nodes = nodes(self.nodes, &dir)?;
        let end = runtime()?.block_on(async {
            let end = self.show(&mut nodes).await;
            for node in nodes.iter_mut().rev() {
                node.stop().await;
            }
            end
        });
        if given.is_none() {
            std::fs::remove_dir_all(&dir)?;
        }
        ended(end.map(|()| ExitCode::SUCCESS))
    }

    async fn show(&self, nodes: &mut [DemoNode]) -> Result<(), Ended> {
        let mut term =
            signal(SignalKind::terminate()).map_err(|error| Ended::bad_input(error.to_string()))?;
        let interrupted = async {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = term.recv() => {}
            }
        };
        let over = async {
            match self.lasts {
                Some(Span(span)) => sleep(span).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            shown = self.start_and_watch(nodes) => shown,
            () = interrupted => Ok(()),
            () = over => Ok(()),
        }
    }

    async fn start_and_watch(&self, nodes: &mut [DemoNode]) -> Result<(), Ended> {
        let again = nodes.iter().all(|node| node.data.exists());
        for node in nodes.iter_mut() {
            if !self.json {
                println!("starting node {} …", node.id);
            }
            node.begin()?;
            if !again {
                node.until_ready().await?;
            }
        }
        for node in nodes.iter_mut() {
            node.until_ready().await?;
        }
        self.introduce(nodes);
        let addresses: Vec<&str> = nodes.iter().map(|node| &*node.resp).collect();
        let addresses: Addresses = addresses
            .join(",")
            .parse()
            .map_err(|error| Ended::bad_input(format!("{error}")))?;
        let target = Target::from(addresses);
        let (mut shown, mut gone) = (String::new(), Vec::new());
        loop {
            self.notice_the_dead(nodes, &mut gone);
            self.start_again(nodes, &mut gone).await;
            if let Some(status) = look(&target).await {
                let outline = outline(&status);
                if outline != shown {
                    shown = outline;
                    match self.json {
                        true => println!("{}", json(&status)),
                        false => {
                            println!();
                            print_status(&status);
                        }
                    }
                }
            }
            sleep(LOOK).await;
        }
    }

    fn introduce(&self, nodes: &[DemoNode]) {
        if self.json {
            let shown = serde_json::json!({ "nodes": nodes });
            return println!("{shown}");
        }
        println!();
        for node in nodes {
            let pid = node.pid.unwrap_or_default();
            let DemoNode { id, resp, http, .. } = node;
            println!("node {id}: process {pid}, RESP on {resp}, console on http://{http}/");
        }
        let all: Vec<&str> = nodes.iter().map(|node| &*node.resp).collect();
        let victim = nodes.first().and_then(|node| node.pid).unwrap_or_default();
        println!("\ntry, in another terminal:\n");
        println!("  export TESTIGO_RESP={}", all.join(","));
        println!("  testigo lock demo -- sh -c 'while sleep 1; do date; done'");
        println!("\nand in a third one:\n");
        let then = match nodes.len() {
            0..=2 => {
                "no majority is left: the lock is lost and its command is stopped; --nodes 3 survives it"
            }
            _ => "the lock's node is gone; the lock and its command go on",
        };
        println!("  kill -9 {victim}           {then}");
        println!(
            "  testigo cluster status  (with the same TESTIGO_RESP) shows who leads and who is missing"
        );
        println!("  testigo owner demo      shows which node owns the gate now");
        println!(
            "  testigo lock demo --wait 1s -- true    is refused: the first one is still inside"
        );
        println!("\nCtrl-C ends all of it.");
    }

    fn notice_the_dead(&self, nodes: &mut [DemoNode], gone: &mut Vec<(u64, Instant)>) {
        for node in nodes {
            if let Some(how) = node.ended() {
                gone.push((node.id, Instant::now() + AGAIN));
                if !self.json {
                    let id = node.id;
                    println!("\nnode {id} ended ({how}); it is started again in {AGAIN:?}");
                }
            }
        }
    }

    async fn start_again(&self, nodes: &mut [DemoNode], gone: &mut Vec<(u64, Instant)>) {
        let now = Instant::now();
        let Some(at) = gone.iter().position(|(_, due)| *due <= now) else {
            return;
        };
        let (id, _) = gone.remove(at);
        let Some(node) = nodes.iter_mut().find(|node| node.id == id) else {
            return;
        };
        if let Err(ended) = node.start().await {
            crate::exit::complain!("testigo: {}", ended.why);
            gone.push((id, Instant::now() + AGAIN));
        } else if !self.json {
            let pid = node.pid.unwrap_or_default();
            println!("\nnode {id} is back, as process {pid}");
        }
    }
}

/// A directory of its own: an earlier one may have been left behind, by a process with the same number.
fn new_dir() -> std::io::Result<PathBuf> {
    for count in 0.. {
        let name = format!("testigo-demo-{}-{count}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("it counts for ever")
}

async fn look(target: &Target) -> Option<Value> {
    let ask = async {
        let mut node = Connection::open(target, &connection_name()).await.ok()?;
        node.say(&["CLUSTER", "STATUS"])
            .await
            .ok()
            .as_ref()
            .map(with_truths)
    };
    timeout(LOOK_PATIENCE, ask).await.ok()?
}

/// What is worth showing the status again for.
fn outline(status: &Value) -> String {
    let field = |value: &Value, name: &str| value.field(name).map(plain).unwrap_or_default();
    let members = status.field("members").and_then(Value::list);
    let member = |member: &Value| {
        let what = ["id", "start", "role", "in_view", "link"].map(|name| field(member, name));
        what.join(" ")
    };
    let members: Vec<String> = members.unwrap_or_default().iter().map(member).collect();
    format!("{} {members:?}", field(status, "leader"))
}
