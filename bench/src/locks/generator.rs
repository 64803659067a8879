//! The load: closed-loop clients on one thread, each a socket in one poll, so that on a small machine the server and not
//! the load is what is measured. Every system is driven by this same loop.
//!
//! At a contended gate everybody who was let in leaves only after all sockets that had something were read, and one hold
//! in [`LONG_EVERY`] lasts [`LONG_HOLD`]: a second holder would be seen while the first is still inside.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use super::dialect::{Answer, Dialect};
use super::referee::Referee;
use crate::sockets::{Came, PATIENCE, Pauses, Socket, wait};
use crate::tally::Tally;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// All clients at one gate, or each at its own.
    pub(crate) contended: bool,
    /// Each in the slot of a pool that it is given.
    pub(crate) slots: bool,
    pub(crate) warm_up: Duration,
    pub(crate) span: Duration,
}

/// Long holds are rare and short enough to cost any system the same one or two hundredths.
const LONG_EVERY: u64 = 256;
const LONG_HOLD: Duration = Duration::from_micros(20);

impl Load {
    /// Whether two clients could come to be inside the same.
    fn shared(&self) -> bool {
        self.contended || self.slots
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Entering,
    Pausing(Instant),
    /// Until the sockets were read, or longer.
    Inside(Option<Instant>),
    Leaving,
}

struct Client {
    socket: Socket,
    dialect: Box<dyn Dialect>,
    gate: usize,
    phase: Phase,
    begun: Instant,
}

/// Drives one client a dialect against a server, or in turn against the servers of a cluster, and counts. Fails when the
/// referee does.
pub(crate) fn drive(
    servers: &[SocketAddr],
    dialects: Vec<Box<dyn Dialect>>,
    load: Load,
) -> Result<Tally, String> {
    let mut generator = Generator::connect(servers, dialects, load)?;
    generator.run()?;
    let mut tally = generator.tally;
    tally.bypass = generator.referee.longest_bypass();
    Ok(tally)
}

struct Generator {
    poll: Poll,
    clients: Vec<Client>,
    referee: Referee,
    tally: Tally,
    load: Load,
    /// When counting begins and ends.
    from: Instant,
    until: Instant,
    /// Who is inside what others may enter.
    inside: Vec<usize>,
    entries: u64,
    /// Who has something to send.
    talking: Vec<usize>,
    /// Somebody was refused before, so that pauses must be looked after.
    refused: bool,
    pauses: Pauses,
}

impl Generator {
    fn connect(
        servers: &[SocketAddr],
        dialects: Vec<Box<dyn Dialect>>,
        load: Load,
    ) -> Result<Generator, String> {
        let poll = Poll::new().map_err(|error| format!("cannot poll: {error}"))?;
        let mut clients = Vec::new();
        for (at, mut dialect) in dialects.into_iter().enumerate() {
            let address = servers[at % servers.len()];
            clients.push(Client {
                socket: Socket::connect(&poll, at, address, |stream| dialect.greet(stream))?,
                dialect,
                gate: if load.contended { 0 } else { at },
                phase: Phase::Idle,
                begun: Instant::now(),
            });
        }
        let from = Instant::now() + load.warm_up;
        let count = clients.len();
        Ok(Generator {
            poll,
            clients,
            referee: Referee::new(count, count),
            tally: Tally {
                loops: vec![0; count],
                span: load.span,
                ..Tally::default()
            },
            load,
            from,
            until: from + load.span,
            inside: Vec::new(),
            entries: 0,
            talking: Vec::new(),
            refused: false,
            pauses: Pauses::new(),
        })
    }

    fn run(&mut self) -> Result<(), String> {
        self.from = Instant::now() + self.load.warm_up;
        self.until = self.from + self.load.span;
        for at in 0..self.clients.len() {
            self.begin(at);
            self.send(at)?;
        }
        let mut events = Events::with_capacity(self.clients.len());
        while self
            .clients
            .iter()
            .any(|client| client.phase != Phase::Idle)
        {
            let (busy, patience) = (!self.inside.is_empty(), self.patience());
            wait(&mut self.poll, &mut events, busy, patience)?;
            let paused = self.refused && self.retry()?;
            if events.is_empty() && self.inside.is_empty() && !paused {
                return Err("the server does not answer".into());
            }
            for event in &events {
                self.receive(event.token().0)?;
            }
            self.leave_all()?;
            for at in std::mem::take(&mut self.talking) {
                self.send(at)?;
            }
        }
        Ok(())
    }

