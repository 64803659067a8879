//! What can go wrong, one enum per operation. Every variant says what it did to the state.

use std::io;
use std::path::{Path, PathBuf};

/// Why a data directory was not opened. Nothing in it was changed, unless the variant says so.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has the directory open.
    #[error("the data directory {} is in use by another process", .dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The directory belongs to another node.
    #[error(
        "the data directory is node {owner}'s, not node {node}'s; a directory belongs to one node for ever"
    )]
    Owner {
        /// Its owner.
        owner: u64,
        /// The node that tried to open it.
        node: u64,
    },
    /// The directory was written in a format that this version does not know.
    #[error(
        "the witness file says format {found}, and this version reads format {known}: a later version wrote the \
         data directory, or the file is damaged"
    )]
    Format {
        /// The format found.
        found: u32,
        /// The format that this version reads and writes.
        known: u32,
    },
    /// The store has less than it once acknowledged. Going on could repeat a fence, so it can only be started as a restored
    /// backup.
    #[error(
        "the store is behind: it was at start {start_witnessed}, log index {index_witnessed}, \
         and now is at start {start}, log index {index}: {segment} is older than that or has lost its end; \
         repair the disk, or start it as a restored backup"
    )]
    Behind {
        /// The start that the store has.
        start: u32,
        /// The start that the witness file vouches for.
        start_witnessed: u32,
        /// The last log index that the store has.
        index: u64,
        /// The log index that the witness file vouches for.
        index_witnessed: u64,
        /// The segment of the log that the witness file vouches for.
        segment: String,
    },
    /// Something in the directory fails its checksum or contradicts the rest.
    #[error("the data directory is damaged: {0}")]
    Damaged(String),
    /// The system does not let this process write files that are long enough.
    #[error(
        "files may have at most {limit} bytes here (ulimit -f), and the log needs {needed}: raise the limit"
    )]
    FileLimit {
        /// The longest file that the process may write.
        limit: u64,
        /// The longest file that it must be able to write.
        needed: u64,
    },
    /// All start numbers are used up.
    #[error("no start is left: the data directory was opened 2^32 times")]
    StartsExhausted,
    /// Reading or writing failed. The start may have risen; opening again is safe.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

/// A read, write or flush that the operating system refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// No space is left, or a quota is used up.
    #[error("the disk is full ({0})")]
    Full(String),
    /// Any other failure.
    #[error("the disk failed ({0})")]
    Failed(String),
}

impl DiskError {
    /// Whether room would help.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full(_))
    }

    /// What happened to a file or directory.
    pub(crate) fn at(path: &Path, error: io::Error) -> Self {
        match Self::from(error) {
            Self::Full(why) => Self::Full(format!("{}: {why}", path.display())),
            Self::Failed(why) => Self::Failed(format!("{}: {why}", path.display())),
        }
    }
}

impl From<io::Error> for DiskError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(error.to_string())
            }
            // Free space would not help.
            io::ErrorKind::FileTooLarge => Self::Failed(format!("{error}; see ulimit -f")),
            _ => Self::Failed(error.to_string()),
        }
    }
}

/// Why a proposal was not accepted. It will certainly never be committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// An entry must have at least one byte: raft's own entries have none.
    #[error("an entry cannot be empty")]
    Empty,
    /// The entry is longer than [`ENTRY_BYTES_MAX`](crate::ENTRY_BYTES_MAX).
    #[error("an entry of {0} bytes is too long")]
    TooLong(usize),
    /// More than [`UNFLUSHED_BYTES_MAX`](crate::UNFLUSHED_BYTES_MAX) would wait for a flush.
    #[error("too much waits for the disk")]
    Backlog,
    /// The log reached [`LOG_BYTES_MAX`](crate::LOG_BYTES_MAX); a snapshot makes room.
    #[error("the log is full until a snapshot is taken")]
    LogFull,
    /// Less than [`DISK_RESERVE_BYTES`](crate::DISK_RESERVE_BYTES) would be left; the log goes on when there is room.
    #[error(
        "the disk is nearly full: {free_bytes} bytes are free; make room, it then goes on by itself"
    )]
    DiskFull {
        /// The free space.
        free_bytes: u64,
    },
    /// The same, at so many voters that no majority has more.
    #[error(
        "the disks of too many nodes are nearly full: {free_bytes} bytes are free at node {node}; make room there, \
         the cluster then goes on by itself"
    )]
    DisksFull {
        /// The one that would make a majority, if it had room.
        node: u64,
        /// The free space there.
        free_bytes: u64,
    },
    /// This node is not a member of its group: not yet, or no longer.
    #[error("this node is no member of its group")]
    NoMember,
    /// An earlier flush failed; only opening the directory again helps.
    #[error("the engine stopped writing: {0}")]
    Stopped(DiskError),
}

/// Why a flush failed. The outcome of what was proposed since the last flush is *unknown*: the next open may find it or not.
/// The engine writes nothing more: after a failed flush the operating system may have dropped the pages and still report the
/// next flush as done, so only reading the directory again tells what is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the engine stopped writing: {0}")]
pub struct FlushError(#[from] pub DiskError);

/// Why a snapshot was not taken. The log and the earlier snapshot are unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The index is not above that of the snapshot in place.
    #[error("a snapshot at index {0} is already in place")]
    Stale(u64),
    /// The index is above what has been handed out as committed.
    #[error("index {0} is not committed yet")]
    NotCommitted(u64),
    /// The image is longer than [`IMAGE_BYTES_MAX`](crate::IMAGE_BYTES_MAX).
    #[error("an image of {0} bytes is too long")]
    TooLong(u64),
    /// The image could not be written. The log goes on; try again when there is room.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The engine had stopped writing, or stops now.
    #[error(transparent)]
    Stopped(#[from] FlushError),
}
