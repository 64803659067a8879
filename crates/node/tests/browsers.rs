//! What browsers send to the RESP door when a page tells them to: recorded from Firefox 153 ESR, Chromium 156 and curl.
//! Each wants to delete a flow; none may.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;

use support::{House, Value};

const FLOW: &str = "intake -> [orders] -> bill";
/// What a page wants to be carried out.
const EVIL: &[u8] = b"\r\nFLOW DELETE victim\r\n";

/// The recorded connections, by file name.
fn recorded() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browsers");
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    });
    let all: Vec<_> = files.collect();
    assert_eq!(all.len(), 21);
    all
}

/// A node with a flow that pages would like to delete.
fn with_victim() -> House {
    let house = House::open();
    let applied = house.client().call(&["FLOW", "APPLY", "victim", FLOW]);
    assert!(!matches!(applied, Value::Error(_)), "{applied}");
    house
}

/// Sends bytes in the given pieces, and what a page would like to be done; gives all that the node answers before it
/// hangs up.
fn heard(house: &House, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(house.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = stream.try_clone().unwrap();
    let reader = thread::spawn(move || {
        let mut heard = Vec::new();
        // Closed with bytes unread, the connection is reset, perhaps before all of the answer was read.
        let _ = reader.read_to_end(&mut heard);
        String::from_utf8(heard).unwrap()
    });
    for piece in pieces.iter().chain(&[EVIL]) {
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    reader.join().unwrap()
}

/// No command was carried out, and the flow is there.
fn unharmed(house: &House, commands: i64) {
    let mut client = house.client();
    let status = client.call(&["STATUS"]);
    assert_eq!(status.at("commands_ever").int(), commands + 1);
    let flow = client.call(&["FLOW", "SHOW", "victim"]);
    assert_eq!(flow.at("text"), &Value::Text(FLOW.into()));
}

/// Nothing, an error of one line, or one answer in HTTP that tells where the console is.
fn answered_once(answer: &str) -> bool {
    let error = answer.starts_with("-BADARG protocol error: ") && answer.lines().count() == 1;
    let told = answer.starts_with("HTTP/1.1 400 ") && answer.ends_with("--http says otherwise.\n");
    answer.is_empty() || error || told && answer.matches("HTTP/1.1").count() == 1
}

#[test]
fn what_browsers_send_is_refused_before_its_body_is_read() {
    let house = with_victim();
    let mut commands = 1;
    for (name, bytes) in recorded() {
        let answer = heard(&house, &[&bytes]);
        let right = match name.contains("tls") {
            true => "-BADARG protocol error: this is TLS",
            false => "HTTP/1.1 400 Bad Request\r\n",
        };
        assert!(
            answer.is_empty() || answer.starts_with(right),
            "{name}: {answer}"
        );
        assert!(answered_once(&answer), "{name}: {answer}");
        unharmed(&house, commands);
        commands += 2;
    }
    let status = house.client().call(&["STATUS"]);
    assert_eq!(status.at("closed_http_ever").int(), 19);
    assert_eq!(status.at("closed_protocol_ever").int(), 2);
}

/// However the bytes are cut, also within the request line.
#[test]
fn bytes_that_are_cut_anywhere_are_refused_alike() {
    let house = with_victim();
    for (name, bytes) in recorded() {
        let cuts = (1..bytes.len().min(80)).chain((80..bytes.len()).step_by(97));
        for cut in cuts {
            let answer = heard(&house, &[&bytes[..cut], &bytes[cut..]]);
            assert!(answered_once(&answer), "{name} at {cut}: {answer}");
        }
    }
    unharmed(&house, 1);
}

/// What else a page can make a browser send, or a program that speaks for it.
#[test]
fn requests_of_every_shape_are_refused() {
    let house = with_victim();
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n", "x".repeat(2_000_000));
    let header = format!("GET / HTTP/1.1\r\nX: {}\r\n", "x".repeat(100_000));
    let shapes: [&[u8]; 14] = [
        long.as_bytes(),
        header.as_bytes(),
        b"POST / HTTP/1.0\n",
        b"POST /\r\n",
        b"\r\n\r\nPUT /x HTTP/1.1\r\n",
        b"CONNECT 127.0.0.1:7600 HTTP/1.1\r\n",
        b"GET /' HTTP/1.1\r\n",
        b"GET /\" HTTP/1.1\r\n",
        b"hOsT: 127.0.0.1\r\n",
        b" \t Host: 127.0.0.1\r\n",
        // A message of STUN over TCP, which pages can cause as well: type, length, cookie.
        b"\x00\x01\x00\x58\x21\x12\xa4\x42\r\n",
        // The greeting of SSL 2.
        b"\x80\x2e\x01\x03\x01\r\n",
        // A resumed session of TLS, with a ticket of the page's choice.
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\nFLOW DELETE victim\r\n",
        b"\xff\xfe\r\n",
    ];
    for shape in shapes {
        let answer = heard(&house, &[shape]);
        let shown = shape[..shape.len().min(40)].escape_ascii();
        assert!(answered_once(&answer), "{shown}: {answer}");
    }
    unharmed(&house, 1);
    // A key, a gate, a reason that only look like it.
    let mut client = house.client();
    for line in ["GET key", "LOCK \"HTTP/1.1\"", "LOCK b REASON \"Host: x\""] {
        client.send_bytes(format!("{line}\r\n").as_bytes()).unwrap();
        client.read();
    }
    let held = client.call(&["LOCK", "HTTP/1.1", "WAIT", "0"]);
    assert!(held.error().starts_with("HELD "), "{held}");
}

#[test]
fn a_request_behind_commands_ends_them() {
    let house = with_victim();
    let answer = heard(
        &house,
        &[b"PING\r\n*1\r\n$4\r\nPING\r\nGET / HTTP/1.1\r\nPING\r\n"],
    );
    let right = "+PONG\r\n+PONG\r\nHTTP/1.1 400 Bad Request\r\n";
    assert!(answer.is_empty() || answer.starts_with(right), "{answer}");
    unharmed(&house, 3);
}

#[test]
fn curl_cannot_delete_a_flow() {
    let house = with_victim();
    let url = format!("http://{}/", house.address());
    for options in [
        &["--http0.9"][..],
        &["--http1.0"],
        &["--http2-prior-knowledge"],
        &["--http0.9", "--request", "FLOW"],
    ] {
        let curl = Command::new("curl")
            .args([
                "--silent",
                "--max-time",
                "60",
                "--noproxy",
                "*",
                "--data-binary",
            ])
            .arg("\r\nFLOW DELETE victim\r\n")
            .args(options)
            .arg(&url)
            .output();
        let Ok(curl) = curl else {
            println!("SKIPPED: curl is not installed, so its requests were not tried");
            return;
        };
        let said = String::from_utf8_lossy(&curl.stdout);
        assert!(!said.contains("+OK"), "{options:?}: {said}");
    }
    unharmed(&house, 1);
}
