//! Nodes and their starts: who acts.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The highest identity of a node: implicit sessions name theirs in 8 bits.
pub const NODES_MAX: u64 = 255;

/// A node of the cluster, from 1 to [`NODES_MAX`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// A start of a node. Its number is on the node's disk and rises with every start, so nothing that an earlier start did can
/// be mistaken for the work of this one. Older logs do not name starts: theirs is start 0.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Start(pub u64);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
