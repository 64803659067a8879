//! Commands over HTTP: what the wire does, with the rights of who asks, and nothing that outlives the request.

mod up;

use std::net::SocketAddr;

use serde_json::{Value, json};
use up::Up;
use up::http::{JSON, post, send};

const FLOW: &str = "flow { retries 0; reject [failed] }\n\
                    intake -> [orders] -> price -> [priced] -> bill\n[failed] -> clerk\nqueue priced { limit 1 }\n";

/// One command; the answer, or the error with its status.
fn ask(at: SocketAddr, words: &[&str]) -> Result<Value, (String, Value)> {
    let (status, body) = post(at, "/api/command", JSON, &json!(words).to_string());
    match status.contains(" 200 ") {
        true => Ok(body["answer"].clone()),
        false => Err((status, body["error"].clone())),
    }
}

fn refused(at: SocketAddr, words: &[&str]) -> (String, String) {
    let (status, error) = ask(at, words).expect_err("refused");
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    let code = status.split(' ').nth(1).unwrap_or_default();
    (format!("{code} {}", text("code")), text("message"))
}

#[test]
fn a_flow_is_administered_over_http() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    assert_eq!(ask(at, &["FLOW", "APPLY", "shop", FLOW]), Ok(json!("OK")));
    let first = ask(at, &["JOB", "CREATE", "shop/orders", "a", "3 apples"]).expect("created");
    let id = first.as_u64().expect("a number").to_string();
    ask(at, &["job", "create", "shop/orders", "b", "2 pears"]).expect("created");
    assert_eq!(ask(at, &["JOB", "COUNT", "shop/orders"]), Ok(json!(2)));
    let found = ask(at, &["JOB", "FIND", "a*"]).expect("found");
    assert_eq!(found, json!([[first, "a", "shop/orders", "waiting", 0]]));

    // Its worker dies: it is rejected, and goes back to where it came from.
    let mut worker = node.client();
    worker.call(&["PRESENT", "shop", "price"]);
    worker.call(&["JOB", "TAKE", "orders", "NAME", "a"]);
    let clients = ask(at, &["FLOW", "CLIENTS", "shop"]).expect("clients");
    assert_eq!(clients[0]["process"], "price");
    assert_eq!(clients[0]["jobs"][0]["name"], "a");
    let client = clients[0]["id"].as_u64().expect("a number").to_string();
    assert_eq!(ask(at, &["CLIENT", "END", &client]), Ok(json!(1)));
    let shown = until(at, &["JOB", "SHOW", &id], |job| {
        job["queue"] == "shop/failed"
    });
    assert_eq!(shown["rejected_from"], "shop/orders");
    assert_eq!(shown["body"], "3 apples");
    assert_eq!(
        ask(at, &["JOB", "MOVE", &id, "shop/orders"]),
        Ok(json!("OK"))
    );
    assert_eq!(ask(at, &["JOB", "DELETE", &id]), Ok(json!("OK")));

    let (code, why) = refused(at, &["JOB", "SHOW", &id]);
    assert_eq!(code, "404 NOJOB", "{why}");
    assert_eq!(refused(at, &["JOB", "MOVE", "x", "q"]).0, "400 BADARG");
    assert_eq!(refused(at, &["FLOW", "SHOW", "none"]).0, "404 NOFLOW");
    assert_eq!(refused(at, &["FLOW", "DELETE", "shop"]).0, "409 BUSY");
    let (code, why) = refused(at, &["FLOW", "APPLY", "shop", "a -> [q]"]);
    assert!(code == "400 BADFLOW" && why.contains("line 1"), "{why}");
    ask(at, &["JOB", "CREATE", "shop/priced", "*", ""]).expect("room");
    assert_eq!(
        refused(at, &["JOB", "CREATE", "shop/priced", "*", ""]).0,
        "409 FULL"
    );
}

/// Asks again, a bounded number of times, until the answer is as wanted.
fn until(at: SocketAddr, words: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    for _ in 0..1_000 {
        last = ask(at, words).expect("answered");
        if wanted(&last) {
            return last;
        }
    }
    panic!("{words:?} never became so: {last}");
}

#[test]
fn bodies_of_any_bytes_are_brought_and_given() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    ask(at, &["FLOW", "APPLY", "f", "a -> [q] -> b"]).expect("applied");
    let words = json!(["JOB", "CREATE", "f/q", "x", { "base64": "/wAK" }]);
    let (_, made) = post(at, "/api/command", JSON, &words.to_string());
    let id = made["answer"].as_u64().expect("an id").to_string();
    let shown = ask(at, &["JOB", "SHOW", &id]).expect("there");
    assert_eq!(shown["body"], json!({ "base64": "/wAK" }));
    let text = "ñ \"quoted\"\n\u{0}\u{1F600}";
    let id = ask(at, &["JOB", "CREATE", "f/q", "y", text])
        .expect("created")
        .to_string();
    assert_eq!(ask(at, &["JOB", "SHOW", &id]).expect("there")["body"], text);
    // The largest body that a job may have, each byte of it escaped.
    let large = "\u{1}".repeat(512 * 1024);
    let id = ask(at, &["JOB", "CREATE", "f/q", "z", &large])
        .expect("created")
        .to_string();
    assert_eq!(
        ask(at, &["JOB", "SHOW", &id]).expect("there")["body"],
        large
    );
    let larger = "x".repeat(512 * 1024 + 1);
    let (code, why) = refused(at, &["JOB", "CREATE", "f/q", "w", &larger]);
    assert!(
        code.ends_with("LIMIT") && why.contains("a body of 524289 bytes"),
        "{why}"
    );
}

