//! The connections that other nodes have dialled. A thread per connection reads it and hands what it hears to the log.

use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use testigo_engine::FRAME_BYTES_MAX;

use super::greeting::{Hello, Purpose};
use super::stranger::Member;
use super::stream::Stream;
use super::warnings::{About, Warnings};

/// How much is read at once, 128 KiB.
const READ_BYTES: usize = 128 << 10;

/// Takes what one read of a connection has brought from a node.
pub(super) type Hear = Box<dyn Fn(u64, &mut Vec<Bytes>) + Send + Sync>;

/// Called when a node was heard, with its start.
pub(super) type Met = Box<dyn Fn(u64, u64) + Send + Sync>;

/// All nodes that are heard.
pub(super) struct Hearing {
    hear: Hear,
    met: Met,
    warnings: Arc<Warnings>,
    began: Instant,
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    nodes: BTreeMap<u64, Ear>,
    threads: Vec<JoinHandle<()>>,
    /// Distinguishes a node's connections.
    count: u64,
    stops: bool,
}

/// A node that is, or was, heard.
#[derive(Debug)]
struct Ear {
    start: u64,
    /// Its connection; `None` once it has ended.
    socket: Option<(u64, TcpStream)>,
    /// When something last came, in milliseconds since the beginning.
    last: Arc<AtomicU64>,
}

impl Hearing {
    pub(super) fn new(hear: Hear, met: Met, warnings: Arc<Warnings>) -> Hearing {
        Hearing {
            hear,
            met,
            warnings,
            began: Instant::now(),
            heard: Mutex::default(),
        }
    }

    /// Whether a node may be heard: not if a later start of it is.
    pub(super) fn judge(&self, hello: &Hello) -> Result<(), String> {
        let heard = self.heard();
        match heard.nodes.get(&hello.from) {
            // It has no start yet.
            _ if hello.purpose == Purpose::Join => Ok(()),
            Some(ear) if ear.start > hello.start && ear.socket.is_some() => Err(format!(
                "start {} of node {} is connected, which is later than start {}",
                ear.start, hello.from, hello.start
            )),
            _ => Ok(()),
        }
    }

    /// Hears a node on this connection from now on, instead of an earlier one.
    pub(super) fn hear(self: &Arc<Self>, stream: Stream, member: Member) {
        let (node, start) = (member.hello.from, member.hello.start);
        if let Err(error) = self.try_hear(stream, member) {
            let said = || format!("node {node} cannot be heard: {error}");
            self.warnings.say(About::NotHeard, node, said);
            return;
        }
        (self.met)(node, start);
    }

    fn try_hear(self: &Arc<Self>, stream: Stream, member: Member) -> io::Result<()> {
        stream.block()?;
        let socket = stream.socket().try_clone()?;
        let (node, start) = (member.hello.from, member.hello.start);
        let last = Arc::new(AtomicU64::new(self.now()));
        let mut heard = self.heard();
        if heard.stops {
            return Ok(());
        }
        heard.count += 1;
        let count = heard.count;
        let own = Arc::clone(self);
        let clock = Arc::clone(&last);
        let thread = thread::Builder::new().name(format!("testigo-from-{node}"));
        let thread = thread.spawn(move || {
            let ended = own.listen(node, stream, member, &clock);
            own.ended(node, count, &ended);
        })?;
        heard.threads.retain(|thread| !thread.is_finished());
        heard.threads.push(thread);
        let ear = Ear {
            start,
            socket: Some((count, socket)),
            last,
        };
        if let Some(before) = heard.nodes.insert(node, ear) {
            before.end();
        }
        Ok(())
    }

    fn listen(
        &self,
        node: u64,
        mut stream: Stream,
        member: Member,
        last: &AtomicU64,
    ) -> Result<(), String> {
        let Member {
            mut opener,
            heard: mut bytes,
            ..
        } = member;
        opener.allow(FRAME_BYTES_MAX);
        let mut buffer = vec![0; READ_BYTES];
        let mut frames = Vec::new();
        loop {
            let whole = loop {
                match opener.next(&mut bytes) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error.to_string()),
                }
            };
            if !frames.is_empty() {
                (self.hear)(node, &mut frames);
                frames.clear();
            }
            whole?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
                Err(error) => return Err(error.to_string()),
            }
            last.store(self.now(), Ordering::Relaxed);
        }
    }

    fn ended(&self, node: u64, count: u64, how: &Result<(), String>) {
        let mut heard = self.heard();
        let stops = heard.stops;
        if let Some(ear) = heard.nodes.get_mut(&node)
            && let Some((present, _)) = &ear.socket
            && *present == count
        {
            ear.end();
            ear.socket = None;
            let said = || match how {
                Ok(()) => format!("node {node} has hung up"),
                Err(why) => format!("node {node} is not heard any more: {why}"),
            };
            let about = match how {
                Ok(()) => About::HungUp,
                Err(_) => About::NotHeard,
            };
            if !stops {
                self.warnings.say(about, node, said);
            }
        }
    }

    /// Whether a node is heard now, and for how long nothing has come from it.
    pub(super) fn status(&self, node: u64) -> (bool, Option<Duration>) {
        let heard = self.heard();
        let Some(ear) = heard.nodes.get(&node) else {
            return (false, None);
        };
        let silent = self.now().saturating_sub(ear.last.load(Ordering::Relaxed));
        (ear.socket.is_some(), Some(Duration::from_millis(silent)))
    }

    /// Stops hearing everybody.
    pub(super) fn stop(&self) {
        let threads = {
            let mut heard = self.heard();
            heard.stops = true;
            heard.nodes.values().for_each(Ear::end);
            std::mem::take(&mut heard.threads)
        };
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread that heard another node had failed");
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    fn end(&self) {
        if let Some((_, socket)) = &self.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl std::fmt::Debug for Hearing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hearing")
            .field("heard", &self.heard)
            .finish_non_exhaustive()
    }
}
