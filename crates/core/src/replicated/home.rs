//! Opened sessions as the log knows them, and where they live.

use serde::{Deserialize, Serialize};

use crate::ownership::{Index, NodeId, Start};

/// An opened session, as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// How long it may be silent.
    pub ttl_ms: u64,
    /// Its label.
    pub label: Option<String>,
    /// Its user; `None` for the default user.
    pub user: Option<String>,
    /// Its home.
    pub home: Home,
}

/// The home of a session: only there is its silence judged. When that start leaves the view, the session is an orphan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// The node.
    pub node: NodeId,
    /// The start of the node.
    pub start: Start,
    /// The log entry since which it lives there. The session's end rests on it.
    pub index: Index,
}
