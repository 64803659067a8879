//! A machine that vanishes: a worker in a network of its own, whose cable is pulled while it has a job in hand. Nothing is
//! closed, and nobody says a word.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::up::{Client, Up, Value, ok};

/// What the worker does: it takes a job over a plain connection, shows what it got, and never ends.
const WORKER: &str = r#"exec 3<>"/dev/tcp/$0/$1"
printf 'AUTH secret\r\nPRESENT f b\r\nJOB TAKE q\r\n' >&3
exec cat <&3"#;

/// What the harness runs: it shows its job, and never ends when it is the first of all.
const PROGRAM: &str = r#"echo "$TESTIGO_JOB_NAME $TESTIGO_ATTEMPT"
! mkdir "$0" 2>/dev/null || exec sleep infinity"#;

/// A network with one cable to this one; gone with the test.
struct Machine {
    name: String,
    /// The ends of the cable, here and there.
    cable: [String; 2],
    /// The address here.
    here: String,
    worker: Option<Child>,
}

impl Machine {
    /// Nothing if this user may not make one.
    fn plug_in() -> Option<Machine> {
        // Runs beside each other, or one that was killed, do not meet.
        static NTH: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() * 2 + NTH.fetch_add(1, Ordering::Relaxed);
        let place = |at| format!("10.213.{}.{}", number % 256, number / 256 % 64 * 4 + at);
        let machine = Machine {
            name: format!("testigo-{number}"),
            cable: ["a", "b"].map(|end| format!("tv{number}{end}")),
            here: place(1),
            worker: None,
        };
        let (name, [ours, theirs]) = (&machine.name, &machine.cable);
        let plugged = ip(&format!("netns add {name}"))
            && ip(&format!(
                "link add {ours} type veth peer name {theirs} netns {name}"
            ))
            && ip(&format!("addr add {}/30 dev {ours}", machine.here))
            && ip(&format!("link set {ours} up"))
            && machine.ip(&format!("addr add {}/30 dev {theirs}", place(2)))
            && machine.ip(&format!("link set {theirs} up"));
        plugged.then_some(machine)
    }

    fn ip(&self, words: &str) -> bool {
        ip(&format!("-n {} {words}", self.name))
    }

    /// A command there.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name, program]);
        command
    }

    /// Runs the worker until it shows the body of its job.
    fn work(&mut self, port: u16) {
        let mut worker = self
            .command("bash")
            .args(["-c", WORKER, &self.here, &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = BufReader::new(worker.stdout.take().unwrap());
        self.worker = Some(worker);
        let mut lines = shown.lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "body"), "the worker got no job");
    }

    /// Runs the harness with two workers: what its programs show, and what it says itself.
    fn harness(&mut self, port: u16, first: &Path) -> [Lines; 2] {
        let mut harness = self
            .command(env!("CARGO_BIN_EXE_testigo"))
            .args(["work", "f", "b", "--jobs", "2", "--"])
            .args(["sh", "-c", PROGRAM])
            .arg(first)
            .env("TESTIGO_RESP", format!("{}:{port}", self.here))
            .env("TESTIGO_PASSWORD", "secret")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = Lines::of(harness.stdout.take().unwrap());
        let said = Lines::of(harness.stderr.take().unwrap());
        self.worker = Some(harness);
        [shown, said]
    }

    fn pull_the_cable(&self) {
        assert!(self.ip(&format!("link set {} down", self.cable[1])));
    }

    fn put_it_back(&self) {
        assert!(self.ip(&format!("link set {} up", self.cable[1])));
    }
}

/// What somebody prints.
struct Lines(Box<dyn Iterator<Item = String>>);

impl Lines {
    fn of(pipe: impl Read + 'static) -> Lines {
        Lines(Box::new(BufReader::new(pipe).lines().map(Result::unwrap)))
    }

    /// Reads until each of the texts was in a line of its own.
    fn until_all(&mut self, texts: &[&str]) {
        let mut missing = texts.to_vec();
        while !missing.is_empty() {
            let line = self.0.next();
            let line = line.unwrap_or_else(|| panic!("it ended without {missing:?}"));
            if let Some(at) = missing.iter().position(|text| line.contains(text)) {
                missing.remove(at);
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(worker) = &mut self.worker {
            let _ = worker.kill();
            let _ = worker.wait();
        }
        ip(&format!("link del {}", self.cable[0]));
        ip(&format!("netns del {}", self.name));
    }
}

fn ip(words: &str) -> bool {
    let ip = Command::new("ip")
        .args(words.split(' '))
        .stderr(Stdio::null())
        .status();
    ip.is_ok_and(|status| status.success())
}

/// A node that the machine can reach, with a flow, and somebody here who talks to it.
fn node(machine: &Machine, dir: &Path) -> (Up, Client) {
    let config = dir.join("testigo.conf");
    fs::write(&config, "password = secret\n").unwrap();
    let config = config.to_str().unwrap();
    let resp = format!("{}:0", machine.here);
    let node = Up::start(&dir.join("data"), &["--config", config, "--resp", &resp]);
    let mut client = node.client();
    for (words, answer) in [
        (&["AUTH", "secret"][..], ok()),
        (&["FLOW", "APPLY", "f", "a -> [q] -> b"], ok()),
        (&["JOB", "CREATE", "q", "one", "body"], Value::Int(1)),
    ] {
        assert_eq!(client.call(words), answer, "{words:?}");
    }
    (node, client)
}

#[test]
fn the_job_of_a_machine_that_vanishes_comes_back() {
    let Some(mut machine) = Machine::plug_in() else {
        println!("SKIPPED: this user may not make a network, so no machine vanished");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (node, mut client) = node(&machine, dir.path());
    machine.work(node.address.port());
    assert_eq!(client.call(&["JOB", "TAKE", "q"]), Value::Nil);
    machine.pull_the_cable();
    let taken = client.call(&["JOB", "TAKE", "q", "WAIT", "60000"]);
    assert_eq!(taken.list()[0], Value::Int(1), "{taken}");
}

/// One worker of the harness has a job in hand, the other waits for one.
#[test]
fn a_machine_that_was_cut_off_for_longer_than_the_limit_presents_itself_again_and_goes_on() {
    let Some(mut machine) = Machine::plug_in() else {
        println!("SKIPPED: this user may not make a network, so no machine was cut off");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let (node, mut client) = node(&machine, dir.path());
    let [mut shown, mut said] = machine.harness(node.address.port(), &dir.path().join("first"));
    let held = shown.0.next().unwrap();
    let old = held.strip_prefix("one ").unwrap();
    machine.pull_the_cable();
    let taken = client.call(&["JOB", "TAKE", "q", "WAIT", "60000"]);
    assert_eq!(taken.list()[0], Value::Int(1), "{taken}");
    said.until_all(&[
        "the node was lost while its program ran",
        "the connection broke",
    ]);
    machine.put_it_back();
    said.until_all(&["connected again", "connected again"]);
    let refused = client.call(&["JOB", "DELETE", "1", old]);
    assert!(refused.to_string().contains("STALE"), "{refused}");
    let attempt = taken.list()[3].int().to_string();
    assert_eq!(client.call(&["JOB", "BACK", "1", &attempt]), ok());
    let created = client.call(&["JOB", "CREATE", "q", "two", "body"]);
    assert_eq!(created, Value::Int(2));
    shown.until_all(&["one ", "two "]);
    said.until_all(&["job 1 (one) done", "job 2 (two) done"]);
    assert_eq!(client.call(&["JOB", "FIND", "*"]), Value::List(vec![]));
}
