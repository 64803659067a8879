//! What travels on a connection: commands as lists of words, and the values that come back. The codec crate handles the
//! frames; here they become what the client decides on.

use bytes::BytesMut;
use redis_protocol::resp3::decode::complete::decode_bytes_mut;
use redis_protocol::resp3::encode::complete::extend_encode_borrowed;
use redis_protocol::resp3::types::{BorrowedFrame, BytesFrame};

use crate::refusal::Refusal;

/// The longest frame from a node; beyond it the connection is given up.
pub(crate) const FRAME_BYTES_MAX: usize = 64 << 20;

/// An answer from a node, or a part of one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::Value;
///
/// let status = testigo.status().await?;
/// assert_eq!(status.field("holds").and_then(Value::number), Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: a wait ended, or there is no such thing.
    Null,
    /// A number.
    Number(i64),
    /// Yes or no.
    Truth(bool),
    /// A number with a fraction.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// Several values in order; also a set.
    List(Vec<Value>),
    /// Names and values, in the node's order.
    Map(Vec<(Value, Value)>),
    /// A refusal by the node.
    Error(Refusal),
}

/// What one frame is: an answer to the oldest open question, or news.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Received {
    Answer(Value),
    Push(Vec<Value>),
}

impl Value {
    /// The number in it, even if it is written as text.
    pub fn number(&self) -> Option<u64> {
        match self {
            Value::Number(number) => u64::try_from(*number).ok(),
            Value::Text(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The text in it.
    pub fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, whether or not they are text.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text(text) => Some(text.as_bytes()),
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The values of a list.
    pub fn list(&self) -> Option<&[Value]> {
        match self {
            Value::List(values) => Some(values),
            _ => None,
        }
    }

    /// The value of a field, by name, of a map or of a list of alternating names and values.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Value::Map(pairs) => {
                let mut pairs = pairs.iter();
                let found = pairs.find(|(key, _)| key.text() == Some(name));
                found.map(|(_, value)| value)
            }
            Value::List(values) => {
                let mut pairs = values.chunks_exact(2);
                let found = pairs.find(|pair| pair[0].text() == Some(name));
                found.map(|pair| &pair[1])
            }
            _ => None,
        }
    }
}

/// A stream that does not follow the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Garbled(pub(crate) String);

/// Appends a command to the output.
pub(crate) fn encode<W: AsRef<[u8]>>(line: &[W], out: &mut BytesMut) {
    let words: Vec<BorrowedFrame<'_>> = line
        .iter()
        .map(|word| BorrowedFrame::BlobString {
            data: word.as_ref(),
            attributes: None,
        })
        .collect();
    let frame = BorrowedFrame::Array {
        data: &words,
        attributes: None,
    };
    extend_encode_borrowed(out, &frame, false).expect("an array of strings is always encodable");
}

/// Takes the next complete frame out of the input.
pub(crate) fn decode(buffer: &mut BytesMut) -> Result<Option<Received>, Garbled> {
    match decode_bytes_mut(buffer) {
        Ok(Some((BytesFrame::Push { data, .. }, _, _))) => {
            Ok(Some(Received::Push(data.into_iter().map(value).collect())))
        }
        Ok(Some((frame, _, _))) => Ok(Some(Received::Answer(value(frame)))),
        Ok(None) if buffer.len() > FRAME_BYTES_MAX => Err(Garbled(format!(
            "a frame is longer than {FRAME_BYTES_MAX} bytes"
        ))),
        Ok(None) => Ok(None),
        Err(_) if buffer.starts_with(b"HTTP/") => Err(Garbled(
            "an HTTP server answers there; RESP is spoken at another port, a node's is 7600 unless it was told otherwise"
                .into(),
        )),
        Err(error) => Err(Garbled(format!("what answers is no node: {error}"))),
    }
}

