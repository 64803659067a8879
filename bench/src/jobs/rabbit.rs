//! A quorum queue of RabbitMQ over AMQP 0-9-1: persistent messages with publisher confirms, `basic.get`, and manual
//! acknowledgement. The protocol has no answer to an acknowledgement, so that a delete is over as soon as it is said; and
//! a get rather than a subscription, which would put jobs into hands that did not ask.

use std::net::TcpStream;

use super::amqp::{self, Frame, frame, method, short_text};
use super::dialect::{Answer, Dialect};
use crate::wire::converse;

#[derive(Debug)]
pub(crate) struct Rabbit {
    queue: String,
    take: Vec<u8>,
    held: [u8; 8],
    /// A delete was said.
    deleted: bool,
}

impl Rabbit {
    pub(crate) fn new(queue: &str) -> Rabbit {
        let mut get = vec![0, 0];
        short_text(&mut get, queue);
        get.push(0);
        let mut take = Vec::new();
        method(&mut take, amqp::CHANNEL, amqp::GET, &get);
        Rabbit {
            queue: queue.to_owned(),
            take,
            held: [0; 8],
            deleted: false,
        }
    }
}

impl Dialect for Rabbit {
    fn prepare(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        const DURABLE: u8 = 2;
        amqp::greet(stream)?;
        let mut declare = vec![0, 0];
        short_text(&mut declare, &self.queue);
        declare.push(DURABLE);
        let mut table = Vec::new();
        short_text(&mut table, "x-queue-type");
        table.push(b'S');
        table.extend(("quorum".len() as u32).to_be_bytes());
        table.extend(b"quorum");
        declare.extend((table.len() as u32).to_be_bytes());
        declare.extend(table);
        ask(stream, amqp::DECLARE, &declare)
    }

    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        amqp::greet(stream)?;
        ask(stream, amqp::CONFIRM, &[0])
    }

    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        const BASIC: u16 = 60;
        const HAS_DELIVERY_MODE: u16 = 0x1000;
        const PERSISTENT: u8 = 2;
        let mut publish = vec![0, 0];
        short_text(&mut publish, "");
        short_text(&mut publish, &self.queue);
        publish.push(0);
        method(out, amqp::CHANNEL, amqp::PUBLISH, &publish);
        let mut header = BASIC.to_be_bytes().to_vec();
        header.extend([0, 0]);
        header.extend((body.len() as u64).to_be_bytes());
        header.extend(HAS_DELIVERY_MODE.to_be_bytes());
        header.push(PERSISTENT);
        frame(out, amqp::HEADER_FRAME, amqp::CHANNEL, &header);
        frame(out, amqp::BODY_FRAME, amqp::CHANNEL, body);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.take);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        let mut ack = self.held.to_vec();
        ack.push(0);
        method(out, amqp::CHANNEL, amqp::ACK, &ack);
        self.deleted = true;
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        if std::mem::take(&mut self.deleted) {
            return Ok(Some((0, Answer::Deleted)));
        }
        let Some((length, frame)) = amqp::read(input)? else {
            return Ok(None);
        };
        let answer = match frame {
            Frame::Method(amqp::ACK, _) => Answer::Created,
            Frame::Method(amqp::GET_EMPTY, _) => Answer::Empty,
            Frame::Method(amqp::GET_OK, arguments) => {
                let tag = arguments.first_chunk::<8>();
                self.held = *tag.ok_or("RabbitMQ gave a job without its tag")?;
                Answer::Aside
            }
            Frame::Body(body) => Answer::Taken(Some(body)),
            Frame::Other => Answer::Aside,
            Frame::Method(other, _) => return Err(format!("RabbitMQ said {other:?}")),
        };
        Ok(Some((length, answer)))
    }
}

/// Calls a method of the channel and waits for its answer.
fn ask(stream: &mut TcpStream, name: amqp::Name, arguments: &[u8]) -> Result<(), String> {
    let mut say = Vec::new();
    method(&mut say, amqp::CHANNEL, name, arguments);
    converse(stream, &say, |heard| Ok(amqp::read(heard)?.is_some()))
}
