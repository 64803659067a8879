//! The console's JSON from any node of a cluster: it shows what all of them have, and names who does not answer.

mod browser;
mod up;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use browser::Browser;
use serde_json::{Value, json};
use up::http::{JSON, post, send};
use up::places::Places;
use up::{Up, ok};

/// So long that nobody is left out while a test looks.
const LEASE_MS: &str = "60000";
/// How long a look may take while somebody does not answer, on a busy machine.
const BOUND: Duration = Duration::from_secs(10);

fn three(places: &Places) -> [Up; 3] {
    let lease = ["--lease-ms", LEASE_MS];
    let join = [&lease[..], &["--join", &places.peers[0]]].concat();
    [
        places.up(1, &lease),
        places.up(2, &join),
        places.up(3, &join),
    ]
}

fn get(at: SocketAddr, path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    send(at, request.as_bytes())
}

fn json_at(at: SocketAddr, path: &str) -> Value {
    let (status, body) = get(at, path);
    assert_eq!(status, "HTTP/1.1 200 OK", "{path}: {body}");
    serde_json::from_str(&body).expect("JSON")
}

/// Asks until the answer is one that is looked for.
fn until(at: SocketAddr, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = json_at(at, path);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{path}: {answer}");
    }
}

/// A gate that a node owns.
fn gate_of(nodes: &[Up; 3], node: i64) -> String {
    let mut client = nodes[0].client();
    let mut names = (0..).map(|number| format!("deploy-{number}"));
    let mut owns = |name: &String| client.call(&["OWNER", name]).at("owner").int() == node;
    names.find(|name| owns(name)).expect("one of them")
}

fn named<'a>(rows: &'a Value, field: &str, name: &str) -> &'a Value {
    let mut rows = rows.as_array().expect("rows").iter();
    let found = rows.find(|row| row[field] == name);
    found.unwrap_or(&Value::Null)
}

fn posted(at: SocketAddr, words: &[&str]) -> Value {
    let (status, body) = post(at, "/api/command", JSON, &json!(words).to_string());
    assert_eq!(status, "HTTP/1.1 200 OK", "{words:?}: {body}");
    body["answer"].clone()
}

#[test]
fn clients_and_queues_of_other_nodes_are_seen_and_looked_after() {
    let places = Places::new(3);
    let nodes = three(&places);
    let at = nodes[2].http();
    let flow = "intake -> [orders] -> price -> [priced] -> bill";
    posted(at, &["FLOW", "APPLY", "shop", flow]);
    let mut worker = nodes[1].client();
    worker.call(&["CLIENT", "SETNAME", "till"]);
    let mut asker = nodes[2].client();
    let Value::String(list) = posted(at, &["CLIENT", "LIST"]) else {
        panic!("no text");
    };
    assert!(list.contains(" name=till "), "{list}");
    assert!(
        list.contains(" node=2\n") && list.contains(" node=3\n"),
        "{list}"
    );
    // The flow may be new to the worker's node.
    let deadline = Instant::now() + Duration::from_secs(60);
    while worker.call(&["PRESENT", "shop", "price"]) != ok() {
        assert!(Instant::now() < deadline);
    }
    asker
        .call(&["JOB", "CREATE", "shop/orders", "o-1", "x"])
        .int();
    asker
        .call(&["JOB", "CREATE", "shop/orders", "o-2", "x"])
        .int();
    worker.call(&["JOB", "TAKE", "orders"]);
    let clients = posted(at, &["FLOW", "CLIENTS", "shop"]);
    assert_eq!(
        (&clients[0]["node"], &clients[0]["process"]),
        (&json!(2), &json!("price"))
    );
    assert_eq!(clients[0]["jobs"][0]["name"], "o-1");
    for node in &nodes {
        let flows = json_at(node.http(), "/api/flows");
        let orders = named(&flows[0]["queues"], "name", "orders");
        assert_eq!(
            (&orders["waiting"], &orders["held"]),
            (&json!(1), &json!(1))
        );
        let price = named(&flows[0]["processes"], "name", "price");
        assert_eq!(price["clients"], 1);
    }
    let stats = posted(at, &["FLOW", "STATS", "shop"]);
    assert_eq!(named(&stats["processes"], "name", "price")["workers"], 1);
    assert_eq!(named(&stats["queues"], "name", "orders")["held"], 1);

    if let Some(browser) = Browser::open() {
        for (width, height) in [(1280, 900), (390, 844)] {
            browser.resize(width, height);
            browser.go(&format!("{}#clients", nodes[2].console()));
            browser.shows("#client-list", "at node 2");
            browser.fits("the page of clients");
            browser.picture(&format!("anywhere-clients-{width}"));
            browser.go(&format!("{}#queues", nodes[2].console()));
            browser.shows("#queue-list", "shop/orders");
            browser.fits("the page of queues");
            browser.picture(&format!("anywhere-queues-{width}"));
            browser.go(&format!("{}#flows", nodes[2].console()));
            browser.shows("#flow-list", "1 job waiting, 1 held, 1 client");
            browser.fits("the page of flows");
            browser.picture(&format!("anywhere-flows-{width}"));
        }
    }
    let id = clients[0]["id"].to_string();
    assert_eq!(posted(at, &["CLIENT", "END", &id]), json!(1));
    assert!(worker.is_closed(), "it was ended");
}

