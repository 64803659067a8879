//! The way to one other node: a connection that this node dials and sends on. The thread that has a frame writes it, as far
//! as the socket has room. The cable's own thread writes the rest, and dials again when the connection has ended.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::os::fd::AsRawFd;

use super::dial::{Dialled, dial};
use super::frames::Sealer;
use super::greeting::Purpose;
use super::identity::Identity;
use super::stream::Stream;
use super::warnings::About;

/// Cap on bytes that wait for a slow node, 32 MiB. Frames beyond it are lost; raft and the links repeat them.
pub(super) const UNSENT_BYTES_MAX: usize = 32 << 20;

/// A connection that takes nothing for this long, though there is something to send, is given up.
const STALLED_MAX: Duration = Duration::from_millis(3_000);

/// The pause between two attempts to dial; each failure doubles it.
const BACKOFF_MIN: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_millis(250);

/// A buffer larger than this is released once it is empty.
const KEPT_BYTES_MAX: usize = 1 << 20;

const SOCKET: Token = Token(0);
const BELL: Token = Token(1);

/// The way to one other node.
#[derive(Debug)]
pub(super) struct Cable {
    node: u64,
    identity: Arc<Identity>,
    out: Mutex<Out>,
    bell: Waker,
    lost: AtomicU64,
}

#[derive(Debug, Default)]
struct Out {
    address: Option<String>,
    pipe: Option<Pipe>,
    /// Frames for the pipe, and how many bytes of them it has taken.
    unsent: Vec<u8>,
    sent: usize,
    /// When it last took something, or had nothing to take.
    moved: Option<Instant>,
    /// Whether to dial without waiting.
    nudged: bool,
    stops: bool,
    trouble: Option<String>,
}

#[derive(Debug)]
struct Pipe {
    stream: Stream,
    sealer: Sealer,
    /// The other node's start.
    start: u64,
    broken: Option<String>,
}

impl Cable {
    /// Begins to dial once it has an address.
    pub(super) fn start(
        node: u64,
        identity: Arc<Identity>,
    ) -> io::Result<(Arc<Cable>, JoinHandle<()>)> {
        let poll = Poll::new()?;
        let cable = Arc::new(Cable {
            node,
            identity,
            out: Mutex::default(),
            bell: Waker::new(poll.registry(), BELL)?,
            lost: AtomicU64::new(0),
        });
        let own = Arc::clone(&cable);
        let thread = thread::Builder::new().name(format!("testigo-to-{node}"));
        let thread = thread.spawn(move || own.run(poll))?;
        Ok((cable, thread))
    }

    /// Queues a frame, which goes out with [`Cable::flush`]. Never waits.
    pub(super) fn send(&self, frame: &[u8]) {
        let mut out = self.out();
        let Out {
            pipe, unsent, sent, ..
        } = &mut *out;
        let room = unsent.len() - *sent + frame.len() <= UNSENT_BYTES_MAX;
        match pipe {
            Some(pipe) if room => pipe.sealer.seal(frame, unsent),
            _ => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes what the socket has room for.
    pub(super) fn flush(&self) {
        let mut out = self.out();
        out.flush();
        if out.is_broken() {
            self.ring();
        }
    }

    /// Dials this address from now on, or none.
    pub(super) fn set_address(&self, address: Option<&str>) {
        let mut out = self.out();
        if out.address.as_deref() != address {
            out.address = address.map(str::to_owned);
            out.nudged = true;
            out.give_up("it is reached elsewhere");
            self.ring();
        }
    }

    /// The other node was heard, with this start: it can be reached now.
    pub(super) fn nudge(&self, start: u64) {
        let mut out = self.out();
        match &out.pipe {
            Some(pipe) if pipe.start >= start => return,
            Some(_) => out.give_up("it was started again"),
            None => {}
        }
        out.nudged = true;
        self.ring();
    }

    pub(super) fn stop(&self) {
        let mut out = self.out();
        out.stops = true;
        out.give_up("this node stops");
        self.ring();
    }

    /// The address, whether it is connected, otherwise why not, and how many frames were lost.
    pub(super) fn status(&self) -> (Option<String>, bool, Option<String>, u64) {
        let out = self.out();
        let lost = self.lost.load(Ordering::Relaxed);
        let connected = out.pipe.is_some();
        (out.address.clone(), connected, out.trouble.clone(), lost)
    }

    fn out(&self) -> MutexGuard<'_, Out> {
        self.out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        if let Err(error) = self.bell.wake() {
            log::error!("the cable to node {} cannot be woken: {error}", self.node);
        }
    }

    fn run(&self, mut poll: Poll) {
        let mut events = Events::with_capacity(8);
        let mut backoff = BACKOFF_MIN;
        loop {
            let address = {
                let mut out = self.out();
                if out.stops {
                    return;
                }
                out.nudged = false;
                let ready = self.identity.cluster().is_some();
                out.address.clone().filter(|_| ready)
            };
            let wait = match address {
                None => None,
                Some(address) => {
                    let tried = dial(&self.identity, &address, Purpose::Frames, self.node);
                    let ended = match tried {
                        Ok(dialled) => {
                            backoff = BACKOFF_MIN;
                            self.serve(&mut poll, &mut events, dialled, &address)
                        }
                        Err(error) => error.to_string(),
                    };
                    self.note(&address, ended);
                    let wait = backoff;
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                    Some(wait)
                }
            };
            self.rest(&mut poll, &mut events, wait);
        }
    }

    /// Waits until it is time to dial again.
    fn rest(&self, poll: &mut Poll, events: &mut Events, wait: Option<Duration>) {
        let until = wait.map(|wait| Instant::now() + wait);
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            {
                let out = self.out();
                if out.stops || out.nudged || left.is_some_and(|left| left.is_zero()) {
                    return;
                }
            }
            if let Err(error) = poll.poll(events, left)
                && error.kind() != io::ErrorKind::Interrupted
            {
                log::error!("the cable to node {} cannot wait: {error}", self.node);
                return;
            }
        }
    }