fn value(frame: BytesFrame) -> Value {
    let text = |data: &[u8]| match std::str::from_utf8(data) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(_) => Value::Bytes(data.to_owned()),
    };
    match frame {
        BytesFrame::BlobString { data, .. }
        | BytesFrame::SimpleString { data, .. }
        | BytesFrame::BigNumber { data, .. }
        | BytesFrame::VerbatimString { data, .. }
        | BytesFrame::ChunkedString(data) => text(&data),
        BytesFrame::BlobError { data, .. } => {
            Value::Error(Refusal::parse(&String::from_utf8_lossy(&data)))
        }
        BytesFrame::SimpleError { data, .. } => Value::Error(Refusal::parse(&data)),
        BytesFrame::Boolean { data, .. } => Value::Truth(data),
        BytesFrame::Number { data, .. } => Value::Number(data),
        BytesFrame::Double { data, .. } => Value::Real(data),
        BytesFrame::Array { data, .. } | BytesFrame::Push { data, .. } => {
            Value::List(data.into_iter().map(value).collect())
        }
        BytesFrame::Set { data, .. } => Value::List(data.into_iter().map(value).collect()),
        BytesFrame::Map { data, .. } => {
            let pairs = data
                .into_iter()
                .map(|(key, held)| (value(key), value(held)));
            // The codec takes a map's pairs from its end.
            Value::Map(pairs.rev().collect())
        }
        BytesFrame::Null | BytesFrame::Hello { .. } => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Word;

    fn decoded(text: &str) -> Received {
        let mut buffer = BytesMut::from(text);
        let received = decode(&mut buffer).expect("well formed").expect("whole");
        assert!(buffer.is_empty(), "{buffer:?}");
        received
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = BytesMut::new();
        encode(&["LOCK", "ä"], &mut out);
        assert_eq!(out, "*2\r\n$4\r\nLOCK\r\n$2\r\nä\r\n".as_bytes());
    }

    #[test]
    fn answers_and_pushes_are_told_apart() {
        assert_eq!(decoded(":42\r\n"), Received::Answer(Value::Number(42)));
        assert_eq!(decoded("_\r\n"), Received::Answer(Value::Null));
        assert_eq!(
            decoded("+OK\r\n"),
            Received::Answer(Value::Text("OK".into()))
        );
        let push = decoded(">2\r\n$4\r\nlost\r\n:1\r\n");
        let expected = vec![Value::Text("lost".into()), Value::Number(1)];
        assert_eq!(push, Received::Push(expected));
    }

    #[test]
    fn no_byte_of_what_is_no_text_is_lost() {
        let mut buffer = BytesMut::from(&b"$3\r\n\xff\0a\r\n"[..]);
        let received = decode(&mut buffer).expect("well formed").expect("whole");
        assert_eq!(received, Received::Answer(Value::Bytes(b"\xff\0a".into())));
    }

    #[test]
    fn a_refusal_comes_as_a_word() {
        let Received::Answer(Value::Error(refusal)) = decoded("-HELD gate a is held\r\n") else {
            panic!("an error is an answer");
        };
        assert_eq!(refusal.word, Word::Held);
    }

    #[test]
    fn fields_are_found_in_maps_and_in_flat_lists() {
        for text in ["%1\r\n+a\r\n:1\r\n", "*2\r\n+a\r\n:1\r\n"] {
            let Received::Answer(value) = decoded(text) else {
                panic!("an answer");
            };
            assert_eq!(value.field("a").and_then(Value::number), Some(1));
            assert_eq!(value.field("b"), None);
        }
    }

    #[test]
    fn a_map_keeps_the_order_of_the_node() {
        let Received::Answer(Value::Map(pairs)) =
            decoded("%3\r\n+c\r\n:1\r\n+a\r\n:2\r\n+b\r\n:3\r\n")
        else {
            panic!("a map");
        };
        let names: Vec<_> = pairs.iter().map(|(name, _)| name.text()).collect();
        assert_eq!(names, [Some("c"), Some("a"), Some("b")]);
    }

    #[test]
    fn half_a_frame_waits_and_a_wrong_one_is_garbled() {
        let mut half = BytesMut::from("$5\r\nhel");
        assert_eq!(decode(&mut half), Ok(None));
        half.extend_from_slice(b"lo\r\n");
        assert!(decode(&mut half).expect("well formed").is_some());
        assert!(decode(&mut BytesMut::from("HTTP/1.1 400\r\n")).is_err());
    }
}
