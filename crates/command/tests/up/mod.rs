//! `testigo up` as a real process, to be talked to, stopped and killed.

#![allow(
    dead_code,
    unused_imports,
    reason = "every test file uses its own part of it"
)]

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

pub(crate) mod disk;
pub(crate) mod http;
pub(crate) mod places;
#[path = "../../../node/tests/support/resp.rs"]
mod resp;

pub(crate) use resp::{Client, Value};

/// A node that prints `ready` and runs until it is stopped; killed if the test ends first.
pub(crate) struct Up {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it printed before `ready`.
    pub(crate) said: Vec<String>,
}

pub(crate) fn ok() -> Value {
    Value::Simple("OK".into())
}

impl Up {
    pub(crate) fn start(data: &Path, more: &[&str]) -> Up {
        Up::of(command(data, more))
    }

    /// Started on a directory that was copied back. It says that it waits for the next slot of time; then its clock jumps.
    pub(crate) fn restored(data: &Path, ahead_ms: u64) -> Up {
        let clock = data.with_extension("clock");
        std::fs::write(&clock, "0").unwrap();
        let mut command = command(data, &["--restored"]);
        let (said, says) = std::io::pipe().unwrap();
        command.env("TESTIGO_TEST_CLOCK", &clock).stderr(says);
        std::thread::spawn(move || {
            for line in BufReader::new(said).lines().map_while(Result::ok) {
                if line.contains("was restored") {
                    std::fs::write(&clock, ahead_ms.to_string()).unwrap();
                }
            }
        });
        Up::of(command)
    }

    /// Started with a command of one's own.
    pub(crate) fn of(mut command: Command) -> Up {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        loop {
            match lines.next().expect("`ready` before the end").unwrap() {
                line if line == "ready" => break,
                line => said.push(line),
            }
        }
        let first = said[0].strip_prefix("RESP on ").expect("where it listens");
        let address = first.parse().unwrap();
        Up {
            child,
            address,
            said,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Somebody who is a process of a flow.
    pub(crate) fn worker(&self, flow: &str, process: &str) -> Client {
        let mut client = self.client();
        assert_eq!(client.call(&["PRESENT", flow, process]), ok());
        client
    }

    /// The console's address, as it says it.
    pub(crate) fn console(&self) -> String {
        let line = self.said.iter().find(|line| line.contains("http://"));
        let line = line.expect("the console's address");
        line[line.find("http://").expect("just found")..].to_owned()
    }

    /// Where its HTTP door is.
    pub(crate) fn http(&self) -> SocketAddr {
        let url = self.console();
        let host = url.trim_start_matches("http://").trim_end_matches('/');
        host.parse().expect("an address")
    }

    /// How long it has kept processors busy so far, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(path).unwrap();
        // Behind the name, which may hold anything, follow fields 3 and on; 14 and 15 are the user's and the system's.
        let fields = stat[stat.rfind(')').unwrap() + 2..].split(' ');
        let times = fields
            .skip(11)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().unwrap());
        times.sum()
    }

    /// Stops it where it is. When this returns it does nothing any more.
    pub(crate) fn freeze(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).unwrap();
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
    }

    /// Lets it go on.
    pub(crate) fn thaw(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }

    /// `kill -9`.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until it ends by itself: its exit code, and what it said if its standard error was piped.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said).unwrap();
        }
        (self.child.wait().unwrap().code(), said)
    }

    /// Sends a signal that it survives.
    pub(crate) fn tell(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What it says on standard error, if that is a pipe.
    pub(crate) fn complaints(&mut self) -> impl Iterator<Item = String> + use<> {
        let stderr = self.child.stderr.take().expect("a pipe");
        BufReader::new(stderr).lines().map(Result::unwrap)
    }

    pub(crate) fn signal(mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A start that must fail: its exit code and what it says.
pub(crate) fn refused(data: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut child = command(data, more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

pub(crate) fn command(data: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command
        .args(["up", "--http", "127.0.0.1:0", "--data"])
        .arg(data);
    if !more.contains(&"--resp") && !more.contains(&"--config") {
        command.args(["--resp", "127.0.0.1:0"]);
    }
    command.args(more);
    command
}
