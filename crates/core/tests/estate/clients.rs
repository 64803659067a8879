//! Clients: each has a session at a node, enters a gate, stays a while and leaves. One with an opened session knows until when
//! it may believe that it lives, and takes it up again at another node when its own is gone.

use testigo_core::{Fence, SessionId, Ticket};

/// A client and what it believes.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) node: usize,
    /// Its session, once it has one.
    pub(crate) session: Option<SessionId>,
    /// Opened, not implicit.
    pub(crate) opened: bool,
    pub(crate) state: State,
    /// Opened sessions: until when the session lives, as far as the client knows.
    pub(crate) deadline: u64,
    /// When it does something next.
    pub(crate) due: u64,
    /// When it last asked to take its session up again.
    pub(crate) resumed: u64,
    /// When it last was inside.
    pub(crate) granted: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Outside,
    /// Waits for the log to open its session.
    Opening,
    Waiting {
        gate: String,
        ticket: Ticket,
    },
    Inside {
        gate: String,
        fence: Fence,
    },
    /// Has given the gate up and waits to hear that it is done.
    Leaving {
        ticket: Ticket,
    },
    /// Takes its session up again at another node.
    Resuming {
        gate: Option<(String, Fence)>,
        ticket: Option<Ticket>,
    },
}

impl Client {
    pub(crate) fn new(node: usize, opened: bool) -> Client {
        Client {
            node,
            session: None,
            opened,
            state: State::Outside,
            deadline: 0,
            due: 0,
            resumed: 0,
            granted: 0,
        }
    }

    /// What it believes to hold.
    pub(crate) fn holds(&self) -> Option<(String, Fence)> {
        match &self.state {
            State::Inside { gate, fence } => Some((gate.clone(), *fence)),
            State::Resuming { gate, .. } => gate.clone(),
            _ => None,
        }
    }
}
