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
use rustls::ServerConfig;
use socket2::{SockRef, TcpKeepalive};

use crate::config::Config;
use crate::connection::Stream;
use crate::tls::Sealed;

/// A peer that vanished without a word is noticed after two and a half minutes; its implicit session ends then. Many
/// retries, because the probes of ten thousand idle connections come in bursts, and the system drops some.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 9;

/// Why a node does not listen where it should.
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

/// One open door.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener, Option<Arc<ServerConfig>>),
    Unix(UnixListener, PathBuf),
}

/// Opens the doors that a configuration names.
pub(crate) fn listen(
    config: &Config,
    tls: Option<&Arc<ServerConfig>>,
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

/// Opens the door for people. It is served by threads of its own, so it is not the reactor's.
pub(crate) fn listen_http(address: SocketAddr) -> Result<std::net::TcpListener, ListenError> {
    std::net::TcpListener::bind(address).map_err(|error| ListenError::Tcp { address, error })
}

/// A killed node leaves its socket behind; one that still answers is another node's.
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

    /// The next connection and where it comes from.
    pub(crate) fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, address) = listener.accept()?;
                stream.set_nodelay(true)?;
                let keepalive = TcpKeepalive::new()
                    .with_time(KEEPALIVE_IDLE)
                    .with_interval(KEEPALIVE_INTERVAL)
                    .with_retries(KEEPALIVE_RETRIES);
                SockRef::from(&stream).set_tcp_keepalive(&keepalive)?;
                let stream = match tls {
                    None => Stream::Tcp(stream),
                    Some(tls) => Stream::Sealed(Box::new(Sealed::new(stream, Arc::clone(tls))?)),
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
