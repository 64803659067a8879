//! The HTTP front door: a thread with its own runtime that accepts connections, and ends with the front door.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::answer::broken;
use super::connection::Connection;
use super::events::Newest;
use super::idle::Idle;
use super::limits::HttpLimits;
use super::routes::routes;
use super::shortage::Shortage;
use crate::shared::Shared;
use crate::tls::Tls;
use crate::users::Users;

/// Threads for work that would keep the runtime's only thread from answering others: making JSON, checking passwords.
const WORKERS: usize = 4;
/// How long answers under way may take to be sent when the node stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// The configuration of the front door.
#[derive(Debug)]
pub(crate) struct DoorConfig {
    /// TLS, and the time for its handshake.
    pub(crate) tls: Option<(Arc<Tls>, Duration)>,
    pub(crate) limits: HttpLimits,
    /// The data directory, whose free space is watched.
    pub(crate) data: PathBuf,
    /// Whether the node is a member of a cluster.
    pub(crate) member: bool,
}

/// The listening front door. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct HttpDoor {
    door: Arc<Door>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct Door {
    /// Set once there is a house; until then only the health is answered.
    open: OnceLock<Open>,
    pub(super) limits: Arc<HttpLimits>,
    pub(super) address: SocketAddr,
    pub(super) data: PathBuf,
    pub(super) member: bool,
    pub(super) idle: Arc<Idle>,
    pub(super) requests: Arc<Semaphore>,
    pub(super) streams: Arc<Semaphore>,
    /// One hashed password at a time.
    pub(super) hashing: Semaphore,
    pub(super) newest: Arc<Newest>,
    pub(super) stop: watch::Receiver<bool>,
}

/// What requests are about.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) shared: Arc<Shared>,
    pub(super) users: Arc<Users>,
}

impl Door {
    pub(super) fn is_open(&self) -> bool {
        self.open.get().is_some()
    }

    /// For requests that the guard has let in.
    pub(super) fn open(&self) -> &Open {
        let open = self.open.get();
        open.expect("the guard turns requests away until the door is open")
    }
}

impl HttpDoor {
    /// Listens, and answers that the node starts.
    pub(crate) fn listen(listener: TcpListener, config: DoorConfig) -> io::Result<HttpDoor> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(WORKERS)
            .thread_name("http worker")
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener)?
        };
        let (stop, stopped) = watch::channel(false);
        let limits = Arc::new(config.limits);
        let door = Arc::new(Door {
            open: OnceLock::new(),
            address,
            data: config.data,
            member: config.member,
            idle: Arc::new(Idle::new(limits.connections)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            streams: Arc::new(Semaphore::new(limits.streams)),
            hashing: Semaphore::new(1),
            newest: Arc::default(),
            stop: stopped,
            limits,
        });
        let own = Arc::clone(&door);
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || run(runtime, &listener, &own, config.tls))?;
        Ok(HttpDoor {
            door,
            stop,
            thread: Some(thread),
        })
    }

    /// From now on requests are answered.
    pub(crate) fn open(&self, shared: &Arc<Shared>, users: &Arc<Users>) {
        let (shared, users) = (Arc::clone(shared), Arc::clone(users));
        let _ = self.door.open.set(Open { shared, users });
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.door.address
    }
}

impl Drop for HttpDoor {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(
    runtime: Runtime,
    listener: &tokio::net::TcpListener,
    door: &Arc<Door>,
    tls: Option<(Arc<Tls>, Duration)>,
) {
    runtime.block_on(async {
        let mut open = accept(listener, door, tls).await;
        // Idle connections close at once, answers under way are finished, streams end.
        let all_gone = async { while open.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FAREWELL, all_gone).await;
    });
    runtime.shutdown_timeout(FAREWELL);
}

/// Accepts connections until the front door is closed; returns those that are still open.
async fn accept(
    listener: &tokio::net::TcpListener,
    door: &Arc<Door>,
    tls: Option<(Arc<Tls>, Duration)>,
) -> JoinSet<()> {
    let router = routes(Arc::clone(door));
    let mut stop = door.stop.clone();
    let (mut open, mut shortage) = (JoinSet::new(), Shortage::default());
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return open,
            Some(_) = open.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let door = Arc::clone(door);
                // A reload may have changed the certificate.
                let tls = tls.as_ref().map(|(tls, patience)| {
                    let acceptor = TlsAcceptor::from(tls.current());
                    (acceptor, *patience)
                });
                open.spawn(welcome(door, router.clone(), tls, stream, peer));
            }
            // The peer was gone before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                door.idle.make_room();
                tokio::select! {
                    _ = shortage.pause(&error) => {}
                    _ = stop.wait_for(|stop| *stop) => return open,
                }
            }
        }
    }
}

async fn welcome(
    door: Arc<Door>,
    router: Router,
    tls: Option<(TlsAcceptor, Duration)>,
    stream: TcpStream,
    peer: SocketAddr,
) {
    let _ = stream.set_nodelay(true);
    let greeting = tls
        .as_ref()
        .map_or(Duration::ZERO, |(_, patience)| *patience);
    let connection = Connection::new(peer.ip(), &door.limits, &door.idle, greeting);
    let connection = Arc::new(connection);
    let mut stop = door.stop.clone();
    let Some((acceptor, patience)) = tls else {
        let patience = Duration::from_millis(door.limits.head_ms);
        let mut first = [0];
        let peeked = tokio::select! {
            () = connection.room_needed() => return,
            _ = stop.wait_for(|stop| *stop) => return,
            peeked = tokio::time::timeout(patience, stream.peek(&mut first)) => peeked,
        };
        // No HTTP request begins like this, and every RESP command does.
        return match (peeked, first) {
            (Ok(Ok(1)), [b'*']) => tell_that_this_is_http(&stream).await,
            _ => connection.serve(stream, router, stop).await,
        };
    };
    let greeted = tokio::select! {
        () = connection.room_needed() => return,
        _ = stop.wait_for(|stop| *stop) => return,
        greeted = tokio::time::timeout(patience, acceptor.accept(stream)) => greeted,
    };
    match greeted {
        Ok(Ok(stream)) => connection.serve(stream, router, stop).await,
        Ok(Err(error)) => log::debug!("a TLS handshake on the HTTP door failed: {error}"),
        Err(_) => log::debug!("a TLS handshake on the HTTP door took too long"),
    }
}

/// Answers in RESP a client that has mistaken this front door for the other one.
async fn tell_that_this_is_http(stream: &TcpStream) {
    let answer = b"-BADARG this is the HTTP door of a testigo node; RESP has a port of its own: 7600, unless --resp says \
        otherwise\r\n";
    // First reads what was sent: a connection that is closed with unread bytes may lose the answer.
    let mut unread = [0; 512];
    let _ = stream.try_read(&mut unread);
    if stream.writable().await.is_ok() {
        let _ = stream.try_write(answer);
    }
}

/// Does work that may take a while on another thread.
pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Response> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| broken(&error))
}
