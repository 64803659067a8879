//! How a client gets a connection: TCP, sealed or not, a Unix socket, or whatever a program provides.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Address;
use crate::target::Target;
use crate::tls::Tls;

/// A connection to a node.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection of any kind.
pub type BoxStream = Box<dyn Stream>;

type Attempt = Pin<Box<dyn Future<Output = io::Result<BoxStream>> + Send>>;

/// Makes a connection, whenever the client needs one.
#[derive(Clone)]
pub struct Connector(Arc<dyn Fn() -> Attempt + Send + Sync>);

impl Connector {
    /// Connects by a function, for example to a node in the same process.
    pub fn new<F, A>(attempt: F) -> Connector
    where
        F: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = io::Result<BoxStream>> + Send + 'static,
    {
        Connector(Arc::new(move || Box::pin(attempt())))
    }

    /// Connects to where a node listens.
    pub fn to(target: &Target) -> Connector {
        let (address, tls) = (target.address.clone(), target.tls.clone());
        Connector::new(move || attempt(address.clone(), tls.clone()))
    }

    pub(crate) fn connect(&self) -> Attempt {
        (self.0)()
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
    let stream = TcpStream::connect(&address).await?;
    stream.set_nodelay(true)?;
    match tls {
        None => Ok(Box::new(stream)),
        Some(tls) => {
            let host = address.rsplit_once(':').map_or(&*address, |(host, _)| host);
            Ok(Box::new(tls.seal(host, stream).await?))
        }
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
