//! The limit of a contended lock: a plain echo server that bounces one baton between its clients. It gets a byte from
//! whoever has the baton, writes one to the next, and acknowledges; nothing can hand over with less.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

use super::dialect::{Answer, Dialect};
use crate::sockets::hurry;

const BATON: u8 = b'B';
const PASS: u8 = b'P';
const DONE: u8 = b'D';

/// A client waits for the baton without asking.
#[derive(Debug)]
pub(crate) struct Baton;

impl Dialect for Baton {
    fn lock(&mut self, _: &mut Vec<u8>) {}

    fn unlock(&mut self, out: &mut Vec<u8>) {
        out.push(PASS);
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        match input.first() {
            None => Ok(None),
            Some(&BATON) => Ok(Some((1, Answer::Entered(None)))),
            Some(&DONE) => Ok(Some((1, Answer::Left))),
            Some(other) => Err(format!("the echo server said {other}")),
        }
    }
}

/// How long the server looks again before it sleeps, as the node does: else it would be no limit.
const LINGER: Duration = Duration::from_micros(30);

/// Serves rounds of `clients` clients for ever: the first gets the baton when all are there, and when one leaves the
/// round is over. Prints its address first.
pub(crate) fn serve(clients: usize) -> Result<(), String> {
    const LISTENER: Token = Token(usize::MAX);
    let failed = |error| format!("the echo server failed: {error}");
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listener = TcpListener::bind(address).map_err(failed)?;
    println!("{}", listener.local_addr().map_err(failed)?);
    let mut poll = Poll::new().map_err(failed)?;
    let registry = poll.registry();
    registry
        .register(&mut listener, LISTENER, Interest::READABLE)
        .map_err(failed)?;
    let mut events = Events::with_capacity(64);
    let mut ring: Vec<TcpStream> = Vec::new();
    loop {
        match wait(&mut poll, &mut events) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            polled => polled.map_err(failed)?,
        }
        let mut over = false;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true).map_err(failed)?;
                    hurry(&stream);
                    let token = Token(ring.len());
                    let registered =
                        poll.registry()
                            .register(&mut stream, token, Interest::READABLE);
                    registered.map_err(failed)?;
                    ring.push(stream);
                }
                if ring.len() == clients {
                    over |= ring[0].write_all(&[BATON]).is_err();
                }
                continue;
            }
            let at = event.token().0;
            if at < ring.len() && !pass(&mut ring, at) {
                over = true;
            }
        }
        if over {
            ring.clear();
        }
    }
}

fn wait(poll: &mut Poll, events: &mut Events) -> std::io::Result<()> {
    let start = Instant::now();
    while start.elapsed() < LINGER {
        poll.poll(events, Some(Duration::ZERO))?;
        if !events.is_empty() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    poll.poll(events, None)
}

/// Reads from a client and hands the baton on; false when the client is gone.
fn pass(ring: &mut [TcpStream], at: usize) -> bool {
    let mut said = [0; 16];
    match ring[at].read(&mut said) {
        Ok(0) => false,
        Ok(read) if said[..read] == [PASS] => {
            let next = (at + 1) % ring.len();
            ring[next].write_all(&[BATON]).is_ok() && ring[at].write_all(&[DONE]).is_ok()
        }
        Ok(_) => false,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    }
}
