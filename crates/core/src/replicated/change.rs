//! What must be in the log before it is true, and what applying it yields. A [`Change`] can be given to nobody but
//! [`Replicated::apply`](super::Replicated::apply), and an [`Applied`] can be made by nobody else: so the local half
//! cannot create a gate or end an opened session that the log does not know.
//!
//! Between the moment in which a change is submitted and the one in which it is applied, others are applied. So a change
//! says what it *rests on*, and is refused, on all nodes alike, when that has changed: a view the view before, titles and
//! whatever concerns a gate or a held job the number of its shard, the end of a session the index of its home,
//! a flow the text that its author saw.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::cluster::{Address, ClusterId, Newcomer};
use super::job_change::{JobChange, JobOutcome};
use super::mark::FlowMark;
use super::once::{OnceAnswer, OnceAttempt, OnceStart};
use crate::gate::Definition;
use crate::job::Scheme;
use crate::limits::SharedLimits;
use crate::name::Name;
use crate::ownership::{Index, NodeId, Number, Origin, Span, Start};
use crate::receipt::ReceiptKey;
use crate::session::SessionId;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// From now on these are in. The shards of starts that have left go to members, under higher numbers. Alone it is the
    /// first entry of every start.
    View {
        /// The view before, which it rests on.
        before: Index,
        /// The members, by node.
        members: Vec<(NodeId, Start)>,
        /// The slot of time in which the log was last restored from a backup, 0 if never. Each time raises all numbers,
        /// above every one that may have been given out before.
        generation: u32,
    },
    /// An owner hands shards to a member, under the next number. It hands them to itself when their fences run low.
    Titles {
        /// Which shards, in order, with the numbers that this rests on.
        shards: Vec<Span>,
        /// Who takes them.
        taker: NodeId,
        /// Which start of it.
        start: Start,
    },
    /// `GATE CREATE`. Creating the same gate again changes nothing; another definition is refused.
    CreateGate {
        /// The gate's name.
        gate: Name,
        /// What it is.
        definition: Definition,
        /// The number of its shard.
        number: Number,
    },
    /// `GATE DELETE`.
    DeleteGate {
        /// The gate's name.
        gate: Name,
        /// The number of its shard.
        number: Number,
    },
    /// `SESSION OPEN`. Its home is whoever submits this.
    OpenSession {
        /// Its identity, drawn by the node.
        session: SessionId,
        /// How long it may be silent.
        ttl_ms: u64,
        /// What people call it.
        label: Option<String>,
        /// Whose it is; nothing for the default user's.
        user: Option<String>,
    },
    /// `SESSION CLOSE`, `session end`, or the end of a session that ran out.
    CloseSession {
        /// Which session.
        session: SessionId,
        /// The index of its home.
        home: Index,
    },
    /// `SESSION RESUME` elsewhere: whoever submits this is its home from now on.
    MoveSession {
        /// Which session.
        session: SessionId,
        /// The index of the home that it leaves.
        home: Index,
    },
    /// The command of a once-key is about to run.
    StartOnce(OnceStart),
    /// The command of a once-key ended well; from now on it is done.
    FinishOnce {
        /// The key.
        key: Name,
        /// The period, 0 for a key without periods.
        period: u64,
        /// Which attempt.
        attempt: OnceAttempt,
    },
    /// The command of a once-key failed, so it may be repeated.
    AbandonOnce {
        /// The key.
        key: Name,
        /// Which attempt.
        attempt: OnceAttempt,
    },
    /// Forgets a once-key altogether.
    ForgetOnce {
        /// The key.
        key: Name,
    },
    /// `FLOW APPLY name text`: a flow begins, or goes on as another.
    ApplyFlow {
        /// The flow's name.
        flow: Name,
        /// The text as it was written.
        text: Arc<str>,
        /// What the text means.
        scheme: Box<Scheme>,
    },
    /// `FLOW DELETE name`.
    DeleteFlow {
        /// The flow's name.
        flow: Name,
    },
    /// Something happens to jobs: all of it, or none.
    Jobs(Vec<JobChange>),
    /// From now on these limits hold. What is there already stays, even where it is more than they allow.
    Limits {
        /// All of them.
        limits: Box<SharedLimits>,
    },
    /// The key of receipts, drawn by the first node of the log. A second one changes nothing.
    ShareReceiptKey {
        /// The key.
        key: ReceiptKey,
    },
    /// The log is this cluster's from now on: its founder says so, and whoever restores a backup.
    Found {
        /// Its identity.
        cluster: ClusterId,
    },
    /// A newcomer is let in: the others know where it is.
    Admit(Newcomer),
    /// A member is reached elsewhere, or it was removed and is not to be reached at all.
    Address {
        /// Which node.
        node: NodeId,
        /// Where, unless it was removed.
        address: Option<Address>,
    },
    /// A view that a leader proposes. The log takes it only in the term in which that leader led: submissions go to every
    /// new leader again, and that one may have renewed the lease of a member that its predecessor wanted to leave out.
    ViewInTerm {
        /// The leader's term.
        term: u64,
        /// The view before, which it rests on.
        before: Index,
        /// The members, by node.
        members: Vec<(NodeId, Start)>,
        /// The slot of time in which the log was last restored from a backup.
        generation: u32,
    },
    /// `FLOW APPLY name text OVER mark`: as [`Change::ApplyFlow`], if the flow is still the one that its author saw.
    ApplyFlowOver {
        /// The flow's name.
        flow: Name,
        /// The text as it was written.
        text: Arc<str>,
        /// What the text means.
        scheme: Box<Scheme>,
        /// The mark of the text that this rests on; nothing where there was no such flow.
        over: Option<FlowMark>,
    },
}

