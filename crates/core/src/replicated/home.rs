//! Opened sessions as the log knows them, and where they live.

use serde::{Deserialize, Serialize};

use crate::ownership::{Index, NodeId, Start};

/// An opened session, as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// How long it may be silent.
    pub ttl_ms: u64,
    /// What people call it.
    pub label: Option<String>,
    /// Whose it is; nothing for the default user's.
    pub user: Option<String>,
    /// Where it lives.
    pub home: Home,
}

/// Where a session lives: only there is its silence judged. When that start leaves the view, the session is an orphan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// At which node.
    pub node: NodeId,
    /// At which start of it.
    pub start: Start,
    /// Since which entry of the log. The session's end rests on it.
    pub index: Index,
}
