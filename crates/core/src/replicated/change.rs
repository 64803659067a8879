//! What must be in the log before it is true, and what applying it yields. Only
//! [`Replicated::apply`](super::Replicated::apply) accepts a [`Change`], and only it can make an [`Applied`]: so the local
//! half cannot create a gate or end an opened session that the log does not know.
//!
//! Others may be applied between the submission of a change and its own application. So a change says what it *rests on*, and
//! is refused, on all nodes alike, when that has changed: a view rests on the view before, titles and changes about a gate or
//! a held job on the number of the shard, the end of a session on the index of its home, a flow on the text that its author
//! saw.

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
    /// The members from now on. The shards of starts that have left go to members, under higher numbers. Alone, this is the
    /// first entry of every start.
    View {
        /// The view before, which it rests on.
        before: Index,
        /// The members, by node.
        members: Vec<(NodeId, Start)>,
        /// The slot of time in which the log was last restored from a backup; 0 if never. Each restore raises all numbers
        /// above every one that may have been given out before.
        generation: u32,
    },
    /// An owner hands shards to a member, under the next number; to itself when their fences run low.
    Titles {
        /// Which shards, in order, with the numbers on which this rests.
        shards: Vec<Span>,
        /// Who takes them.
        taker: NodeId,
        /// Which start of the taker.
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
    /// `SESSION OPEN`. The node that submits this is its home.
    OpenSession {
        /// Its identity, drawn at random by the node.
        session: SessionId,
        /// How long it may be silent.
        ttl_ms: u64,
        /// Its label.
        label: Option<String>,
        /// Its user; `None` for the default user.
        user: Option<String>,
    },
    /// The end of a session that ran out.
    CloseSession {
        /// The session.
        session: SessionId,
        /// The index of its home.
        home: Index,
    },
    /// `SESSION RESUME` at another node: the node that submits this is its home from now on.
    MoveSession {
        /// The session.
        session: SessionId,
        /// The index of the home that it leaves.
        home: Index,
    },
    /// The command of a once-key is about to run.
    StartOnce(OnceStart),
    /// The command of a once-key succeeded; from now on the key is done.
    FinishOnce {
        /// The key.
        key: Name,
        /// The period, 0 for a key without periods.
        period: u64,
        /// Which attempt.
        attempt: OnceAttempt,
    },
    /// The command of a once-key failed, so it may be tried again.
    AbandonOnce {
        /// The key.
        key: Name,
        /// Which attempt.
        attempt: OnceAttempt,
    },
    /// Deletes the record of a once-key.
    ForgetOnce {
        /// The key.
        key: Name,
    },
    /// `FLOW APPLY name text`: creates a flow, or replaces its text.
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
    /// Changes jobs: all of them, or none.
    Jobs(Vec<JobChange>),
    /// New limits. Whatever exists stays, even beyond them.
    Limits {
        /// All of them.
        limits: Box<SharedLimits>,
    },
    /// The key of receipts, drawn at random by the first node of the log. A second one changes nothing.
    ShareReceiptKey {
        /// The key.
        key: ReceiptKey,
    },
    /// The log belongs to this cluster from now on. Submitted by its founder and by a node that restores a backup.
    Found {
        /// Its identity.
        cluster: ClusterId,
    },
    /// Lets a newcomer in, and tells the others its address.
    Admit(Newcomer),
    /// A member has another address, or was removed and has none.
    Address {
        /// The node.
        node: NodeId,
        /// The address, unless it was removed.
        address: Option<Address>,
    },
    /// A view proposed by a leader. The log takes it only in the term in which that leader led. Submissions are repeated to
    /// every new leader, and the new one may have renewed the lease of a member that its predecessor wanted to leave out.
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
    /// `FLOW APPLY name text OVER mark`: like [`Change::ApplyFlow`], if the flow is still the one that its author saw.
    ApplyFlowOver {
        /// The flow's name.
        flow: Name,
        /// The text as it was written.
        text: Arc<str>,
        /// What the text means.
        scheme: Box<Scheme>,
        /// The mark of the text on which this rests; `None` if there was no such flow.
        over: Option<FlowMark>,
    },
    /// `POOL CREATE`. Creating the same pool again changes nothing; another definition is refused.
    CreatePool {
        /// The pool's name.
        pool: Name,
        /// What it is.
        definition: Box<PoolDefinition>,
    },
    /// Deletes a pool at once, even if it is in use: what `POOL DELETE` meant in older logs. Now it is [`Change::ClosePool`].
    DeletePool {
        /// The pool's name.
        pool: Name,
    },
    /// A node's member of a pool sends a letter to all.
    PoolLetter {
        /// The pool's name.
        pool: Name,
        /// The log entry that created the pool.
        created: Index,
        /// The letter.
        letter: Letter,
    },
    /// `SESSION RESUME … SERIAL n … SLOTS …`: like [`Change::MoveSession`], with more.
    ResumeSession {
        /// The session.
        session: SessionId,
        /// The index of the home that it leaves.
        home: Index,
        /// The number of this resume among those of its client; a late one is refused.
        serial: Option<u64>,
        /// All slots that it still has, by name.
        slots: Option<Vec<NamedSlot>>,
    },
    /// A node names the slots that a session took there before it moved away.
    ClaimSlots {
        /// The session.
        session: SessionId,
        /// The pools, slots and fences.
        claims: Vec<(Name, u32, Fence)>,
        /// Whether these are all, rather than only those taken since the node's last start.
        all: bool,
    },
    /// A session no longer has slots that it has claimed.
    GiveSlots {
        /// The session.
        session: SessionId,
        /// The pool's name.
        pool: Name,
        /// The slots, with the fences of the claims: it may have taken them again since.
        slots: Vec<(u32, Fence)>,
        /// Whether their owner says so and not the session: the session never had them, or has lost them.
        lost: bool,
    },
    /// `DECIDE name value`: the first value in log order is decided.
    Decide {
        /// The name under which it is decided.
        name: Name,
        /// The proposed value.
        value: Body,
    },
    /// `DECIDE FORGET name`.
    ForgetDecision {
        /// The name of the decision.
        name: Name,
    },
    /// `GROUP JOIN`: a session becomes a member, or comes back.
    JoinGroup {
        /// The group.
        group: Name,
        /// The session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// The order that it asks for, if any.
        order: Option<GroupOrder>,
        /// How it wants messages to be ordered, if it says so.
        using: Option<GroupUsing>,
        /// The number of the last message delivered to it, if it says so.
        after: Option<u64>,
    },
    /// `GROUP SEND` to a group that the log orders: the place of this entry is the message's place.
    SendToGroup {
        /// The group.
        group: Name,
        /// The sender.
        session: SessionId,
        /// The index of its home. A message sent before the session moved is delivered before the move or never.
        home: Index,
        /// The message.
        body: Body,
    },
    /// `GROUP LEAVE`.
    LeaveGroup {
        /// The group.
        group: Name,
        /// The session.
        session: SessionId,
        /// The index of its home.
        home: Index,
    },
    /// Messages of a group that an algorithm orders may have numbers up to this.
    RaiseGroup {
        /// The group.
        group: Name,
        /// The highest number.
        to: u64,
    },
    /// A new member of a group that an algorithm orders begins behind the message with this number.
    PlaceMember {
        /// The group.
        group: Name,
        /// The session.
        session: SessionId,
        /// The index of its home, which knows the number.
        home: Index,
        /// The number.
        after: u64,
    },
    /// `SESSION CLOSE` or `SESSION END`.
    EndSession {
        /// The session.
        session: SessionId,
        /// The index of its home.
        home: Index,
        /// Whether its client asked for it. If not, the client may believe for a while that its session lives.
        asked: bool,
    },
    /// The node that submits this has waited until clients whose sessions were ended elsewhere no longer believe in them.
    EndsWaited {
        /// The log entry of the last such end.
        last: Index,
    },
    /// `POOL DELETE`: the members that share the pool vote, and give out none of its slots meanwhile.
    ClosePool {
        /// The pool's name.
        pool: Name,
    },
    /// A node's vote on that.
    PoolVote {
        /// The pool's name.
        pool: Name,
        /// The log entry that began the vote.
        began: Index,
        /// Whether nobody there has a slot, or may have one.
        unused: bool,
    },
}

