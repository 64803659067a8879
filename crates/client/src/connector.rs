//! How a client gets a connection: TCP, a Unix socket, or whatever a program provides.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use crate::address::Address;

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
    pub fn to(address: Address) -> Connector {
        Connector::new(move || {
            let address = address.clone();
            async move {
                Ok(match address {
                    Address::Tcp(address) => {
                        let stream = TcpStream::connect(address).await?;
                        stream.set_nodelay(true)?;
                        Box::new(stream) as BoxStream
                    }
                    Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
                })
            }
        })
    }

    pub(crate) fn connect(&self) -> Attempt {
        (self.0)()
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}
