//! Read access to the replicated half: limits, view, ownership, gates, sessions, flows and jobs, once-keys, decisions,
//! groups, pools.

use std::collections::BTreeMap;
use std::ops::Bound;

use testigo_protocol::slots::Delivery;

use super::{
    Change, Flow, GroupEvent, GroupRecord, Queue, Replicated, SessionRecord, no_flow, no_job,
};
use crate::error::Refusal;
use crate::gate::Definition;
use crate::job::{Body, Job, JobId, QueueId};
use crate::limits::SharedLimits;
use crate::name::Name;
use crate::ownership::{Index, NodeId, Number, Ownership, Shard, Start, View};
use crate::pool::{Closings, EndedElsewhere, Pools, Unsaid};
use crate::receipt::ReceiptKey;
use crate::session::SessionId;

impl Replicated {
    /// The limits that decide the outcome of a change.
    pub fn limits(&self) -> &SharedLimits {
        &self.records.limits
    }

    /// How many changes the log has had: the index of the last one.
    pub fn index(&self) -> Index {
        self.records.index
    }

    /// The present members.
    pub fn view(&self) -> &View {
        &self.records.view
    }

    /// The view of a node that is alone, from this start on: the first entry of every start.
    pub fn view_alone(&self, node: NodeId, start: Start, generation: u32) -> Change {
        Change::View {
            before: self.records.view.index,
            members: vec![(node, start)],
            generation,
        }
    }

    /// Who owns what.
    pub fn ownership(&self) -> &Ownership {
        &self.records.ownership
    }

    /// The number on which a change about a gate rests now.
    pub fn gate_number(&self, gate: &str) -> Number {
        self.records.ownership.number(Shard::of(gate))
    }

    /// Whether a session's home has left: its node was restarted, or is out.
    pub fn is_orphan(&self, session: &SessionRecord) -> bool {
        !self.records.view.has(session.home.node, session.home.start)
    }

    /// A created gate's definition.
    pub fn gate(&self, name: &str) -> Option<&Definition> {
        self.records.gates.get(name)
    }

    /// All created gates, by name.
    pub fn gates(&self) -> impl ExactSizeIterator<Item = (&Name, &Definition)> {
        self.records.gates.iter()
    }

    /// All gates behind a name, or all of them, by name.
    pub fn gates_after(&self, after: Option<&Name>) -> impl Iterator<Item = (&Name, &Definition)> {
        self.records.gates.iter_after(after)
    }

