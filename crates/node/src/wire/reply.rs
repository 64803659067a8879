//! Replies and events as bytes. What version 3 of the protocol has and version 2 lacks (maps, pushes, a null of its own) is
//! decided here and nowhere else. They are written straight into a connection's output: the codec would first build a frame
//! of its own, at a cost for every answer. In the tests the codec reads what is written here.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use testigo_core::{Body, Name, Refusal};

/// The version of the protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp2,
    Resp3,
}

/// What a client is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Ok,
    /// A word, such as `PONG`.
    Simple(&'static str),
    Int(i64),
    /// A number with a fraction; in version 2 a text.
    Real(f64),
    Text(Bytes),
    /// A name, shared with its bearer.
    Name(Name),
    /// A queue's full name, `flow/queue`.
    QueueName {
        flow: Name,
        queue: Name,
    },
    /// A job's body, shared with the job.
    Body(Body),
    Null,
    /// An error line: a word, then a sentence.
    Error(String),
    Array(Vec<Reply>),
    /// A map; in version 2 an array of keys and values in turn.
    Map(Vec<(&'static str, Reply)>),
    /// Something that the client did not just ask for; in version 2 an array.
    Push(Vec<Reply>),
    /// Bytes that are not RESP, for a client that does not speak it.
    Raw(&'static str),
}

impl Reply {
    pub(crate) fn text(text: impl Into<String>) -> Reply {
        Reply::Text(Bytes::from(text.into()))
    }

    pub(crate) fn number(number: u64) -> Reply {
        Reply::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }

    /// A number with at most three decimals.
    pub(crate) fn real(number: f64) -> Reply {
        Reply::Real((number * 1000.0).round() / 1000.0)
    }

    pub(crate) fn flag(flag: bool) -> Reply {
        Reply::Int(i64::from(flag))
    }

    pub(crate) fn optional<T>(value: Option<T>, reply: impl Fn(T) -> Reply) -> Reply {
        value.map_or(Reply::Null, reply)
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Reply {
        Reply::Error(refusal.to_string())
    }
}

/// Appends a reply to a connection's output.
pub(crate) fn encode(reply: &Reply, protocol: Protocol, out: &mut BytesMut) {
    let resp3 = protocol == Protocol::Resp3;
    match reply {
        Reply::Ok => out.extend_from_slice(b"+OK\r\n"),
        Reply::Simple(word) => line(b'+', word.as_bytes(), out),
        Reply::Int(number) => line(b':', itoa::Buffer::new().format(*number).as_bytes(), out),
        Reply::Real(number) if resp3 => line(b',', number.to_string().as_bytes(), out),
        Reply::Real(number) => blob(number.to_string().as_bytes(), out),
        Reply::Text(data) => blob(data, out),
        Reply::Name(name) => blob(name.as_bytes(), out),
        Reply::QueueName { flow, queue } => {
            blob_of(&[flow.as_bytes(), b"/", queue.as_bytes()], out);
        }
        Reply::Body(body) => blob(body, out),
        Reply::Null if resp3 => out.extend_from_slice(b"_\r\n"),
        Reply::Null => out.extend_from_slice(b"$-1\r\n"),
        Reply::Raw(text) => out.extend_from_slice(text.as_bytes()),
        Reply::Error(error) => line(b'-', one_line(error).as_bytes(), out),
        Reply::Array(items) => many(b'*', items, protocol, out),
        Reply::Push(items) => many(push_kind(protocol), items, protocol, out),
        Reply::Map(pairs) => {
            begin_map(pairs.len(), protocol, out);
            for (key, value) in pairs {
                encode_pair(key, value, protocol, out);
            }
        }
    }
}

/// An error is one line, whatever a client has put into a name that the error quotes.
fn one_line(error: &str) -> Cow<'_, str> {
    match error.contains(|c: char| c.is_control()) {
        true => error.replace(|c: char| c.is_control(), " ").into(),
        false => error.into(),
    }
}

/// The head of an array of this many items.
pub(crate) fn array_head(items: usize) -> BytesMut {
    let mut head = BytesMut::new();
    length(b'*', items, &mut head);
    head
}

/// The head of a push of this many items.
pub(crate) fn push_head(items: usize, protocol: Protocol) -> BytesMut {
    let mut head = BytesMut::new();
    length(push_kind(protocol), items, &mut head);
    head
}

fn push_kind(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Resp3 => b'>',
        Protocol::Resp2 => b'*',
    }
}

/// The head of a text of this many bytes.
pub(crate) fn text_head(bytes: usize) -> BytesMut {
    let mut head = BytesMut::new();
    length(b'$', bytes, &mut head);
    head
}

/// The head of a map of this many pairs.
pub(crate) fn map_head(pairs: usize, protocol: Protocol) -> BytesMut {
    let mut head = BytesMut::new();
    begin_map(pairs, protocol, &mut head);
    head
}

fn begin_map(pairs: usize, protocol: Protocol, out: &mut BytesMut) {
    match protocol {
        Protocol::Resp3 => length(b'%', pairs, out),
        Protocol::Resp2 => length(b'*', pairs * 2, out),
    }
}

/// Appends one pair of a map.
pub(crate) fn encode_pair(key: &str, value: &Reply, protocol: Protocol, out: &mut BytesMut) {
    blob(key.as_bytes(), out);
    encode(value, protocol, out);
}

fn line(kind: u8, text: &[u8], out: &mut BytesMut) {
    out.extend_from_slice(&[kind]);
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn length(kind: u8, length: usize, out: &mut BytesMut) {
    line(kind, itoa::Buffer::new().format(length).as_bytes(), out);
}

fn blob(data: &[u8], out: &mut BytesMut) {
    blob_of(&[data], out);
}

/// A blob of these parts, one after the other.
fn blob_of(parts: &[&[u8]], out: &mut BytesMut) {
    let bytes = parts.iter().map(|part| part.len()).sum();
    out.reserve(bytes + BLOB_OVERHEAD_BYTES);
    length(b'$', bytes, out);
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

fn many(kind: u8, items: &[Reply], protocol: Protocol, out: &mut BytesMut) {
    length(kind, items.len(), out);
    for item in items {
        encode(item, protocol, out);
    }
}

/// The most that a blob's length and line ends take, plus a short answer.
const BLOB_OVERHEAD_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: Reply, protocol: Protocol) -> String {
        let mut out = BytesMut::new();
        encode(&reply, protocol, &mut out);
        String::from_utf8_lossy(&out).into()
    }

    #[test]
    fn the_two_versions_differ_in_maps_pushes_and_null() {
        let map = Reply::Map(vec![("a", Reply::Int(1)), ("b", Reply::Null)]);
        let (two, three) = (Protocol::Resp2, Protocol::Resp3);
        assert_eq!(
            written(map.clone(), two),
            "*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n$-1\r\n"
        );
        assert_eq!(
            written(map, three),
            "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n_\r\n"
        );
        let push = Reply::Push(vec![Reply::text("grant"), Reply::Int(7)]);
        assert_eq!(written(push.clone(), two), "*2\r\n$5\r\ngrant\r\n:7\r\n");
        assert_eq!(written(push, three), ">2\r\n$5\r\ngrant\r\n:7\r\n");
    }

    #[test]
    fn every_number_takes_the_bytes_that_it_has() {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let (mut out, mut expected) = (BytesMut::new(), String::new());
            for power in 0..=18 {
                for number in [10_i64.pow(power) - 1, 10_i64.pow(power)] {
                    encode(&Reply::Int(number), protocol, &mut out);
                    encode(&Reply::Array(vec![Reply::Int(number)]), protocol, &mut out);
                    expected += &format!(":{number}\r\n*1\r\n:{number}\r\n");
                }
            }
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
    }

    #[test]
    fn a_fraction_is_a_text_in_version_2() {
        for (number, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (1234.5, "1234.5"),
            (99.999, "99.999"),
        ] {
            let long = format!("${}\r\n{text}\r\n", text.len());
            assert_eq!(written(Reply::real(number), Protocol::Resp2), long);
            let array = Reply::Array(vec![Reply::real(number), Reply::Int(1)]);
            let three = format!("*2\r\n,{text}\r\n:1\r\n");
            assert_eq!(written(array, Protocol::Resp3), three);
        }
    }

    #[test]
    fn an_error_stays_on_its_line() {
        let error = Reply::Error("NOGATE a\r\n+OK\r\n".into());
        assert_eq!(written(error, Protocol::Resp2), "-NOGATE a  +OK  \r\n");
    }

    #[test]
    fn the_codec_reads_what_is_written() {
        use redis_protocol::resp2::decode::decode as decode_2;
        use redis_protocol::resp2::types::OwnedFrame as Frame2;
        use redis_protocol::resp3::decode::complete::decode as decode_3;
        use redis_protocol::resp3::types::OwnedFrame as Frame3;
        let every = vec![
            Reply::Ok,
            Reply::Simple("PONG"),
            Reply::Int(i64::MIN),
            Reply::Real(-0.5),
            Reply::Text(Bytes::from_static(b"a\r\n\0b")),
            Reply::Text(Bytes::new()),
            Reply::Null,
            Reply::Error("NOGATE a".into()),
            Reply::Array(Vec::new()),
            Reply::Map(vec![("k", Reply::Array(vec![Reply::Int(1), Reply::Null]))]),
            Reply::Name(Name::new("job").unwrap()),
            Reply::QueueName {
                flow: Name::new("orders").unwrap(),
                queue: Name::new("new").unwrap(),
            },
            Reply::Body(Body::from(&b"\0\r\n"[..])),
        ];
        let reply = Reply::Array(every.clone());
        let two = written(reply.clone(), Protocol::Resp2);
        let (frame, used) = decode_2(two.as_bytes()).unwrap().unwrap();
        assert_eq!(used, two.len());
        assert!(matches!(frame, Frame2::Array(items) if items.len() == every.len()));
        let three = written(reply, Protocol::Resp3);
        let (frame, used) = decode_3(three.as_bytes()).unwrap().unwrap();
        assert_eq!(used, three.len());
        let Frame3::Array { data, .. } = frame else {
            panic!("{frame:?}");
        };
        assert_eq!(data.len(), every.len());
        let is = |at: usize, right: Frame3| assert_eq!(data[at], right);
        let attributes = None;
        is(
            2,
            Frame3::Number {
                data: i64::MIN,
                attributes: None,
            },
        );
        is(
            3,
            Frame3::Double {
                data: -0.5,
                attributes: None,
            },
        );
        is(
            4,
            Frame3::BlobString {
                data: b"a\r\n\0b".to_vec(),
                attributes: None,
            },
        );
        is(6, Frame3::Null);
        for (at, text) in [(10, &b"job"[..]), (11, b"orders/new"), (12, b"\0\r\n")] {
            let data = text.to_vec();
            is(
                at,
                Frame3::BlobString {
                    data,
                    attributes: None,
                },
            );
        }
        is(
            8,
            Frame3::Array {
                data: Vec::new(),
                attributes,
            },
        );
        assert!(matches!(&data[9], Frame3::Map { data, .. } if data.len() == 1));
    }
}
