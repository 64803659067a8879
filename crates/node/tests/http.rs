//! The HTTP door and those who mean no good: slow ones, many, and greedy ones.

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use support::House;
use support::http::{
    DEADLINE, EVENTS, ask, at, becomes, get, listens, open, read_until, rest, status,
};

const HALF_HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
const HALF_BODY: &[u8] = b"POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[";

/// Sends a byte now and then, as no pause between bytes would be too long, until the door closes.
fn drip(stream: &mut TcpStream) -> String {
    let (start, mut all, mut chunk) = (Instant::now(), Vec::new(), [0; 4096]);
    stream
        .set_read_timeout(Some(Duration::from_millis(10)))
        .unwrap();
    while start.elapsed() < DEADLINE {
        let written = stream.write(b" ");
        match stream.read(&mut chunk) {
            Ok(0) => return String::from_utf8_lossy(&all).into_owned(),
            Ok(read) => all.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock && written.is_ok() => {}
            Err(error) if error.kind() == ErrorKind::TimedOut && written.is_ok() => {}
            Err(_) => return String::from_utf8_lossy(&all).into_owned(),
        }
    }
    panic!("a slow one was never closed");
}

#[test]
fn elections_are_counted_and_shown_and_are_no_gates() {
    let house = House::with(listens);
    let at = at(&house);
    let mut client = house.client();
    for value in ["one", "two"] {
        client.call(&["ELECT", "CAMPAIGN", "db", value]).int();
        client.call(&["ELECT", "RESIGN", "db"]);
    }
    client.call(&["ELECT", "CAMPAIGN", "db", "three"]).int();
    let metrics = get(at, "/metrics");
    for line in ["elections 1", "terms_total 3", "gates 0", "holds 1"] {
        assert!(
            metrics.contains(&format!("\ntestigo_{line}\n")),
            "{line}: {metrics}"
        );
    }
    let state = get(at, "/api/state");
    let state = &state[state.find("\r\n\r\n").expect("a head")..];
    let state: serde_json::Value = serde_json::from_str(state).expect("JSON");
    assert_eq!(state["gates"], serde_json::json!([]));
    let election = &state["elections"][0];
    assert_eq!(
        (&election["name"], &election["leader"]["value"]),
        (&"db".into(), &"three".into())
    );
    let past = election["terms"].as_array().expect("terms");
    let past: Vec<&str> = past
        .iter()
        .filter_map(|term| term["value"].as_str())
        .collect();
    assert_eq!(past, ["two", "one"]);
    assert_eq!(status(&get(at, "/api/gates/election%20db")), "404");
}

