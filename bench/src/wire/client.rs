//! A client of a node that waits for its answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::resp::{command, unexpected};

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Client, String> {
        let connected = TcpStream::connect(address).and_then(|stream| {
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(stream)
        });
        let stream = connected.map_err(|e| format!("cannot connect to {address}: {e}"))?;
        Ok(Client {
            reader: BufReader::with_capacity(256, stream),
        })
    }

    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<(), String> {
        let said = self.reader.get_mut().write_all(bytes);
        said.map_err(|e| format!("the node does not listen: {e}"))
    }

    pub(crate) fn line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        read.map_err(|e| format!("the node does not answer: {e}"))?;
        Ok(line.trim_end().to_owned())
    }

    pub(crate) fn expect(&mut self, wanted: &str) -> Result<(), String> {
        match self.line()? {
            line if line == wanted => Ok(()),
            line => Err(format!("the node said `{line}`, not `{wanted}`")),
        }
    }

    /// Says a command and hears a number.
    pub(crate) fn number(&mut self, words: &[&str]) -> Result<u64, String> {
        self.say(&command(words))?;
        self.numbered()
    }

    /// Hears a number.
    pub(crate) fn numbered(&mut self) -> Result<u64, String> {
        let line = self.line()?;
        let number = line.strip_prefix(':').and_then(|n| n.parse().ok());
        number.ok_or_else(|| unexpected(&line))
    }

    /// Hears a list of numbers and texts, all as text; empty for nothing.
    pub(crate) fn list(&mut self) -> Result<Vec<String>, String> {
        let head = self.line()?;
        let count = match head.split_at_checked(1) {
            Some(("*", count)) => count.parse::<i64>().map_err(|_| unexpected(&head))?,
            Some(("$" | "_", _)) => 0,
            _ => return Err(unexpected(&head)),
        };
        (0..count).map(|_| self.word()).collect()
    }

    fn word(&mut self) -> Result<String, String> {
        let head = self.line()?;
        match head.split_at_checked(1) {
            Some((":", number)) => Ok(number.to_owned()),
            Some(("$", length)) => {
                let length: usize = length.parse().map_err(|_| unexpected(&head))?;
                let mut text = vec![0; length + 2];
                let read = self.reader.read_exact(&mut text);
                read.map_err(|e| format!("the node does not answer: {e}"))?;
                text.truncate(length);
                Ok(String::from_utf8_lossy(&text).into_owned())
            }
            _ => Err(unexpected(&head)),
        }
    }
}