    /// How long to wait for a socket: until the next pause or long hold is over.
    fn patience(&self) -> Duration {
        if !self.refused {
            return PATIENCE;
        }
        let next = self.clients.iter().filter_map(|client| match client.phase {
            Phase::Pausing(until) => Some(until),
            _ => None,
        });
        next.min().map_or(PATIENCE, |until| {
            until.saturating_duration_since(Instant::now())
        })
    }

    /// Lets those try again whose pause is over; whether anybody paused.
    fn retry(&mut self) -> Result<bool, String> {
        let mut paused = false;
        for at in 0..self.clients.len() {
            let client = &mut self.clients[at];
            if let Phase::Pausing(until) = client.phase {
                paused = true;
                if until <= Instant::now() {
                    client.phase = Phase::Entering;
                    client.dialect.lock(&mut client.socket.output);
                    self.send(at)?;
                }
            }
        }
        Ok(paused)
    }

    fn begin(&mut self, at: usize) {
        let client = &mut self.clients[at];
        client.phase = Phase::Entering;
        client.begun = Instant::now();
        self.referee.asks(at, client.gate);
        client.dialect.lock(&mut client.socket.output);
    }

    fn receive(&mut self, at: usize) -> Result<(), String> {
        loop {
            let came = self.clients[at].socket.receive()?;
            if came == Came::Nothing {
                return Ok(());
            }
            self.hear(at)?;
            match self.load.shared() {
                true => self.talking.push(at),
                false => self.send(at)?,
            }
            if came == Came::All {
                return Ok(());
            }
        }
    }

    /// Understands everything that was read.
    fn hear(&mut self, at: usize) -> Result<(), String> {
        let mut used = 0;
        loop {
            let client = &mut self.clients[at];
            if client.phase == Phase::Idle {
                break;
            }
            let socket = &mut client.socket;
            let heard = &socket.input[used..socket.filled];
            let Some((length, answer)) = client.dialect.read(heard, &mut socket.output)? else {
                break;
            };
            used += length;
            let answer = match answer {
                Answer::Took(slot, fence) => {
                    client.gate = slot;
                    Answer::Entered(Some(fence))
                }
                other => other,
            };
            match (answer, client.phase) {
                (Answer::Aside, _) => {}
                (Answer::Entered(fence), Phase::Entering) => {
                    self.referee.enters(at, client.gate, fence)?;
                    self.entries += 1;
                    let long = self.load.shared() && self.entries.is_multiple_of(LONG_EVERY);
                    client.phase = Phase::Inside(long.then(|| Instant::now() + LONG_HOLD));
                    match self.load.shared() {
                        true => self.inside.push(at),
                        false => self.leave(at)?,
                    }
                }
                (Answer::Refused, Phase::Entering) => {
                    self.refused = true;
                    client.phase = Phase::Pausing(self.pauses.end());
                }
                (Answer::Left, Phase::Leaving) => self.finish(at),
                (answer, phase) => return Err(format!("{answer:?} in phase {phase:?}")),
            }
        }
        self.clients[at].socket.forget(used);
        Ok(())
    }

    /// Lets everybody leave whose hold is over.
    fn leave_all(&mut self) -> Result<(), String> {
        for at in std::mem::take(&mut self.inside) {
            match self.clients[at].phase {
                Phase::Inside(Some(until)) if until > Instant::now() => self.inside.push(at),
                _ => {
                    self.leave(at)?;
                    self.send(at)?;
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, at: usize) -> Result<(), String> {
        let client = &mut self.clients[at];
        self.referee.leaves(at, client.gate)?;
        client.phase = Phase::Leaving;
        client.dialect.unlock(&mut client.socket.output);
        Ok(())
    }

    /// Counts a pair and begins the next, until the time is over.
    fn finish(&mut self, at: usize) {
        let now = Instant::now();
        let client = &mut self.clients[at];
        client.phase = Phase::Idle;
        if now >= self.from && now < self.until {
            self.tally.loops[at] += 1;
            let taken = now.duration_since(client.begun).as_nanos();
            let taken = u32::try_from(taken).unwrap_or(u32::MAX);
            self.tally.latencies.push(taken);
        }
        if now < self.until {
            self.begin(at);
        }
    }

    fn send(&mut self, at: usize) -> Result<(), String> {
        self.clients[at].socket.send()
    }
}
