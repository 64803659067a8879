//! One connection: hyper speaks HTTP on it, and this code limits how long it takes. A connection is idle, or it has a request
//! or a stream under way and holds a permit for that. Each phase has a deadline, after which the connection is closed; while
//! a request is worked on, the deadlines of that work apply instead.

use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio::time::Instant;
use tower_service::Service;

use super::events::EVERY;
use super::idle::{Idle, Turn};
use super::limits::HttpLimits;

/// What is known about an open connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: IpAddr,
    limits: Arc<HttpLimits>,
    idle: Arc<Idle>,
    /// Notified if room is needed and this is the oldest idle connection.
    close: Arc<Notify>,
    /// Notified when the deadline changes.
    moved: Notify,
    phase: Mutex<Phase>,
}

#[derive(Debug)]
struct Phase {
    deadline: Option<Instant>,
    /// Its place among the idle ones; `None` while it holds a permit.
    turn: Option<Turn>,
    permit: Option<OwnedSemaphorePermit>,
    streams: bool,
    /// Whether no request is under way, so that it waits for the next head.
    waits: bool,
    /// Whether the complete answer was handed over; it is sent once hyper has flushed.
    answered: bool,
}

impl Connection {
    /// A new connection, with this much time for what comes before its first head.
    pub(super) fn new(
        peer: IpAddr,
        limits: &Arc<HttpLimits>,
        idle: &Arc<Idle>,
        greeting: Duration,
    ) -> Connection {
        let close = Arc::new(Notify::new());
        let phase = Phase {
            deadline: Some(Instant::now() + greeting + Duration::from_millis(limits.head_ms)),
            turn: Some(idle.enter(&close)),
            permit: None,
            streams: false,
            waits: true,
            answered: false,
        };
        Connection {
            peer,
            limits: Arc::clone(limits),
            idle: Arc::clone(idle),
            close,
            moved: Notify::new(),
            phase: Mutex::new(phase),
        }
    }

    /// Serves requests until either side closes, a deadline passes, or the front door needs its room.
    pub(super) async fn serve<S>(
        self: &Arc<Self>,
        stream: S,
        router: Router,
        mut stop: watch::Receiver<bool>,
    ) where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let io = Watched {
            io: TokioIo::new(stream),
            connection: Arc::clone(self),
        };
        let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Arc::clone(self));
            router.clone().call(request)
        });
        let served = http1::Builder::new()
            .max_header_size(self.limits.head_bytes)
            .max_headers(self.limits.head_fields)
            .header_read_timeout(None)
            .serve_connection(io, service);
        let mut served = pin!(served);
        let mut stopping = false;
        loop {
            let deadline = self.phase().deadline;
            tokio::select! {
                // A connection that is being closed reads nothing more, so that no request is begun and then dropped.
                biased;
                () = self.room_needed() => return,
                () = until(deadline) => return,
                ended = &mut served => {
                    if let Err(error) = ended {
                        log::debug!("the HTTP connection from {} ended: {error}", self.peer);
                    }
                    return;
                }
                () = self.moved.notified() => {}
                _ = stop.wait_for(|stop| *stop), if !stopping => {
                    if self.phase().waits {
                        return;
                    }
                    stopping = true;
                    served.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Waits until the connection must be closed to make room.
    pub(super) async fn room_needed(&self) {
        self.close.notified().await;
    }

    /// A complete head has arrived. The connection now counts as new.
    pub(super) fn request_begins(&self) {
        let mut phase = self.phase();
        phase.answered = false;
        phase.waits = false;
        self.make_idle(&mut phase);
        self.set(&mut phase, None);
    }

    /// The request may be carried out: until it is done, nobody closes the connection to make room.
    pub(super) fn hold(&self, permit: OwnedSemaphorePermit, streams: bool) {
        let mut phase = self.phase();
        if let Some(turn) = phase.turn.take() {
            self.idle.leave(turn);
        }
        phase.permit = Some(permit);
        phase.streams = streams;
    }

    /// Limits how long the client may take to read an answer.
    pub(super) fn answer(self: &Arc<Self>, body: Body) -> Body {
        let mut phase = self.phase();
        let most = Duration::from_millis(self.limits.answer_ms);
        self.set(&mut phase, Some(most));
        Body::new(Answering {
            body,
            connection: Arc::clone(self),
        })
    }

    fn event_taken(&self) {
        let mut phase = self.phase();
        if phase.streams {
            let most = EVERY + Duration::from_millis(self.limits.answer_ms);
            self.set(&mut phase, Some(most));
        }
    }

    /// Everything that hyper had was sent.
    fn flushed(&self) {
        let mut phase = self.phase();
        if std::mem::take(&mut phase.answered) {
            phase.waits = true;
            self.make_idle(&mut phase);
            let most = Duration::from_millis(self.limits.head_ms);
            self.set(&mut phase, Some(most));
        }
    }

    fn make_idle(&self, phase: &mut Phase) {
        if let Some(turn) = phase.turn.take() {
            self.idle.leave(turn);
        }
        phase.permit = None;
        phase.streams = false;
        phase.turn = Some(self.idle.enter(&self.close));
    }

    fn set(&self, phase: &mut Phase, left: Option<Duration>) {
        phase.deadline = left.map(|left| Instant::now() + left);
        self.moved.notify_one();
    }

    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(turn) = self.phase().turn.take() {
            self.idle.leave(turn);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// An answer's body that reports when hyper has taken it.
struct Answering {
    body: Body,
    connection: Arc<Connection>,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(_))) = &polled {
            self.connection.event_taken();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.connection.phase().answered = true;
    }
}

/// A stream that reports when it was flushed.
struct Watched<S> {
    io: TokioIo<S>,
    connection: Arc<Connection>,
}

impl<S: AsyncRead + Unpin> Read for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> Write for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.io).poll_flush(context);
        if let Poll::Ready(Ok(())) = &flushed {
            self.connection.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, slices)
    }
}

/// The connection of a request.
pub(super) fn connection_of(request: &Request) -> Arc<Connection> {
    let connection = request.extensions().get::<Arc<Connection>>();
    Arc::clone(connection.expect("every request is given its connection"))
}
