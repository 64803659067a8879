//! A work queue of NATS JetStream: a stream on disk whose messages go when they are acknowledged, one pull consumer for all
//! clients, and an acknowledgement that is answered.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use crate::wire::converse;
use crate::wire::resp::line;

#[derive(Debug)]
pub(crate) struct Nats {
    stream: String,
    /// Where this client's answers go.
    inbox: String,
    take: Vec<u8>,
    /// Where the job in hand is acknowledged.
    held: String,
}

/// Subscriptions, by the step whose answer comes there.
const CREATES: &str = "1";
const TAKES: &str = "2";
const DELETES: &str = "3";

const CONSUMER: &str = "workers";
/// How long a take waits in the server, in nanoseconds, and how long a job may be in hand.
const EXPIRES_NS: u64 = 250_000_000;
const HOLD_NS: u64 = 600_000_000_000;
const CONNECT: &str = r#"CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true,"protocol":1,"name":"bench"}"#;

impl Nats {
    pub(crate) fn new(stream: &str, client: usize) -> Nats {
        let inbox = format!("_INBOX.{stream}-{client}");
        let next = format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{CONSUMER}");
        let asks = format!(r#"{{"batch":1,"expires":{EXPIRES_NS}}}"#);
        let mut take = Vec::new();
        publish(
            &mut take,
            &next,
            &format!("{inbox}.{TAKES}"),
            asks.as_bytes(),
        );
        Nats {
            stream: stream.to_owned(),
            inbox,
            take,
            held: String::new(),
        }
    }
}

impl Dialect for Nats {
    fn prepare(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        self.greet(stream)?;
        let name = &self.stream;
        let made = format!(
            r#"{{"name":"{name}","subjects":["{name}"],"retention":"workqueue","storage":"file","num_replicas":1}}"#
        );
        self.ask(stream, &format!("$JS.API.STREAM.CREATE.{name}"), &made)?;
        let made = format!(
            r#"{{"stream_name":"{name}","config":{{"durable_name":"{CONSUMER}","ack_policy":"explicit","deliver_policy":"all","replay_policy":"instant","ack_wait":{HOLD_NS}}}}}"#
        );
        let create = format!("$JS.API.CONSUMER.DURABLE.CREATE.{name}.{CONSUMER}");
        self.ask(stream, &create, &made)
    }

    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let mut say = format!("{CONNECT}\r\n");
        for number in [CREATES, TAKES, DELETES] {
            say += &format!("SUB {}.{number} {number}\r\n", self.inbox);
        }
        say += "PING\r\n";
        converse(stream, say.as_bytes(), |heard| {
            Ok(heard.ends_with(b"PONG\r\n"))
        })
    }

    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        publish(
            out,
            &self.stream,
            &format!("{}.{CREATES}", self.inbox),
            body,
        );
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.take);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        let inbox = format!("{}.{DELETES}", self.inbox);
        publish(out, &self.held, &inbox, b"+ACK");
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        let Some(first) = line(input)? else {
            return Ok(None);
        };
        let words: Vec<&str> = first.split(' ').collect();
        let start = first.len() + 2;
        let (number, reply, head, size) = match words[..] {
            ["PING"] => {
                out.extend_from_slice(b"PONG\r\n");
                return Ok(Some((start, Answer::Aside)));
            }
            ["MSG", _, number, size] => (number, "", "0", size),
            ["MSG", _, number, reply, size] => (number, reply, "0", size),
            ["HMSG", _, number, head, size] => (number, "", head, size),
            ["HMSG", _, number, reply, head, size] => (number, reply, head, size),
            ["INFO" | "+OK" | "PONG", ..] => return Ok(Some((start, Answer::Aside))),
            _ => return Err(format!("NATS said `{first}`")),
        };
        let length = |text: &str| text.parse::<usize>().map_err(|_| format!("`{first}`"));
        let (head, size) = (length(head)?, length(size)?);
        let Some(message) = input.get(start..start + size) else {
            return Ok(None);
        };
        if input.len() < start + size + 2 {
            return Ok(None);
        }
        let (head, body) = message.split_at_checked(head).ok_or("a torn message")?;
        let status = String::from_utf8_lossy(head);
        let status = status.split_whitespace().nth(1).unwrap_or("");
        let answer = match (number, status) {
            (CREATES, "") if body.starts_with(b"{\"stream\"") => Answer::Created,
            // No message, or none in time.
            (TAKES, "404" | "408") => Answer::Empty,
            (TAKES, "") if reply.starts_with("$JS.ACK.") => {
                reply.clone_into(&mut self.held);
                Answer::Taken(Some(body))
            }
            (DELETES, "") => Answer::Deleted,
            _ => {
                let said = String::from_utf8_lossy(message);
                return Err(format!("NATS said {said:?} to step {number}"));
            }
        };
        Ok(Some((start + size + 2, answer)))
    }
}

impl Nats {
    /// Asks JetStream for something that must succeed.
    fn ask(&self, stream: &mut TcpStream, subject: &str, payload: &str) -> Result<(), String> {
        let mut say = Vec::new();
        let inbox = format!("{}.{CREATES}", self.inbox);
        publish(&mut say, subject, &inbox, payload.as_bytes());
        converse(stream, &say, |heard| {
            let heard = String::from_utf8_lossy(heard);
            match heard.starts_with("MSG ") && heard.ends_with("}\r\n") {
                true if heard.contains("\"error\"") => Err(format!("NATS said {heard}")),
                whole => Ok(whole),
            }
        })
    }
}

fn publish(out: &mut Vec<u8>, subject: &str, reply: &str, payload: &[u8]) {
    out.extend(format!("PUB {subject} {reply} {}\r\n", payload.len()).bytes());
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
}
