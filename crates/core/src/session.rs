//! Sessions: who holds and who waits. An *opened* session is logged, survives a lost connection, and ends by closing or by
//! silence longer than its TTL; an *implicit* one belongs to a connection and ends with it.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::arena::Key;
use crate::command::Settled;
use crate::gate::Chain;
use crate::job::JobId;
use crate::local::Touched;
use crate::ownership::{NodeId, Start};
use crate::wait::{Ticket, WaitKey};

pub(crate) type SessionKey = Key<Session>;

/// The identity of a session, chosen by the node (identity, like time, is an argument of `core`). Opened and implicit
/// sessions use two halves of one space below 2^53, so they never collide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(u64);

const IMPLICIT: u64 = 1 << 52;
const NODE_BITS: u32 = 8;
const START_BITS: u32 = 20;

impl SessionId {
    /// Two connections with the same low bits, this many, must not live at once.
    pub const CONNECTION_BITS: u32 = 24;
    /// Below every session.
    pub(crate) const FIRST: SessionId = SessionId(0);
    /// Above every session.
    pub(crate) const LAST: SessionId = SessionId(u64::MAX);

    /// The identity of an opened session. Only the low 52 bits count; the node draws them so that they cannot be guessed.
    pub fn opened(number: u64) -> SessionId {
        SessionId(number & (IMPLICIT - 1))
    }

    /// The identity of an implicit session. Only the low 52 bits count.
    pub fn implicit(number: u64) -> SessionId {
        SessionId(number & (IMPLICIT - 1) | IMPLICIT)
    }

    /// The identity of the implicit session of a connection to a start of a node: 8 bits of the node, the low 20 of the start
    /// and the low 24 of the connection. No two living connections of the node have the same.
    pub fn of_connection(node: NodeId, start: Start, connection: u64) -> SessionId {
        let low = |number: u64, bits: u32| number & ((1 << bits) - 1);
        let start = low(start.0, START_BITS) << SessionId::CONNECTION_BITS;
        let node = low(node.0, NODE_BITS) << (SessionId::CONNECTION_BITS + START_BITS);
        SessionId::implicit(node | start | low(connection, SessionId::CONNECTION_BITS))
    }

    /// Whether an implicit session belongs to a connection to this start of a node.
    pub fn is_of(self, node: NodeId, start: Start) -> bool {
        let own = SessionId::of_connection(node, start, 0);
        self.0 >> SessionId::CONNECTION_BITS == own.0 >> SessionId::CONNECTION_BITS
    }

    /// The identity that a client names, whatever its half.
    pub fn from_wire(number: u64) -> Option<SessionId> {
        (number < 1 << 53).then_some(SessionId(number))
    }

    /// The number on the wire.
    pub fn number(self) -> u64 {
        self.0
    }

    /// Whether the session ends with its connection.
    pub fn is_implicit(self) -> bool {
        self.0 & IMPLICIT != 0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A session as the owner of its gates sees it.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    /// Distinguishes this session's timer from that of an earlier session in the same place.
    pub(crate) serial: u64,
    pub(crate) ttl_ms: u64,
    pub(crate) label: Option<Box<str>>,
    pub(crate) state: State,
    /// Not heard of since the node crashed: where it may hold something, nothing is granted until it has resumed or its end
    /// is logged.
    pub(crate) awaited: bool,
    /// The gates at which it was granted something.
    pub(crate) touched: Touched,
    pub(crate) since: u64,
    /// When it was last heard of.
    heard: u64,
    /// The node's total absence, in milliseconds, when the session was last heard of.
    absent_ms: u64,
    pub(crate) holds: Chain,
    pub(crate) waits: Vec<WaitKey>,
    /// Jobs in hand, in the order in which they were taken.
    pub(crate) jobs: Vec<JobId>,
    /// Takes that wait for a job.
    pub(crate) takes: Vec<Ticket>,
    /// How many of its waits block the client. Until there are none, the session gives nothing back.
    pub(crate) blocked: u32,
    pub(crate) memos: Memos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Connected,
    Disconnected,
    /// Silent for too long; its end is on its way through the log.
    RunOut,
}

/// The answer to an ID, present or future.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Memo {
    Waiting(Ticket),
    Settled(Settled),
}

/// The answers to a session's latest IDs.
#[derive(Debug, Default)]
pub(crate) struct Memos(VecDeque<(Box<str>, Memo)>);

