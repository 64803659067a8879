//! Sessions that left a node without naming the slots that they took there. If that node's process ends before it has told the log,
//! nobody knows those slots: the next process withholds what the node owned until each such session says what it has, or ends.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::estate::Peer;
use crate::ownership::{NodeId, Start};
use crate::session::SessionId;

/// The nodes that a session left this way, each with the first start that it left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsaid(BTreeMap<SessionId, BTreeMap<NodeId, Start>>);

impl Unsaid {
    /// The first start of a node that a session left without a word.
    pub fn since(&self, session: SessionId, node: NodeId) -> Option<Start> {
        self.0.get(&session)?.get(&node).copied()
    }

    /// The sessions that left starts of a node before this one.
    pub(super) fn before(&self, (node, start): Peer) -> impl Iterator<Item = SessionId> {
        let left = self.0.iter();
        let left = left.filter(move |(_, nodes)| nodes.get(&node).is_some_and(|it| *it < start));
        left.map(|(session, _)| *session)
    }

    /// The sessions that left any start of a node.
    pub fn left(&self, node: NodeId) -> impl Iterator<Item = SessionId> {
        let left = self.0.iter();
        let left = left.filter(move |(_, nodes)| nodes.contains_key(&node));
        left.map(|(session, _)| *session)
    }

    pub(crate) fn leave(&mut self, session: SessionId, (node, start): Peer) {
        let nodes = self.0.entry(session).or_default();
        let first = nodes.entry(node).or_insert(start);
        *first = start.min(*first);
    }

    /// The process that the session left has said what it has there.
    pub(crate) fn said_by(&mut self, session: SessionId, node: NodeId) {
        if let Some(nodes) = self.0.get_mut(&session) {
            nodes.remove(&node);
            if nodes.is_empty() {
                self.0.remove(&session);
            }
        }
    }

    /// The session itself has said what it has, or has ended.
    pub(crate) fn settle(&mut self, session: SessionId) {
        self.0.remove(&session);
    }

    /// Nobody has slots of a node that was removed for good.
    pub(crate) fn remove(&mut self, node: NodeId) {
        self.0.retain(|_, nodes| {
            nodes.remove(&node);
            !nodes.is_empty()
        });
    }
}
