//! How a client gets a connection: TCP, with or without TLS, a Unix socket, or whatever a program provides.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Address;
use crate::addresses::Addresses;
use crate::target::Target;
use crate::tls::Tls;

/// A node that vanishes without a word, or the network to it, is noticed after some 13 seconds, as the node notices its
/// clients. An answer may take long, so a silent node is probed.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 5;
/// The node is not probed while something is on its way to it. If it takes nothing for this long, it is gone.
#[cfg(target_os = "linux")]
const UNTAKEN_MAX: Duration = Duration::from_secs(12);

/// A connection to a node.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection of any kind.
pub type BoxStream = Box<dyn Stream>;

type Attempt = Pin<Box<dyn Future<Output = io::Result<BoxStream>> + Send>>;

/// Makes a connection, whenever the client needs one.
#[derive(Clone)]
pub struct Connector {
    how: How,
}

#[derive(Clone)]
enum How {
    By(Arc<dyn Fn() -> Attempt + Send + Sync>),
    To(Addresses, Option<Tls>),
}

impl Connector {
    /// Connects by a function, for example to a node in the same process.
    pub fn new<F, A>(attempt: F) -> Connector
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<BoxStream>> + Send + 'static,
    {
        let attempt = Arc::new(move || -> Attempt { Box::pin(attempt()) });
        Connector {
            how: How::By(attempt),
        }
    }

    /// Connects to the addresses of the nodes, one after the other.
    pub fn to(target: &Target) -> Connector {
        Connector {
            how: How::To(target.addresses.clone(), target.tls.clone()),
        }
    }

    /// How many nodes it can connect to.
    pub(crate) fn nodes(&self) -> usize {
        match &self.how {
            How::By(_) => 1,
            How::To(addresses, _) => addresses.count(),
        }
    }

    /// Connects to the node whose turn it is, and says which it is.
    pub(crate) fn connect(&self) -> (usize, Attempt) {
        match &self.how {
            How::By(attempt) => (0, attempt()),
            How::To(addresses, tls) => {
                let (at, address) = addresses.current();
                (at, Box::pin(attempt(address, tls.clone())))
            }
        }
    }

    /// That node is gone or cannot serve: the next connection goes to the next.
    pub(crate) fn left(&self, at: usize) {
        if let How::To(addresses, _) = &self.how {
            addresses.left(at);
        }
    }
}

async fn attempt(address: Address, tls: Option<Tls>) -> io::Result<BoxStream> {
    let address = match (address, &tls) {
        (Address::Tcp(address), _) => address,
        (Address::Unix(path), None) => return Ok(Box::new(UnixStream::connect(path).await?)),
        (Address::Unix(_), Some(_)) => {
            return Err(io::Error::other("TLS is for TCP; a Unix socket needs none"));
        }
    };
    let stream = connect(&address).await?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let host = address.rsplit_once(':').map_or(&*address, |(host, _)| host);
            Ok(Box::new(tls.seal(host, stream).await?))
        }
    }
}

async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNTAKEN_MAX))?;
    Ok(stream)
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_vanished_node_is_noticed_within_15_seconds() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stream = connect(&address).await.unwrap();
        let socket = SockRef::from(&stream);
        let most = Duration::from_secs(15);
        assert!(socket.keepalive().unwrap());
        let asked =
            socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
        assert!(socket.tcp_keepalive_time().unwrap() + asked <= most);
        let untaken = socket.tcp_user_timeout().unwrap();
        assert!(untaken.is_some_and(|untaken| untaken <= most));
    }
}
