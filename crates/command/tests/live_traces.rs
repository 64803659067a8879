//! Real nodes, a gate for each algorithm, a node that is killed and comes back: what was recorded of every instance is
//! replayed in the laboratory, message by message.

mod up;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use testigo_core::Using;
use testigo_lab::{Event, TellKind, Trace};
use up::places::Places;
use up::{Client, Up, Value, ok};

/// Longer than everything that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

fn until(client: &mut Client, words: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.call(words);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{words:?}: {answer:?}");
    }
}

fn testigo(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command.args(words).output().expect("it runs")
}

/// `testigo trace GATE --follow`, until it is interrupted; no longer than the test, even if that fails.
struct Follower {
    child: Option<Child>,
    file: PathBuf,
}

impl Follower {
    fn of(gate: &str, nodes: &str, places: &Places) -> Follower {
        let file = places.path().join(format!("{gate}.trace"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
        command.args(["trace", gate, "--follow", "--resp", nodes, "--out"]);
        command.arg(&file).stderr(Stdio::piped());
        let child = command.spawn().expect("it runs");
        let child = Some(child);
        Follower { child, file }
    }

    /// The traces that it has written when it ends.
    fn end(mut self) -> (Vec<Trace>, String) {
        let child = self.child.take().expect("it is ended once");
        let pid = Pid::from_raw(child.id() as i32).expect("a process");
        kill_process(pid, Signal::INT).expect("it runs");
        let told = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        assert_eq!(told.status.code(), Some(0), "{said}");
        let file = self.file.to_str().expect("a name");
        let replay = testigo(&["lab", "replay", file]);
        let replayed = String::from_utf8_lossy(&replay.stdout).into_owned();
        let text = std::fs::read_to_string(&self.file).expect("written");
        assert_eq!(replay.status.code(), Some(0), "{replayed}{said}");
        assert!(!replayed.contains("shows: safety"), "{replayed}");
        let picture = self.file.with_extension("svg");
        let svg = picture.to_str().expect("a name");
        assert_eq!(
            testigo(&["lab", "draw", file, "--svg", svg]).status.code(),
            Some(0)
        );
        let picture = std::fs::read_to_string(picture).expect("drawn");
        assert!(picture.contains("milliseconds"), "{picture}");
        (Trace::parse_all(&text).expect("traces"), said)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Everybody enters every gate, and the next one waits meanwhile.
fn rounds(nodes: &[&Up], gates: &[String], rounds: usize) {
    let mut clients: Vec<Client> = nodes.iter().map(|node| node.client()).collect();
    let is_int = |answer: &Value| matches!(answer, Value::Int(_));
    for round in 0..rounds {
        for gate in gates {
            for at in 0..clients.len() {
                let at = (at + round) % clients.len();
                until(&mut clients[at], &["LOCK", gate, "WAIT", "5000"], is_int);
                let next = (at + 1) % clients.len();
                // Whoever tries meanwhile is known to want in.
                let beside = clients[next].call(&["LOCK", gate, "WAIT", "10"]);
                assert!(!is_int(&beside), "{gate}: {beside:?}");
                assert_ne!(clients[at].call(&["UNLOCK", gate]), Value::Nil);
            }
        }
    }
}

#[test]
fn a_live_trace_of_every_algorithm_is_replayed_from_view_to_view() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let using: Vec<Using> = Using::ALL
        .into_iter()
        .filter(|u| *u != Using::Log)
        .collect();
    let gates: Vec<String> = using.iter().map(|u| format!("by-{}", u.name())).collect();
    let mut admin = two.client();
    for (using, gate) in using.iter().zip(&gates) {
        let rule = match using {
            Using::BoxOffice => "SHARED",
            _ => "MUTEX",
        };
        let create = [
            "GATE",
            "CREATE",
            gate,
            rule,
            "USING",
            using.name(),
            "BURST",
            "1",
        ];
        until(&mut admin, &create, |answer| *answer == ok());
    }
    let nodes = format!("{},{}", two.address, three.address);
    let followers: Vec<Follower> = gates
        .iter()
        .map(|gate| Follower::of(gate, &nodes, &places))
        .collect();
    rounds(&[&one, &two, &three], &gates, 2);
    one.kill();
    rounds(&[&two, &three], &gates, 2);
    let one = places.up(1, &[]);
    rounds(&[&one, &two, &three], &gates, 2);
    for (follower, using) in followers.into_iter().zip(using) {
        let (traces, said) = follower.end();
        let name = using.name();
        let header = |trace: &Trace| trace.header.algorithm.clone();
        assert!(traces.iter().all(|trace| header(trace) == name), "{name}");
        // With one node fewer in between.
        let sizes: BTreeSet<usize> = traces
            .iter()
            .map(|trace| trace.header.names.len())
            .collect();
        assert!(traces.len() >= 3 && sizes.len() == 2, "{name}: {said}");
        let entered = |trace: &Trace| {
            let told = trace
                .events
                .iter()
                .filter(|(_, event)| matches!(event, Event::Tell(_, TellKind::Enters, _)));
            told.count()
        };
        let entered: usize = traces.iter().map(entered).sum();
        assert!(entered >= 10, "{name}: {entered} entries; {said}");
    }
    // Without --follow, what is still on record.
    let all = testigo(&["trace", &gates[0], "--resp", &nodes]);
    assert_eq!(all.status.code(), Some(0));
    let text = String::from_utf8(all.stdout).expect("text");
    assert!(!Trace::parse_all(&text).expect("traces").is_empty());
    drop((one, two, three));
}

#[test]
fn a_gate_of_which_nothing_is_recorded_says_so() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut client = one.client();
    until(
        &mut client,
        &["GATE", "CREATE", "plain", "MUTEX"],
        |answer| *answer == ok(),
    );
    let node = one.address.to_string();
    let none = testigo(&["trace", "plain", "--resp", &node]);
    assert_eq!(none.status.code(), Some(1));
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(
        said.contains("nothing is on record for gate plain"),
        "{said}"
    );
    let missing = testigo(&["trace", "plian", "--resp", &node]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("did you mean plain?"), "{said}");
    drop((one, two, three));
}
