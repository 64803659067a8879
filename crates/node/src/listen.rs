//! Where connections come from: TCP and Unix sockets.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};
use mio::{Interest, Registry, Token};
use socket2::{SockRef, TcpKeepalive};

use crate::config::Config;
use crate::connection::Stream;
use crate::tls::{Sealed, Tls};

/// A peer that vanishes without a word is noticed after some 13 seconds, and its implicit session ends then. A peer that has
/// been silent for a while is probed several times, because probes to ten thousand idle connections come in bursts, and the
/// system drops some.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 5;
/// A peer is not probed while something is on its way to it. If it takes nothing for this long, it is gone.
#[cfg(target_os = "linux")]
const UNTAKEN_MAX: Duration = Duration::from_secs(12);

/// Why a node cannot listen where it should.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// TCP.
    #[error("cannot listen on {address}: {error}{}", hint(.error))]
    Tcp {
        /// Where.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The other nodes.
    #[error("cannot listen for the other nodes on {address}: {error}{}", hint(.error))]
    Peer {
        /// Where.
        address: String,
        /// Why not.
        error: io::Error,
    },
    /// A Unix socket.
    #[error("cannot listen on {}: {error}{}", .path.display(), hint(.error))]
    Unix {
        /// Where.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
}

fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; is another node running there?",
        _ => "",
    }
}

/// One listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener, Option<Arc<Tls>>),
    Unix(UnixListener, PathBuf),
}

/// Opens the listening sockets of a configuration.
pub(crate) fn listen(
    config: &Config,
    tls: Option<&Arc<Tls>>,
) -> Result<Vec<Listener>, ListenError> {
    let mut doors = Vec::new();
    if let Some(address) = config.resp {
        let listener = TcpListener::bind(address);
        let listener = listener.map_err(|error| ListenError::Tcp { address, error })?;
        doors.push(Listener::Tcp(listener, tls.cloned()));
    }
    if let Some(path) = &config.unix {
        let listener = remove_stale(path).and_then(|()| UnixListener::bind(path));
        let listener = listener.map_err(|error| ListenError::Unix {
            path: path.clone(),
            error,
        })?;
        doors.push(Listener::Unix(listener, path.clone()));
    }
    Ok(doors)
}

/// Opens the front door for people. It has its own threads, so it is not the reactor's.
pub(crate) fn listen_http(address: SocketAddr) -> Result<std::net::TcpListener, ListenError> {
    std::net::TcpListener::bind(address).map_err(|error| ListenError::Tcp { address, error })
}

/// A killed node leaves its socket behind; a socket that still answers is another node's.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if !found.file_type().is_socket() => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "there is a file, and it is no socket",
        )),
        Ok(_) => match std::os::unix::net::UnixStream::connect(path) {
            Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            Err(_) => std::fs::remove_file(path),
        },
    }
}

pub(crate) fn notice_vanishing(socket: SockRef<'_>) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNTAKEN_MAX))?;
    Ok(())
}

/// Within one machine there is no congestion. Algorithms for long distances, for example pacing at a measured rate, only make
/// every answer more expensive; the simplest one is always available. If it cannot be set, nothing changes.
pub(crate) fn hurry(socket: SockRef<'_>, peer: SocketAddr) {
    #[cfg(target_os = "linux")]
    if peer.ip().to_canonical().is_loopback() {
        let _ = socket.set_tcp_congestion(b"reno");
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (socket, peer);
}

impl Listener {
    /// The TCP address, with the port that the system chose if it was 0.
    pub(crate) fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener, _) => listener.local_addr().ok(),
            Listener::Unix(..) => None,
        }
    }

    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            Listener::Tcp(listener, _) => listener.register(registry, token, Interest::READABLE),
            Listener::Unix(listener, _) => listener.register(registry, token, Interest::READABLE),
        }
    }

    /// Accepts the next connection; returns it and its address.
    pub(crate) fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, address) = listener.accept()?;
                stream.set_nodelay(true)?;
                notice_vanishing(SockRef::from(&stream))?;
                hurry(SockRef::from(&stream), address);
                let stream = match tls {
                    None => Stream::Tcp(stream),
                    Some(tls) => Stream::Sealed(Box::new(Sealed::new(stream, tls.current())?)),
                };
                Ok((stream, address.to_string()))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                Ok((Stream::Unix(stream), path.display().to_string()))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_answered_without_a_pace() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, address) = listener.accept().unwrap();
        let way = || SockRef::from(&stream).tcp_congestion().unwrap();
        let before = way();
        hurry(SockRef::from(&stream), "10.1.2.3:4".parse().unwrap());
        assert_eq!(way(), before, "others are left as they are");
        hurry(SockRef::from(&stream), address);
        assert!(way().starts_with(b"reno"));
    }

    #[test]
    fn a_vanished_machine_is_noticed_within_15_seconds() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let socket = SockRef::from(&stream);
        notice_vanishing(SockRef::from(&stream)).unwrap();
        let most = Duration::from_secs(15);
        assert!(socket.keepalive().unwrap());
        let asked =
            socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert!(socket.tcp_keepalive_time().unwrap() + asked <= most);
        assert!(
            socket
                .tcp_user_timeout()
                .unwrap()
                .is_some_and(|untaken| untaken <= most)
        );
    }
}
