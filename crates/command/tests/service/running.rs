//! A node and commands as processes of a test. Everything that is waited for is a line, an end or an answer; nothing sleeps.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

/// What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(120);
const TESTIGO: &str = env!("CARGO_BIN_EXE_testigo");

/// A node of the test's own, which ends with it.
pub(crate) struct Node {
    folder: TempDir,
    address: SocketAddr,
    process: Child,
}

impl Node {
    pub(crate) fn start() -> Node {
        Node::with_config("")
    }

    /// A node with this configuration file.
    pub(crate) fn with_config(text: &str) -> Node {
        Node::in_folder(tempfile::tempdir().expect("a folder"), text)
    }

    /// A node in a folder that holds what its configuration file names.
    pub(crate) fn in_folder(folder: TempDir, text: &str) -> Node {
        std::fs::write(folder.path().join("testigo.conf"), text).expect("writable");
        let (process, address) = up(folder.path(), "127.0.0.1:0");
        Node {
            folder,
            address,
            process,
        }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// A file of the test's own.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }

    /// Starts a killed node again, where it was.
    pub(crate) fn restart(&mut self) {
        let (process, address) = up(self.folder.path(), &self.address.to_string());
        assert_eq!(address, self.address);
        self.process = process;
    }

    /// A command of `testigo` that talks to this node.
    pub(crate) fn command<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let mut command = Command::new(TESTIGO);
        command.args(arguments);
        command.env("TESTIGO_RESP", self.address());
        for variable in ["USER", "PASSWORD", "PASSWORD_FILE", "TLS", "TLS_CA"] {
            command.env_remove(format!("TESTIGO_{variable}"));
        }
        command.current_dir(self.folder.path());
        command
    }

    /// Runs a command line, words parted by spaces; what stands in `shell` is one word, for `sh -c`.
    pub(crate) fn run(&self, line: &str, shell: &str) -> Ended {
        Running::start(self.command(words(line, shell))).end()
    }

    /// Starts a command line as [`Node::run`] does.
    pub(crate) fn begin(&self, line: &str, shell: &str) -> Running {
        Running::start(self.command(words(line, shell)))
    }

    /// What a command prints as JSON.
    pub(crate) fn json(&self, line: &str) -> serde_json::Value {
        let ended = self.run(&format!("{line} --json"), "");
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
        serde_json::from_str(&ended.stdout).expect("JSON")
    }

    /// Asks again and again until the answer is as wanted; being refused is another answer.
    pub(crate) fn until(&self, line: &str, wanted: impl Fn(&serde_json::Value) -> bool) {
        let begun = Instant::now();
        loop {
            let ended = self.run(&format!("{line} --json"), "");
            let answer = serde_json::from_str(&ended.stdout);
            if answer.is_ok_and(|answer| wanted(&answer)) {
                return;
            }
            let Ended { stdout, stderr, .. } = &ended;
            assert!(begun.elapsed() < PATIENCE, "{line}: {stdout}{stderr}");
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn up(folder: &Path, address: &str) -> (Child, SocketAddr) {
    let mut process = Command::new(TESTIGO)
        .args(["up", "--resp", address, "--http", "127.0.0.1:0"])
        .args(["--config", "testigo.conf", "--data"])
        .arg(folder.join("data"))
        .current_dir(folder)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the node starts");
    let out = process.stdout.take().expect("a pipe");
    let mut address = None;
    for line in BufReader::new(out).lines() {
        let line = line.expect("a line");
        if let Some(told) = line.strip_prefix("RESP on ") {
            let told = told.split(',').next().unwrap_or(told);
            address = address.or(told.parse().ok());
        }
        if line == "ready" {
            return (
                process,
                address.expect("a ready node says where it listens"),
            );
        }
    }
    let status = process.wait().expect("an end");
    panic!("the node ended before it was ready: {status}");
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").to_string()
}

fn words(line: &str, shell: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    if !shell.is_empty() {
        words.extend(["--", "sh", "-c", shell].map(str::to_owned));
    }
    words
}

/// A command that runs. Its input stays open until it is told otherwise.
pub(crate) struct Running {
    process: Child,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::piped()).spawn().expect("it starts");
        Running {
            input: process.stdin.take(),
            out: BufReader::new(process.stdout.take().expect("a pipe")),
            err: BufReader::new(process.stderr.take().expect("a pipe")),
            process,
        }
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("readable");
        line.trim_end().to_owned()
    }

    pub(crate) fn expect(&mut self, wanted: &str) {
        let line = self.line();
        if line != wanted {
            let _ = self.process.kill();
            let mut err = String::new();
            let _ = self.err.read_to_string(&mut err);
            panic!("{wanted:?} was to be printed, not {line:?}; {err}");
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, signal).expect("it lives");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Waits until a signal has stopped it.
    pub(crate) fn until_stopped(&self) {
        let pid = Pid::from_child(&self.process);
        let state = waitpid(Some(pid), WaitOptions::UNTRACED).expect("our child");
        let (_, status) = state.expect("it changes");
        assert!(status.stopped(), "{status:?}");
    }

    /// Closes its input and waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.input = None;
        self.wait()
    }

    /// Waits for its end, with its input open.
    pub(crate) fn wait(mut self) -> Ended {
        let mut ended = Ended {
            code: 0,
            stdout: String::new(),
            stderr: String::new(),
        };
        self.out.read_to_string(&mut ended.stdout).expect("text");
        self.err.read_to_string(&mut ended.stderr).expect("text");
        let status = self.process.wait().expect("an end");
        ended.code = status.code().unwrap_or(-1);
        ended
    }
}

/// Runs a program that may not be installed. Says so on the real standard error, which no test runner hides.
pub(crate) fn installed(what: &str, probe: &mut Command) -> bool {
    let found = probe
        .output()
        .is_ok_and(|Output { status, .. }| status.success());
    if !found {
        let mut err = std::io::stderr();
        let _ = writeln!(
            err,
            "\nSKIPPED: {what} is not installed, so its example was not run\n"
        );
    }
    found
}
