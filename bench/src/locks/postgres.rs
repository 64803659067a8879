//! PostgreSQL's session-level advisory locks, as prepared statements over its own protocol, version 3.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect, converse};

#[derive(Debug)]
pub(crate) struct Postgres {
    key: usize,
    lock: Vec<u8>,
    unlock: Vec<u8>,
    leaving: bool,
}

/// As `initdb` is told.
pub(crate) const USER: &str = "postgres";
const PROTOCOL: i32 = 3 << 16;

impl Postgres {
    pub(crate) fn new(key: usize) -> Postgres {
        Postgres {
            key,
            lock: call("lock"),
            unlock: call("unlock"),
            leaving: false,
        }
    }
}

impl Dialect for Postgres {
    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let words = format!("user\0{USER}\0database\0{USER}\0\0");
        let mut startup = (words.len() as i32 + 8).to_be_bytes().to_vec();
        startup.extend(PROTOCOL.to_be_bytes());
        startup.extend(words.bytes());
        converse(stream, &startup, |heard| Ok(ready(heard)?.is_some()))?;
        let mut prepare = Vec::new();
        for name in ["lock", "unlock"] {
            let query = format!("SELECT pg_advisory_{name}({})", self.key);
            prepare.extend(message(b'P', format!("{name}\0{query}\0\0\0").as_bytes()));
        }
        prepare.extend(message(b'S', b""));
        converse(stream, &prepare, |heard| Ok(ready(heard)?.is_some()))
    }

    fn lock(&mut self, out: &mut Vec<u8>) {
        self.leaving = false;
        out.extend_from_slice(&self.lock);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        self.leaving = true;
        out.extend_from_slice(&self.unlock);
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some((used, row)) = ready(input)? else {
            return Ok(None);
        };
        match (self.leaving, row) {
            (false, Some(_)) => Ok(Some((used, Answer::Entered(None)))),
            (true, Some(b't')) => Ok(Some((used, Answer::Left))),
            (_, row) => Err(format!("PostgreSQL gave {row:?} for a lock")),
        }
    }
}

/// Runs a prepared statement: bind, execute, synchronise.
fn call(name: &str) -> Vec<u8> {
    let mut bytes = message(b'B', format!("\0{name}\0\0\0\0\0\0\0").as_bytes());
    bytes.extend(message(b'E', &[0; 5]));
    bytes.extend(message(b'S', b""));
    bytes
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend((body.len() as i32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Everything up to and with `ReadyForQuery`: how long it is, and the last byte of a row in it (an advisory lock's row is
/// empty or one letter).
fn ready(input: &[u8]) -> Result<Option<(usize, Option<u8>)>, String> {
    let (mut at, mut row) = (0, None);
    while let Some(head) = input.get(at..at + 5) {
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(body) = input.get(at + 5..at + 1 + length) else {
            return Ok(None);
        };
        match head[0] {
            b'E' => return Err(format!("PostgreSQL: {}", String::from_utf8_lossy(body))),
            b'D' => row = body.last().copied(),
            b'Z' => return Ok(Some((at + 1 + length, row))),
            _ => {}
        }
        at += 1 + length;
    }
    Ok(None)
}
