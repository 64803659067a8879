//! The door between nodes: it accepts, greets, and hands a stranger that turns out to be a member to a thread of its own.
//! Strangers have little time and little room, and cannot crowd out a member: if there are too many, the oldest one from the
//! address with the most strangers is cut off.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};

use super::hearing::Hearing;
use super::identity::Identity;
use super::join::JoinAnswer;
use super::stranger::{Fate, Stranger};
use super::stream::Stream;
use super::warnings::About;
use testigo_core::Newcomer;

/// How long a stranger may take to show that it is a node of the cluster.
pub(super) const GREETING_MAX: Duration = Duration::from_millis(2_000);

/// Cap on strangers.
pub(super) const STRANGERS_MAX: usize = 256;

/// The pause when the system has no more descriptors.
const REST: Duration = Duration::from_millis(100);

const LISTENER: Token = Token(0);
const BELL: Token = Token(1);
/// The token of the first stranger.
const FIRST: usize = 2;

/// Answers newcomers.
pub(super) type Answers = Box<dyn Fn(Newcomer) -> JoinAnswer + Send + Sync>;

/// The door.
#[derive(Debug)]
pub(super) struct Door {
    bell: Arc<Waker>,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Porter {
    poll: Poll,
    listener: TcpListener,
    identity: Arc<Identity>,
    hearing: Arc<Hearing>,
    answers: Answers,
    stops: Arc<AtomicBool>,
    /// By token, oldest first.
    strangers: BTreeMap<usize, Stranger>,
    next: usize,
    /// Whether there may be more to accept.
    calls: bool,
}

impl Door {
    pub(super) fn open(
        listener: TcpListener,
        identity: Arc<Identity>,
        hearing: Arc<Hearing>,
        answers: Answers,
    ) -> io::Result<Door> {
        let poll = Poll::new()?;
        let bell = Arc::new(Waker::new(poll.registry(), BELL)?);
        listener.set_nonblocking(true)?;
        let fd = listener.as_raw_fd();
        let registry = poll.registry();
        registry.register(&mut SourceFd(&fd), LISTENER, Interest::READABLE)?;
        let stops = Arc::new(AtomicBool::new(false));
        let porter = Porter {
            poll,
            listener,
            identity,
            hearing,
            answers,
            stops: Arc::clone(&stops),
            strangers: BTreeMap::new(),
            next: FIRST,
            calls: true,
        };
        let thread = thread::Builder::new().name("testigo-peers".into());
        let thread = Some(thread.spawn(move || porter.run())?);
        Ok(Door {
            bell,
            stops,
            thread,
        })
    }

    pub(super) fn close(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        if let Err(error) = self.bell.wake() {
            log::error!("the door between nodes cannot be closed: {error}");
            return;
        }
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            log::error!("the door between nodes had failed");
        }
    }
}

impl Porter {
    fn run(mut self) {
        let mut events = Events::with_capacity(64);
        while !self.stops.load(Ordering::Relaxed) {
            let rests = self.calls && !self.accept();
            let wait = if rests { Some(REST) } else { self.wait() };
            match self.poll.poll(&mut events, wait) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    log::error!("the door between nodes cannot wait: {error}");
                    return;
                }
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.calls = true,
                    BELL => {}
                    Token(token) => self.go_on(token),
                }
            }
            self.cut_off_late();
        }
    }

    /// How long until a stranger's time is over.
    fn wait(&self) -> Option<Duration> {
        let until = self.strangers.values().map(|stranger| stranger.until);
        let until = until.min()?;
        Some(until.saturating_duration_since(Instant::now()))
    }

    /// Accepts all waiting connections; false if the system does not allow it.
    fn accept(&mut self) -> bool {
        loop {
            match self.listener.accept() {
                Ok((socket, from)) => {
                    let stream = Stream::accepted(socket, from, self.identity.accepts.as_ref());
                    match stream {
                        Ok(stream) => self.admit(stream, from),
                        Err(error) => log::debug!("{from} is not let in: {error}"),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.calls = false;
                    return true;
                }
                Err(error) => match error.kind() {
                    // A fault of the connection, not of the door.
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
                    _ => {
                        let said = || format!("no other node can be let in now: {error}");
                        self.identity.warnings.say(About::Door, 0, said);
                        self.cut_off_one();
                        return false;
                    }
                },
            }
        }
    }

    fn admit(&mut self, stream: Stream, from: SocketAddr) {
        if self.strangers.len() >= STRANGERS_MAX {
            self.cut_off_one();
        }
        let token = self.next;
        self.next += 1;
        let fd = stream.socket().as_raw_fd();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut SourceFd(&fd), Token(token), interest) {
            let said = || format!("{from} is not let in: {error}");
            self.identity.warnings.say(About::Door, 0, said);
            return;
        }
        let until = Instant::now() + GREETING_MAX;
        let stranger = Stranger::new(stream, from.ip(), until);
        self.strangers.insert(token, stranger);
    }

    /// Cuts off the oldest stranger from the address with the most.
    fn cut_off_one(&mut self) {
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for stranger in self.strangers.values() {
            *counts.entry(stranger.from).or_default() += 1;
        }
        let Some(most) = counts.values().max() else {
            return;
        };
        let oldest = self.strangers.iter();
        let mut oldest = oldest.filter(|(_, stranger)| counts[&stranger.from] == *most);
        if let Some(token) = oldest.next().map(|(token, _)| *token) {
            self.cut_off(token, Some("there are too many".into()));
        }
    }

    fn cut_off_late(&mut self) {
        let now = Instant::now();
        let late = self.strangers.iter();
        let late = late.filter(|(_, stranger)| stranger.until <= now);
        let late: Vec<usize> = late.map(|(token, _)| *token).collect();
        for token in late {
            self.cut_off(token, Some("it took too long".into()));
        }
    }

    fn cut_off(&mut self, token: usize, why: Option<String>) {
        let Some(mut stranger) = self.take(token) else {
            return;
        };
        stranger.stream.end();
        if let Some(why) = why {
            log::debug!("somebody at {} is cut off: {why}", stranger.from);
        }
    }

    fn take(&mut self, token: usize) -> Option<Stranger> {
        let stranger = self.strangers.remove(&token)?;
        let fd = stranger.stream.socket().as_raw_fd();
        let _ = self.poll.registry().deregister(&mut SourceFd(&fd));
        Some(stranger)
    }

    fn go_on(&mut self, token: usize) {
        let Some(stranger) = self.strangers.get_mut(&token) else {
            return;
        };
        let (identity, hearing) = (&self.identity, &self.hearing);
        let judge = |hello: &_| {
            identity.judge(hello)?;
            hearing.judge(hello)
        };
        match stranger.go_on(identity, judge, &self.answers) {
            Fate::Waits => {}
            Fate::Gone(why) => self.cut_off(token, why),
            Fate::Member(member) => {
                if let Some(stranger) = self.take(token) {
                    self.hearing.hear(stranger.stream, *member);
                }
            }
        }
    }
}
