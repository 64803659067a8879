//! PostgreSQL's own protocol, version 3: the greeting, prepared statements, and everything up to `ReadyForQuery`.

use std::net::TcpStream;

use super::converse;

/// As `initdb` is told.
pub(crate) const USER: &str = "postgres";
const PROTOCOL: i32 = 3 << 16;
const BINARY: u16 = 1;

/// Opens a session.
pub(crate) fn greet(stream: &mut TcpStream) -> Result<(), String> {
    let words = format!("user\0{USER}\0database\0{USER}\0\0");
    let mut startup = (words.len() as i32 + 8).to_be_bytes().to_vec();
    startup.extend(PROTOCOL.to_be_bytes());
    startup.extend(words.bytes());
    converse(stream, &startup, |heard| Ok(answer(heard)?.is_some()))
}

/// Prepares statements by name.
pub(crate) fn prepare(stream: &mut TcpStream, statements: &[(&str, &str)]) -> Result<(), String> {
    let mut say = Vec::new();
    for (name, query) in statements {
        message(&mut say, b'P', format!("{name}\0{query}\0\0\0").as_bytes());
    }
    sync(&mut say);
    converse(stream, &say, |heard| Ok(answer(heard)?.is_some()))
}

/// Carries out a statement as it is.
pub(crate) fn query(stream: &mut TcpStream, query: &str) -> Result<(), String> {
    let mut say = Vec::new();
    message(&mut say, b'Q', format!("{query}\0").as_bytes());
    converse(stream, &say, |heard| Ok(answer(heard)?.is_some()))
}

/// Binds and executes a prepared statement; arguments and results are binary.
pub(crate) fn execute(out: &mut Vec<u8>, name: &str, arguments: &[&[u8]]) {
    let mut bind = format!("\0{name}\0").into_bytes();
    bind.extend(1_u16.to_be_bytes());
    bind.extend(BINARY.to_be_bytes());
    bind.extend((arguments.len() as u16).to_be_bytes());
    for argument in arguments {
        bind.extend((argument.len() as i32).to_be_bytes());
        bind.extend_from_slice(argument);
    }
    bind.extend(1_u16.to_be_bytes());
    bind.extend(BINARY.to_be_bytes());
    message(out, b'B', &bind);
    message(out, b'E', &[0; 5]);
}

/// Asks for `ReadyForQuery`.
pub(crate) fn sync(out: &mut Vec<u8>) {
    message(out, b'S', b"");
}

fn message(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as i32 + 4).to_be_bytes());
    out.extend_from_slice(body);
}

/// Everything up to and with `ReadyForQuery`.
#[derive(Debug, Default)]
pub(crate) struct Ready<'a> {
    pub(crate) length: usize,
    /// The last row's columns.
    pub(crate) row: Option<Vec<&'a [u8]>>,
    /// What the first finished statement says about itself, such as `DELETE 1`.
    pub(crate) said: Option<&'a [u8]>,
}

/// Reads an answer; nothing while it is incomplete.
pub(crate) fn answer(input: &[u8]) -> Result<Option<Ready<'_>>, String> {
    let mut found = Ready::default();
    while let Some(head) = input.get(found.length..found.length + 5) {
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(body) = input.get(found.length + 5..found.length + 1 + length) else {
            return Ok(None);
        };
        found.length += 1 + length;
        match head[0] {
            b'E' => return Err(format!("PostgreSQL: {}", String::from_utf8_lossy(body))),
            b'D' => found.row = Some(columns(body).ok_or("PostgreSQL gave a torn row")?),
            b'C' => found.said = found.said.or(Some(body)),
            b'Z' => return Ok(Some(found)),
            _ => {}
        }
    }
    Ok(None)
}

fn columns(row: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut rest) = row.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        // NULL has a length below 0.
        let length = i32::from_be_bytes(*length).max(0) as usize;
        let (column, after) = after.split_at_checked(length)?;
        columns.push(column);
        rest = after;
    }
    Some(columns)
}