    /// Sends until the connection ends; says why it has.
    fn serve(
        &self,
        poll: &mut Poll,
        events: &mut Events,
        dialled: Dialled,
        address: &str,
    ) -> String {
        let Dialled {
            stream,
            sealer,
            start,
            ..
        } = dialled;
        let fd = stream.socket().as_raw_fd();
        let interest = Interest::READABLE | Interest::WRITABLE;
        let registered = stream.socket().set_nonblocking(true);
        let registered = registered.and_then(|()| {
            poll.registry()
                .register(&mut SourceFd(&fd), SOCKET, interest)
        });
        if let Err(error) = registered {
            return error.to_string();
        }
        let connected = || format!("node {} is connected, at {address}", self.node);
        let warnings = &self.identity.warnings;
        warnings.say(About::Connected, self.node, connected);
        {
            let mut out = self.out();
            out.trouble = None;
            out.moved = Some(Instant::now());
            let elsewhere = out.stops || out.address.as_deref() != Some(address);
            out.pipe = Some(Pipe {
                stream,
                sealer,
                start,
                broken: elsewhere.then(|| "it is reached elsewhere".into()),
            });
        }
        let ended = self.serve_until_broken(poll, events);
        let mut out = self.out();
        if let Some(mut pipe) = out.pipe.take() {
            let _ = poll.registry().deregister(&mut SourceFd(&fd));
            pipe.stream.end();
        }
        out.unsent = Vec::new();
        out.sent = 0;
        ended
    }

    fn serve_until_broken(&self, poll: &mut Poll, events: &mut Events) -> String {
        loop {
            {
                let mut out = self.out();
                out.listen();
                out.flush();
                if let Some(why) = out.pipe.as_mut().and_then(|pipe| pipe.broken.take()) {
                    return why;
                }
                if out.is_stalled() {
                    return "it takes nothing".into();
                }
            }
            match poll.poll(events, Some(STALLED_MAX / 3)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                    return error.to_string();
                }
                _ => {}
            }
        }
    }

    /// Remembers why there is no connection, and logs it once.
    fn note(&self, address: &str, why: String) {
        let mut out = self.out();
        if out.stops {
            return;
        }
        if out.trouble.as_ref() != Some(&why) {
            let trouble = || format!("node {} is not connected, at {address}: {why}", self.node);
            let warnings = &self.identity.warnings;
            warnings.say(About::NotConnected, self.node, trouble);
            out.trouble = Some(why);
        }
    }
}

impl Out {
    fn flush(&mut self) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let before = self.sent;
        while self.sent < self.unsent.len() && pipe.broken.is_none() {
            match pipe.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => pipe.broken = Some(error.to_string()),
            }
        }
        match pipe.stream.send() {
            Ok(_) => {}
            Err(error) => pipe.broken = Some(error.to_string()),
        }
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.unsent.shrink_to(KEPT_BYTES_MAX);
            self.sent = 0;
            self.moved = Some(Instant::now());
        } else if self.sent > before {
            self.moved = Some(Instant::now());
            if self.sent > self.unsent.len() / 2 {
                self.unsent.drain(..self.sent);
                self.sent = 0;
            }
        }
    }

    /// The other side says nothing more, but it may hang up.
    fn listen(&mut self) {
        let Some(pipe) = &mut self.pipe else {
            return;
        };
        let mut buffer = [0; 512];
        loop {
            match pipe.stream.read(&mut buffer) {
                Ok(0) => return self.give_up("it has hung up"),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return self.give_up(&error.to_string()),
            }
        }
    }

    fn give_up(&mut self, why: &str) {
        if let Some(pipe) = &mut self.pipe {
            pipe.broken.get_or_insert_with(|| why.to_owned());
        }
    }

    fn is_broken(&self) -> bool {
        let pipe = self.pipe.as_ref();
        pipe.is_some_and(|pipe| pipe.broken.is_some())
    }

    fn is_stalled(&self) -> bool {
        let moved = self.moved.filter(|_| self.sent < self.unsent.len());
        moved.is_some_and(|moved| moved.elapsed() > STALLED_MAX)
    }
}
