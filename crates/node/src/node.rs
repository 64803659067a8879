//! A running node: started from a configuration, used through its front doors, stopped cleanly or by force.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::time::Duration;

use mio::Poll;
use testigo_engine::{FlushError, Flusher, LogThread, OpenError};

use crate::among::{Among, Anew};
use crate::clock::Clock;
use crate::completion::Completion;
use crate::config::{Config, ConfigError};
use crate::corosync::{Corosync, CorosyncError, Link};
use crate::health::Absence;
use crate::house::{House, Member};
use crate::http::{DoorConfig, HttpDoor};
use crate::listen::{ListenError, listen, listen_http};
use crate::open::{self, TakeOverError};
use crate::peers::{ClusterConfig, listen_for_peers};
use crate::reactor::{BELL, Reactor};
use crate::relay::{Flushes, Panicked, Relay};
use crate::reload::{ReloadError, Reloader};
use crate::shared::Shared;
use crate::tls::{Tls, TlsError};
use crate::users::Checker;

/// A running node. Dropping it stops it cleanly.
#[derive(Debug)]
pub struct Node {
    pub(crate) shared: Arc<Shared>,
    relay: Option<Relay>,
    /// `None` if the node is alone.
    among: Option<Arc<Mutex<Option<Among>>>>,
    resp: Option<SocketAddr>,
    http: Option<HttpDoor>,
    tls: Option<Arc<Tls>>,
    password_queue: usize,
    /// `None` if the node is alone.
    cluster: Option<ClusterConfig>,
    /// Set if a Corosync group shares the pools.
    corosync: Option<Corosync>,
}

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// TLS cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    /// It cannot listen where it should.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Corosync cannot be used.
    #[error("Corosync: {0}")]
    Corosync(#[from] CorosyncError),
    /// The data directory could not be taken over.
    #[error(transparent)]
    Data(#[from] TakeOverError),
    /// The system refused a thread or a descriptor.
    #[error("the system refused what a node needs: {0}")]
    System(#[from] io::Error),
}

impl StartError {
    /// Whether the data directory only lacks room.
    pub(crate) fn is_for_room(&self) -> bool {
        match self {
            StartError::Data(TakeOverError::Engine(OpenError::Disk(error))) => error.is_full(),
            _ => false,
        }
    }
}

/// Why a stop was not clean. The next start recovers as after a crash.
///
/// ```
/// # let data = tempfile::tempdir()?;
/// use testigo_node::{Config, Node};
///
/// let node = Node::start(Config::embedded(data.path()))?;
/// if let Err(unclean) = node.stop() {
///     eprintln!("the next start takes longer: {unclean}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] FlushError),
    /// The reactor's thread had panicked.
    #[error("the node had failed before")]
    Failed,
}

impl Node {
    /// Starts a node. When this returns, it listens, and the view of this start is durable.
    pub fn start(config: Config) -> Result<Node, StartError> {
        Node::start_with(config, |flusher| Arc::new(flusher))
    }

    /// Like [`Node::start`], with something around the flusher.
    pub(crate) fn start_with(
        config: Config,
        flushes: impl FnOnce(Flusher) -> Arc<dyn Flushes>,
    ) -> Result<Node, StartError> {
        let mut config = config;
        config.check()?;
        let most = connections_max(raise_descriptor_limit());
        if config.wire.connections > most {
            let wanted = config.wire.connections;
            log::info!(
                "at most {most} connections are taken, not {wanted}: each is a descriptor, and the system's limit \
                 (ulimit -n) allows no more beside those that are kept for files and HTTP"
            );
            config.wire.connections = most;
        }
        // Before the directory, because taking that over uses up what the last clean stop has left.
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        let listeners = listen(&config, tls.as_ref())?;
        let resp = listeners.iter().find_map(|listener| listener.tcp_address());
        let http = config.http.map(listen_http).transpose()?;
        let http = http.map(|listener| {
            let patience = Duration::from_millis(config.wire.handshake_ms);
            let door = DoorConfig {
                tls: tls.clone().map(|tls| (tls, patience)),
                limits: config.http_limits.clone(),
                data: config.data.clone(),
                member: config.cluster.is_some(),
            };
            // A node that joins may wait long for the others. It is alive meanwhile, and says what it does.
            HttpDoor::listen(listener, door)
        });
        let http = http.transpose()?;
        let peers = config.cluster.as_ref().map(listen_for_peers).transpose()?;
        let link = config.corosync.as_ref().map(Link::open).transpose()?;
        let poll = Poll::new()?;
        let bell = mio::Waker::new(poll.registry(), BELL)?;
        let clock = match config.cluster {
            Some(_) => Clock::start_among(),
            None => Clock::start(),
        };
        // The system may have chosen the port.
        config.resp = config.resp.and(resp);
        let (mut house, engine, joining) = open::open_or_join(&config, clock, peers.as_ref())?;
        if let (Some(link), Some(group)) = (&link, &config.corosync) {
            let (data, nodes) = (&config.data, &group.members);
            house.share_pools(data, link.own(), nodes, link.outbox())?;
        }
        let shared = Arc::new(Shared::new(house, bell));
        let (log, anew) = match peers {
            Some(listener) => {
                let (log, anew) = Anew::first(&config, listener, &shared, engine, joining)?;
                (log, Some(anew))
            }
            None => {
                let deliver = Arc::clone(&shared);
                let log = LogThread::start(engine, move |delivery| deliver.deliver(delivery))?;
                (log, None)
            }
        };
        let flusher = match &anew {
            Some(anew) => anew.flusher(),
            None => flushes(log.flusher()),
        };
        let among = anew.as_ref().map(Anew::among);
        shared.house().move_in(log);
        let wire = config.wire.clone();
        let own = Arc::clone(&flusher);
        let reactor = Reactor::new(poll, Arc::clone(&shared), listeners, wire, own, anew)?;
        let users = Arc::clone(shared.house().users());
        if users.take_work() {
            let most = config.wire.password_queue;
            let checker = Checker::start(Arc::clone(&users), Arc::downgrade(&shared), most)?;
            shared.house().set_checker(checker);
        }
        let relay = Some(Relay::start(reactor, &flusher)?);
        let corosync = link.map(|link| link.start(&shared)).transpose()?;
        if let Some(http) = &http {
            http.open(&shared, &users);
        }
        Ok(Node {
            http,
            shared,
            relay,
            among,
            resp,
            tls,
            password_queue: config.wire.password_queue,
            cluster: config.cluster,
            corosync,
        })
    }

    /// Its address for HTTP.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpDoor::address)
    }

    /// Its address for RESP over TCP.
    pub fn resp_address(&self) -> Option<SocketAddr> {
        self.resp
    }

    /// What a node that is not in its cluster waits for; `None` once it is a voter, and if it is alone or stopping.
    pub fn joining(&self) -> Option<String> {
        let absence = self.shared.enter(|house| Absence::of(house));
        absence.and_then(Absence::waits_for)
    }

    /// Whether it stops, or has stopped: it serves nobody any more.
    pub fn is_stopping(&self) -> bool {
        self.shared.enter(|house| house.is_stopping())
    }

    /// Whether its cluster has removed it for good.
    pub fn was_removed(&self) -> bool {
        let removed = |house: &mut House| house.member().is_some_and(Member::was_removed);
        self.shared.enter(removed)
    }

    /// Whether sessions from before a crash are still awaited, so that some gates, or all, do not grant.
    pub fn recovering(&self) -> bool {
        self.shared.enter(|house| house.local().recovering())
    }

    /// Whether no gate grants, because an awaited session may hold anything.
    pub fn recovering_everywhere(&self) -> bool {
        self.shared
            .enter(|house| house.local().recovering_everywhere())
    }

    /// How long, in milliseconds, sessions may still be awaited: by then each has run out.
    pub fn recovers_within_ms(&self) -> u64 {
        self.shared.enter(|house| {
            let sessions = house.local().sessions().into_iter();
            let left = sessions.filter(|session| session.awaited).map(|session| {
                let silent = house.now().saturating_sub(session.heard);
                session.ttl_ms.unwrap_or(0).saturating_sub(silent)
            });
            left.max().unwrap_or(0)
        })
    }

    /// Reports when the disk has failed: the node then stops by itself, and [`Node::wait`] returns the same error.
    pub fn disk_failure(&self) -> DiskFailure {
        let completion = Completion::new();
        let own = Arc::clone(&completion);
        self.shared.enter(|house| house.submissions.watch(own));
        DiskFailure(completion)
    }

    /// A handle that reloads the node from another thread.
    pub fn reloader(&self) -> Reloader {
        Reloader {
            shared: Arc::clone(&self.shared),
            tls: self.tls.clone(),
            doors: [self.resp, self.http_address()],
            password_queue: self.password_queue,
            cluster: self.cluster.clone(),
        }
    }

    /// Takes over the users, their rights and the certificate of a configuration, see [`Reloader::reload`].
    pub fn reload(&self, config: &Config) -> Result<(), ReloadError> {
        self.reloader().reload(config)
    }

    /// A handle that stops the node from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Stops cleanly: finishes what was submitted, closes connections, and keeps holders and waiters for the next start.
    pub fn stop(self) -> Result<(), StopError> {
        self.stopper().stop();
        self.wait()
    }

    /// Waits until the node has stopped.
    pub fn wait(mut self) -> Result<(), StopError> {
        self.join()
    }

    fn join(&mut self) -> Result<(), StopError> {
        let ended = self.relay.take().map(Relay::join);
        self.http = None;
        // Nobody here uses a slot any more.
        self.corosync = None;
        let among = self.among.as_ref().map(|among| among.lock());
        let among = among.map(|among| among.unwrap_or_else(PoisonError::into_inner).take());
        if let Some(mut among) = among.flatten() {
            among.stop();
        }
        match ended {
            None => Ok(()),
            Some(Ok(closed)) => Ok(closed?),
            Some(Err(Panicked)) => Err(StopError::Failed),
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.relay.is_some() {
            self.stopper().stop();
            if let Err(error) = self.join() {
                log::error!("the stop was not clean: {error}");
            }
        }
    }
}

/// Why the disk of a node failed, if it does: to be awaited or blocked on.
#[derive(Debug)]
pub struct DiskFailure(Arc<Completion<String>>);

impl DiskFailure {
    /// Blocks the thread until the disk fails.
    pub fn wait(self) -> String {
        self.0.wait()
    }
}

impl Future for DiskFailure {
    type Output = String;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> std::task::Poll<String> {
        self.0.poll(context)
    }
}

/// Stops a node from another thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    shared: Arc<Shared>,
}

impl Stopper {
    /// Begins a clean stop; [`Node::wait`] returns when it is done.
    pub fn stop(&self) {
        self.shared.enter(|house| house.begin_stop());
        self.shared.ring();
    }
}

/// Descriptors that the RESP front door's connections leave to the log, to HTTP and to everything else: without them the node
/// could not even write.
const DESCRIPTORS_KEPT: u64 = 256;

/// How many connections a number of descriptors allows; if there are few, half of them.
fn connections_max(descriptors: Option<u64>) -> usize {
    let most = descriptors.map(|all| all - DESCRIPTORS_KEPT.min(all / 2));
    most.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    })
}

/// Every connection needs a descriptor, and the system's default allows few: raises the limit to the maximum. Returns the
/// number, if it is limited.
fn raise_descriptor_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let mut limit = before;
    limit.current = limit.maximum;
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => limit.current,
        Err(error) => {
            log::debug!("the descriptor limit stays as it is: {error}");
            before.current
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files() {
        assert_eq!(connections_max(None), usize::MAX);
        assert_eq!(connections_max(Some(1024)), 768);
        assert_eq!(connections_max(Some(64)), 32);
    }
}