impl Session {
    pub(crate) fn new(id: SessionId, serial: u64, now: u64) -> Session {
        Session {
            id,
            serial,
            ttl_ms: 0,
            label: None,
            state: State::Connected,
            awaited: false,
            touched: Touched::default(),
            since: now,
            heard: now,
            absent_ms: 0,
            holds: Chain::default(),
            waits: Vec::new(),
            jobs: Vec::new(),
            takes: Vec::new(),
            blocked: 0,
            memos: Memos::default(),
        }
    }

    /// Whether the session both holds and is blocked: only such sessions can take part in a deadlock.
    pub(crate) fn entangled(&self) -> bool {
        self.blocked > 0 && self.holds.len() > 0
    }

    /// Whether its home is another node, which judges its silence.
    pub(crate) fn is_guest(&self) -> bool {
        self.ttl_ms == u64::MAX
    }

    pub(crate) fn heard(&self) -> u64 {
        self.heard
    }

    /// A sign of life, and the node's total absence until then.
    pub(crate) fn hear(&mut self, now: u64, absent_ms: u64) {
        self.heard = self.heard.max(now);
        self.absent_ms = absent_ms;
    }

    /// When the session runs out if nothing more is heard. A blocked call on an open connection counts as a sign of life, and
    /// time during which the node could not hear does not count as silence.
    pub(crate) fn runs_out(&self, now: u64, absent_ms: u64) -> u64 {
        let blocked = self.blocked > 0 || !self.takes.is_empty();
        let silent_from = match self.state == State::Connected && blocked {
            true => now,
            false => self.heard.saturating_add(absent_ms - self.absent_ms),
        };
        silent_from.saturating_add(self.ttl_ms)
    }

    #[cfg(test)]
    pub(crate) fn for_test() -> Session {
        Session::new(SessionId::opened(1), 0, 0)
    }
}

impl Memos {
    pub(crate) fn recall(&self, id: &str) -> Option<&Memo> {
        let mut latest_first = self.0.iter().rev();
        latest_first.find_map(|(known, memo)| (**known == *id).then_some(memo))
    }

    /// Remembers the answer to an ID, forgetting the oldest beyond `ids_max`.
    pub(crate) fn remember(&mut self, id: Box<str>, memo: Memo, ids_max: usize) {
        match self.0.iter_mut().rev().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = memo,
            None => {
                while self.0.len() >= ids_max.max(1) {
                    self.0.pop_front();
                }
                self.0.push_back((id, memo));
            }
        }
    }

    /// The request was refused after all: if it is repeated, it is a new one.
    pub(crate) fn forget(&mut self, id: &str) {
        self.0.retain(|(known, _)| **known != *id);
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Box<str>, Memo)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opened_and_implicit_identities_never_meet() {
        assert_ne!(SessionId::opened(7), SessionId::implicit(7));
        assert!(SessionId::implicit(u64::MAX).number() < 1 << 53);
        assert!(!SessionId::opened(u64::MAX).is_implicit());
        assert_eq!(SessionId::from_wire(1 << 53), None);
    }

    #[test]
    fn implicit_sessions_of_other_nodes_starts_and_connections_never_meet() {
        let of = |node, start, connection| {
            SessionId::of_connection(NodeId(node), Start(start), connection)
        };
        let id = of(255, (1 << 20) - 1, (1 << 24) - 1);
        assert!(id.is_implicit() && id.number() == (1 << 53) - 1);
        assert_eq!(of(1, 2, 3).number(), 1 << 52 | 1 << 44 | 2 << 24 | 3);
        for other in [of(2, 2, 3), of(1, 3, 3), of(1, 2, 4)] {
            assert_ne!(other, of(1, 2, 3));
        }
        // After this many starts and connections the earlier ones are gone.
        assert_eq!(of(1, 2 + (1 << 20), 3 + (1 << 24)), of(1, 2, 3));
    }

    #[test]
    fn the_oldest_answers_are_forgotten() {
        let mut memos = Memos::default();
        for id in ["a", "b", "c", "b"] {
            memos.remember(id.into(), Memo::Waiting(Ticket(1)), 2);
        }
        assert!(memos.recall("a").is_none());
        assert!(memos.recall("b").is_some() && memos.recall("c").is_some());
        memos.forget("b");
        assert!(memos.recall("b").is_none() && memos.recall("c").is_some());
    }
}
