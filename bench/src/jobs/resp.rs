//! The systems that speak RESP: Testigo's jobs, bare `PING`s, and Redis' streams.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use crate::wire::converse;
use crate::wire::resp::{Reply, command, line, reply, unexpected, write};

/// A flow of one queue, of its own for each run.
#[derive(Debug)]
pub(crate) struct Testigo {
    flow: String,
    queue: String,
    take: Vec<u8>,
    /// The job in hand and its attempt.
    held: (u64, u64),
}

impl Testigo {
    pub(crate) fn new(flow: &str) -> Testigo {
        let queue = format!("{flow}/jobs");
        Testigo {
            flow: flow.to_owned(),
            take: command(&["JOB", "TAKE", &queue]),
            queue,
            held: (0, 0),
        }
    }
}

impl Dialect for Testigo {
    fn prepare(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let apply = command(&["FLOW", "APPLY", &self.flow, "make -> [jobs] -> work"]);
        agreed(stream, &apply)
    }

    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        write(out, &[b"JOB", b"CREATE", self.queue.as_bytes(), b"*", body]);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.take);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        let (job, attempt) = self.held;
        let (job, attempt) = (job.to_string(), attempt.to_string());
        out.extend_from_slice(&command(&["JOB", "DELETE", &job, &attempt]));
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        let Some((length, reply)) = reply(input)? else {
            return Ok(None);
        };
        let answer = match &reply {
            Reply::Number(_) => Answer::Created,
            Reply::Said("OK") => Answer::Deleted,
            Reply::Null => Answer::Empty,
            Reply::List(taken) => {
                let [id, _, _, attempt, body] = &taken[..] else {
                    return Err(format!("the node gave {taken:?} for a job"));
                };
                let held = (id.number(), attempt.number(), body.bytes());
                let (Some(id), Some(attempt), Some(body)) = held else {
                    return Err(format!("the node gave {taken:?} for a job"));
                };
                self.held = (id, attempt);
                Answer::Taken(Some(body))
            }
            other => return Err(format!("the node said {other:?}")),
        };
        Ok(Some((length, answer)))
    }
}

/// Three `PING`s, each waited for: what a loop costs that moves nothing.
#[derive(Debug)]
pub(crate) struct Ping {
    next: Answer<'static>,
}

impl Ping {
    pub(crate) fn new() -> Ping {
        Ping {
            next: Answer::Created,
        }
    }
}

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

impl Dialect for Ping {
    fn create(&mut self, _: &[u8], out: &mut Vec<u8>) {
        self.next = Answer::Created;
        out.extend_from_slice(PING);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        self.next = Answer::Taken(None);
        out.extend_from_slice(PING);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        self.next = Answer::Deleted;
        out.extend_from_slice(PING);
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        match line(input)? {
            None => Ok(None),
            Some(pong @ "+PONG") => Ok(Some((pong.len() + 2, self.next))),
            Some(other) => Err(unexpected(other)),
        }
    }
}

/// `XADD`; `XREADGROUP` as one consumer of a group; `XACK` and `XDEL` in one go.
#[derive(Debug)]
pub(crate) struct Redis {
    stream: String,
    take: Vec<u8>,
    held: Vec<u8>,
    /// Answers to a delete that are still to come.
    deletes: usize,
}

const GROUP: &str = "workers";

impl Redis {
    pub(crate) fn new(stream: &str, client: usize) -> Redis {
        let consumer = format!("client-{client}");
        let group = ["XREADGROUP", "GROUP", GROUP, &consumer];
        let words = [&group[..], &["COUNT", "1", "STREAMS", stream, ">"]].concat();
        Redis {
            stream: stream.to_owned(),
            take: command(&words),
            held: Vec::new(),
            deletes: 0,
        }
    }
}

impl Dialect for Redis {
    fn prepare(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let group = ["XGROUP", "CREATE", &self.stream, GROUP, "$", "MKSTREAM"];
        agreed(stream, &command(&group))
    }

    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        write(out, &[b"XADD", self.stream.as_bytes(), b"*", b"body", body]);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.take);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        let stream = self.stream.as_bytes();
        self.deletes = 2;
        write(out, &[b"XACK", stream, GROUP.as_bytes(), &self.held]);
        write(out, &[b"XDEL", stream, &self.held]);
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        let Some((length, reply)) = reply(input)? else {
            return Ok(None);
        };
        let answer = match &reply {
            Reply::Bytes(_) => Answer::Created,
            Reply::Null => Answer::Empty,
            Reply::Number(1) if self.deletes > 0 => {
                self.deletes -= 1;
                match self.deletes {
                    0 => Answer::Deleted,
                    _ => Answer::Aside,
                }
            }
            other => {
                // One stream, its name and its entries; one entry, its id and its fields; one field, its name and value.
                let entry = at(other, &[0, 1, 0]);
                let id = entry.and_then(|entry| at(entry, &[0])?.bytes());
                let body = entry.and_then(|entry| at(entry, &[1, 1])?.bytes());
                let (Some(id), Some(body)) = (id, body) else {
                    return Err(format!("Redis said {other:?}"));
                };
                self.held = id.to_owned();
                Answer::Taken(Some(body))
            }
        };
        Ok(Some((length, answer)))
    }
}

/// What is at a place in nested lists.
fn at<'r, 'a>(reply: &'r Reply<'a>, path: &[usize]) -> Option<&'r Reply<'a>> {
    let mut found = reply;
    for step in path {
        found = found.list().get(*step)?;
    }
    Some(found)
}

/// Says a command that must be answered with `OK`.
fn agreed(stream: &mut TcpStream, say: &[u8]) -> Result<(), String> {
    converse(stream, say, |heard| match line(heard)? {
        None => Ok(false),
        Some("+OK") => Ok(true),
        Some(other) => Err(unexpected(other)),
    })
}
