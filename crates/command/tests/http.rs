//! The door for people and operations, without a browser.

mod up;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use up::{Up, ok};

/// The status line and the whole answer.
fn request(at: SocketAddr, head: &str) -> (String, String) {
    let mut stream = TcpStream::connect(at).expect("the node listens");
    write!(stream, "{head}\r\nConnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    (answer.lines().next().unwrap_or_default().to_owned(), answer)
}

fn get(at: SocketAddr, path: &str) -> (String, String) {
    request(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}"))
}

/// A pool of which two slots were taken, one of them was given back, and somebody waits; and more pools than are shown.
fn pools_are_counted(node: &Up) {
    let (mut holder, mut waiter) = (node.client(), node.client());
    assert_eq!(
        holder.call(&["POOL", "CREATE", "a\"b\"", "SLOTS", "3"]),
        ok()
    );
    holder.call(&["POOL", "TAKE", "a\"b\"", "COUNT", "2"]);
    assert_eq!(holder.call(&["POOL", "GIVE", "a\"b\"", "0"]), ok());
    waiter.send(&["POOL", "TAKE", "a\"b\"", "COUNT", "3", "WAIT", "60000"]);
    while holder.call(&["POOL", "SHOW", "a\"b\""]).at("waiting").int() == 0 {}
    for at in 0..100 {
        let pool = format!("more-{at}");
        assert_eq!(holder.call(&["POOL", "CREATE", &pool, "SLOTS", "1"]), ok());
    }
    let (_, metrics) = get(node.http(), "/metrics");
    for (name, value) in [
        ("slots", 3),
        ("owned", 3),
        ("free", 2),
        ("used", 1),
        ("withheld", 0),
        ("waiting", 1),
        ("received_total", 0),
        ("given_total", 0),
        ("takes_total", 2),
        ("gives_total", 1),
    ] {
        let line = format!("\ntestigo_pool_{name}{{pool=\"a\\\"b\\\"\"}} {value}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert_eq!(metrics.matches("\ntestigo_pool_slots{").count(), 100);
    assert!(metrics.contains("\ntestigo_pools_omitted 1\n"), "{metrics}");
}

#[test]
fn json_metrics_and_health_are_served() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let mut client = node.client();
    client.call(&["LOCK", "deploy", "REASON", "release"]);

    assert_eq!(get(at, "/healthz").0, "HTTP/1.1 200 OK");
    let (_, metrics) = get(at, "/metrics");
    assert!(metrics.contains("\ntestigo_grants_total 1\n"), "{metrics}");
    assert!(metrics.contains("\ntestigo_holds 1\n"), "{metrics}");

    client.call(&[
        "FLOW",
        "APPLY",
        "shop",
        "intake -> [orders] -> bill\nqueue orders { limit 1 }",
    ]);
    client.call(&["JOB", "CREATE", "orders", "o-1", "body"]);
    client.call(&["JOB", "CREATE", "orders", "o-2", "body"]);
    let (_, metrics) = get(at, "/metrics");
    let of = "{flow=\"shop\",queue=\"orders\"}";
    for line in [
        "waiting{} 1",
        "arrivals_total{} 1",
        "departures_total{} 0",
        "full_total{} 1",
    ] {
        let line = format!("\ntestigo_queue_{}\n", line.replace("{}", of));
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    pools_are_counted(&node);
    let (_, answer) = get(at, "/api/flows");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let flows: serde_json::Value = serde_json::from_str(body).expect("JSON");
    let queue = &flows[0]["queues"][0];
    assert_eq!((&queue["arrivals"], &queue["full"]), (&1.into(), &1.into()));
    assert!(queue["arrivals_per_second"].is_number(), "{queue}");
    let bill = &flows[0]["arrows"][0];
    let of = (&bill["process"], &bill["queue"], &bill["into"]);
    assert_eq!(of, (&"bill".into(), &"orders".into(), &false.into()));
    assert_eq!(bill["count"], 0);
    assert!(bill["per_second"].is_number(), "{bill}");

    let (_, answer) = get(at, "/api/state");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    let state: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(state["gates"][0]["name"], "deploy");
    assert_eq!(state["gates"][0]["holders"][0]["reason"], "release");
    assert_eq!(state["sizes"]["holds"], 1);
    assert!(
        get(at, "/api/gates/deploy")
            .1
            .contains("\"rule\":\"MUTEX\"")
    );
    assert!(get(at, "/api/sessions").0.contains("200"));
    assert!(get(at, "/api/waits").1.ends_with("[]\n"));
    assert!(get(at, "/").1.contains("<title>Testigo</title>"));
}

#[test]
fn what_is_not_there_or_not_allowed_is_said() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    assert!(get(at, "/nothing").0.contains("404"));
    assert!(get(at, "/api/gates/none").1.contains("NOGATE"));
    assert!(
        request(at, &format!("POST / HTTP/1.1\r\nHost: {at}"))
            .0
            .contains("405")
    );
    assert!(
        request(at, "GET /api/state HTTP/1.1\r\nHost: evil.example")
            .0
            .contains("403")
    );
    assert!(request(at, "hello").0.contains("400"));
    let (status, head) = request(at, &format!("HEAD / HTTP/1.1\r\nHost: {at}"));
    assert!(
        status.contains("200") && !head.contains("<title>"),
        "{head}"
    );
}

#[test]
fn events_tell_the_state_at_once() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let mut stream = TcpStream::connect(at).expect("the node listens");
    write!(stream, "GET /api/events HTTP/1.1\r\nHost: {at}\r\n\r\n").expect("sent");
    let mut told = String::new();
    let mut chunk = [0; 4096];
    while told.matches("event: state\ndata: {").count() < 2 {
        let read = stream.read(&mut chunk).expect("told");
        assert!(read > 0, "the events ended: {told}");
        told.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    assert!(told.contains("text/event-stream"));
}

#[test]
fn a_password_is_asked_for() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = dir.path().join("testigo.conf");
    std::fs::write(&config, "resp = 127.0.0.1:0\npassword = secret\n").expect("writable");
    let node = Up::start(
        &dir.path().join("data"),
        &["--config", config.to_str().expect("text")],
    );
    let at = node.http();
    assert!(get(at, "/api/state").0.contains("401"));
    assert!(
        get(at, "/healthz").0.contains("200"),
        "health is for everybody"
    );
    let with = |word: &str| {
        request(
            at,
            &format!("GET /api/state HTTP/1.1\r\nHost: {at}\r\nAuthorization: Basic {word}"),
        )
        .0
    };
    assert!(
        with("YW55Ym9keTpzZWNyZXQ=").contains("200"),
        "anybody:secret"
    );
    assert!(
        with("YW55Ym9keTp3cm9uZw==").contains("401"),
        "anybody:wrong"
    );
}

#[test]
fn a_node_that_grants_all_but_some_gates_after_a_crash_is_healthy_and_says_so() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    let opened = client.call(&["SESSION", "OPEN", "TTL", "60000"]);
    let session = opened.int().to_string();
    client.call(&["LOCK", "deploy"]);
    node.kill();
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let (status, answer) = get(at, "/healthz");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(
        answer.ends_with("\r\n\r\nok\nrecovering: what earlier sessions (1) may hold is not granted until they have reconnected or expired\n"),
        "{answer}"
    );
    let (_, metrics) = get(at, "/metrics");
    for line in ["\ntestigo_healthy 1\n", "\ntestigo_recovering 1\n"] {
        assert!(metrics.contains(line), "{line}: {metrics}");
    }
    node.client().call(&["SESSION", "END", &session]);
    assert!(get(at, "/healthz").1.ends_with("\r\n\r\nok\n"));
}

#[test]
fn a_node_that_recovers_is_not_healthy_until_every_session_is_back() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let opened = node.client().call(&["SESSION", "OPEN", "TTL", "60000"]);
    let session = opened.int().to_string();
    node.kill();
    // As after a crash of the machine.
    std::fs::remove_file(dir.path().join("scratch")).expect("a scratch file");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let (status, answer) = get(at, "/healthz");
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(
        answer.ends_with("\r\n\r\nrecovering: no lock is granted until every earlier session (1) has reconnected or expired\n"),
        "{answer}"
    );
    let (_, metrics) = get(at, "/metrics");
    for line in [
        "healthy 0",
        "recovering 1",
        "read_only 0",
        "disk_full 0",
        "stopping 0",
    ] {
        let line = format!("\ntestigo_{line}\n");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    node.client().call(&["SESSION", "RESUME", &session]);
    assert_eq!(get(at, "/healthz").0, "HTTP/1.1 200 OK");
    let (_, metrics) = get(at, "/metrics");
    assert!(metrics.contains("\ntestigo_healthy 1\n"), "{metrics}");
}
