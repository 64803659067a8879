//! The name of a node: a number from 0, the same in code, traces and pictures.

use std::cell::Cell;
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A node of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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

thread_local! {
    /// How many nodes may be named by what is being read.
    static NAMED: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// Reads something in which no node but the first `nodes` may be named. So an algorithm never meets the number of a
/// node that is not there, and its messages need no code of their own for that.
pub(crate) fn naming_only_the_first<T>(nodes: usize, read: impl FnOnce() -> T) -> T {
    let before = NAMED.replace(nodes as u32);
    let done = read();
    NAMED.set(before);
    done
}

impl<'de> Deserialize<'de> for NodeId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NodeId, D::Error> {
        let number = u32::deserialize(deserializer)?;
        match number < NAMED.get() {
            true => Ok(NodeId(number)),
            false => Err(Error::custom(format_args!("there is no node {number}"))),
        }
    }
}
