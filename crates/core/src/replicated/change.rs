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
use testigo_protocol::slots::Letter;

use super::cluster::{Address, ClusterId, Newcomer};
use super::groups::{GroupJoined, GroupOrder, GroupUsing};
use super::home::SessionRecord;
use super::job_change::{JobChange, JobOutcome};
use super::mark::FlowMark;
use super::once::{OnceAnswer, OnceAttempt, OnceStart};
use crate::fence::Fence;
use crate::gate::Definition;
use crate::job::{Body, Scheme};
use crate::limits::SharedLimits;
use crate::name::Name;
use crate::ownership::{Index, NodeId, Number, Origin, Span, Start};
use crate::pool::{NamedSlot, PoolDefinition, SlotClaim};
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
    /// The end of a session that ran out.
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
    /// `POOL CREATE`. Creating the same pool again changes nothing; another definition is refused.
    CreatePool {
        /// The pool's name.
        pool: Name,
        /// What it is.
        definition: Box<PoolDefinition>,
    },
    /// A pool goes at once, whatever is in use: what `POOL DELETE` came to in logs of before. Now it is [`Change::ClosePool`].
    DeletePool {
        /// The pool's name.
        pool: Name,
    },
    /// A node's member of a pool says something to all.
    PoolLetter {
        /// The pool's name.
        pool: Name,
        /// The entry that the pool came with.
        created: Index,
        /// What.
        letter: Letter,
    },
    /// `SESSION RESUME … SERIAL n … SLOTS …`: as [`Change::MoveSession`], and it says more.
    ResumeSession {
        /// Which session.
        session: SessionId,
        /// The index of the home that it leaves.
        home: Index,
        /// The number of this resume among those of its client: one that comes late is refused.
        serial: Option<u64>,
        /// The slots that it has, by name. Others it has no longer.
        slots: Option<Vec<NamedSlot>>,
    },
    /// A node says which slots a session took there that has moved away.
    ClaimSlots {
        /// Which session.
        session: SessionId,
        /// The pools, slots and fences.
        claims: Vec<(Name, u32, Fence)>,
        /// Whether these are all, and not only those of the node's last start.
        all: bool,
    },
    /// A session has slots no longer that it has claimed.
    GiveSlots {
        /// Which session.
        session: SessionId,
        /// The pool's name.
        pool: Name,
        /// The slots, with the fences of the claims: it may have taken them again since.
        slots: Vec<(u32, Fence)>,
        /// Their owner says so, and not the session: it never had them, or has lost them.
        lost: bool,
    },
    /// `DECIDE name value`: the first value in the log's order is the decided one.
    Decide {
        /// What is decided.
        name: Name,
        /// The value that is proposed.
        value: Body,
    },
    /// `DECIDE FORGET name`.
    ForgetDecision {
        /// What was decided.
        name: Name,
    },
    /// `GROUP JOIN`: a session is a member, or comes back as one.
    JoinGroup {
        /// Which group.
        group: Name,
        /// Which session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// The order that it asks for, if it says so.
        order: Option<GroupOrder>,
        /// By what it wants the group to be ordered, if it says so.
        using: Option<GroupUsing>,
        /// The number of the last message that it was delivered, if it says so.
        after: Option<u64>,
    },
    /// `GROUP SEND` to a group that is ordered by the log: this is its place in the group's order.
    SendToGroup {
        /// Which group.
        group: Name,
        /// Who sends.
        session: SessionId,
        /// The index of its home: what it sent before it moved is delivered before that or never.
        home: Index,
        /// What.
        body: Body,
    },
    /// `GROUP LEAVE`.
    LeaveGroup {
        /// Which group.
        group: Name,
        /// Which session.
        session: SessionId,
        /// The index of its home.
        home: Index,
    },
    /// Messages of a group that is ordered by an algorithm may have numbers up to this.
    RaiseGroup {
        /// Which group.
        group: Name,
        /// The highest number.
        to: u64,
    },
    /// A new member of a group that is ordered by an algorithm begins behind the message of this number.
    PlaceMember {
        /// Which group.
        group: Name,
        /// Which session.
        session: SessionId,
        /// The index of its home, which knows the number.
        home: Index,
        /// The number.
        after: u64,
    },
    /// `SESSION CLOSE` or `SESSION END`.
    EndSession {
        /// Which session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// Whether its client asks for it. Otherwise it may believe for a while yet that its session goes on.
        asked: bool,
    },
    /// Whoever submits this has waited for as long as clients may believe it whose sessions ended without its word.
    EndsWaited {
        /// The entry of the last such end.
        last: Index,
    },
    /// `POOL DELETE`: the members that share the pool vote, and give nobody a slot of it meanwhile.
    ClosePool {
        /// The pool's name.
        pool: Name,
    },
    /// What a node says to that.
    PoolVote {
        /// The pool's name.
        pool: Name,
        /// The entry that it answers.
        began: Index,
        /// Whether nobody has a slot there, or may have.
        unused: bool,
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
        /// What it was.
        record: SessionRecord,
    },
    /// The session has another home.
    SessionMoved {
        /// Its identity.
        session: SessionId,
        /// The home that it left.
        from: (NodeId, Start),
        /// The slots that it has, if it has said so.
        slots: Option<Vec<SlotClaim>>,
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
    /// The pool exists now.
    PoolCreated {
        /// Its name.
        pool: Name,
    },
    /// The members that share the pool vote whether it goes.
    PoolClosing {
        /// Its name.
        pool: Name,
    },
    /// The pool stays, because slots are in use.
    PoolKept {
        /// Its name.
        pool: Name,
        /// Where.
        by: NodeId,
    },
    /// The pool is gone.
    PoolDeleted {
        /// Its name.
        pool: Name,
        /// What it was.
        definition: Box<PoolDefinition>,
    },
    /// A member of a pool was heard.
    PoolHeard,
    /// A session has these slots.
    SlotsClaimed {
        /// Which session.
        session: SessionId,
        /// The pools, slots and fences.
        claims: Vec<(Name, u32, Fence)>,
    },
    /// A session has these slots no longer.
    SlotsGiven {
        /// Which session.
        session: SessionId,
        /// The pool's name.
        pool: Name,
        /// The slots, with the fences that it claimed.
        slots: Vec<(u32, Fence)>,
        /// Whether it was told so, instead of saying so.
        lost: bool,
    },
    /// This is the decided value, whoever proposed it.
    Decided {
        /// The value.
        value: Body,
    },
    /// There is no decision any more.
    DecisionForgotten {
        /// Whether there was one.
        was: bool,
    },
    /// A session is a member of a group.
    GroupJoined(Box<GroupJoined>),
    /// What was sent to a group has this number.
    GroupSent {
        /// The number.
        number: u64,
    },
    /// A session is no member of a group any more.
    GroupLeft {
        /// Which group.
        group: Name,
    },
    /// Nobody believes a node any longer whose sessions ended without its word.
    EndsWaited {
        /// Which node.
        node: NodeId,
    },
    /// It was so already.
    Unchanged,
}