#[test]
fn groups_and_decisions_are_shown() {
    let house = House::with(listens);
    let at = at(&house);
    let state = || -> serde_json::Value {
        let state = get(at, "/api/state");
        let state = &state[state.find("\r\n\r\n").expect("a head")..];
        serde_json::from_str(state).expect("JSON")
    };
    let none = state();
    assert_eq!(
        (&none["groups"], &none["decisions"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let mut client = house.client();
    let open = ["SESSION", "OPEN", "TTL", "60000", "LABEL", "ann"];
    let session = client.call(&open).int();
    let joined = client.call(&["GROUP", "JOIN", "talk", "ORDER", "CAUSAL"]);
    let last = joined.at("last").int();
    client.call(&["GROUP", "SEND", "talk", "one"]);
    client.call(&["GROUP", "SEND", "talk", "two"]);
    client.call(&["DECIDE", "release", "7.1"]);
    client.call(&["DECIDE", "release", "7.2"]);
    let state = state();
    let sent = |number: i64, body: &str| serde_json::json!({ "number": number, "session": session, "label": "ann", "body": body });
    let expected = serde_json::json!([{
        "name": "talk", "order": "CAUSAL", "using": "log", "last": last + 2, "kept": 2,
        "members": [{ "session": session, "label": "ann", "node": 1, "joined_after": last }],
        "members_more": 0,
        "deliveries": [sent(last + 2, "two"), sent(last + 1, "one")],
    }]);
    assert_eq!(state["groups"], expected);
    let decided = serde_json::json!([{ "name": "release", "value": "7.1" }]);
    assert_eq!(state["decisions"], decided);
}

#[test]
fn who_speaks_resp_is_told_which_door_this_is() {
    let house = House::with(listens);
    let mut stream = open(at(&house), b"*1\r\n$4\r\nPING\r\n");
    let told = rest(&mut stream);
    assert!(told.starts_with("-BADARG this is the HTTP door"), "{told}");
    assert!(told.contains("7600") && told.ends_with("\r\n"), "{told}");
    assert_eq!(status(&get(at(&house), "/healthz")), "200");
}

#[test]
fn health_and_metrics_answer_while_all_other_connections_are_taken() {
    let house = House::with(|config| {
        listens(config);
        config.http_limits.connections = 16;
        config.http_limits.requests = 2;
        config.http_limits.streams = 2;
        config.http_limits.head_ms = 600_000;
        config.http_limits.body_ms = 600_000;
    });
    let at = at(&house);
    let mut streams = [(); 2].map(|()| open(at, EVENTS));
    for stream in &mut streams {
        read_until(stream, "event: state");
    }
    let bodies = [(); 2].map(|()| open(at, HALF_BODY));
    becomes(at, "/api/waits", "503");
    let mut heads: Vec<_> = (0..200).map(|_| open(at, HALF_HEAD)).collect();
    for path in ["/healthz", "/metrics"] {
        for _ in 0..20 {
            let answer = get(at, path);
            assert_eq!(status(&answer), "200", "{path}: {answer}");
        }
    }
    let refused = get(at, "/api/waits");
    assert_eq!(status(&refused), "503");
    assert!(refused.contains("2 requests are under way, the limit http_requests"));
    let refused = get(at, "/api/events");
    assert_eq!(status(&refused), "503");
    assert!(refused.contains("2 event streams are under way, the limit http_streams"));
    let metrics = get(at, "/metrics");
    for line in ["http_requests 2", "http_streams 2"] {
        assert!(
            metrics.contains(&format!("\ntestigo_{line}\n")),
            "{metrics}"
        );
    }
    // The oldest slow one was closed to make room; who has a request or a stream was not.
    assert_eq!(rest(&mut heads[0]), "");
    for stream in &mut streams {
        read_until(stream, "event: state");
    }
    drop(bodies);
    becomes(at, "/api/waits", "200");
    drop(streams);
    becomes_stream(at);
}

fn becomes_stream(at: SocketAddr) {
    let start = Instant::now();
    loop {
        let mut stream = open(at, EVENTS);
        if status(&read_until(&mut stream, "\r\n\r\n")) == "200" {
            return;
        }
        assert!(start.elapsed() < DEADLINE, "no stream is ever let in again");
    }
}

#[test]
fn a_request_has_a_deadline_however_steadily_it_drips() {
    let house = House::with(|config| {
        listens(config);
        config.http_limits.head_ms = 300;
        config.http_limits.body_ms = 300;
    });
    let at = at(&house);
    assert_eq!(drip(&mut open(at, HALF_HEAD)), "");
    let late = drip(&mut open(at, HALF_BODY));
    assert_eq!(status(&late), "408", "{late}");
    assert!(late.contains("the limit http_body_ms"), "{late}");
    // Silent from the start, and silent after an answer.
    assert_eq!(rest(&mut open(at, b"")), "");
    let kept = ask(at, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(kept.ends_with("\r\n\r\nok\n"), "{kept}");
}

#[test]
fn an_answer_that_nobody_reads_gives_up_its_place() {
    let house = House::with(|config| {
        listens(config);
        config.http_limits.requests = 1;
        config.http_limits.streams = 1;
        config.http_limits.answer_ms = 300;
    });
    let at = at(&house);
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&at.into()).unwrap();
    let mut greedy = TcpStream::from(socket);
    greedy.set_write_timeout(Some(DEADLINE)).unwrap();
    let text = "x".repeat(1 << 20);
    let body = format!("[\"ECHO\",\"{text}\"]");
    let length = body.len();
    let request = format!(
        "POST /api/command HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    // More answers than the system buffers; the door stops reading at some point, and then it closes.
    let mut sent = Ok(());
    for _ in 0..100 {
        sent = greedy.write_all(request.as_bytes());
        if sent.is_err() {
            break;
        }
    }
    let closed = sent.expect_err("a hundred unread answers were all made");
    let kinds = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(kinds.contains(&closed.kind()), "{closed}");
    becomes(at, "/api/waits", "200");
}

#[test]
fn a_stop_ends_streams_and_closes_everybody() {
    let mut house = House::with(listens);
    let at = at(&house);
    let mut stream = open(at, EVENTS);
    read_until(&mut stream, "event: state");
    let mut idle = open(at, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    read_until(&mut idle, "ok\n");
    let mut slow = open(at, HALF_HEAD);
    house.node.take().unwrap().stop().unwrap();
    let told = rest(&mut stream);
    assert!(told.ends_with("0\r\n\r\n"), "the stream ends whole: {told}");
    assert_eq!(rest(&mut idle), "");
    assert_eq!(rest(&mut slow), "");
    assert!(TcpStream::connect(at).is_err());
}

#[test]
fn who_is_gone_frees_a_stream() {
    let house = House::with(|config| {
        listens(config);
        config.http_limits.streams = 1;
    });
    let at = at(&house);
    for _ in 0..5 {
        let start = Instant::now();
        loop {
            let mut stream = open(at, EVENTS);
            if status(&read_until(&mut stream, "\r\n\r\n")) == "200" {
                stream.shutdown(Shutdown::Both).unwrap();
                break;
            }
            assert!(start.elapsed() < DEADLINE, "the stream is never free again");
        }
    }
}

#[test]
fn a_hostile_pattern_is_refused_over_http() {
    let house = House::with(listens);
    let at = at(&house);
    let answer = get(at, &format!("/api/state?pattern={}", "%2Ax".repeat(9)));
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("the limit pattern_stars"), "{answer}");
    let body = format!("[\"GATE\",\"LIST\",\"{}\"]", "*x".repeat(9));
    let head = "POST /api/command HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let answer = ask(at, &request);
    assert_eq!(status(&answer), "400", "{answer}");
    assert!(answer.contains("the limit pattern_stars"), "{answer}");
}
