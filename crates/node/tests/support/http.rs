//! Requests to the HTTP door, as plain as they travel.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use testigo_node::Config;

use super::House;

/// How long anything may take before a test gives up.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) fn listens(config: &mut Config) {
    config.http = Some("127.0.0.1:0".parse().unwrap());
}

pub(crate) fn at(house: &House) -> SocketAddr {
    house.node.as_ref().unwrap().http_address().unwrap()
}

pub(crate) fn open(at: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// Everything until the door closes; one that closes with a reset has closed, too.
pub(crate) fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the door did not close: {error}"),
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads until a text was there.
pub(crate) fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let (mut all, mut chunk) = (String::new(), [0; 4096]);
    while !all.contains(text) {
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed before {text:?}: {all}");
        all.push_str(&String::from_utf8_lossy(&chunk[..read]));
    }
    all
}

/// One request on a connection of its own; its whole answer.
pub(crate) fn ask(at: SocketAddr, request: &str) -> String {
    rest(&mut open(at, request.as_bytes()))
}

pub(crate) fn get(at: SocketAddr, path: &str) -> String {
    ask(
        at,
        &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
    )
}

pub(crate) fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or_default()
}

/// Asks again until the answer has this status.
pub(crate) fn becomes(at: SocketAddr, path: &str, wanted: &str) {
    let start = Instant::now();
    loop {
        let answer = get(at, path);
        if status(&answer) == wanted {
            return;
        }
        assert!(start.elapsed() < DEADLINE, "never {wanted}: {answer}");
    }
}

/// A request for events.
pub(crate) const EVENTS: &[u8] = b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