#[test]
fn what_waits_or_holds_is_refused_by_name() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    for words in [
        &["LOCK", "deploy"][..],
        &["JOB", "TAKE", "q", "WAIT", "100000"],
        &["PRESENT", "f", "p"],
        &["SESSION", "OPEN"],
        &["SUBSCRIBE", "gate:x"],
        &["AUTH", "x"],
        &["NONSENSE"],
        &[],
    ] {
        assert_eq!(refused(at, words).0, "400 BADARG", "{words:?}");
    }
    let (_, why) = refused(at, &["JOB", "TAKE", "q"]);
    assert!(why.contains("all but TAKE, PASS, BACK"), "{why}");
    // Nothing is left of it: no connection, no session.
    let status = ask(at, &["STATUS"]).expect("answered");
    assert_eq!(
        (&status["connections"], &status["sessions"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn pages_from_elsewhere_and_odd_requests_change_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let words = json!(["FLOW", "APPLY", "f", "a -> [q] -> b"]).to_string();
    let own = format!("{JSON}Origin: http://{at}\r\n");
    for (headers, wanted) in [
        ("", "415"),
        ("Content-Type: text/plain\r\n", "415"),
        ("Content-Type: application/x-www-form-urlencoded\r\n", "415"),
        (&format!("{JSON}Origin: http://evil.example\r\n"), "403"),
        (&format!("{JSON}Origin: null\r\n"), "403"),
        (&format!("{JSON}Transfer-Encoding: chunked\r\n"), "411"),
        (&format!("{JSON}Content-Length: 3\r\n"), "400"),
    ] {
        let (status, _) = post(at, "/api/command", headers, &words);
        assert!(status.contains(wanted), "{headers}: {status}");
    }
    assert_eq!(
        ask(at, &["FLOW", "LIST"]),
        Ok(json!([])),
        "nothing was applied"
    );
    let (status, _) = post(at, "/api/command", &own, &words);
    assert!(status.contains("200"), "{status}");

    let head = format!("POST /api/command HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n{JSON}");
    let raw = |rest: &str| send(at, format!("{head}{rest}").as_bytes()).0;
    assert!(raw("Content-Length: 99999999\r\n\r\n").contains("413"));
    assert!(raw("Content-Length: -1\r\n\r\n").contains("400"));
    assert!(raw("Content-Length: 99999999999999999999\r\n\r\n").contains("400"));
    assert!(raw("\r\n").contains("400"), "no body is no command");
    assert!(post(at, "/", JSON, "[]").0.contains("405"));
    assert!(post(at, "/api/state", JSON, "[]").0.contains("405"));
    let (status, body) = send(
        at,
        format!("{head}Expect: 100-continue\r\nContent-Length: 8\r\n\r\n[\"PING\"]").as_bytes(),
    );
    assert!(status.contains("200") || body.contains("PONG"), "{status}");
    let deep = "[".repeat(100_000);
    assert!(post(at, "/api/command", JSON, &deep).0.contains("400"));
}

#[test]
fn the_users_rights_hold() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let config = dir.path().join("testigo.conf");
    let users = "resp = 127.0.0.1:0\nuser.ops.password = secret\nuser.ops.rights = * : admin\n\
                 user.eve.password = secret\nuser.eve.rights = shop* : show\n";
    std::fs::write(&config, users).expect("writable");
    let data = dir.path().join("data");
    let node = Up::start(&data, &["--config", config.to_str().expect("text")]);
    let at = node.http();
    let as_user = |credentials: &str, words: &[&str]| {
        let headers = format!("{JSON}Authorization: Basic {credentials}\r\n");
        post(at, "/api/command", &headers, &json!(words).to_string())
    };
    let (ops, eve) = ("b3BzOnNlY3JldA==", "ZXZlOnNlY3JldA==");
    let apply = ["FLOW", "APPLY", "shop", FLOW];
    let (status, _) = post(at, "/api/command", JSON, &json!(apply).to_string());
    assert!(status.contains("401"), "{status}");
    let (status, body) = as_user(eve, &apply);
    assert!(
        status.contains("403") && body["error"]["code"] == "DENIED",
        "{body}"
    );
    assert!(as_user(ops, &apply).0.contains("200"));
    let (_, body) = as_user(eve, &["FLOW", "LIST"]);
    assert_eq!(body["answer"][0][0], "shop");
    let (status, _) = as_user(eve, &["JOB", "CREATE", "shop/orders", "*", ""]);
    assert!(status.contains("403"), "{status}");
}