#[test]
fn what_one_node_owns_is_seen_at_another_with_its_people() {
    let places = Places::new(3);
    let nodes = three(&places);
    let at = nodes[2].http();
    let gate = gate_of(&nodes, 1);
    let (mut holder, mut waiter) = (nodes[0].client(), nodes[1].client());
    holder.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", "deployer"]);
    holder.call(&["LOCK", &gate, "REASON", "release"]).int();
    waiter.call(&["SESSION", "OPEN", "TTL", "60000", "LABEL", "night build"]);
    waiter.send(&["LOCK", &gate, "WAIT", "60000"]);

    let path = format!("/api/gates/{gate}");
    let shown = until(at, &path, |shown| shown["waiting"] == 1);
    assert_eq!((&shown["owner"], &shown["inside"]), (&json!(1), &json!(1)));
    assert_eq!(shown["holders"][0]["label"], "deployer");
    assert_eq!(shown["holders"][0]["reason"], "release");
    assert_eq!(shown["waiters"][0]["label"], "night build");
    let state = json_at(at, "/api/state");
    assert_eq!((&state["node"], &state["missing"]), (&json!(3), &json!([])));
    let same = named(&state["gates"], "name", &gate);
    assert_eq!(same["holders"][0]["fence"], shown["holders"][0]["fence"]);
    // Clocks of nodes begin with their starts; what is told is on that of the node that was asked.
    let ago = |time: &Value| state["now_ms"].as_i64().unwrap() - time.as_i64().unwrap();
    let since = ago(&same["holders"][0]["since"]);
    assert!((0..30_000).contains(&since), "since {since} ms");
    let sessions = json_at(at, "/api/sessions");
    assert_eq!(named(&sessions, "label", "deployer")["home"], 1);
    let waits = named(&sessions, "label", "night build");
    assert_eq!(
        (&waits["home"], &waits["waits"]),
        (&json!(2), &json!([gate]))
    );
    let edge = &json_at(at, "/api/waits")[0];
    assert_eq!(edge["gate"], gate.as_str());
    assert_eq!(edge["blocker"], shown["holders"][0]["session"]);
    let (status, why) = get(at, "/api/gates/no-such-gate");
    assert_eq!(status, "HTTP/1.1 404 Not Found", "{why}");

    let browser = Browser::open();
    if let Some(browser) = &browser {
        for (width, height) in [(1280, 900), (390, 844)] {
            browser.resize(width, height);
            browser.go(&nodes[2].console());
            let card = format!("[data-gate={gate}]");
            browser.shows(&card, "owned by node 1");
            browser.shows(&format!("{card} .inside"), "deployer");
            browser.shows(&format!("{card} .waiting"), "night build");
            browser.shows("#graph text", &gate);
            browser.shows("#sessions td", "node 2");
            browser.fits("the page of gates");
            browser.picture(&format!("anywhere-{width}"));
        }
    }

    // One that does not answer is not waited for, and everybody is told what is missing.
    let [one, ..] = nodes;
    one.kill();
    let asked = Instant::now();
    let state = json_at(at, "/api/state");
    assert!(asked.elapsed() < BOUND, "after {:?}", asked.elapsed());
    assert_eq!(state["missing"], json!([1]));
    assert_eq!(named(&state["gates"], "name", &gate), &Value::Null);
    assert_eq!(named(&state["sessions"], "label", "night build")["home"], 2);
    for path in [path.as_str(), "/api/sessions", "/api/waits", "/api/flows"] {
        let (status, why) = get(at, path);
        assert_eq!(status, "HTTP/1.1 503 Service Unavailable", "{path}");
        assert_eq!(why, "node 1 did not answer\n", "{path}");
    }
    assert!(asked.elapsed() < BOUND, "after {:?}", asked.elapsed());
    if let Some(browser) = browser {
        browser.shows("#missing", "node 1 did not answer; its gates");
        browser.fits("the page of gates without node 1");
        browser.picture("anywhere-missing");
    }
}

#[test]
fn a_pool_that_is_used_at_any_node_is_not_deleted() {
    let places = Places::new(3);
    let nodes = three(&places);
    let at = nodes[0].http();
    posted(at, &["POOL", "CREATE", "ports", "SLOTS", "9"]);
    let mut holder = nodes[2].client();
    // The node may not have heard of the pool yet.
    while !matches!(holder.call(&["POOL", "TAKE", "ports"]), up::Value::List(_)) {}
    for node in &nodes {
        let delete = json!(["POOL", "DELETE", "ports"]).to_string();
        let (status, body) = post(node.http(), "/api/command", JSON, &delete);
        assert_eq!(status, "HTTP/1.1 409 Conflict", "{body}");
        let why = "pool ports has slots in use: 1 in use at node 3; POOL SHOW says by whom";
        assert_eq!(body["error"]["message"], why);
    }
    drop(holder);
    until_unused(at);
    assert_eq!(posted(nodes[1].http(), &["POOL", "DELETE", "ports"]), "OK");
    assert_eq!(posted(at, &["POOL", "LIST"]), json!([]));
}

fn until_unused(at: SocketAddr) {
    while posted(at, &["POOL", "SHOW", "ports"])["used"] != 0 {}
}
