//! A connection without a socket: the program that embeds the node writes commands into a pipe and reads answers from it,
//! byte for byte what travels over TCP. So the client library is the same in both cases. The thread that writes a command
//! serves it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use testigo_core::{Refusal, Word};

use crate::house::{ClientId, House, Outlet, TURN_COST};
use crate::node::Node;
use crate::output::Output;
use crate::serve::serve;
use crate::shared::Shared;
use crate::users::User;
use crate::wire::{Framer, Progress, Protocol, refuse};

/// Opens pipes to a node. It does not keep the node alive.
#[derive(Clone, Debug)]
pub struct Pipes {
    shared: Arc<Shared>,
}

/// A connection to a node in this process. Dropping it closes it.
#[derive(Debug)]
pub struct Pipe {
    shared: Arc<Shared>,
    client: ClientId,
    end: Arc<PipeEnd>,
    framer: Framer,
}

/// What the house and the program share of a pipe. A thread that holds the house's lock may take this one, never the reverse.
#[derive(Debug, Default)]
pub(crate) struct PipeEnd {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What was written and not served yet: part of a command, or commands behind a blocked one.
    input: Vec<u8>,
    /// How far its first command was read.
    progress: Progress,
    output: Output,
    closed: bool,
    /// Whether commands wait until the answers before them are read.
    paused: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Node {
    /// Opens connections to this node without a socket.
    pub fn pipes(&self) -> Pipes {
        Pipes {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Pipes {
    /// Opens a connection. Its user is the program itself, which may do everything.
    pub fn open(&self) -> Result<Pipe, Refusal> {
        let program = self.shared.enter(|house| house.users().program());
        Pipe::open(&self.shared, program, "embedded")
    }
}

impl Pipe {
    /// Opens a connection that acts for a user; `address` is its name among the others.
    pub(crate) fn open(
        shared: &Arc<Shared>,
        user: Arc<User>,
        address: &str,
    ) -> Result<Pipe, Refusal> {
        let end = Arc::new(PipeEnd::default());
        let client = shared.enter(|house| {
            let most = house.connections.wire().connections;
            if house.is_stopping() {
                return Err(refuse(Word::Unavailable, "the node is stopping"));
            }
            if house.connections.len() >= most {
                let why = format!("{most} connections are open, the limit connections");
                return Err(refuse(Word::Limit, why));
            }
            let client = house.welcome(Outlet::Pipe(Arc::clone(&end)), address.into());
            if let Some(client) = house.connections.client_mut(client) {
                client.user = Some(user);
            }
            Ok(client)
        })?;
        Ok(Pipe {
            shared: Arc::clone(shared),
            client,
            end,
            framer: Framer::default(),
        })
    }
}

impl Pipe {
    /// Makes the node answer in version 3, as `HELLO 3` would.
    pub(crate) fn in_version_3(self) -> Pipe {
        self.shared.enter(|house| {
            if let Some(client) = house.connections.client_mut(self.client) {
                client.protocol = Protocol::Resp3;
            }
        });
        self
    }

    /// Writes commands, as many bytes as there is room for. Waits while earlier commands wait.
    pub fn poll_write(&mut self, context: &Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Pipe {
            shared,
            client,
            end,
            framer,
        } = self;
        shared.enter(|house| {
            let room = {
                let mut state = end.lock();
                if state.closed {
                    return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
                }
                let room = house
                    .connections
                    .wire()
                    .frame_bytes
                    .saturating_sub(state.input.len());
                let room = room.min(bytes.len());
                if room == 0 && !bytes.is_empty() {
                    state.writer = Some(context.waker().clone());
                    return Poll::Pending;
                }
                state.input.extend_from_slice(&bytes[..room]);
                room
            };
            house.connections.cost.allow(TURN_COST);
            house.serve_pipe(*client, framer);
            house.pour(*client);
            Poll::Ready(Ok(room))
        })
    }

    /// Reads answers. Zero bytes mean that the node has closed the connection.
    pub fn poll_read(&mut self, context: &Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.end.lock();
        if state.output.is_empty() {
            if state.closed {
                return Poll::Ready(Ok(0));
            }
            state.reader = Some(context.waker().clone());
            return Poll::Pending;
        }
        let count = state.output.read(into);
        let paused = state.paused && state.output.is_empty();
        drop(state);
        if paused {
            let Pipe {
                shared,
                client,
                framer,
                ..
            } = self;
            shared.enter(|house| {
                house.connections.cost.allow(TURN_COST);
                house.serve_pipe(*client, framer);
                house.pour(*client);
            });
        }
        Poll::Ready(Ok(count))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.shared.enter(|house| house.farewell(self.client));
    }
}

impl PipeEnd {
    /// No code panics while it holds the lock, so a poisoned one is intact.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl House {
    /// Serves what a pipe's program has already written.
    pub(crate) fn serve_pipe(&mut self, id: ClientId, framer: &mut Framer) {
        let Some(end) = self.pipe(id) else { return };
        let mut state = end.lock();
        let mut input = std::mem::take(&mut state.input);
        let mut progress = state.progress;
        let unread = state.output.amount().all;
        drop(state);
        if let Some(client) = self.connections.client_mut(id) {
            client.unwritten = unread;
        }
        let wire = self.connections.wire().clone();
        let served = serve(self, framer, &wire, id, &input, &mut progress);
        if served.waits_its_turn {
            self.connections.let_go_on(id);
        }
        let mut state = end.lock();
        state.paused = served.paused;
        state.progress = progress;
        input.drain(..served.used);
        state.input = input;
        if served.used > 0 {
            state.writer.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Moves a pipe's output to where its program reads, and closes the pipe if it is to be closed.
    pub(crate) fn pour(&mut self, id: ClientId) {
        let Some(end) = self.pipe(id) else { return };
        let mut state = end.lock();
        self.connections.take_outbox(id, &mut state.output);
        self.connections.was_sent(id);
        let Some(client) = self.connections.client_mut(id) else {
            return;
        };
        client.unwritten = state.output.amount().all;
        // From here on the program keeps them.
        client.lent.clear();
        let leaving = client.leaving;
        state.closed |= leaving;
        if !state.output.is_empty() || state.closed {
            state.reader.take().into_iter().for_each(Waker::wake);
        }
        if state.closed {
            state.writer.take().into_iter().for_each(Waker::wake);
        }
        drop(state);
        if leaving {
            self.farewell(id);
        }
    }

    fn pipe(&self, id: ClientId) -> Option<Arc<PipeEnd>> {
        match self.connections.client(id).map(|client| &client.outlet) {
            Some(Outlet::Pipe(end)) => Some(Arc::clone(end)),
            _ => None,
        }
    }
}
