//! What the HTTP door makes of a request: what could be read in two ways, what is not there, and what every answer has.

mod support;

use std::io::Write;
use std::net::TcpStream;

use support::House;
use support::http::{DEADLINE, EVENTS, ask, at, get, listens, open, read_until, rest, status};

/// Requests that two readers could take for different ones, or that are no requests: one refusal at most, and nothing
/// that stands behind is done.
#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let house = House::with(listens);
    let at = at(&house);
    let behind = "POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\r\n[\"GATE\",\"CREATE\",\"g\",\"MUTEX\"]  ";
    let post =
        "POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let get = "GET /api/waits HTTP/1.1\r\n";
    let long = "x".repeat(20_000);
    let many = "A: b\r\n".repeat(100);
    let shapes: Vec<(String, &[&str])> = vec![
        (
            format!("{post}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            &["411"],
        ),
        (
            format!("{post}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"),
            &["411"],
        ),
        (
            format!("{post}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            &["411"],
        ),
        (
            format!("{post}Transfer-Encoding: xchunked\r\nContent-Length: 5\r\n\r\n[\"a\"]"),
            &["400", "411"],
        ),
        (
            format!(
                "{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"
            ),
            &["400", "411"],
        ),
        (
            format!("{post}Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n"),
            &["400"],
        ),
        (
            format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n\r\n[\"a\"]"),
            &["400"],
        ),
        (
            format!("{post}Content-Length: 5, 6\r\n\r\n[\"a\"]"),
            &["400"],
        ),
        (format!("{post}Content-Length: +5\r\n\r\n[\"a\"]"), &["400"]),
        (
            format!("{post}Content-Length: 0x5\r\n\r\n[\"a\"]"),
            &["400"],
        ),
        (format!("{post}Content-Length: -1\r\n\r\n"), &["400"]),
        (
            format!("{get}Host: localhost\r\nHost: evil.example\r\n\r\n"),
            &["400"],
        ),
        (
            format!("{get}Host: localhost\r\nHost: localhost\r\n\r\n"),
            &["400"],
        ),
        (format!("{get}\r\n"), &["400"]),
        (
            format!("{get}Host: localhost\r\nX: a\r\n folded\r\n\r\n"),
            &["400"],
        ),
        (
            format!("{get}Host: localhost\r\n X: folded\r\n\r\n"),
            &["400"],
        ),
        (format!("{get}Host: localhost\r\nX: a\rb\r\n\r\n"), &["400"]),
        (format!("{get}Host: localhost\r\nX: a\0b\r\n\r\n"), &["400"]),
        (format!("{get}Host: localhost\r\nX y: a\r\n\r\n"), &["400"]),
        (
            format!("{get}Host: localhost\r\nX: {long}\r\n\r\n"),
            &["431"],
        ),
        (format!("{get}Host: localhost\r\n{many}\r\n"), &["431"]),
        (
            format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            &["414", "431"],
        ),
        (
            "GET http://evil.example/api/waits HTTP/1.1\r\nHost: localhost\r\n\r\n".into(),
            &["400"],
        ),
        (
            "GET /api/waits HTTP/1.1\r\nHost: localhost@evil.example\r\nConnection: close\r\n\r\n"
                .into(),
            &["403"],
        ),
        (
            "GET /api/waits HTTP/3.7\r\nHost: localhost\r\n\r\n".into(),
            &["400"],
        ),
        ("GET /api/waits\r\n\r\n".into(), &["400"]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), &["", "400"]),
        ("hello\r\n\r\n".into(), &["400"]),
        (
            "\x16\x03\x01\x02\x00\x01\x00\x01\u{7f}\r\n\r\n".into(),
            &["400"],
        ),
    ];
    for (shape, wanted) in shapes {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        // The door may close while this is still being sent.
        let _ = stream.write_all(format!("{shape}{behind}").as_bytes());
        let answer = rest(&mut stream);
        let shown: String = shape.chars().take(200).collect();
        assert!(wanted.contains(&status(&answer)), "{shown:?}: {answer}");
        assert!(
            answer.matches("HTTP/1.").count() <= 1,
            "{shown:?}: {answer}"
        );
    }
    let same = ask(
        at,
        "GET http://localhost/api/waits HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status(&same), "200", "one name, said twice");
    let away = ask(
        at,
        "GET http://evil.example/api/waits HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status(&away), "403");
    let lines = ask(
        at,
        "GET /api/waits HTTP/1.1\nHost: localhost\nConnection: close\n\n",
    );
    assert_eq!(
        status(&lines),
        "200",
        "lines may end plainly, as the standard allows"
    );
    assert_eq!(
        house.client().call(&["GATE", "LIST"]).list().len(),
        0,
        "nothing that stood behind was done"
    );
}

#[test]
fn what_is_not_there_or_not_meant_that_way_is_said() {
    let house = House::with(listens);
    let at = at(&house);
    let asked = |method: &str, path: &str| {
        ask(
            at,
            &format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        )
    };
    for path in [
        "/nothing",
        "/../Cargo.toml",
        "/..%2fCargo.toml",
        "/%2e%2e/Cargo.toml",
        "/console.js/../index.html",
        "/index.html%00",
        "//etc/passwd",
        "/api/gates/",
        "/api//state",
        "/API/STATE",
        "/%",
        "/?",
    ] {
        let answer = asked("GET", path);
        let wanted = if path == "/?" { "200" } else { "404" };
        assert_eq!(status(&answer), wanted, "{path}: {answer}");
        assert!(
            wanted == "200" || answer.contains("there is nothing at "),
            "{answer}"
        );
    }
    assert!(asked("GET", "/api/gates/a%2Fb%20c").contains("NOGATE"));
    assert_eq!(status(&asked("GET", "/api/gates/%ff")), "400");
    for (method, path, allowed) in [
        ("POST", "/", "GET,HEAD"),
        ("DELETE", "/api/state", "GET,HEAD"),
        ("OPTIONS", "/api/command", "POST"),
        ("GET", "/api/command", "POST"),
        ("TRACE", "/api/state", "GET,HEAD"),
        ("BREW", "/healthz", "GET,HEAD"),
        ("POST", "/metrics", "GET,HEAD"),
    ] {
        let answer = asked(method, path);
        assert_eq!(status(&answer), "405", "{method} {path}: {answer}");
        assert!(
            answer.contains(&format!("allow: {allowed}\r\n")),
            "{answer}"
        );
        assert!(
            answer.contains(&format!("{path} cannot be asked with {method}")),
            "{answer}"
        );
    }
    assert_eq!(status(&asked("OPTIONS", "*")), "404");
    let connect = asked("CONNECT", "evil.example:443");
    assert_eq!(status(&connect), "400", "{connect}");
}

#[test]
fn every_answer_has_the_policy_headers() {
    let house = House::with(listens);
    let at = at(&house);
    let mut answers: Vec<String> = [
        "/",
        "/console.js",
        "/healthz",
        "/metrics",
        "/api/state",
        "/nothing",
        "/api/command",
    ]
    .map(|path| get(at, path))
    .into();
    answers.push(ask(
        at,
        "GET /api/state HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    ));
    answers.push(ask(at, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"));
    answers.push(read_until(&mut open(at, EVENTS), "event: state"));
    for answer in answers {
        for wanted in [
            "content-security-policy: default-src 'self'; ",
            "; form-action 'none'; base-uri 'none'; frame-ancestors 'none'\r\n",
            "x-content-type-options: nosniff\r\n",
            "referrer-policy: no-referrer\r\n",
            "cache-control: no-store\r\n",
        ] {
            assert!(answer.contains(wanted), "{wanted}: {answer}");
        }
    }
}

#[test]
fn a_refused_body_does_not_cost_the_answer() {
    let house = House::with(listens);
    let at = at(&house);
    let body = "x".repeat(1 << 20);
    let length = body.len();
    for (path, wanted) in [
        ("/api/command", "415"),
        ("/nothing", "404"),
        ("/api/state", "405"),
    ] {
        let mut stream = open(at, format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").as_bytes());
        assert_eq!(status(&rest(&mut stream)), wanted, "{path}");
    }
    let mut stream = open(at, b"POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4194305\r\n\r\n");
    let refused = rest(&mut stream);
    assert_eq!(status(&refused), "413");
    assert!(refused.contains("the limit http_body_bytes"), "{refused}");
}

#[test]
fn a_connection_is_kept_and_pipelined_requests_are_answered_in_order() {
    let house = House::with(listens);
    let at = at(&house);
    let one =
        |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
    let mut kept = open(at, one("/healthz", "").as_bytes());
    read_until(&mut kept, "ok\n");
    kept.write_all(one("/api/waits", "").as_bytes()).unwrap();
    read_until(&mut kept, "[]\n");
    let three = [
        one("/healthz", ""),
        one("/nothing", ""),
        one("/api/sessions", "Connection: close\r\n"),
        one("/healthz", ""),
    ];
    kept.write_all(three.concat().as_bytes()).unwrap();
    let answers = rest(&mut kept);
    let codes: Vec<&str> = answers
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|a| &a[..3])
        .collect();
    assert_eq!(
        codes,
        ["200", "404", "200"],
        "what follows a close is not answered: {answers}"
    );
    let old = ask(at, "GET /healthz HTTP/1.0\r\n\r\n");
    assert!(
        old.starts_with("HTTP/1.0 200") && old.ends_with("ok\n"),
        "{old}"
    );
    let old = ask(at, "GET /api/state HTTP/1.0\r\n\r\n");
    assert_eq!(status(&old), "403", "no name is not a name of this machine");
    let head = ask(
        at,
        "HEAD /api/state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    );
    assert!(
        status(&head) == "200" && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let mut asked = open(at, b"POST /api/command HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 8\r\n\r\n");
    read_until(&mut asked, "HTTP/1.1 100 Continue\r\n\r\n");
    asked.write_all(b"[\"PING\"]").unwrap();
    assert!(rest(&mut asked).contains("PONG"));
}
