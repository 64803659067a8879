//! The name of a node: a number from 0, the same in code, traces and pictures.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A node of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeId(pub u32);

impl NodeId {
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The first `n` nodes.
    pub fn all(n: usize) -> impl Iterator<Item = NodeId> + Clone {
        (0..n as u32).map(NodeId)
    }

    /// The first `n` nodes without this one.
    pub fn others(self, n: usize) -> impl Iterator<Item = NodeId> + Clone {
        NodeId::all(n).filter(move |&other| other != self)
    }

    /// The next node of a ring of `n`.
    pub fn next(self, n: usize) -> NodeId {
        NodeId((self.0 + 1) % n as u32)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
