//! What a running log says to whoever applies it.

use crate::engine::Committed;
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::links::{Peer, Received, SendError};
use crate::log::LogSize;
use crate::members::{MemberError, Members};
use crate::open::StoredSnapshot;

/// What the log says, in log order, on the thread that does its work. From [`Delivery::Restored`] on, only a log among others
/// says it; [`Delivery::Received`] and [`Delivery::NotSent`] come from the links, beside the log and in no order with it.
#[derive(Debug)]
pub enum Delivery {
    /// These are durable. Apply them in this order, then answer whoever submitted them.
    Committed {
        /// In log order. None, if only something of the engine's own was committed.
        entries: Vec<Applied>,
        /// The last index of the engine's log that was handed out, these entries included: an index of
        /// [`Delivery::Read`] is reached once this is as high.
        delivered: u64,
        /// What the log holds since the last snapshot; see [`SnapshotPolicy`](crate::SnapshotPolicy).
        log: LogSize,
        /// What was free on the disk before it, if the system says.
        free_bytes: u64,
    },
    /// This submission was not taken, and never will be.
    Refused {
        /// The tag that it was submitted with.
        tag: u64,
        /// Why.
        error: ProposeError,
    },
    /// The log is full. What is submitted waits until a snapshot replaces it: of the state after everything delivered, up to
    /// and with this index. If that snapshot fails, what waits is refused.
    Full {
        /// Where the log ends.
        index: u64,
    },
    /// A snapshot ended: it has replaced the log up to its index and has so many bytes, or nothing has
    /// changed.
    Snapshot(Result<u64, SnapshotError>),
    /// The disk failed, and the log writes nothing more.
    Stopped {
        /// Why.
        error: FlushError,
        /// The submissions whose fate is unknown until the directory is opened again.
        unknown: Vec<u64>,
    },
    /// Another member's snapshot has replaced the log: load it, and drop everything applied so far.
    Restored {
        /// The state after everything up to its index.
        snapshot: StoredSnapshot,
        /// The submissions that it may hold or not. Nothing else will be heard of them.
        unknown: Vec<u64>,
    },
    /// Whoever asked with this tag, or with an earlier one, has read nothing old once `delivered` is as high as the index.
    Read {
        /// The tag of [`LogThread::ask_read`](crate::LogThread::ask_read).
        tag: u64,
        /// What must be applied before.
        index: u64,
    },
    /// What other starts have said, in their order.
    Received(Vec<Received>),
    /// This could not be said, and the link is not what it was: something on it is missing.
    NotSent {
        /// For whom it was.
        to: Peer,
        /// Why.
        error: SendError,
    },
    /// Who leads, or who is in, has changed.
    Standing(Standing),
    /// These starts have asked this leader for a read index.
    Asked(Vec<Peer>),
    /// These starts were answered by this leader, itself included.
    Answered(Vec<Peer>),
    /// From here on that start is answered no more, as long as this node leads in this term, or until it is allowed. Every
    /// answer that it was given before was delivered before.
    ReadsRefused {
        /// The start.
        peer: Peer,
        /// The tag of [`LogThread::refuse_reads`](crate::LogThread::refuse_reads). If the start was allowed since, this is old.
        tag: u64,
        /// The term that this holds for.
        term: u64,
    },
    /// A change of the members was proposed, or not. It is in force when [`Delivery::Standing`] says so.
    MembersChanged {
        /// The tag of [`LogThread::change_members`](crate::LogThread::change_members).
        tag: u64,
        /// Whether it was proposed.
        result: Result<(), MemberError>,
    },
}

/// A committed entry and who submitted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The tag that it was submitted with; none if another member proposed it.
    pub tag: Option<u64>,
    /// The entry.
    pub entry: Committed,
}

/// Who leads and who is in, as far as this node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// Who leads.
    pub leader: Option<u64>,
    /// In which term.
    pub term: u64,
    /// Whether it is this node. Another may have been elected since.
    pub leads: bool,
    /// After everything that was delivered.
    pub members: Members,
    /// The leader takes it for having more than it has: its directory is an older copy, and nothing can be made good.
    pub behind: bool,
}
