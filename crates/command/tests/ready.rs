//! Nodes that run and cannot serve: they are alive, they are not ready, and they say why. And what a lost node leaves behind:
//! who waits for whom, and how an operator ends it.

mod up;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value as Json;
use up::http::send;
use up::places::Places;
use up::{Client, Up, Value, command, refused};

/// Longer than a lease, an election and everything else that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks until it sees what is looked for.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "{what}");
    }
}

/// Status and body of a page; `more` are headers.
fn get(at: SocketAddr, path: &str, more: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{more}\r\n");
    let (status, body) = send(at, request.as_bytes());
    (status.split(' ').nth(1).unwrap().parse().unwrap(), body)
}

/// A command of the shell, with the addresses of these nodes.
fn testigo(at: &[SocketAddr], words: &[&str]) -> Output {
    let at: Vec<String> = at.iter().map(SocketAddr::to_string).collect();
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command.args(words).args(["--resp", &at.join(",")]);
    command.output().unwrap()
}

fn said(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn json(output: &Output) -> Json {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A node that runs and has not said that it is ready.
struct Unready {
    child: Child,
    resp: SocketAddr,
    http: SocketAddr,
}

impl Unready {
    fn start(mut command: Command) -> Unready {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |before: &str| -> SocketAddr {
            let line = lines.next().unwrap().unwrap();
            let address = line.strip_prefix(before).unwrap_or_else(|| panic!("{line}"));
            address.trim_end_matches('/').parse().unwrap()
        };
        let (resp, http) = (address("RESP on "), address("console on http://"));
        // What it says is read to the end, so that it never waits for its reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Unready { child, resp, http }
    }
}

impl Drop for Unready {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What starts a node again.
fn again(places: &Places, id: usize) -> Command {
    let secret = places.path().join("secret");
    let number = id.to_string();
    let own = ["--id", &number, "--peer", &places.peers[id - 1]];
    let secret = ["--secret-file", secret.to_str().unwrap()];
    command(
        &places.path().join(format!("node-{id}")),
        &[&own[..], &secret].concat(),
    )
}

fn is_unready(resp: SocketAddr, http: SocketAddr, word: &str) {
    let begins = format!("{word}: ");
    assert_eq!(get(http, "/livez", ""), (200, "ok\n".into()));
    let (status, body) = get(http, "/healthz", "");
    assert!(status == 503 && body.starts_with(&begins), "{status} {body}");
    let (status, body) = get(http, "/healthz", "Accept: application/json\r\n");
    let body: Json = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (503, &Json::Bool(false)));
    assert_eq!(body["reasons"][0]["word"], word);
    let (_, metrics) = get(http, "/metrics", "");
    assert!(metrics.contains("\ntestigo_healthy{node=\"3\"} 0\n"), "{metrics}");
    let status = testigo(&[resp], &["status"]);
    assert_eq!(status.status.code(), Some(1), "{status:?}");
    let line = format!("not ready          {begins}");
    assert!(said(&status).contains(&line), "{}", said(&status));
    let status = json(&testigo(&[resp], &["status", "--json"]));
    assert_eq!(status["ready"], false);
    assert!(status["reasons"][0].as_str().unwrap().starts_with(&begins));
}

#[test]
fn a_node_without_a_majority_is_alive_and_says_why_it_is_not_ready() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let (resp, http) = (three.address, three.http());
    until("three nodes that are ready", || {
        (get(http, "/healthz", "") == (200, "ok\n".into())).then_some(())
    });
    let status = testigo(&[resp], &["status", "--json"]);
    assert_eq!((status.status.code(), &json(&status)["ready"]), (Some(0), &Json::Bool(true)));
    let leader = json(&testigo(&[resp], &["cluster", "status", "--json"]))["leader"].clone();
    assert!(leader.is_number());

    one.kill();
    two.kill();
    until("the end of its lease", || {
        (get(http, "/healthz", "").0 == 503).then_some(())
    });
    is_unready(resp, http, "cut-off");
    // Others are asked first, and then the one that at least can say what is wrong.
    let nobody: SocketAddr = "127.0.0.1:1".parse().unwrap();
    assert_eq!(testigo(&[nobody, resp], &["status"]).status.code(), Some(1));
    let status = until("a node that knows no leader", || {
        let status = json(&testigo(&[resp], &["cluster", "status", "--json"]));
        status["leader"].is_null().then_some(status)
    });
    assert_eq!((&status["last_leader"], &status["lease_ms"]), (&leader, &Json::from(0)));
    let status = testigo(&[resp], &["cluster", "status"]);
    let known = format!("no leader known, the last one was {leader}, term ");
    assert!(said(&status).contains(&known), "{}", said(&status));
    assert!(said(&status).contains(", no lease left, "), "{}", said(&status));

    // Started again, it waits for the others and prints no `ready`.
    three.kill();
    let three = Unready::start(again(&places, 3));
    is_unready(three.resp, three.http, "joining");
}

#[test]
fn what_waits_for_a_lost_session_is_named_with_the_command_that_ends_it() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut lost = one.client();
    let open = ["SESSION", "OPEN", "TTL", "600000", "LABEL", "primary"];
    let session = lost.call(&open).int().to_string();
    lost.call(&["LOCK", "deploy", "WAIT", "0"]).int();
    one.kill();
    let at = [two.address, three.address];
    let status = until("shards that are shut", || {
        let status = json(&testigo(&at, &["cluster", "status", "--json"]));
        let waits = status["waits"].as_array().cloned().unwrap_or_default();
        let awaits = |wait: &Json| wait["orphans"] == 1 && wait["members"] == Json::Array(Vec::new());
        (!waits.is_empty() && waits.iter().all(awaits)).then_some(waits)
    });
    for wait in &status {
        assert!(wait["shards"].as_u64() > Some(0) && wait["waits_ms"].is_u64(), "{wait}");
        let orphan = &wait["sessions"][0];
        assert_eq!(orphan["session"].to_string(), session);
        assert_eq!((&orphan["label"], &orphan["home"]), (&"primary".into(), &1.into()));
        let left = orphan["left_ms"].as_u64().unwrap();
        assert!((1..=600_000).contains(&left) && wait["left_ms"] == left, "{wait}");
    }
    let node = status[0]["node"].as_u64().unwrap();
    let http = if node == 2 { two.http() } else { three.http() };
    let (_, metrics) = get(http, "/metrics", "");
    for (name, is) in [("awaited_orphans", "1"), ("awaited_members", "0")] {
        let line = format!("\ntestigo_cluster_{name}{{node=\"{node}\"}} {is}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let shut = format!("\ntestigo_cluster_shut_shards{{node=\"{node}\"}} {}\n", status[0]["shards"]);
    assert!(metrics.contains(&shut), "{metrics}");

    // The line can be pasted as it is.
    let status = testigo(&at, &["cluster", "status"]);
    let line = said(&status).lines().find_map(|line| Some(line.split_once("testigo session end ")?.1));
    let words: Vec<&str> = line.unwrap().split(' ').collect();
    assert!(said(&status).contains("it waits for a session whose home is lost"));
    let mut end = Command::new(env!("CARGO_BIN_EXE_testigo"));
    let ended = end.args(["session", "end"]).args(words).status().unwrap();
    assert!(ended.success());
    let mut next = three.client();
    until("a gate that nobody holds", || {
        matches!(next.call(&["LOCK", "deploy", "WAIT", "0"]), Value::Int(_)).then_some(())
    });
    until("nothing that waits", || {
        let status = json(&testigo(&at, &["cluster", "status", "--json"]));
        (status["waits"] == Json::Array(Vec::new())).then_some(())
    });
    drop((two, three));
}

#[test]
fn a_node_that_is_asked_to_remove_itself_says_so_and_is_never_ready_again() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let removed = testigo(&[three.address], &["cluster", "remove", "3", "--yes"]);
    assert_eq!(removed.status.code(), Some(0), "{removed:?}");
    assert_eq!(said(&removed), "node 3 is out\n");
    assert_eq!(three.end().0, Some(0));
    let output = again(&places, 3).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(said(&output).lines().all(|line| line != "ready"), "{output:?}");
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(why.contains("this node was removed from its cluster"), "{why}");
    for node in [one, two] {
        assert_eq!(node.signal(Signal::TERM).code(), Some(0));
    }
}

#[test]
fn a_node_that_is_alone_has_no_gaps_in_its_status() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let status = testigo(&[node.address], &["cluster", "status"]);
    assert_eq!(status.status.code(), Some(0));
    let words = said(&status).split_whitespace();
    assert!(!words.clone().any(|word| word == "-"), "{}", said(&status));
    assert!(said(&status).contains("needs no leader and no lease"));
}