/// What the log says of an entry beside what it changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The wall clock's time when it was submitted, as a note: the same on every node, and never compared.
    pub at: u64,
    /// Who submitted it. Logs of before do not say.
    pub origin: Option<Origin>,
    /// The term of the leader that put it into the log; 0 where there is none.
    pub term: u64,
}

/// The stamp of an entry of which only the time is known.
impl From<u64> for Stamp {
    fn from(at: u64) -> Stamp {
        Stamp {
            at,
            ..Stamp::default()
        }
    }
}

/// A change that is in the log and applied. The local half follows it; the client is answered from its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the local half must follow what the log says"]
pub struct Applied(pub(super) Outcome);

impl Applied {
    /// What the client is answered.
    pub fn outcome(&self) -> &Outcome {
        &self.0
    }

    /// As [`Applied::outcome`], once the local half has followed.
    pub fn into_outcome(self) -> Outcome {
        self.0
    }
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Others are in now, and shards have new titles.
    Viewed,
    /// Shards have new titles.
    Entitled,
    /// The gate exists now.
    GateCreated {
        /// The gate's name.
        gate: Name,
        /// What it is.
        definition: Definition,
    },
    /// The gate is gone.
    GateDeleted {
        /// The gate's name.
        gate: Name,
    },
    /// The session is open.
    SessionOpened {
        /// Its identity.
        session: SessionId,
        /// How long it may be silent.
        ttl_ms: u64,
        /// What people call it.
        label: Option<String>,
    },
    /// The session is closed.
    SessionClosed {
        /// Its identity.
        session: SessionId,
    },
    /// The session has another home.
    SessionMoved {
        /// Its identity.
        session: SessionId,
        /// The home that it left.
        from: (NodeId, Start),
    },
    /// What became of a once-key.
    Once(OnceAnswer),
    /// A flow was applied.
    FlowApplied {
        /// Its name.
        flow: Name,
    },
    /// A flow was deleted.
    FlowDeleted {
        /// Its name.
        flow: Name,
    },
    /// Other limits hold now.
    LimitsChanged,
    /// There is a key of receipts now.
    ReceiptKeyShared,
    /// The cluster has another identity or other addresses.
    ClusterChanged,
    /// What the changes of jobs came to, in their order.
    Jobs(Vec<JobOutcome>),
    /// It was so already.
    Unchanged,
}
