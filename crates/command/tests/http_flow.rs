//! Flows for an editor over HTTP: text to sketch, sketch to text, and what applying would change.

mod up;

use std::net::SocketAddr;

use serde_json::{Value, json};
use up::Up;
use up::http::{JSON, post};

const TEXT: &str = "# Why.\nintake -> [orders] -> price -> [priced] -> bill  # the usual way\n\n\
                    queue orders { limit 5 }\n";

fn ask(at: SocketAddr, what: &str, body: &Value) -> Value {
    let (status, answer) = post(at, &format!("/api/flow/{what}"), JSON, &body.to_string());
    assert!(status.contains(" 200 "), "{status}: {answer}");
    answer
}

#[test]
fn a_text_is_drawn_and_written_again() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let drawn = ask(at, "draw", &json!({ "text": TEXT }));
    assert_eq!(drawn["findings"], json!([]));
    assert_eq!(drawn["drawing"]["nodes"].as_array().map(Vec::len), Some(5));
    let arrow = json!({"process": "intake", "queue": "orders", "does": "create"});
    let mut sketch = drawn["sketch"].clone();
    let arrows = sketch["arrows"].as_array().expect("arrows");
    assert!(arrows.contains(&arrow), "{arrows:?}");
    let written = ask(at, "write", &json!({"sketch": sketch, "text": TEXT}));
    assert_eq!(written["text"], TEXT, "with its comments");
    let bare = ask(at, "write", &json!({ "sketch": sketch }));
    let bare = bare["text"].as_str().expect("a text");
    assert!(!bare.contains('#'), "{bare}");

    // A drawing that is not a flow yet has no text, and the findings say what they are about.
    sketch["arrows"] = json!([arrow]);
    let written = ask(at, "write", &json!({"sketch": sketch, "text": TEXT}));
    assert_eq!(written["text"], Value::Null);
    let findings = written["findings"].as_array().expect("findings");
    let about = |finding: &&Value| finding["rule"] == "R1" && finding["queue"] == "orders";
    assert!(
        findings.iter().any(|finding| about(&finding)),
        "{findings:?}"
    );

    let drawn = ask(at, "draw", &json!({"text": "a -> -> b"}));
    assert_eq!(
        (&drawn["sketch"], &drawn["drawing"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(drawn["findings"][0]["line"], 1);
    assert_eq!(drawn["findings"][0]["weight"], "error");
}

#[test]
fn what_applying_would_change_is_told_and_nothing_is_changed() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let mut admin = node.client();
    admin.call(&["FLOW", "APPLY", "shop", TEXT]);
    admin.call(&["JOB", "CREATE", "shop/priced", "a", ""]);
    let shorter = "intake -> [orders] -> bill\nqueue orders { limit 6 }";
    let told = ask(at, "plan", &json!({"name": "shop", "text": shorter}));
    assert_eq!(told["running"], true);
    assert_eq!(
        told["plan"]["stranded"],
        json!([{"queue": "priced", "jobs": 1, "names": ["a"]}])
    );
    let changed = json!({"kind": "changed", "what": "queue orders: limit 5, then limit 6"});
    let changes = told["plan"]["changes"].as_array().expect("changes");
    assert!(changes.contains(&changed), "{changes:?}");
    for name in [json!("other"), Value::Null] {
        let told = ask(at, "plan", &json!({"name": name, "text": shorter}));
        assert_eq!(told["running"], false);
        assert_eq!(told["plan"]["changes"][0]["what"], "queue orders");
    }
    let told = ask(at, "plan", &json!({"name": "shop", "text": "a -> [q]"}));
    assert_eq!(told["plan"], Value::Null);
    assert_eq!(told["findings"][0]["rule"], "R1");
    let running = post(at, "/api/command", JSON, r#"["FLOW", "SHOW", "shop"]"#).1;
    assert_eq!(running["answer"]["text"], TEXT);
}

#[test]
fn what_is_no_drawing_is_refused_with_why() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let node = Up::start(dir.path(), &[]);
    let at = node.http();
    let many: String = (0..200)
        .map(|n| format!("a{n} -> [q{n}] -> b{n}\n"))
        .collect();
    let deep = "[".repeat(100_000);
    for (what, body, code, why) in [
        ("draw", "{}".to_owned(), "BADARG", "missing field `text`"),
        (
            "draw",
            json!({"text": 1}).to_string(),
            "BADARG",
            "expected a string",
        ),
        (
            "draw",
            json!({"text": "", "more": 1}).to_string(),
            "BADARG",
            "unknown field",
        ),
        (
            "draw",
            json!({ "text": many }).to_string(),
            "LIMIT",
            "too large to be drawn",
        ),
        ("draw", deep, "BADARG", "the body is not as wanted"),
        (
            "write",
            json!({"sketch": null}).to_string(),
            "BADARG",
            "invalid type: null",
        ),
        (
            "write",
            json!({"sketch": {"processes": [{"name": "a b"}], "queues": [], "arrows": []}})
                .to_string(),
            "BADARG",
            "does not fit in a name",
        ),
        (
            "plan",
            json!({"name": 1, "text": ""}).to_string(),
            "BADARG",
            "expected a string",
        ),
    ] {
        let (status, answer) = post(at, &format!("/api/flow/{what}"), JSON, &body);
        assert!(status.contains(" 400 "), "{body}: {status}");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(why), "{message}");
    }
    // The longest text that is read is refused by its length, and quickly.
    let long = json!({"text": "#".repeat((1 << 20) + 1)}).to_string();
    let (_, answer) = post(at, "/api/flow/draw", JSON, &long);
    assert_eq!(answer["findings"][0]["rule"], "limit", "{answer}");
    let (status, _) = post(at, "/api/flow/draw", "Content-Type: text/plain\r\n", "{}");
    assert!(status.contains(" 415 "), "{status}");
}