/// What the log says about an entry, apart from the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The wall clock when it was submitted, for information: the same on every node, and never compared.
    pub at: u64,
    /// Who submitted it. Older logs do not say.
    pub origin: Option<Origin>,
    /// The term of the leader that put it into the log; 0 if there is none.
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

/// A change that is in the log and applied. The local half follows it; its outcome answers the client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the local half must follow what the log says"]
pub struct Applied(pub(super) Outcome);

impl Applied {
    /// The outcome, which answers the client.
    pub fn outcome(&self) -> &Outcome {
        &self.0
    }

    /// Like [`Applied::outcome`], for when the local half has followed.
    pub fn into_outcome(self) -> Outcome {
        self.0
    }
}

/// What a change did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The members have changed, and shards have new titles.
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
        /// Its label.
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
    /// What happened to a once-key.
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
    /// There are new limits.
    LimitsChanged,
    /// The key of receipts is set.
    ReceiptKeyShared,
    /// The cluster has another identity or other addresses.
    ClusterChanged,
    /// The outcomes of the changes of jobs, in order.
    Jobs(Vec<JobOutcome>),
    /// The pool exists now.
    PoolCreated {
        /// Its name.
        pool: Name,
    },
    /// The members that share the pool vote on its deletion.
    PoolClosing {
        /// Its name.
        pool: Name,
    },
    /// The pool stays, because slots are in use.
    PoolKept {
        /// Its name.
        pool: Name,
        /// The node that voted so.
        by: NodeId,
    },
    /// The pool is gone.
    PoolDeleted {
        /// Its name.
        pool: Name,
        /// What it was.
        definition: Box<PoolDefinition>,
    },
    /// A member's letter to a pool was delivered.
    PoolHeard,
    /// A session has these slots.
    SlotsClaimed {
        /// The session.
        session: SessionId,
        /// The pools, slots and fences.
        claims: Vec<(Name, u32, Fence)>,
    },
    /// A session no longer has these slots.
    SlotsGiven {
        /// The session.
        session: SessionId,
        /// The pool's name.
        pool: Name,
        /// The slots, with the fences that it claimed.
        slots: Vec<(u32, Fence)>,
        /// Whether it was told so rather than said so.
        lost: bool,
    },
    /// The decided value, whoever proposed it.
    Decided {
        /// The value.
        value: Body,
    },
    /// A decision was forgotten.
    DecisionForgotten {
        /// Whether there was one.
        was: bool,
    },
    /// A session is a member of a group.
    GroupJoined(Box<GroupJoined>),
    /// A message to a group has this number.
    GroupSent {
        /// The number.
        number: u64,
    },
    /// A session is no longer a member of a group.
    GroupLeft {
        /// The group.
        group: Name,
    },
    /// Clients no longer believe in sessions of this node that were ended elsewhere.
    EndsWaited {
        /// The node.
        node: NodeId,
    },
    /// Nothing changed.
    Unchanged,
}
