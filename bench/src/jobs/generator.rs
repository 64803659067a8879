//! The load: closed-loop clients on one thread, each a socket in one poll. Every client creates a job, takes one, whoever
//! created it, and deletes that, each step after the answer to the one before. All share one queue, so that there is
//! always a job for whoever asks. Every system is driven by this same loop.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use mio::{Events, Poll};

use super::body::body;
use super::dialect::{Answer, Dialect};
use super::referee::Referee;
use crate::sockets::{Came, PATIENCE, Pauses, Socket, wait};
use crate::tally::Tally;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) warm_up: Duration,
    pub(crate) span: Duration,
    /// How long a client asks for a job that must be there before it is called lost.
    pub(crate) patience: Duration,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    /// How long each create, take and delete took, in nanoseconds.
    pub(crate) steps: [Vec<u32>; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Creating,
    Taking,
    Pausing(Instant),
    Deleting,
    /// All is done; the queue must be empty.
    Checking,
}

struct Client {
    socket: Socket,
    dialect: Box<dyn Dialect>,
    phase: Phase,
    /// When its loop began, and when its step did.
    begun: Instant,
    asked: Instant,
    /// What it created and then what it took.
    job: u64,
}

/// Drives one client a dialect against a server, or in turn against the servers of a cluster, and counts. Fails when the
/// referee does. `run` is like no other's.
pub(crate) fn drive(
    servers: &[SocketAddr],
    mut dialects: Vec<Box<dyn Dialect>>,
    load: Load,
    run: usize,
) -> Result<Outcome, String> {
    if let Some(first) = dialects.first_mut() {
        let stream = TcpStream::connect(servers);
        let mut stream = stream.map_err(|e| format!("cannot connect to {servers:?}: {e}"))?;
        first.prepare(&mut stream)?;
    }
    let mut generator = Generator::connect(servers, dialects, load, run)?;
    generator.run()?;
    Ok(generator.outcome)
}

struct Generator {
    poll: Poll,
    clients: Vec<Client>,
    referee: Referee,
    outcome: Outcome,
    load: Load,
    /// When counting begins and ends.
    from: Instant,
    until: Instant,
    /// Somebody found no job before, so that pauses must be looked after.
    refused: bool,
    pauses: Pauses,
}

impl Generator {
    fn connect(
        servers: &[SocketAddr],
        dialects: Vec<Box<dyn Dialect>>,
        load: Load,
        run: usize,
    ) -> Result<Generator, String> {
        let poll = Poll::new().map_err(|error| format!("cannot poll: {error}"))?;
        let now = Instant::now();
        let mut clients = Vec::new();
        for (at, mut dialect) in dialects.into_iter().enumerate() {
            let address = servers[at % servers.len()];
            clients.push(Client {
                socket: Socket::connect(&poll, at, address, |stream| dialect.greet(stream))?,
                dialect,
                phase: Phase::Idle,
                begun: now,
                asked: now,
                job: 0,
            });
        }
        let tally = Tally {
            loops: vec![0; clients.len()],
            span: load.span,
            ..Tally::default()
        };
        Ok(Generator {
            poll,
            clients,
            referee: Referee::new(run),
            outcome: Outcome {
                tally,
                ..Outcome::default()
            },
            load,
            from: now,
            until: now,
            refused: false,
            pauses: Pauses::new(),
        })
    }

    fn run(&mut self) -> Result<(), String> {
        self.from = Instant::now() + self.load.warm_up;
        self.until = self.from + self.load.span;
        for at in 0..self.clients.len() {
            self.begin(at);
            self.clients[at].socket.send()?;
        }
        self.until_idle()?;
        self.referee.settle()?;
        if let Some(first) = self.clients.first_mut() {
            first.phase = Phase::Checking;
            first.dialect.take(&mut first.socket.output);
            first.socket.send()?;
        }
        self.until_idle()
    }

