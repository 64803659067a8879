//! The nodes of a run: real processes of `testigo up`, each in its namespace, with its data on a small disk of its own and
//! its wall clock set apart by a file.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::net::{Net, PEER_PORT, Party, RESP_PORT, address};

pub(crate) const PASSWORD: &str = "chaos";
/// Room for some segments of the log and the reserve below which changes are refused.
const DISK_MIB: u32 = 256;
/// Names another binary than the one that was built with the harness.
const BINARY: &str = "TESTIGO_BINARY";
/// What the node's wall clock is set apart by, in a file.
const CLOCK: &str = "TESTIGO_TEST_CLOCK";
/// Names the rule that a node leaves out; no release does.
pub(crate) const BROKEN: &str = "TESTIGO_TEST_BROKEN";
/// The last lines of a node's log that are shown when something broke.
const TAIL: usize = 25;

#[derive(Debug)]
pub(crate) struct Nodes<'a> {
    net: &'a Net,
    /// Whether they form a cluster.
    joined: bool,
    /// The rule that they leave out.
    broken: Option<String>,
    dir: TempDir,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    child: Option<Child>,
    paused: bool,
}

impl<'a> Nodes<'a> {
    /// Prepares them; none is started yet.
    pub(crate) fn prepare(
        net: &'a Net,
        count: u8,
        joined: bool,
        broken: Option<&str>,
    ) -> Result<Nodes<'a>, String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let nodes = (1..=count).map(|_| Node {
            child: None,
            paused: false,
        });
        let nodes = Nodes {
            net,
            joined,
            broken: broken.map(str::to_owned),
            dir,
            nodes: nodes.collect(),
        };
        write_private(
            &nodes.path("secret"),
            "known to the nodes of one run only\n",
        )?;
        for id in 1..=count {
            let disk = nodes.disk(id);
            fs::create_dir(&disk).map_err(|e| e.to_string())?;
            let mut mount = Command::new("mount");
            mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs"]);
            let status = mount.arg(&disk).status();
            if !status.is_ok_and(|status| status.success()) {
                return Err("a small disk cannot be mounted".into());
            }
            nodes.set_clock(id, 0)?;
            let config = format!("password = {PASSWORD}\n");
            write_private(&nodes.path(&format!("config-{id}")), &config)?;
        }
        Ok(nodes)
    }

    pub(crate) fn count(&self) -> u8 {
        self.nodes.len() as u8
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn disk(&self, id: Party) -> PathBuf {
        self.path(&format!("disk-{id}"))
    }

    fn node(&mut self, id: Party) -> &mut Node {
        &mut self.nodes[usize::from(id) - 1]
    }

    /// Starts a node that does not run. The first one founds the cluster, the others join it.
    pub(crate) fn start(&mut self, id: Party) -> Result<(), String> {
        if self.node(id).child.is_some() {
            return Ok(());
        }
        let log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log(id))
            .map_err(|e| e.to_string())?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let binary = std::env::var_os(BINARY);
        let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_testigo").into());
        let mut up = self.net.at(id, Path::new(&binary));
        let resp = format!("{}:{RESP_PORT}", address(id));
        up.args(["up", "--http", "127.0.0.1:0", "--resp", &resp]);
        up.arg("--data").arg(self.disk(id).join("data"));
        up.arg("--config").arg(self.path(&format!("config-{id}")));
        if self.joined {
            let peer = format!("{}:{PEER_PORT}", address(id));
            up.args(["--id", &id.to_string(), "--peer", &peer]);
            up.arg("--secret-file").arg(self.path("secret"));
            if id > 1 {
                up.args(["--join", &format!("{}:{PEER_PORT}", address(1))]);
            }
        }
        up.env(CLOCK, self.path(&format!("clock-{id}")));
        match &self.broken {
            Some(rule) => up.env(BROKEN, rule),
            None => up.env_remove(BROKEN),
        };
        let child = up
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("node {id} cannot be started: {e}"))?;
        self.node(id).child = Some(child);
        Ok(())
    }

    /// Starts again what has ended by itself, as a full disk makes it.
    pub(crate) fn start_all(&mut self) -> Result<(), String> {
        for id in 1..=self.count() {
            let node = self.node(id);
            let ended = node.child.as_mut().map(Child::try_wait);
            if matches!(ended, Some(Ok(Some(_)))) {
                node.child = None;
            }
            self.start(id)?;
        }
        Ok(())
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self, id: Party) {
        let node = self.node(id);
        if let Some(mut child) = node.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        node.paused = false;
    }

    /// Stops it cleanly. How it ended, if it did so by itself.
    pub(crate) fn stop(&mut self, id: Party) -> Option<i32> {
        self.resume(id);
        let mut child = self.node(id).child.take()?;
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        child.wait().ok()?.code()
    }

    pub(crate) fn pause(&mut self, id: Party) {
        let node = self.node(id);
        // One that stands already does not stop again, and its harness would wait for that for ever.
        if let Some(child) = node.child.as_ref().filter(|_| !node.paused) {
            let pid = Pid::from_child(child);
            let _ = kill_process(pid, Signal::STOP);
            let _ = waitpid(Some(pid), WaitOptions::UNTRACED);
            node.paused = true;
        }
    }

    pub(crate) fn resume(&mut self, id: Party) {
        let node = self.node(id);
        if let Some(child) = node.child.as_ref().filter(|_| node.paused) {
            let _ = kill_process(Pid::from_child(child), Signal::CONT);
        }
        node.paused = false;
    }

    /// Sets a node's wall clock apart.
    pub(crate) fn set_clock(&self, id: Party, offset_ms: i64) -> Result<(), String> {
        write(
            &self.path(&format!("clock-{id}")),
            &format!("{offset_ms}\n"),
        )
    }

    /// Leaves a node's disk without a byte of room.
    pub(crate) fn fill_disk(&self, id: Party) -> Result<(), String> {
        let mut ballast = File::create(self.ballast(id)).map_err(|e| e.to_string())?;
        let block = vec![0; 64 << 10];
        for bytes in [block.len(), 1] {
            loop {
                match ballast.write(&block[..bytes]) {
                    Ok(1..) => {}
                    Ok(0) => break,
                    Err(e) if e.kind() == ErrorKind::StorageFull => break,
                    Err(e) => return Err(format!("cannot fill the disk of node {id}: {e}")),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn empty_disk(&self, id: Party) {
        let _ = fs::remove_file(self.ballast(id));
    }

    fn ballast(&self, id: Party) -> PathBuf {
        self.disk(id).join("ballast")
    }

    fn log(&self, id: Party) -> PathBuf {
        self.path(&format!("log-{id}"))
    }

    /// The end of every node's log.
    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for id in 1..=self.count() {
            let log = fs::read_to_string(self.log(id)).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
            text += &format!("node {id} said last:\n  {tail}\n");
        }
        text
    }
}

impl Drop for Nodes<'_> {
    fn drop(&mut self) {
        for id in 1..=self.count() {
            self.kill(id);
            let _ = Command::new("umount").arg("-l").arg(self.disk(id)).status();
        }
    }
}

fn write_private(path: &Path, text: &str) -> Result<(), String> {
    write(path, text)?;
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(path, private).map_err(|e| e.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
}
