//! The nodes of the demonstration: child processes, each with a directory and addresses of its own.

use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::reach::Ended;

/// How long a node may take until it is ready.
const READY_PATIENCE: Duration = Duration::from_secs(60);
/// How long a node may take to stop before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// Where the nodes listen if the ports are free: RESP, HTTP and peers, each and its followers.
const PORTS: [u16; 3] = [7611, 7621, 7631];

/// A node of the demonstration.
#[derive(Debug, Serialize)]
pub(super) struct DemoNode {
    pub(super) id: u64,
    pub(super) pid: Option<u32>,
    pub(super) resp: String,
    pub(super) http: String,
    pub(super) peer: String,
    pub(super) data: PathBuf,
    #[serde(skip)]
    join: Option<String>,
    #[serde(skip)]
    child: Option<Child>,
    /// What it says until it is ready.
    #[serde(skip)]
    lines: Option<Lines<BufReader<ChildStdout>>>,
}

/// The nodes with their addresses; none runs yet.
pub(super) fn nodes(count: u64, dir: &Path) -> io::Result<Vec<DemoNode>> {
    let mut taken = Vec::new();
    let mut nodes: Vec<DemoNode> = Vec::new();
    for id in 1..=count {
        let mut address = |first: u16| -> io::Result<String> {
            let wished = TcpListener::bind(("127.0.0.1", first + id as u16 - 1));
            let listener = wished.or_else(|_| TcpListener::bind(("127.0.0.1", 0)))?;
            let address = listener.local_addr()?.to_string();
            // Kept until all are chosen, so that none is chosen twice.
            taken.push(listener);
            Ok(address)
        };
        let [resp, http, peer] = PORTS;
        nodes.push(DemoNode {
            id,
            pid: None,
            resp: address(resp)?,
            http: address(http)?,
            peer: address(peer)?,
            data: dir.join(format!("node-{id}")),
            join: nodes.first().map(|first: &DemoNode| first.peer.clone()),
            child: None,
            lines: None,
        });
    }
    Ok(nodes)
}

impl DemoNode {
    /// Starts it, and waits until it is ready.
    pub(super) async fn start(&mut self) -> Result<(), Ended> {
        self.begin()?;
        self.until_ready().await
    }

    /// Starts it. One that was a member before is not ready before a majority is started.
    pub(super) fn begin(&mut self) -> Result<(), Ended> {
        let failed = |why: String| Ended::bad_input(format!("node {}: {why}", self.id));
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["up", "--id", &self.id.to_string(), "--peer", &self.peer])
            .args(["--resp", &self.resp, "--http", &self.http, "--data"])
            .arg(&self.data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // Ctrl-C in the terminal is for whoever demonstrates.
            .process_group(0)
            .kill_on_drop(true);
        if let Some(join) = &self.join {
            command.args(["--join", join]);
        }
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        self.pid = child.id();
        let out = child
            .stdout
            .take()
            .ok_or_else(|| failed("it says nothing".into()))?;
        self.lines = Some(BufReader::new(out).lines());
        self.child = Some(child);
        Ok(())
    }

    /// Waits until it is ready.
    pub(super) async fn until_ready(&mut self) -> Result<(), Ended> {
        let Some(mut lines) = self.lines.take() else {
            return Ok(());
        };
        let ready = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if line == "ready" {
                    return true;
                }
            }
            false
        };
        let is_ready = timeout(READY_PATIENCE, ready).await;
        let id = self.id;
        match is_ready {
            Ok(true) => {
                // What it says later is read, so that it never waits for a reader.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                Ok(())
            }
            Ok(false) => Err(Ended::bad_input(format!(
                "node {id} ended before it was ready"
            ))),
            Err(_) => Err(Ended::bad_input(format!(
                "node {id} was not ready within {READY_PATIENCE:?}"
            ))),
        }
    }

    /// How it has ended, if it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        let ended = self.child.as_mut()?.try_wait().ok()??;
        self.child = None;
        self.pid = None;
        Some(ended)
    }

    /// Stops it cleanly.
    pub(super) async fn stop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        if let Some(pid) = child.id().and_then(|pid| Pid::from_raw(pid as i32)) {
            let _ = kill_process(pid, Signal::TERM);
        }
        tokio::select! {
            _ = child.wait() => {}
            () = sleep(STOP_PATIENCE) => drop(child.kill().await),
        }
    }
}
