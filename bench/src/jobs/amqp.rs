//! Just enough of AMQP 0-9-1: frames, methods, and the opening of a connection with one channel.

use std::net::TcpStream;

use crate::wire::converse;

/// A method: its class and its number.
pub(crate) type Name = (u16, u16);

const START: Name = (10, 10);
const START_OK: Name = (10, 11);
const TUNE: Name = (10, 30);
const TUNE_OK: Name = (10, 31);
const OPEN: Name = (10, 40);
const OPEN_OK: Name = (10, 41);
const CLOSE: Name = (10, 50);
const CHANNEL_OPEN: Name = (20, 10);
const CHANNEL_OPEN_OK: Name = (20, 11);
const CHANNEL_CLOSE: Name = (20, 40);
pub(crate) const DECLARE: Name = (50, 10);
pub(crate) const PUBLISH: Name = (60, 40);
pub(crate) const GET: Name = (60, 70);
pub(crate) const GET_OK: Name = (60, 71);
pub(crate) const GET_EMPTY: Name = (60, 72);
pub(crate) const ACK: Name = (60, 80);
pub(crate) const CONFIRM: Name = (85, 10);

const PROTOCOL: &[u8] = b"AMQP\x00\x00\x09\x01";
const METHOD_FRAME: u8 = 1;
pub(crate) const HEADER_FRAME: u8 = 2;
pub(crate) const BODY_FRAME: u8 = 3;
const END: u8 = 0xCE;
const HEAD_BYTES: usize = 7;

const CONNECTION: u16 = 0;
/// The one channel of a connection.
pub(crate) const CHANNEL: u16 = 1;

/// What a frame carries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Method(Name, &'a [u8]),
    Body(&'a [u8]),
    /// A content header or a heartbeat.
    Other,
}

/// Opens a connection as the user that may come from this machine only, and its channel.
pub(crate) fn greet(stream: &mut TcpStream) -> Result<(), String> {
    expect(stream, PROTOCOL, START)?;
    let mut start = 0_u32.to_be_bytes().to_vec();
    short_text(&mut start, "PLAIN");
    let login = b"\0guest\0guest";
    start.extend((login.len() as u32).to_be_bytes());
    start.extend(login);
    short_text(&mut start, "en_US");
    let mut say = Vec::new();
    method(&mut say, CONNECTION, START_OK, &start);
    let offered = expect(stream, &say, TUNE)?;
    // As offered, without heartbeats: channels, then the largest frame, then seconds.
    let mut tune = offered.get(..6).ok_or("RabbitMQ tunes nothing")?.to_vec();
    tune.extend([0, 0]);
    say.clear();
    method(&mut say, CONNECTION, TUNE_OK, &tune);
    let mut open = Vec::new();
    short_text(&mut open, "/");
    open.extend([0, 0]);
    method(&mut say, CONNECTION, OPEN, &open);
    expect(stream, &say, OPEN_OK)?;
    say.clear();
    method(&mut say, CHANNEL, CHANNEL_OPEN, &[0]);
    expect(stream, &say, CHANNEL_OPEN_OK).map(drop)
}

/// Says something and waits for a method; its arguments.
fn expect(stream: &mut TcpStream, say: &[u8], wanted: Name) -> Result<Vec<u8>, String> {
    let mut found = Vec::new();
    converse(stream, say, |heard| match read(heard)? {
        None => Ok(false),
        Some((_, Frame::Method(name, arguments))) if name == wanted => {
            found = arguments.to_owned();
            Ok(true)
        }
        Some((_, other)) => Err(format!("RabbitMQ said {other:?}, not {wanted:?}")),
    })?;
    Ok(found)
}

/// Reads one frame and says how long it is; nothing while it is incomplete. A close is an error.
pub(crate) fn read(input: &[u8]) -> Result<Option<(usize, Frame<'_>)>, String> {
    let Some(head) = input.first_chunk::<HEAD_BYTES>() else {
        return Ok(None);
    };
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    let Some(rest) = input.get(HEAD_BYTES..=HEAD_BYTES + size) else {
        return Ok(None);
    };
    let payload = &rest[..size];
    if rest[size] != END {
        return Err("RabbitMQ sent a frame without an end".into());
    }
    let frame = match (head[0], payload.split_at_checked(4)) {
        (METHOD_FRAME, Some((name, arguments))) => {
            let number = |at: usize| u16::from_be_bytes([name[at], name[at + 1]]);
            let name = (number(0), number(2));
            if name == CLOSE || name == CHANNEL_CLOSE {
                let why = String::from_utf8_lossy(arguments).into_owned();
                return Err(format!("RabbitMQ closed: {why:?}"));
            }
            Frame::Method(name, arguments)
        }
        (BODY_FRAME, _) => Frame::Body(payload),
        _ => Frame::Other,
    };
    Ok(Some((HEAD_BYTES + size + 1, frame)))
}

pub(crate) fn method(out: &mut Vec<u8>, channel: u16, name: Name, arguments: &[u8]) {
    let mut payload = name.0.to_be_bytes().to_vec();
    payload.extend(name.1.to_be_bytes());
    payload.extend_from_slice(arguments);
    frame(out, METHOD_FRAME, channel, &payload);
}

pub(crate) fn frame(out: &mut Vec<u8>, kind: u8, channel: u16, payload: &[u8]) {
    out.push(kind);
    out.extend(channel.to_be_bytes());
    out.extend((payload.len() as u32).to_be_bytes());
    out.extend_from_slice(payload);
    out.push(END);
}

/// Of at most 255 bytes.
pub(crate) fn short_text(out: &mut Vec<u8>, text: &str) {
    out.push(text.len() as u8);
    out.extend(text.bytes());
}
