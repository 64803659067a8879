//! A node inside this process, used like a remote one: the same client speaks to it, through a pipe in memory instead of a
//! socket. So the same code decides what a guard says, when it is lost and what is repeated.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use testigo_client::{BoxStream, Call, Connector, Word};
use testigo_node::{Config, Node, Pipe, Pipes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::handle::{Testigo, refused};

/// Starts a node in this process. It listens where its configuration says, which may be nowhere; this handle needs no socket.
/// Dropping the handle stops the node and waits for the disk; [`Testigo::stop`] does so without blocking a task.
pub async fn embed(config: Config) -> Call<Testigo> {
    let start = tokio::task::spawn_blocking(|| Node::start(config));
    let node = match start.await {
        Ok(started) => started.map_err(|error| refused(Word::Unavailable, &error))?,
        Err(ended) => return Err(refused(Word::Unavailable, &ended)),
    };
    Testigo::over(through(node.pipes()), None, Some(node)).await
}

fn through(pipes: Pipes) -> Connector {
    Connector::new(move || {
        let opened = pipes.open();
        async move {
            match opened {
                Ok(pipe) => Ok(Box::new(Duplex(pipe)) as BoxStream),
                Err(refusal) => Err(io::Error::other(refusal.to_string())),
            }
        }
    })
}

/// A pipe in the form that the client's runtime reads and writes.
struct Duplex(Pipe);

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.poll_read(context, buffer.initialize_unfilled());
        read.map_ok(|count| buffer.advance(count))
    }
}

impl AsyncWrite for Duplex {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