    fn until_idle(&mut self) -> Result<(), String> {
        let mut events = Events::with_capacity(self.clients.len().max(1));
        let idle = |client: &Client| client.phase == Phase::Idle;
        while !self.clients.iter().all(idle) {
            let patience = self.patience();
            wait(&mut self.poll, &mut events, false, patience)?;
            let paused = self.refused && self.retry()?;
            if events.is_empty() && !paused {
                return Err("the server does not answer".into());
            }
            for event in &events {
                self.receive(event.token().0)?;
            }
        }
        Ok(())
    }

    /// How long to wait for a socket: until the next pause is over.
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
        for client in &mut self.clients {
            let Phase::Pausing(until) = client.phase else {
                continue;
            };
            paused = true;
            let now = Instant::now();
            if now.duration_since(client.asked) > self.load.patience {
                let waiting = self.referee.waiting();
                return Err(format!("{waiting} jobs were created and are not found"));
            }
            if until <= now {
                client.phase = Phase::Taking;
                client.dialect.take(&mut client.socket.output);
                client.socket.send()?;
            }
        }
        Ok(paused)
    }

    fn begin(&mut self, at: usize) {
        let client = &mut self.clients[at];
        client.phase = Phase::Creating;
        client.begun = Instant::now();
        client.asked = client.begun;
        client.job = self.referee.creates();
        let body = body(client.job);
        client.dialect.create(&body, &mut client.socket.output);
    }

    fn receive(&mut self, at: usize) -> Result<(), String> {
        loop {
            let came = self.clients[at].socket.receive()?;
            if came == Came::Nothing {
                return Ok(());
            }
            self.hear(at)?;
            self.clients[at].socket.send()?;
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
            match (answer, client.phase) {
                (Answer::Aside, _) => {}
                (Answer::Created, Phase::Creating) => {
                    client.dialect.take(&mut socket.output);
                    client.phase = Phase::Taking;
                    self.step(at, 0);
                }
                (Answer::Taken(found), Phase::Taking) => {
                    match found {
                        Some(found) => client.job = self.referee.takes(at, found)?,
                        None => self.referee.holds(at, client.job)?,
                    }
                    client.dialect.delete(&mut socket.output);
                    client.phase = Phase::Deleting;
                    self.step(at, 1);
                }
                (Answer::Empty, Phase::Taking) => {
                    self.refused = true;
                    client.phase = Phase::Pausing(self.pauses.end());
                }
                (Answer::Deleted, Phase::Deleting) => {
                    self.referee.deletes(at, client.job)?;
                    self.step(at, 2);
                    self.finish(at);
                }
                (Answer::Empty | Answer::Taken(None), Phase::Checking) => {
                    client.phase = Phase::Idle;
                }
                (Answer::Taken(Some(found)), Phase::Checking) => {
                    self.referee.takes(at, found)?;
                    return Err("a job was left over".into());
                }
                (answer, phase) => return Err(format!("{answer:?} in phase {phase:?}")),
            }
        }
        self.clients[at].socket.forget(used);
        Ok(())
    }

    /// A create, take or delete is over.
    fn step(&mut self, at: usize, which: usize) {
        let now = Instant::now();
        let client = &mut self.clients[at];
        if now >= self.from && now < self.until {
            let taken = now.duration_since(client.asked);
            self.outcome.steps[which].push(nanoseconds(taken));
        }
        client.asked = now;
    }

    /// Counts a loop and begins the next, until the time is over.
    fn finish(&mut self, at: usize) {
        let client = &mut self.clients[at];
        // When its last step was over.
        let now = client.asked;
        client.phase = Phase::Idle;
        if now >= self.from && now < self.until {
            let tally = &mut self.outcome.tally;
            tally.loops[at] += 1;
            tally.latencies.push(nanoseconds(now - client.begun));
        }
        if now < self.until {
            self.begin(at);
        }
    }
}

fn nanoseconds(taken: Duration) -> u32 {
    u32::try_from(taken.as_nanos()).unwrap_or(u32::MAX)
}
