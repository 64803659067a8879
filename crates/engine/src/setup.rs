//! Which node an engine is, and to which node a store belongs.

use crate::error::OpenError;
use crate::members::{Members, NODES_MAX};
use crate::pieces::PIECE_BYTES;
use crate::specimen::Specimen;
use crate::store::Stored;

/// Which node opens a directory, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Its number, 1 to [`NODES_MAX`]. A directory belongs to one node for ever.
    pub node: u64,
    /// Whether a new directory waits for the leader of an existing group, instead of founding one.
    pub joins: bool,
    /// The lowest generation that a restored directory may begin.
    pub generation: u32,
    /// The seed of the election timeouts; different on every node and at every start.
    pub seed: u64,
    /// The longest piece of a snapshot that is sent to another node; for tests.
    #[doc(hidden)]
    pub piece_bytes: usize,
    /// The longest message of several entries; for tests.
    #[doc(hidden)]
    pub message_bytes: u64,
    /// What is broken on purpose.
    #[doc(hidden)]
    pub specimen: Option<Specimen>,
}

impl Default for Setup {
    /// Node 1, which founds a group of its own.
    fn default() -> Self {
        Self {
            node: 1,
            joins: false,
            generation: 0,
            seed: 0,
            piece_bytes: PIECE_BYTES,
            message_bytes: MESSAGE_BYTES_MAX,
            specimen: None,
        }
    }
}

/// How long a message may get by entries after the first, 1 MiB.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Makes a new store this node's, and refuses another node's.
pub(crate) fn settle_members(stored: &mut Stored, setup: Setup) -> Result<(), OpenError> {
    let Setup { node, joins, .. } = setup;
    if !(1..=NODES_MAX).contains(&node) {
        let what = format!("node {node} can have none: nodes are 1 to {NODES_MAX}");
        return Err(OpenError::Damaged(what));
    }
    let is_new = stored.node.is_none() && stored.members == Members::default();
    if is_new && stored.entries.is_empty() && !joins {
        stored.members = Members::alone(node);
    }
    let known = stored.members == Members::default() || stored.members.contains(node);
    match stored.node {
        Some(owner) if owner != node => Err(OpenError::Owner { owner, node }),
        // Written before stores said to whom they belong.
        None if !known => Err(OpenError::Damaged(format!(
            "its voters are {:?}, not this node",
            stored.members.voters
        ))),
        _ => Ok(()),
    }
}
