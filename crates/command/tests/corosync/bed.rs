//! Three Corosync daemons on one machine, each in a network namespace of its own with a private /run, and a node of Testigo
//! beside each.

use std::fs::{self, File, OpenOptions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::net::{Drops, Net, Party, RESP_PORT, address};
use crate::up::{Client, Value};

pub(crate) const NODES: u8 = 3;
const PASSWORD: &str = "chaos";
/// The last lines of a log that are shown when something broke.
const TAIL: usize = 12;
/// Only a broken machine makes a run wait for so long.
const PATIENCE: Duration = Duration::from_secs(60);
const PACKAGES: &[&str] = &["corosync", "iproute2", "nftables"];

pub(crate) struct Bed {
    pub(crate) net: Net,
    dir: TempDir,
    daemons: Vec<Option<Child>>,
    nodes: Vec<Option<Child>>,
    _one: MutexGuard<'static, ()>,
}

/// A process has one network.
static ONE: Mutex<()> = Mutex::new(());

impl Bed {
    /// Builds it, or says what the machine does not allow.
    pub(crate) fn build() -> Result<Bed, String> {
        install()?;
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let net = Net::build(NODES, &Default::default())?;
        net.enter()?;
        let bed = Bed {
            net,
            dir: tempfile::tempdir().map_err(|e| e.to_string())?,
            daemons: (0..NODES).map(|_| None).collect(),
            nodes: (0..NODES).map(|_| None).collect(),
            _one: one,
        };
        fs::write(bed.path("corosync.conf"), configuration()).map_err(|e| e.to_string())?;
        let config = bed.path("testigo.conf");
        fs::write(&config, format!("password = {PASSWORD}\n")).map_err(|e| e.to_string())?;
        let private = fs::Permissions::from_mode(0o600);
        fs::set_permissions(&config, private).map_err(|e| e.to_string())?;
        for node in all() {
            let state = bed.path(&format!("state-{node}"));
            fs::create_dir(state).map_err(|e| e.to_string())?;
        }
        Ok(bed)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn log(&self, name: &str) -> File {
        let path = self.path(&format!("{name}.log"));
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.expect("a log can be written")
    }

    fn spawn(&self, mut command: Command, log: &str) -> Child {
        let (out, errors) = (self.log(log), self.log(log));
        let child = command.stdin(Stdio::null()).stdout(out).stderr(errors);
        child.spawn().expect("it can be started")
    }

    /// Starts a daemon that does not run. Its ring numbers are kept.
    pub(crate) fn start_daemon(&mut self, node: Party) {
        if self.daemons[index(node)].is_some() {
            return;
        }
        let script = format!(
            "mount -t tmpfs tmpfs /run && mount --bind {} /var/lib/corosync && exec corosync -f -c {}",
            self.path(&format!("state-{node}")).display(),
            self.path("corosync.conf").display(),
        );
        let mut command = self.net.at(node, Path::new("unshare"));
        command.args(["-m", "sh", "-c", &script]);
        let child = self.spawn(command, &format!("corosync-{node}"));
        self.daemons[index(node)] = Some(child);
        // It answers when it is ready.
        let begun = Instant::now();
        loop {
            let mut probe = self.net.at(node, Path::new("corosync-cpgtool"));
            let probe = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
            if probe.is_ok_and(|status| status.success()) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{}", self.logs());
            pause(20);
        }
    }

    pub(crate) fn end_daemon(&mut self, node: Party, signal: Signal) {
        end(self.daemons[index(node)].take(), signal);
    }

    /// Starts a node of Testigo that does not run, and waits until it answers.
    pub(crate) fn start_node(&mut self, node: Party) {
        if self.nodes[index(node)].is_some() {
            return;
        }
        let mut up = self.net.at(node, Path::new(env!("CARGO_BIN_EXE_testigo")));
        let resp = resp_address(node).to_string();
        up.args(["up", "--http", "127.0.0.1:0", "--resp", &resp]);
        up.arg("--data").arg(self.path(&format!("data-{node}")));
        up.arg("--config").arg(self.path("testigo.conf"));
        up.args(["--corosync", "chaos", "--corosync-members", "1,2,3"]);
        let child = self.spawn(up, &format!("testigo-{node}"));
        self.nodes[index(node)] = Some(child);
        let begun = Instant::now();
        while connect(node).is_none() {
            let child = self.nodes[index(node)].as_mut();
            let ended = child.is_some_and(|child| !matches!(child.try_wait(), Ok(None)));
            assert!(!ended && begun.elapsed() < PATIENCE, "{}", self.logs());
            pause(20);
        }
    }

    pub(crate) fn end_node(&mut self, node: Party, signal: Signal) {
        end(self.nodes[index(node)].take(), signal);
    }

    pub(crate) fn start_all(&mut self) {
        for node in all() {
            self.start_daemon(node);
        }
        for node in all() {
            self.start_node(node);
        }
    }

    /// Whether a process that should run has ended.
    pub(crate) fn fallen(&mut self) -> Option<String> {
        let kinds = [
            ("testigo", &mut self.nodes),
            ("corosync", &mut self.daemons),
        ];
        for (kind, children) in kinds {
            for (node, child) in (1..).zip(children) {
                if let Some(Ok(Some(status))) = child.as_mut().map(Child::try_wait) {
                    return Some(format!("{kind} of node {node} has ended: {status}"));
                }
            }
        }
        None
    }

    /// From now on exactly these nodes are cut off from all others; clients reach everybody.
    pub(crate) fn cut(&self, apart: &[Party]) {
        let mut drops = Vec::new();
        for one in all() {
            for other in all().filter(|other| *other != one) {
                if apart.contains(&one) || apart.contains(&other) {
                    drops.push(Drops {
                        from: one,
                        to: other,
                        percent: 100,
                    });
                }
            }
        }
        self.net.drop_packets(&drops).expect("links can be cut");
    }

    pub(crate) fn logs(&self) -> String {
        let mut text = String::new();
        for node in all() {
            for kind in ["testigo", "corosync"] {
                let name = format!("{kind}-{node}.log");
                let log = fs::read_to_string(self.path(&name)).unwrap_or_default();
                let lines: Vec<&str> = log.lines().collect();
                let tail = lines[lines.len().saturating_sub(TAIL)..].join("\n  ");
                text += &format!("{name}:\n  {tail}\n");
            }
        }
        text
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for node in all() {
            self.end_node(node, Signal::KILL);
            self.end_daemon(node, Signal::KILL);
        }
    }
}

fn end(child: Option<Child>, signal: Signal) {
    if let Some(mut child) = child {
        let _ = kill_process(Pid::from_child(&child), signal);
        let _ = child.wait();
    }
}

pub(crate) fn all() -> impl Iterator<Item = Party> {
    1..=NODES
}

fn index(node: Party) -> usize {
    usize::from(node) - 1
}

fn resp_address(node: Party) -> SocketAddr {
    (address(node), RESP_PORT).into()
}

/// A connection to a node, if it answers.
pub(crate) fn connect(node: Party) -> Option<Client> {
    let mut client = Client::try_connect(resp_address(node)).ok()?;
    let answer = client.try_call(&["AUTH", PASSWORD]).ok()?;
    (answer == Value::Simple("OK".into())).then_some(client)
}

pub(crate) fn pause(ms: u64) {
    std::thread::park_timeout(Duration::from_millis(ms));
}

fn configuration() -> String {
    let mut text = String::from(
        "totem {\n version: 2\n cluster_name: chaos\n transport: udpu\n token: 1000\n crypto_cipher: none\n \
         crypto_hash: none\n}\nlogging {\n to_stderr: yes\n to_syslog: no\n timestamp: hires\n}\nnodelist {\n",
    );
    for node in all() {
        let address = address(node);
        text += &format!(" node {{\n  ring0_addr: {address}\n  nodeid: {node}\n }}\n");
    }
    text + "}\n"
}

/// Installs what is missing, where that is possible.
fn install() -> Result<(), String> {
    let runs = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let command = command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let here = || runs("corosync", &["-v"]) && runs("ip", &["-V"]) && runs("nft", &["--version"]);
    if !here() {
        runs("apt-get", &["update"]);
        runs("apt-get", &[&["install", "-y"], PACKAGES].concat());
    }
    match here() {
        true => Ok(()),
        false => Err(format!("install {} first", PACKAGES.join(", "))),
    }
}
