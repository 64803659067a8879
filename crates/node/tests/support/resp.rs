//! A blocking RESP client of a few lines, written apart from the codec that the node uses.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply or a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Simple(String),
    Error(String),
    Int(i64),
    Text(String),
    Nil,
    List(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Push(Vec<Value>),
}

pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

/// Long enough for a busy machine; only a broken node makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Client {
        Client::try_connect(address).unwrap()
    }

    pub(crate) fn try_connect(address: SocketAddr) -> std::io::Result<Client> {
        Client::over(TcpStream::connect(address)?)
    }

    pub(crate) fn over(stream: TcpStream) -> std::io::Result<Client> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client {
            reader: BufReader::new(stream),
        })
    }

    /// Sends a command and reads its answer.
    pub(crate) fn call(&mut self, words: &[&str]) -> Value {
        self.try_call(words).unwrap()
    }

    pub(crate) fn try_call(&mut self, words: &[&str]) -> std::io::Result<Value> {
        self.try_send(words)?;
        self.try_read()
    }

    pub(crate) fn send(&mut self, words: &[&str]) {
        self.try_send(words).unwrap();
    }

    pub(crate) fn try_send(&mut self, words: &[&str]) -> std::io::Result<()> {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
        }
        self.send_bytes(&bytes)
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.reader.get_mut().write_all(bytes)
    }

    /// Says that nothing more comes, and goes on listening.
    pub(crate) fn end_input(&mut self) {
        let end = self.reader.get_mut().shutdown(std::net::Shutdown::Write);
        end.unwrap();
    }

    pub(crate) fn read(&mut self) -> Value {
        self.try_read().unwrap()
    }

    /// Whether the node has closed the connection; whatever it still sends is dropped.
    pub(crate) fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.reader.read_to_end(&mut rest) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }

    pub(crate) fn try_read(&mut self) -> std::io::Result<Value> {
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.strip_suffix("\r\n").expect("a whole line");
        let (kind, rest) = line.split_at(1);
        let number = || rest.parse::<i64>().expect("a number");
        Ok(match kind {
            "+" => Value::Simple(rest.into()),
            "-" => Value::Error(rest.into()),
            ":" => Value::Int(number()),
            "_" => Value::Nil,
            "$" | "*" if number() < 0 => Value::Nil,
            "$" => {
                let mut bytes = vec![0; number() as usize + 2];
                self.reader.read_exact(&mut bytes)?;
                assert!(bytes.ends_with(b"\r\n"));
                bytes.truncate(bytes.len() - 2);
                Value::Text(String::from_utf8(bytes).expect("text"))
            }
            "*" => Value::List(self.read_many(number())?),
            ">" => Value::Push(self.read_many(number())?),
            "%" => {
                let mut flat = self.read_many(2 * number())?.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (flat.next(), flat.next()) {
                    pairs.push((key, value));
                }
                Value::Map(pairs)
            }
            other => panic!("{other:?} begins no reply"),
        })
    }

    fn read_many(&mut self, count: i64) -> std::io::Result<Vec<Value>> {
        (0..count).map(|_| self.try_read()).collect()
    }
}

impl Value {
    pub(crate) fn int(&self) -> i64 {
        match self {
            Value::Int(number) => *number,
            other => panic!("{other} is no number"),
        }
    }

    pub(crate) fn error(&self) -> &str {
        match self {
            Value::Error(error) => error,
            other => panic!("{other} is no error"),
        }
    }

    /// The value behind a key, in both versions' ways to write a map.
    pub(crate) fn at(&self, key: &str) -> &Value {
        let key = Value::Text(key.into());
        let found = match self {
            Value::Map(pairs) => pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| v),
            Value::List(flat) => flat.chunks(2).find(|pair| pair[0] == key).map(|p| &p[1]),
            _ => None,
        };
        found.unwrap_or_else(|| panic!("{self} has no {key}"))
    }

    pub(crate) fn list(&self) -> &[Value] {
        match self {
            Value::List(items) => items,
            other => panic!("{other} is no list"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = |f: &mut fmt::Formatter<'_>, items: &[Value]| {
            f.write_str("[")?;
            for (at, item) in items.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                write!(f, "{comma}{item}")?;
            }
            f.write_str("]")
        };
        match self {
            Value::Simple(word) => write!(f, "+{word}"),
            Value::Error(error) => write!(f, "-{error}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Nil => f.write_str("nil"),
            Value::List(items) => many(f, items),
            Value::Push(items) => {
                f.write_str(">")?;
                many(f, items)
            }
            Value::Map(pairs) => {
                f.write_str("{")?;
                for (at, (key, value)) in pairs.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{key}: {value}")?;
                }
                f.write_str("}")
            }
        }
    }
}
