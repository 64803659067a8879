//! The systems that speak RESP: Testigo's locks, bare `PING`s, and Redis' `SET NX` with compare-and-delete.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use crate::wire::converse;
use crate::wire::resp::{command, line, unexpected};

/// `LOCK` and `UNLOCK`, the latter with the fence, as a careful client does.
#[derive(Debug)]
pub(crate) struct Testigo {
    gate: String,
    lock: Vec<u8>,
    fence: u64,
}

impl Testigo {
    pub(crate) fn new(gate: &str) -> Testigo {
        Testigo {
            gate: gate.to_owned(),
            lock: command(&["LOCK", gate]),
            fence: 0,
        }
    }
}

impl Dialect for Testigo {
    fn lock(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.lock);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        let fence = self.fence.to_string();
        out.extend_from_slice(&command(&["UNLOCK", &self.gate, &fence]));
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some(line) = line(input)? else {
            return Ok(None);
        };
        let answer = match line.split_at(1) {
            (":", fence) => {
                self.fence = fence.parse().map_err(|_| unexpected(line))?;
                Answer::Entered(Some(self.fence))
            }
            ("+", "OK") => Answer::Left,
            _ => return Err(unexpected(line)),
        };
        Ok(Some((line.len() + 2, answer)))
    }
}

/// Two `PING`s, each waited for: what a pair costs that locks nothing.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    second: bool,
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

impl Dialect for Ping {
    fn lock(&mut self, out: &mut Vec<u8>) {
        self.second = false;
        out.extend_from_slice(PING);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        self.second = true;
        out.extend_from_slice(PING);
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        match line(input)? {
            None => Ok(None),
            Some("+PONG") if self.second => Ok(Some((7, Answer::Left))),
            Some("+PONG") => Ok(Some((7, Answer::Entered(None)))),
            Some(other) => Err(unexpected(other)),
        }
    }
}

/// `SET key token NX PX`, and a script that deletes the key if the token is still there.
#[derive(Debug)]
pub(crate) struct Redis {
    set: Vec<u8>,
    key: String,
    token: String,
    delete: Vec<u8>,
}

const COMPARE_AND_DELETE: &str = "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end";
const EXPIRY_MS: &str = "30000";

impl Redis {
    pub(crate) fn new(key: &str, client: usize) -> Redis {
        let token = format!("client-{client}");
        Redis {
            set: command(&["SET", key, &token, "NX", "PX", EXPIRY_MS]),
            key: key.to_owned(),
            token,
            delete: Vec::new(),
        }
    }
}

impl Dialect for Redis {
    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let load = command(&["SCRIPT", "LOAD", COMPARE_AND_DELETE]);
        let mut digest = String::new();
        // `$40`, the digest, and two line ends.
        const WHOLE: usize = 5 + 40 + 2;
        converse(stream, &load, |heard| {
            let Some(first) = line(heard)? else {
                return Ok(false);
            };
            if first != "$40" {
                return Err(unexpected(first));
            }
            if let Some(bytes) = heard.get(5..45) {
                digest = String::from_utf8_lossy(bytes).into_owned();
            }
            Ok(heard.len() >= WHOLE)
        })?;
        self.delete = command(&["EVALSHA", &digest, "1", &self.key, &self.token]);
        Ok(())
    }

    fn lock(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.set);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.delete);
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some(line) = line(input)? else {
            return Ok(None);
        };
        let answer = match line {
            "+OK" => Answer::Entered(None),
            "$-1" => Answer::Refused,
            ":1" => Answer::Left,
            other => return Err(unexpected(other)),
        };
        Ok(Some((line.len() + 2, answer)))
    }
}
