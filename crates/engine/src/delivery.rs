//! What a running log reports to its user.

use crate::engine::Committed;
use crate::error::{FlushError, ProposeError, SnapshotError};
use crate::links::{Peer, Received, SendError};
use crate::log::LogSize;
use crate::members::{MemberError, Members};
use crate::open::StoredSnapshot;
use crate::room::Room;

/// What the log reports, in log order, on the thread that does its work. The variants from [`Delivery::Stuck`] on come
/// only from a log in a group; [`Delivery::Received`] and [`Delivery::NotSent`] come from the links, in no order with the
/// log's.
#[derive(Debug)]
pub enum Delivery {
    /// These entries are durable. Apply them in this order, then answer those who submitted them.
    Committed {
        /// In log order. Empty if only something of the engine's own was committed.
        entries: Vec<Applied>,
        /// The last index of the engine's log that was handed out, these entries included. Once this is as high as the index
        /// of a [`Delivery::Read`], that index is reached.
        delivered: u64,
        /// The size of the log since the last snapshot; see [`SnapshotPolicy`](crate::SnapshotPolicy).
        log: LogSize,
        /// The free space on the disk beforehand, if the system says.
        free_bytes: u64,
    },
    /// This submission was not accepted, and never will be.
    Refused {
        /// Its tag.
        tag: u64,
        /// Why.
        error: ProposeError,
    },
    /// The log is full. Submissions wait until a snapshot of the state after everything delivered, up to and including this
    /// index, replaces it. If that snapshot fails, they are refused.
    Full {
        /// Where the log ends.
        index: u64,
    },
    /// A snapshot ended. It has replaced the log up to its index and has this many bytes, or nothing has changed.
    Snapshot(Result<u64, SnapshotError>),
    /// The disk failed, and the log writes nothing more.
    Stopped {
        /// Why.
        error: FlushError,
        /// The submissions whose outcome is unknown until the directory is opened again.
        unknown: Vec<u64>,
    },
    /// These submissions wait for room on the disks of the others, and nothing else will be heard of them. They may still be
    /// committed.
    Stuck {
        /// Their tags.
        unknown: Vec<u64>,
        /// Why.
        error: ProposeError,
    },
    /// This member has more or less room than before, or lets another lead for lack of it.
    Room(DiskRoom),
    /// Another member's snapshot has replaced the log: load it, and drop everything applied so far.
    Restored {
        /// The state after everything up to its index.
        snapshot: StoredSnapshot,
        /// The submissions that it may contain or not. Nothing else will be heard of them.
        unknown: Vec<u64>,
    },
    /// A read asked with this tag, or with an earlier one, is up to date once `delivered` is as high as the index.
    Read {
        /// The tag of [`LogThread::ask_read`](crate::LogThread::ask_read).
        tag: u64,
        /// The index that must be applied first.
        index: u64,
    },
    /// Payloads from other starts, in their order.
    Received(Vec<Received>),
    /// This could not be sent. The link is no longer complete: something on it is missing.
    NotSent {
        /// The receiver.
        to: Peer,
        /// Why.
        error: SendError,
    },
    /// The leader or the members have changed.
    Standing(Standing),
    /// These starts have asked this leader for a read index.
    Asked(Vec<Peer>),
    /// This leader has answered these starts, itself included.
    Answered(Vec<Peer>),
    /// From here on that start gets no answers, as long as this node leads in this term, or until it is allowed again. Every
    /// answer that it got before was delivered before.
    ReadsRefused {
        /// The start.
        peer: Peer,
        /// The tag of [`LogThread::refuse_reads`](crate::LogThread::refuse_reads). If the start was allowed since, this is
        /// out of date.
        tag: u64,
        /// The term for which this holds.
        term: u64,
    },
    /// A change of the members was proposed, or refused. It is in force when [`Delivery::Standing`] says so.
    MembersChanged {
        /// The tag of [`LogThread::change_members`](crate::LogThread::change_members).
        tag: u64,
        /// Whether it was proposed.
        result: Result<(), MemberError>,
    },
}

/// How much room a member's disk has, and what follows from it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskRoom {
    /// What there is room for.
    pub room: Room,
    /// The free space.
    pub free_bytes: u64,
    /// Who is to lead in its place, if this node leads and is short: a voter that says that it has room.
    pub handed_to: Option<u64>,
}

/// A committed entry and who submitted it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The tag with which it was submitted; `None` if another member proposed it.
    pub tag: Option<u64>,
    /// The entry.
    pub entry: Committed,
}

/// Who leads and who is in, as far as this node knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// The leader.
    pub leader: Option<u64>,
    /// Its term.
    pub term: u64,
    /// Whether this node leads. Another may have been elected since.
    pub leads: bool,
    /// The members, after everything that was delivered.
    pub members: Members,
    /// The leader believes that it has more than it has: its directory is an older copy, and this cannot be repaired.
    pub behind: bool,
}
