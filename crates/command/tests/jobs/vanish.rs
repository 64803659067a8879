//! A machine that vanishes: a worker in a network of its own, whose cable is pulled while it has a job in hand. Nothing is
//! closed, and nobody says a word.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::up::{Up, Value};

/// What the worker does: it takes a job over a plain connection, shows what it got, and never ends.
const WORKER: &str = r#"exec 3<>"/dev/tcp/$0/$1"
printf 'AUTH secret\r\nPRESENT f b\r\nJOB TAKE q\r\n' >&3
exec cat <&3"#;

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
        let number = std::process::id();
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

    /// Runs the worker until it shows the body of its job.
    fn work(&mut self, port: u16) {
        let mut worker = Command::new("ip")
            .args(["netns", "exec", &self.name, "bash", "-c", WORKER])
            .args([&self.here, &port.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = BufReader::new(worker.stdout.take().unwrap());
        self.worker = Some(worker);
        let mut lines = shown.lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "body"), "the worker got no job");
    }

    fn pull_the_cable(&self) {
        assert!(self.ip(&format!("link set {} down", self.cable[1])));
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

#[test]
fn the_job_of_a_machine_that_vanishes_comes_back() {
    let Some(mut machine) = Machine::plug_in() else {
        println!("SKIPPED: this user may not make a network, so no machine vanished");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("testigo.conf");
    fs::write(&config, "password = secret\n").unwrap();
    let config = config.to_str().unwrap();
    let resp = format!("{}:0", machine.here);
    let node = Up::start(
        &dir.path().join("data"),
        &["--config", config, "--resp", &resp],
    );
    let mut client = node.client();
    for (words, answer) in [
        (&["AUTH", "secret"][..], Value::Simple("OK".into())),
        (
            &["FLOW", "APPLY", "f", "a -> [q] -> b"],
            Value::Simple("OK".into()),
        ),
        (&["JOB", "CREATE", "q", "one", "body"], Value::Int(1)),
    ] {
        assert_eq!(client.call(words), answer, "{words:?}");
    }
    machine.work(node.address.port());
    assert_eq!(client.call(&["JOB", "TAKE", "q"]), Value::Nil);
    machine.pull_the_cable();
    let taken = client.call(&["JOB", "TAKE", "q", "WAIT", "60000"]);
    assert_eq!(taken.list()[0], Value::Int(1), "{taken}");
}
