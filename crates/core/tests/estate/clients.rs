//! Clients: each has a session at a node, enters a gate, stays a while and leaves. One with an opened session knows until when
//! it may believe that it lives, and takes it up again at another node when its own is gone.

use testigo_core::{Ask, Fence, SessionId, Ticket};

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
    /// It has called off its last campaign, and stays.
    pub(crate) retired: bool,
    /// What it has said of itself in an election: its rank, and the values of which one is the present one.
    pub(crate) rank: i64,
    pub(crate) values: Vec<Vec<u8>>,
}

/// Gates with the fences that they are held with.
pub(crate) type Held = Vec<(String, Fence)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Outside,
    /// Waits for the log to open its session.
    Opening,
    /// Waits for these gates, inside others.
    Waiting {
        gates: Vec<String>,
        ticket: Ticket,
        held: Held,
    },
    Inside {
        held: Held,
    },
    /// Has given a gate up and waits to hear that it is done.
    Leaving {
        ticket: Ticket,
        held: Held,
    },
    /// Takes its session up again at another node.
    Resuming {
        held: Held,
        ticket: Option<Ticket>,
    },
}

impl State {
    /// Inside these gates, if there are any.
    pub(crate) fn inside(held: Held) -> State {
        match held.is_empty() {
            true => State::Outside,
            false => State::Inside { held },
        }
    }
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
            retired: false,
            rank: 0,
            values: vec![Vec::new()],
        }
    }

    /// How it is inside what it claims.
    pub(crate) fn claims(&self, elections: bool) -> Ask<'_> {
        match elections {
            true => Ask::Lead {
                rank: self.rank,
                value: self.values.last().expect("one is the present one"),
            },
            false => Ask::Plain,
        }
    }

    /// What it believes to hold.
    pub(crate) fn holds(&self) -> &[(String, Fence)] {
        match &self.state {
            State::Inside { held }
            | State::Waiting { held, .. }
            | State::Leaving { held, .. }
            | State::Resuming { held, .. } => held,
            State::Outside | State::Opening => &[],
        }
    }

    /// It holds a gate no longer.
    pub(crate) fn lose(&mut self, gate: &str) {
        match &mut self.state {
            State::Inside { held }
            | State::Waiting { held, .. }
            | State::Leaving { held, .. }
            | State::Resuming { held, .. } => held.retain(|(other, _)| other != gate),
            State::Outside | State::Opening => {}
        }
        if matches!(&self.state, State::Inside { held } if held.is_empty()) {
            self.state = State::Outside;
        }
    }
}