    /// All opened sessions, by identity.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (SessionId, &SessionRecord)> {
        self.records
            .sessions
            .iter()
            .map(|(id, record)| (*id, record))
    }

    /// One opened session.
    pub fn session(&self, id: SessionId) -> Option<&SessionRecord> {
        self.records.sessions.get(&id)
    }

    /// Whether an algorithm moves the ownership of any gate.
    #[inline]
    pub fn has_spread(&self) -> bool {
        !self.spread.is_empty()
    }

    /// Whether an algorithm moves the ownership of a gate in this shard.
    pub fn is_spread(&self, shard: Shard) -> bool {
        self.spread.contains_key(&shard)
    }

    /// The number of a session's last resume, if its client numbers them.
    pub fn serial(&self, session: SessionId) -> Option<u64> {
        self.records.serials.get(&session).copied()
    }

    /// Sessions that have moved without naming their slots.
    pub fn unsaid(&self) -> &Unsaid {
        &self.records.unsaid
    }

    /// The nodes whose sessions were ended elsewhere.
    pub fn ended_elsewhere(&self) -> &EndedElsewhere {
        &self.records.ended_elsewhere
    }

    /// All pools.
    pub fn pools(&self) -> &Pools {
        &self.records.pools
    }

    /// The pools that are being deleted.
    pub fn closings(&self) -> &Closings {
        &self.records.closings
    }

    /// Pools whose deletion ended with the last entry and that stay.
    pub(crate) fn reopened(&self) -> &[Name] {
        &self.reopened
    }

    /// What the last entry delivered to the members of pools.
    pub(crate) fn delivered(&self) -> &[(Name, Delivery)] {
        &self.delivered
    }

    /// The number on which a change that settles a job rests now: that of its queue's shard.
    pub fn job_number(&self, job: JobId) -> Number {
        let job = self.records.flows.jobs.find(job);
        let queue = job.and_then(|job| self.queue(job.queue));
        queue.map_or(Number(0), |queue| {
            self.records.ownership.number(queue.shard())
        })
    }

    /// The key of receipts, once it is in the log.
    pub fn receipt_key(&self) -> Option<&ReceiptKey> {
        self.records.receipt_key.as_ref()
    }

    /// How many once-keys are on record.
    pub fn once_keys(&self) -> usize {
        self.records.once.len()
    }

    /// How many decisions are on record.
    pub fn decisions(&self) -> usize {
        self.records.decisions.len()
    }

    /// The decisions behind a name, by name.
    pub fn decisions_after(&self, name: Bound<&Name>) -> impl Iterator<Item = (&Name, &Body)> {
        self.records.decisions.after(name)
    }

    /// A group that has members.
    pub fn group(&self, name: &str) -> Option<&GroupRecord> {
        self.records.groups.get(name)
    }

    /// All groups that have members, by name.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&Name, &GroupRecord)> {
        self.records.groups.iter()
    }

    /// The groups behind a name, by name.
    pub fn groups_after(&self, name: Bound<&Name>) -> impl Iterator<Item = (&Name, &GroupRecord)> {
        self.records.groups.after(name)
    }

    /// How many entries of the log have concerned a group that an algorithm orders.
    pub(crate) fn group_turns(&self) -> u64 {
        self.records.groups.turns()
    }

    /// What the last entry means to listeners of groups.
    pub fn group_events(&self) -> &[GroupEvent] {
        &self.group_events
    }

    /// A flow.
    pub fn flow(&self, name: &str) -> Result<&Flow, Refusal> {
        let found = self.records.flows.flows.get(name);
        found.ok_or_else(|| no_flow(name))
    }

    /// All flows, by name.
    pub fn flows(&self) -> impl ExactSizeIterator<Item = (&Name, &Flow)> {
        self.records.flows.flows.iter()
    }

    /// All flows behind a name, or all of them, by name.
    pub fn flows_after(&self, after: Option<&Name>) -> impl Iterator<Item = (&Name, &Flow)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let flows = &self.records.flows.flows;
        flows.range::<Name, _>((from, Bound::Unbounded))
    }

    /// A queue of some flow.
    pub fn queue(&self, id: QueueId) -> Option<&Queue> {
        self.records.flows.queues.get(&id)
    }

    /// All queues of all flows.
    pub fn queues(&self) -> impl ExactSizeIterator<Item = (QueueId, &Queue)> {
        let queues = self.records.flows.queues.iter();
        queues.map(|(id, queue)| (*id, queue))
    }

    /// All queues behind one, or all of them, by identity.
    pub fn queues_after(&self, after: Option<QueueId>) -> impl Iterator<Item = (QueueId, &Queue)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let queues = self.records.flows.queues.range((from, Bound::Unbounded));
        queues.map(|(id, queue)| (*id, queue))
    }

    /// The queue that a text means: `flow/queue`, or a bare name in the given flow, or the only queue with that name.
    pub fn queue_named(&self, text: &str, flow: Option<&str>) -> Result<QueueId, Refusal> {
        self.records.flows.resolve(text, flow)
    }

    /// The names of the oldest jobs of each queue, at most [`Limits::STRANDED_NAMES`](crate::Limits::STRANDED_NAMES) per
    /// queue.
    pub fn first_names(
        &self,
        queues: impl Iterator<Item = QueueId>,
    ) -> BTreeMap<QueueId, Vec<Name>> {
        self.records.flows.first_names(queues)
    }

    /// Whether a queue has room for one more job now.
    pub fn check_room(&self, queue: QueueId) -> Result<(), Refusal> {
        self.records.flows.check_room(queue)
    }

    /// A living job.
    pub fn job(&self, id: JobId) -> Result<&Job, Refusal> {
        self.records.flows.jobs.find(id).ok_or_else(|| no_job(id))
    }

    /// The living job with this name.
    pub fn job_named(&self, flow: &str, name: &str) -> Option<JobId> {
        self.names.find(flow, name)
    }

    /// All living jobs, oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.records.flows.jobs.iter()
    }

    /// The living jobs that are younger than one, oldest first.
    pub fn jobs_after(&self, id: JobId) -> impl Iterator<Item = &Job> {
        self.records.flows.jobs.iter_after(id)
    }

    /// How many jobs live, and their total weight.
    pub fn job_sizes(&self) -> (usize, u64) {
        (self.records.flows.jobs.len(), self.records.flows.bytes)
    }
}
