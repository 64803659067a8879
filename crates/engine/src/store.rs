//! What the engine makes durable, and what it finds again: one flush makes one [`Change`] durable, completely or not at all.

use raft::eraftpb::{Entry, HardState};

use crate::error::DiskError;
use crate::members::Members;
use crate::origin::Origins;
use crate::start::Start;

/// What is made durable together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Change {
    /// Appended. An index that exists is replaced, with everything after it.
    pub(crate) entries: Vec<Entry>,
    pub(crate) hard_state: Option<HardState>,
    /// The node to which the store belongs.
    pub(crate) node: Option<u64>,
    /// As of the snapshot.
    pub(crate) members: Option<Members>,
    /// As of the snapshot.
    pub(crate) origins: Option<Origins>,
    pub(crate) start: Option<Start>,
    pub(crate) snapshot: Option<SnapshotMark>,
    /// The snapshot is another member's: whatever the log has before this change is void, even after the snapshot.
    pub(crate) void: bool,
    pub(crate) clean_stop: Option<CleanStopMark>,
    /// Whether the change must be on disk when the commit returns.
    pub(crate) sync: bool,
}

/// The index and term up to which a snapshot replaces the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SnapshotMark {
    pub(crate) index: u64,
    pub(crate) term: u64,
}

/// What a snapshot covers, apart from its image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Base {
    pub(crate) mark: SnapshotMark,
    pub(crate) members: Members,
    pub(crate) origins: Origins,
}

/// Whether the clean-stop file counts; it has the number of the start that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CleanStopMark {
    Set(u64),
    Consumed,
}

/// Where changes go. The engine's tests replace it by one that fails.
pub(crate) trait Store: Send {
    /// After an error the outcome of the change is unknown, and no commit may follow.
    fn commit(&mut self, change: Change) -> Result<(), DiskError>;

    /// How far it has come.
    fn flushed(&self) -> Flushed {
        Flushed::default()
    }
}

/// How far a store has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flushed {
    /// The number of its newest segment.
    pub(crate) segment: u64,
    /// All flushes below this number are durable.
    pub(crate) sequence: u64,
}

/// Everything that a store held when it was opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stored {
    pub(crate) entries: Vec<Entry>,
    pub(crate) hard_state: HardState,
    /// `None` in an old store.
    pub(crate) node: Option<u64>,
    pub(crate) members: Members,
    pub(crate) origins: Origins,
    pub(crate) start: Start,
    pub(crate) snapshot: SnapshotMark,
    pub(crate) clean_stop: Option<u64>,
    /// Where the log is broken, if everything after that was cut off.
    pub(crate) cut_off: Option<String>,
}
