//! A client's connection to a node. Nothing in it waits for ever, and what is not answered is unknown.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::check::Time;
use crate::net::{Party, RESP_PORT, address};
use crate::nodes::PASSWORD;
use crate::stage::Stage;
use crate::up::Value;

const CONNECT: Duration = Duration::from_millis(700);
/// Longer than any wait that a client asks for.
const PATIENCE: Duration = Duration::from_secs(6);

pub(crate) struct Door<'a> {
    stage: &'a Stage,
    reader: BufReader<TcpStream>,
    broken: bool,
}

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    Answer(Value),
    /// Nothing was done.
    Refused(String),
    /// It may have been done or not.
    Unknown,
}

/// A call with its times.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) sent: Time,
    pub(crate) received: Time,
    pub(crate) heard: Heard,
}

impl Heard {
    pub(crate) fn is_refused(&self, word: &str) -> bool {
        matches!(self, Heard::Refused(why) if why.starts_with(word))
    }
}

impl<'a> Door<'a> {
    /// Connects and says who it is; nothing if the node is not to be reached or does not want anybody now.
    pub(crate) fn open(stage: &'a Stage, node: Party) -> Option<Door<'a>> {
        let at = SocketAddr::from((address(node), RESP_PORT));
        let stream = TcpStream::connect_timeout(&at, CONNECT).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        let mut door = Door {
            stage,
            reader: BufReader::new(stream),
            broken: false,
        };
        match door.call(&["AUTH", PASSWORD]).heard {
            Heard::Answer(_) => Some(door),
            _ => None,
        }
    }

    /// Whether an answer did not come, after which nothing more is to be expected.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn call(&mut self, words: &[&str]) -> Said {
        let sent = self.stage.now();
        let value = match self.broken {
            true => None,
            false => self.exchange(words),
        };
        self.broken |= value.is_none();
        let heard = match value {
            None => Heard::Unknown,
            Some(Value::Error(why)) if why.starts_with("UNKNOWN") => Heard::Unknown,
            Some(Value::Error(why)) => Heard::Refused(why),
            Some(value) => Heard::Answer(value),
        };
        Said {
            sent,
            received: self.stage.now(),
            heard,
        }
    }

    fn exchange(&mut self, words: &[&str]) -> Option<Value> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.reader.get_mut().write_all(&bytes).ok()?;
        self.value()
    }

    fn value(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line).ok()?;
        let line = line.strip_suffix("\r\n")?;
        let (kind, rest) = line.split_at_checked(1)?;
        let number = rest.parse::<i64>();
        Some(match kind {
            "+" => Value::Simple(rest.into()),
            "-" => Value::Error(rest.into()),
            ":" => Value::Int(number.ok()?),
            "_" => Value::Nil,
            "$" | "*" if number == Ok(-1) => Value::Nil,
            "$" => {
                let mut bytes = vec![0; usize::try_from(number.ok()?).ok()? + 2];
                self.reader.read_exact(&mut bytes).ok()?;
                bytes.truncate(bytes.len() - 2);
                Value::Text(String::from_utf8(bytes).ok()?)
            }
            "*" => {
                let count = number.ok()?;
                Value::List((0..count).map(|_| self.value()).collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }
}

/// What stands behind a key of a map, if it is there.
pub(crate) fn field<'v>(map: &'v Value, key: &str) -> Option<&'v Value> {
    let Value::List(flat) = map else {
        return None;
    };
    let key = Value::Text(key.into());
    let mut pairs = flat.chunks_exact(2);
    pairs.find(|pair| pair[0] == key).map(|pair| &pair[1])
}

pub(crate) fn number(map: &Value, key: &str) -> Option<i64> {
    match field(map, key)? {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

pub(crate) fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Simple(text) => Some(text),
        _ => None,
    }
}
