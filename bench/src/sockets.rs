//! The sockets of a load: many clients in one poll on one thread, so that on a small machine the server and not the load
//! is what is measured.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

/// A server that says nothing for so long is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Answers are short; a greeting is over before the buffer is used.
const INPUT_BYTES: usize = 16 << 10;
/// The shortest and longest pause of a refused client before it tries again. Poll counts in whole milliseconds.
const PAUSE_US: (u64, u64) = (500, 1500);
/// Short, since the processor that it takes is wanted by servers of several processes.
const LINGER: Duration = Duration::from_micros(20);

/// One client's connection, with what came and what is to be sent.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    at: usize,
    pub(crate) input: Box<[u8]>,
    pub(crate) filled: usize,
    pub(crate) output: Vec<u8>,
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Nothing,
    /// There may be more.
    Some,
    /// A socket that gave less than was asked for has nothing more; the next bytes are told anew.
    All,
}

impl Socket {
    /// Connects and greets, then has itself watched under the number `at`.
    pub(crate) fn connect(
        poll: &Poll,
        at: usize,
        address: SocketAddr,
        greet: impl FnOnce(&mut std::net::TcpStream) -> Result<(), String>,
    ) -> Result<Socket, String> {
        let failed = |error: io::Error| format!("cannot connect to {address}: {error}");
        let mut stream = std::net::TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        greet(&mut stream)?;
        stream.set_nonblocking(true).map_err(failed)?;
        let mut stream = TcpStream::from_std(stream);
        let registry = poll.registry();
        registry
            .register(&mut stream, Token(at), Interest::READABLE)
            .map_err(failed)?;
        Ok(Socket {
            stream,
            at,
            input: vec![0; INPUT_BYTES].into(),
            filled: 0,
            output: Vec::new(),
        })
    }

    pub(crate) fn receive(&mut self) -> Result<Came, String> {
        let at = self.at;
        loop {
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(format!("the server closed client {at}'s connection")),
                Ok(read) => {
                    self.filled += read;
                    return Ok(match self.filled < self.input.len() {
                        true => Came::All,
                        false => Came::Some,
                    });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Came::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("client {at} cannot read: {error}")),
            }
        }
    }

    /// Forgets what was understood.
    pub(crate) fn forget(&mut self, used: usize) {
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
    }

    pub(crate) fn send(&mut self) -> Result<(), String> {
        if self.output.is_empty() {
            return Ok(());
        }
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(|error| format!("client {} cannot write: {error}", self.at))
    }
}

/// Waits for sockets, or only looks if the load is `busy`. It looks again for a moment before it sleeps: being woken takes
/// longer than an answer, and the load would be what is measured.
pub(crate) fn wait(
    poll: &mut Poll,
    events: &mut Events,
    busy: bool,
    patience: Duration,
) -> Result<(), String> {
    let mut look = |most| match poll.poll(events, Some(most)) {
        Err(error) if error.kind() != ErrorKind::Interrupted => {
            Err(format!("cannot poll: {error}"))
        }
        _ => Ok(!events.is_empty()),
    };
    let start = Instant::now();
    while start.elapsed() < LINGER {
        if look(Duration::ZERO)? || busy {
            return Ok(());
        }
    }
    while !look(patience.saturating_sub(start.elapsed()))? && start.elapsed() < patience {}
    Ok(())
}

/// Answers a neighbour without a pace, as the node does: else a server of ours would be no limit.
pub(crate) fn hurry(stream: &TcpStream) {
    let _ = rustix::net::sockopt::set_tcp_congestion(stream, "reno");
}

/// The pauses of refused clients.
#[derive(Debug)]
pub(crate) struct Pauses(u64);

impl Pauses {
    pub(crate) fn new() -> Pauses {
        Pauses(0x2545_F491_4F6C_DD1D)
    }

    /// When to try again. Marsaglia's generator draws.
    pub(crate) fn end(&mut self) -> Instant {
        let (least, most) = PAUSE_US;
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        Instant::now() + Duration::from_micros(least + self.0 % (most - least))
    }
}
