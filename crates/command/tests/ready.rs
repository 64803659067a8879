//! Nodes that run and cannot serve: they are alive, they are not ready, and they say why. And what a lost node leaves behind:
//! who waits for whom, and how an operator ends it.

mod up;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value as Json;
use up::http::send;
use up::places::Places;
use up::{Up, Value, command};

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

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A node that runs and has not said that it is ready.
struct Unready {
    _process: Process,
    resp: SocketAddr,
    http: SocketAddr,
}

impl Unready {
    fn start(mut command: Command) -> Unready {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut address = |before: &str| -> SocketAddr {
            let line = lines.next().unwrap().unwrap();
            let address = line
                .strip_prefix(before)
                .unwrap_or_else(|| panic!("{line}"));
            address.trim_end_matches('/').parse().unwrap()
        };
        let (resp, http) = (address("RESP on "), address("console on http://"));
        // What it says is read to the end, so that it never waits for its reader.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let _process = Process(child);
        Unready {
            _process,
            resp,
            http,
        }
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
    assert!(
        status == 503 && body.starts_with(&begins),
        "{status} {body}"
    );
    let (status, body) = get(http, "/healthz", "Accept: application/json\r\n");
    let body: Json = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["ready"]), (503, &Json::Bool(false)));
    assert_eq!(body["reasons"][0]["word"], word);
    let (_, metrics) = get(http, "/metrics", "");
    assert!(
        metrics.contains("\ntestigo_healthy{node=\"3\"} 0\n"),
        "{metrics}"
    );
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
    assert_eq!(
        (status.status.code(), &json(&status)["ready"]),
        (Some(0), &Json::Bool(true))
    );
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
    assert_eq!(
        (&status["last_leader"], &status["lease_ms"]),
        (&leader, &Json::from(0))
    );
    let status = testigo(&[resp], &["cluster", "status"]);
    let known = format!("no leader known, the last one was {leader}, term ");
    assert!(said(&status).contains(&known), "{}", said(&status));
    assert!(
        said(&status).contains(", no lease left, "),
        "{}",
        said(&status)
    );

    // Started again, it waits for the others and prints no `ready`.
    three.kill();
    let three = Unready::start(again(&places, 3));
    is_unready(three.resp, three.http, "joining");
}

/// The member that it asks is not there, so it has not even a house.
#[test]
fn a_newcomer_that_nobody_answers_is_alive() {
    let free = || {
        TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
    };
    let (dir, http, [peer, nobody]) = (tempfile::tempdir().unwrap(), free(), [free(), free()]);
    let [http_at, peer, nobody] = [http, peer, nobody].map(|address| address.to_string());
    let mut up = Command::new(env!("CARGO_BIN_EXE_testigo"));
    up.args([
        "up",
        "--resp",
        "127.0.0.1:0",
        "--id",
        "2",
        "--http",
        &http_at,
        "--peer",
        &peer,
    ]);
    up.args(["--join", &nobody, "--data"])
        .arg(dir.path().join("node"));
    let _process = Process(up.stdout(Stdio::null()).spawn().unwrap());
    until("a node that listens", || TcpStream::connect(http).ok());
    assert_eq!(get(http, "/livez", ""), (200, "ok\n".into()));
    for path in ["/healthz", "/metrics", "/"] {
        let (status, body) = get(http, path, "");
        assert!(
            status == 503 && body.starts_with("starting: "),
            "{path}: {status} {body}"
        );
    }
}

