//! Two threads that relay each other at the reactor, so that one of them can wait for the disk.
//!
//! The thread that drives the reactor flushes the log itself if the disk is quick and no client has anything else to say just
//! then. Otherwise the time of waking another thread and being woken by it would be added for everybody who waits. Meanwhile
//! the reactor lies where the other thread can reach it. If it lies there for longer than [`PATIENCE`], the other thread
//! takes it and goes on, and the one that waits for the disk takes the other's place when that is over. So a client that does
//! not need the disk never waits for one that stalls.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testigo_engine::{FlushError, Flusher};

use crate::reactor::{Heard, Paused, Reactor};

/// How long the reactor may lie there. It is checked at such intervals, so it may take twice as long.
pub(crate) const PATIENCE: Duration = Duration::from_millis(5);

/// The two threads; the node ends with them.
#[derive(Debug)]
pub(crate) struct Relay {
    threads: [JoinHandle<Option<Result<(), FlushError>>>; 2],
}

/// Both ended without closing the log: one has panicked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Something that can do the log's work.
pub(crate) trait Flushes: fmt::Debug + Send + Sync {
    /// Whether the disk is quick enough to wait for.
    fn is_quick(&self) -> bool;
    /// Does it, for as long as it takes.
    fn flush(&self);
}

impl Flushes for Flusher {
    fn is_quick(&self) -> bool {
        Flusher::is_quick(self)
    }

    fn flush(&self) {
        Flusher::flush(self);
    }
}

impl Relay {
    pub(crate) fn start(reactor: Reactor, flusher: &Arc<dyn Flushes>) -> io::Result<Relay> {
        let parking = Arc::new(Parking::default());
        let thread = |reactor: Option<Box<Reactor>>| {
            let (parking, flusher) = (Arc::clone(&parking), Arc::clone(flusher));
            let thread = thread::Builder::new().name("testigo-reactor".into());
            thread.spawn(move || parking.run(reactor, &*flusher))
        };
        let second = thread(None)?;
        let first = thread(Some(Box::new(reactor)));
        if first.is_err() {
            parking.lock().over = true;
            parking.changed.notify_all();
        }
        Ok(Relay {
            threads: [first?, second],
        })
    }

    /// Waits for the end; returns how the log was closed.
    pub(crate) fn join(self) -> Result<Result<(), FlushError>, Panicked> {
        let ended = self.threads.map(JoinHandle::join);
        let closed = ended.into_iter().find_map(|ended| ended.ok().flatten());
        closed.ok_or(Panicked)
    }
}

/// Where the reactor lies while its thread waits for the disk.
#[derive(Debug, Default)]
struct Parking {
    lying: Mutex<Lying>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lying {
    reactor: Option<Box<Reactor>>,
    /// How many times it was put there.
    times: u64,
    /// Whether the other thread sleeps until it is told that there is something.
    asleep: bool,
    /// Whether nobody will drive the reactor any more.
    over: bool,
}

impl Parking {
    /// Runs one of the two threads. Returns how the log was closed, if this thread closed it.
    fn run(
        &self,
        reactor: Option<Box<Reactor>>,
        flusher: &dyn Flushes,
    ) -> Option<Result<(), FlushError>> {
        // Even if this thread panics, so that the other does not wait for ever.
        let _over = Over(self);
        let mut heard = Heard::default();
        let mut own = reactor;
        loop {
            let mut reactor = match own.take() {
                Some(reactor) => reactor,
                None => self.watch()?,
            };
            match reactor.run(&mut heard) {
                Paused::Stopped(closed) => return Some(closed),
                Paused::ToFlush => {
                    self.put(reactor);
                    flusher.flush();
                    own = self.lock().reactor.take();
                }
            }
        }
    }

    fn put(&self, reactor: Box<Reactor>) {
        let mut lying = self.lock();
        lying.reactor = Some(reactor);
        lying.times += 1;
        if std::mem::take(&mut lying.asleep) {
            drop(lying);
            self.changed.notify_one();
        }
    }

    /// Waits until the reactor has been lying for too long, and takes it. `None` at the end.
    fn watch(&self) -> Option<Box<Reactor>> {
        let mut lying = self.lock();
        let mut seen = None;
        loop {
            if lying.over {
                return None;
            }
            if seen == Some(lying.times) && lying.reactor.is_some() {
                return lying.reactor.take();
            }
            // If nothing is flushed there is nothing to check.
            lying.asleep = seen == Some(lying.times);
            seen = Some(lying.times);
            lying = match lying.asleep {
                true => self.changed.wait(lying),
                false => match self.changed.wait_timeout(lying, PATIENCE) {
                    Ok((lying, _)) => Ok(lying),
                    Err(poisoned) => Err(PoisonError::new(poisoned.into_inner().0)),
                },
            }
            .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No code panics while it holds the lock, so a poisoned one is intact.
    fn lock(&self) -> MutexGuard<'_, Lying> {
        self.lying.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the other thread.
struct Over<'a>(&'a Parking);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.lock().over = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::Config;
    use crate::node::Node;
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A disk that seems quick and then waits at every flush until it is released.
    #[derive(Debug)]
    struct Stalls {
        flusher: Flusher,
        stalled: Sender<()>,
        go_on: Mutex<Receiver<()>>,
    }

    impl Flushes for Stalls {
        fn is_quick(&self) -> bool {
            true
        }

        fn flush(&self) {
            self.stalled.send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
            self.flusher.flush();
        }
    }

    /// A client that speaks and hears lines.
    pub(crate) struct Client(BufReader<TcpStream>);

    impl Client {
        pub(crate) fn connect(address: SocketAddr) -> Client {
            let stream = TcpStream::connect(address).unwrap();
            let patience = Some(Duration::from_secs(30));
            stream.set_read_timeout(patience).unwrap();
            Client(BufReader::new(stream))
        }

        pub(crate) fn say(&mut self, command: &str) {
            let line = format!("{command}\r\n");
            self.0.get_mut().write_all(line.as_bytes()).unwrap();
        }

        pub(crate) fn hear(&mut self) -> String {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            line.trim_end().into()
        }
    }

    #[test]
    fn a_disk_that_stalls_holds_up_nobody_who_wants_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::embedded(dir.path());
        config.resp = Some("127.0.0.1:0".parse().unwrap());
        let (stalled, is_stalled) = channel();
        let (let_go, go_on) = channel();
        let node = Node::start_with(config, |flusher| {
            let go_on = Mutex::new(go_on);
            Arc::new(Stalls {
                flusher,
                stalled,
                go_on,
            })
        });
        let node = node.unwrap();
        let address = node.resp_address().unwrap();
        let (mut durable, mut other) = (Client::connect(address), Client::connect(address));
        // More than once, so that each of the two threads has stalled.
        for nth in 0..4 {
            durable.say(&format!("GATE CREATE g{nth} MUTEX"));
            is_stalled.recv().unwrap();
            other.say("PING");
            assert_eq!(other.hear(), "+PONG");
            let_go.send(()).unwrap();
            assert_eq!(durable.hear(), "+OK");
        }
        node.stop().unwrap();
    }
}
