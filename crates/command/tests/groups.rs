//! Groups at three nodes that are real processes: followers at different nodes print the same, and one of them moves on when
//! its node is killed.

mod up;

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use up::places::Places;
use up::{Up, http};

/// Longer than a lease, an election and everything else that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn testigo(resp: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command.args(words).env("TESTIGO_RESP", resp);
    command
}

/// A process that follows a group; killed with the test.
struct Follower {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Follower {
    fn start(resp: &str) -> Follower {
        let mut command = testigo(resp, &["group", "join", "talk", "--ttl", "60s"]);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let mut follower = Follower { process, out };
        let first = follower.line();
        assert!(first.starts_with("joined "), "{first}");
        follower
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.out.read_line(&mut line).unwrap();
        assert!(read > 0, "it ended");
        line
    }

    /// The messages up to one, each as number and body.
    fn until(&mut self, last: u64) -> Vec<(u64, String)> {
        let mut messages = Vec::new();
        loop {
            let line = self.line();
            let mut words = line.trim_end().splitn(4, ' ');
            if words.next() != Some("delivered") {
                assert!(!line.starts_with("missed"), "{line}");
                continue;
            }
            let number = words.next().unwrap().parse().unwrap();
            messages.push((number, words.nth(1).unwrap().to_owned()));
            if number == last {
                return messages;
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends until it is known that one was sent; one of unknown outcome may be delivered besides.
fn send(resp: &str, body: &str) -> u64 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let sent = testigo(resp, &["group", "send", "talk", body]).output();
        let sent = sent.unwrap();
        match sent.status.code() {
            Some(0) => {
                return String::from_utf8_lossy(&sent.stdout)
                    .trim()
                    .parse()
                    .unwrap();
            }
            Some(69 | 76) if Instant::now() < deadline => {}
            code => panic!("{code:?}: {}", String::from_utf8_lossy(&sent.stderr)),
        }
    }
}

/// The console's JSON, which all nodes make together.
fn state_at(node: &Up) -> Value {
    let at = node.http();
    let ask = format!("GET /api/state HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    let (status, body) = http::send(at, ask.as_bytes());
    assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
    serde_json::from_str(&body).unwrap()
}

#[test]
fn followers_at_three_nodes_print_the_same_and_one_moves_when_its_node_is_killed() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let resp = |node: &Up| node.address.to_string();
    // The first of several addresses is where it begins.
    let moves = format!("{},{}", resp(&one), resp(&two));
    let mut followers = [
        Follower::start(&moves),
        Follower::start(&resp(&two)),
        Follower::start(&resp(&three)),
    ];
    let mut at_one = one.client();
    let shown = at_one.call(&["GROUP", "MEMBERS", "talk"]);
    assert_eq!(shown.at("members").list().len(), 3);
    for number in 0..9 {
        let nodes = [&one, &two, &three];
        send(&resp(nodes[number % 3]), &format!("before {number}"));
    }
    at_one.call(&["DECIDE", "release", "7.1"]);
    // Node 2 may hear of the last of it a moment later, and a sender's session may take a moment to end.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = state_at(&two);
        let groups = state["groups"].as_array().unwrap();
        assert_eq!(groups.len(), 1, "{state}");
        let members = groups[0]["members"].as_array().unwrap().iter();
        let nodes = members.filter_map(|member| member["node"].as_u64());
        let mut nodes: Vec<u64> = nodes.collect();
        nodes.sort_unstable();
        let delivered = groups[0]["deliveries"].as_array().map(Vec::len);
        let decided = json!([{ "name": "release", "value": "7.1" }]);
        if (nodes, delivered) == (vec![1, 2, 3], Some(9)) && state["decisions"] == decided {
            break;
        }
        assert!(Instant::now() < deadline, "{state}");
    }
    one.kill();
    let mut last = 0;
    for number in 0..9 {
        let nodes = [&two, &three];
        last = send(&resp(nodes[number % 2]), &format!("after {number}"));
    }
    let told = followers.each_mut().map(|follower| follower.until(last));
    assert_eq!(told[0], told[1]);
    assert_eq!(told[1], told[2]);
    let numbers: Vec<u64> = told[0].iter().map(|(number, _)| *number).collect();
    let expected: Vec<u64> = (numbers[0]..=last).collect();
    assert_eq!(numbers, expected, "no gap, and nothing twice");
    let mut bodies: Vec<&str> = told[0].iter().map(|(_, body)| body.as_str()).collect();
    bodies.dedup();
    let sent = |when: &'static str| (0..9).map(move |number| format!("{when} {number}"));
    let sent: Vec<String> = sent("before").chain(sent("after")).collect();
    assert_eq!(bodies, sent);
}