#[test]
fn what_waits_for_a_lost_session_is_named_with_the_command_that_ends_it() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut lost = one.client();
    let open = ["SESSION", "OPEN", "TTL", "60000", "LABEL", "primary"];
    let session = lost.call(&open).int().to_string();
    lost.call(&["LOCK", "deploy", "WAIT", "10000"]).int();
    one.kill();
    let at = [two.address, three.address];
    let status = until("shards that are shut", || {
        let status = json(&testigo(&at, &["cluster", "status", "--json"]));
        let waits = status["waits"].as_array().cloned().unwrap_or_default();
        let awaits =
            |wait: &Json| wait["orphans"] == 1 && wait["members"] == Json::Array(Vec::new());
        (!waits.is_empty() && waits.iter().all(awaits)).then_some(waits)
    });
    for wait in &status {
        assert!(
            wait["shards"].as_u64() > Some(0) && wait["waits_ms"].is_u64(),
            "{wait}"
        );
        let orphan = &wait["sessions"][0];
        assert_eq!(orphan["session"].to_string(), session);
        assert_eq!(orphan["label"], "primary");
        assert_eq!(orphan["home"], 1);
        let left = orphan["left_ms"].as_u64().unwrap();
        assert!(
            (1..=60_000).contains(&left) && wait["left_ms"] == left,
            "{wait}"
        );
    }
    let node = status[0]["node"].as_u64().unwrap();
    let http = if node == 2 { two.http() } else { three.http() };
    let (_, metrics) = get(http, "/metrics", "");
    for (name, is) in [("awaited_orphans", "1"), ("awaited_members", "0")] {
        let line = format!("\ntestigo_cluster_{name}{{node=\"{node}\"}} {is}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    let shut = format!(
        "\ntestigo_cluster_shut_shards{{node=\"{node}\"}} {}\n",
        status[0]["shards"]
    );
    assert!(metrics.contains(&shut), "{metrics}");

    // The line can be pasted as it is.
    let status = testigo(&at, &["cluster", "status"]);
    let line = said(&status)
        .lines()
        .find_map(|line| Some(line.split_once("testigo session end ")?.1));
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
    assert!(
        said(&output).lines().all(|line| line != "ready"),
        "{output:?}"
    );
    let why = String::from_utf8(output.stderr).unwrap();
    assert!(
        why.contains("this node was removed from its cluster"),
        "{why}"
    );
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

/// More of one call than a joiner makes before it is ready.
const CALLS_MAX: usize = 50;
/// The calls with which a node changes its directory.
const CALLS: [&str; 5] = ["mkdir", "rename", "fsync", "pwrite64", "fdatasync"];

#[test]
fn a_joiner_that_was_killed_at_any_write_joins_with_its_directory() {
    let traces = Command::new("strace")
        .args(["-D", "-e", "trace=mkdir", "true"])
        .output();
    if !traces.is_ok_and(|traced| traced.status.success()) {
        println!(
            "SKIPPED: strace is not installed or not allowed, so no joiner was killed at its writes"
        );
        return;
    }
    std::thread::scope(|scope| {
        for call in CALLS {
            scope.spawn(move || {
                let killed = (1..CALLS_MAX).take_while(|nth| joins_although_killed(call, *nth));
                let killed = killed.count();
                assert!(
                    (1..CALLS_MAX - 1).contains(&killed),
                    "{killed} times at {call}"
                );
            });
        }
    });
}

/// Kills a joiner when one of its threads makes this call for the `nth` time, and starts it again. False if it was ready
/// before that.
fn joins_although_killed(call: &str, nth: usize) -> bool {
    let places = Places::new(2);
    let founder = places.up(1, &[]);
    let joiner = again(&places, 2);
    let mut traced = Command::new("strace");
    // With -D the child is the node itself, and not its tracer.
    traced.args(["-D", "-f", "-qq", "-o", "/dev/null"]);
    let (trace, kill) = (
        format!("trace={call}"),
        format!("inject={call}:signal=KILL:when={nth}"),
    );
    traced
        .args(["-e", &trace, "-e", &kill])
        .arg(joiner.get_program());
    traced
        .args(joiner.get_args())
        .args(["--join", &places.peers[0]]);
    let mut child = traced.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines.any(|line| line.unwrap() == "ready");
    let _ = child.kill();
    child.wait().unwrap();
    let joined = places.join(2);
    until("a gate at the node that has joined", || {
        let locked = joined.client().call(&["LOCK", "deploy", "WAIT", "0"]);
        matches!(locked, Value::Int(_)).then_some(())
    });
    drop(founder);
    !ready
}
