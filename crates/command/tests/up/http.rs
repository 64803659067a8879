//! Requests to the HTTP door, as plain as they travel.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

/// The header of every request that brings something.
pub(crate) const JSON: &str = "Content-Type: application/json\r\n";

/// Sends a request as it stands; gives the status line and the body.
pub(crate) fn send(at: SocketAddr, request: &[u8]) -> (String, String) {
    let mut stream = TcpStream::connect(at).expect("the node listens");
    stream.write_all(request).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.lines().next().unwrap_or_default().to_owned();
    (status, body.to_owned())
}

/// Posts a body with these headers; gives the status line and the JSON of the answer.
pub(crate) fn post(at: SocketAddr, path: &str, headers: &str, body: &str) -> (String, Value) {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    let (status, body) = send(at, request.as_bytes());
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}
