//! Replies and events, as the codec of the protocol's version writes them. What version 3 knows and version 2 does not
//! (maps, pushes, a null of its own) is decided here and nowhere else.

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::encode::extend_encode as extend_encode_2;
use redis_protocol::resp2::types::BytesFrame as Frame2;
use redis_protocol::resp3::encode::complete::extend_encode as extend_encode_3;
use redis_protocol::resp3::types::{BytesFrame as Frame3, FrameMap};
use testigo_core::Refusal;

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
    Null,
    /// An error line: a word, then a sentence.
    Error(String),
    Array(Vec<Reply>),
    /// A map; in version 2 an array of keys and values in turn.
    Map(Vec<(&'static str, Reply)>),
    /// Something that nobody asked for just now; in version 2 an array.
    Push(Vec<Reply>),
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

/// Appends a reply to what a connection is to be sent.
pub(crate) fn encode(reply: Reply, protocol: Protocol, out: &mut BytesMut) {
    let encoded = match protocol {
        Protocol::Resp2 => extend_encode_2(out, &frame_2(reply), false),
        Protocol::Resp3 => extend_encode_3(out, &frame_3(reply), false),
    };
    // The codec counts digits with a logarithm and makes a byte too much room just below a power of ten.
    let end = encoded.expect("the codec made room for the frame itself");
    out.truncate(end);
}

const OK: Bytes = Bytes::from_static(b"OK");

/// An error is one line, whatever a client has put into a name that it quotes.
fn line(error: String) -> String {
    match error.contains(|c: char| c.is_control()) {
        true => error.replace(|c: char| c.is_control(), " "),
        false => error,
    }
}

fn frame_2(reply: Reply) -> Frame2 {
    match reply {
        Reply::Ok => Frame2::SimpleString(OK),
        Reply::Simple(word) => Frame2::SimpleString(Bytes::from_static(word.as_bytes())),
        Reply::Int(number) => Frame2::Integer(number),
        Reply::Real(number) => Frame2::BulkString(number.to_string().into()),
        Reply::Text(data) => Frame2::BulkString(data),
        Reply::Null => Frame2::Null,
        Reply::Error(error) => Frame2::Error(line(error).into()),
        Reply::Array(items) | Reply::Push(items) => {
            Frame2::Array(items.into_iter().map(frame_2).collect())
        }
        Reply::Map(pairs) => {
            let flat = pairs.into_iter().flat_map(|(key, value)| {
                let key = Frame2::BulkString(Bytes::from_static(key.as_bytes()));
                [key, frame_2(value)]
            });
            Frame2::Array(flat.collect())
        }
    }
}

fn frame_3(reply: Reply) -> Frame3 {
    let attributes = None;
    match reply {
        Reply::Ok => Frame3::SimpleString {
            data: OK,
            attributes,
        },
        Reply::Simple(word) => Frame3::SimpleString {
            data: Bytes::from_static(word.as_bytes()),
            attributes,
        },
        Reply::Int(data) => Frame3::Number { data, attributes },
        Reply::Real(data) => Frame3::Double { data, attributes },
        Reply::Text(data) => Frame3::BlobString { data, attributes },
        Reply::Null => Frame3::Null,
        Reply::Error(error) => Frame3::SimpleError {
            data: line(error).into(),
            attributes,
        },
        Reply::Array(items) => Frame3::Array {
            data: items.into_iter().map(frame_3).collect(),
            attributes,
        },
        Reply::Map(pairs) => {
            let mut data = FrameMap::with_capacity(pairs.len());
            for (key, value) in pairs {
                let key = Frame3::BlobString {
                    data: Bytes::from_static(key.as_bytes()),
                    attributes: None,
                };
                data.insert(key, frame_3(value));
            }
            Frame3::Map { data, attributes }
        }
        Reply::Push(items) => Frame3::Push {
            data: items.into_iter().map(frame_3).collect(),
            attributes,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: Reply, protocol: Protocol) -> String {
        let mut out = BytesMut::new();
        encode(reply, protocol, &mut out);
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
                    encode(Reply::Int(number), protocol, &mut out);
                    encode(Reply::Array(vec![Reply::Int(number)]), protocol, &mut out);
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
}
