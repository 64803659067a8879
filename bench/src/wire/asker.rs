//! A client that asks a node anything, and looks at the answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::resp::{Reply, command, reply};

#[derive(Debug)]
pub(crate) struct Asker {
    stream: TcpStream,
}

/// How a question ended without an answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// The node refused.
    Refused(String),
    Broken(String),
}

impl Asker {
    pub(crate) fn connect(address: SocketAddr, patience: Duration) -> Result<Asker, String> {
        let failed = |e| format!("cannot connect to {address}: {e}");
        let stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(patience)).map_err(failed)?;
        Ok(Asker { stream })
    }

    pub(crate) fn ask<T>(
        &mut self,
        words: &[&str],
        look: impl FnOnce(&Reply<'_>) -> T,
    ) -> Result<T, Unanswered> {
        let broken = |e: std::io::Error| Unanswered::Broken(format!("{words:?}: {e}"));
        self.stream.write_all(&command(words)).map_err(broken)?;
        let mut heard = Vec::new();
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk).map_err(broken)? {
                0 => return Err(Unanswered::Broken(format!("{words:?}: the node hung up"))),
                read => heard.extend_from_slice(&chunk[..read]),
            }
            match reply(&heard) {
                Ok(Some((_, found))) => return Ok(look(&found)),
                Ok(None) => {}
                Err(why) => return Err(Unanswered::Refused(why)),
            }
        }
    }

    /// A number in a map.
    pub(crate) fn number(&mut self, words: &[&str], key: &str) -> Result<Option<u64>, Unanswered> {
        self.ask(words, |map| {
            let mut pairs = map.list().chunks_exact(2);
            let pair = pairs.find(|pair| pair[0].bytes() == Some(key.as_bytes()));
            pair.and_then(|pair| pair[1].number())
        })
    }
}
