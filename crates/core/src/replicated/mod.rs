//! The replicated half: what every node knows and what changes only in the order of the log. Definitions of gates,
//! opened sessions, who is in and owns what, once-keys, flows and their jobs, the key of receipts. An acknowledged
//! change is durable, because the node applies only what is in the log. Nothing here knows who is inside a gate.

pub mod before;
mod change;
mod cluster;
mod flows;
mod home;
mod job_change;
mod jobs;
mod mark;
mod once;
mod rests;

pub use change::{Applied, Change, Outcome, Stamp};
pub use cluster::{Address, Admission, Cluster, ClusterId, Newcomer};
pub(crate) use flows::no_flow;
pub use flows::{Flow, Queue};
pub use flows::{ambiguous_queue, no_job, no_queue};
pub use home::{Home, SessionRecord};
pub use job_change::{JobChange, JobOutcome, Lost, Spot};
pub use mark::FlowMark;
pub use once::{OnceAnswer, OnceAttempt, OnceStart};

use std::collections::BTreeMap;
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::gate::{Definition, Using};
use crate::job::{Job, JobId, QueueId};
use crate::limits::{Limits, SharedLimits};
use crate::name::{Name, check_text};
use crate::ownership::{Index, NodeId, Number, Ownership, Shard, Start, View};
use crate::receipt::ReceiptKey;
use crate::session::SessionId;
use flows::{Flows, Names};
use jobs::Jobs;
use once::OnceKeys;

/// The replicated half. Two nodes that applied the same log are equal.
#[derive(Clone, Debug)]
pub struct Replicated {
    records: Records,
    names: Names,
    /// How many gates of each shard have an algorithm by which their ownership travels.
    spread: BTreeMap<Shard, u32>,
}

/// Everything that a snapshot of the replicated half holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// How many changes the log has had.
    index: Index,
    view: View,
    ownership: Ownership,
    gates: BTreeMap<Name, Definition>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    once: OnceKeys,
    flows: Flows,
    receipt_key: Option<ReceiptKey>,
    limits: SharedLimits,
    cluster: Cluster,
}

impl Records {
    /// Whether both are equal but for how many changes there were, and of whom: what a refused change leaves.
    pub fn are_as(&self, other: &Records) -> bool {
        let mut same = other.clone();
        same.index = self.index;
        for (member, is) in same.view.members.iter_mut().zip(&self.view.members) {
            member.sequence = is.sequence;
        }
        *self == same
    }
}

impl Replicated {
    /// An empty state, before the first entry of the log. All nodes begin with the same limits, the default ones; the log
    /// changes them.
    pub fn new(limits: Limits) -> Replicated {
        Replicated::restore(Records {
            limits: limits.shared(),
            ..Records::default()
        })
    }

    /// The state of a snapshot.
    pub fn restore(mut records: Records) -> Replicated {
        // Snapshots of before do not know the starts.
        records.cluster.follow(&records.view);
        let names = Names::of(&records.flows);
        let mut replicated = Replicated {
            records,
            names,
            spread: BTreeMap::new(),
        };
        let gates = replicated.records.gates.iter();
        let spread = gates.filter(|(_, gate)| gate.travels.using != Using::Log);
        for (gate, _) in spread {
            *replicated.spread.entry(Shard::of(gate)).or_default() += 1;
        }
        replicated
    }

    /// What a snapshot must hold.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Applies the next entry of the log. A refused change leaves the state as it was, on every node alike, but for the
    /// count of changes and the sequence of whoever submitted it.
    pub fn apply(&mut self, stamp: impl Into<Stamp>, change: &Change) -> Result<Applied, Refusal> {
        let stamp = stamp.into();
        let Stamp {
            at: now, origin, ..
        } = stamp;
        self.records.index.0 += 1;
        if let Some(origin) = origin {
            let view = matches!(change, Change::View { .. } | Change::ViewInTerm { .. });
            self.records.view.take(origin, view)?;
        }
        self.check(change)?;
        rests::check_term(stamp, change)?;
        let home = self.home_of(origin);
        let Records {
            gates,
            sessions,
            once,
            flows,
            ownership,
            receipt_key,
            limits,
            index,
            cluster,
            ..
        } = &mut self.records;
        let outcome = match change {
            Change::View {
                members,
                generation,
                ..
            }
            | Change::ViewInTerm {
                members,
                generation,
                ..
            } => self.view_by(members, *generation, origin),
            Change::Titles {
                shards,
                taker,
                start,
            } => {
                ownership.hand_over(shards, *taker, *start, &self.spread);
                Outcome::Entitled
            }
            Change::CreateGate {
                gate, definition, ..
            } => match gates.insert(gate.clone(), definition.clone()) {
                Some(_) => Outcome::Unchanged,
                None => {
                    if definition.travels.using != Using::Log {
                        *self.spread.entry(Shard::of(gate)).or_default() += 1;
                    }
                    Outcome::GateCreated {
                        gate: gate.clone(),
                        definition: definition.clone(),
                    }
                }
            },
            Change::DeleteGate { gate, .. } => {
                let deleted = gates.remove(gate);
                let spread = deleted.filter(|gate| gate.travels.using != Using::Log);
                if let (Some(_), Some(gates)) = (spread, self.spread.get_mut(&Shard::of(gate))) {
                    *gates -= 1;
                    self.spread.retain(|_, gates| *gates > 0);
                }
                Outcome::GateDeleted { gate: gate.clone() }
            }
            Change::OpenSession {
                session,
                ttl_ms,
                label,
                user,
            } => {
                let (ttl_ms, label) = (*ttl_ms, label.clone());
                let record = SessionRecord {
                    ttl_ms,
                    label: label.clone(),
                    user: user.clone(),
                    home,
                };
                sessions.insert(*session, record);
                Outcome::SessionOpened {
                    session: *session,
                    ttl_ms,
                    label,
                }
            }
            Change::CloseSession { session, .. } => {
                sessions.remove(session);
                Outcome::SessionClosed { session: *session }
            }
            Change::MoveSession { session, .. } => {
                let record = sessions.get_mut(session).expect("it was checked");
                let from = std::mem::replace(&mut record.home, home);
                Outcome::SessionMoved {
                    session: *session,
                    from: (from.node, from.start),
                }
            }
            Change::StartOnce(start) => {
                let alive = |session| sessions.contains_key(&session);
                Outcome::Once(once.start(now, limits, (start, index.0), alive)?)
            }
            Change::FinishOnce {
                key,
                period,
                attempt,
            } => Outcome::Once(once.finish(now, key, *period, *attempt)?),
            Change::AbandonOnce { key, attempt } => Outcome::Once(once.abandon(key, *attempt)?),
            Change::ForgetOnce { key } => match once.forget(key) {
                true => Outcome::Once(OnceAnswer::Forgotten),
                false => Outcome::Once(OnceAnswer::NotOnRecord),
            },
            Change::ApplyFlow { flow, text, scheme }
            | Change::ApplyFlowOver {
                flow, text, scheme, ..
            } => {
                flows.apply_flow(flow, text, scheme);
                Outcome::FlowApplied { flow: flow.clone() }
            }
            Change::DeleteFlow { flow } => {
                flows.delete_flow(flow);
                Outcome::FlowDeleted { flow: flow.clone() }
            }
            Change::Jobs(changes) => {
                let mut jobs = Jobs {
                    flows,
                    names: &mut self.names,
                    limits,
                    ownership,
                };
                Outcome::Jobs(jobs.apply(now, changes)?)
            }
            Change::Limits { limits: new } if **new == *limits => Outcome::Unchanged,
            Change::Limits { limits: new } => {
                *limits = (**new).clone();
                Outcome::LimitsChanged
            }
            Change::ShareReceiptKey { .. } if receipt_key.is_some() => Outcome::Unchanged,
            Change::ShareReceiptKey { key } => {
                *receipt_key = Some(key.clone());
                Outcome::ReceiptKeyShared
            }
            Change::Found { .. } | Change::Admit(_) | Change::Address { .. } => {
                cluster.apply(change)
            }
        };
        Ok(Applied(outcome))
    }

    /// Whether a change would be refused if it were the next entry of the log. Asking spares the log what is plainly wrong;
    /// what counts is what [`Replicated::apply`] says in its turn. Once-keys and jobs are judged only there.
    pub fn check(&self, change: &Change) -> Result<(), Refusal> {
        self.check_for(change, &|_| true)
    }

    /// As [`Replicated::check`], for somebody who sees the jobs of some queues: a refusal names no others.
    pub fn check_for(
        &self,
        change: &Change,
        sees: &dyn Fn(QueueId) -> bool,
    ) -> Result<(), Refusal> {
        match change {
            Change::View {
                before,
                members,
                generation,
            }
            | Change::ViewInTerm {
                before,
                members,
                generation,
                ..
            } => self.check_view(*before, members, *generation),
            Change::Titles {
                shards,
                taker,
                start,
            } => self.check_titles(shards, *taker, *start),
            Change::CreateGate {
                gate,
                definition,
                number,
            } => {
                self.check_create(gate, definition)?;
                self.check_gate_rests(gate, *number)
            }
            Change::DeleteGate { gate, .. } if !self.records.gates.contains_key(gate) => {
                Err(no_gate(gate))
            }
            Change::DeleteGate { gate, number } => self.check_gate_rests(gate, *number),
            Change::OpenSession {
                session,
                ttl_ms,
                label,
                ..
            } => self.check_open(*session, *ttl_ms, label.as_deref()),
            Change::CloseSession { session, home } | Change::MoveSession { session, home } => {
                self.check_close(*session, *home)
            }
            Change::ApplyFlow { flow, text, scheme } => {
                let flows = &self.records.flows;
                flows.check_apply(&self.records.limits, flow, text, scheme, sees)
            }
            Change::ApplyFlowOver {
                flow,
                text,
                scheme,
                over,
            } => {
                let flows = &self.records.flows;
                flows.check_over(flow, text, *over)?;
                flows.check_apply(&self.records.limits, flow, text, scheme, sees)
            }
            Change::DeleteFlow { flow } => self.records.flows.check_delete(flow, sees),
            Change::Admit(_) | Change::Address { .. } => self.records.cluster.check(change),
            _ => Ok(()),
        }
    }

    /// The limits that decide what becomes of a change.
    pub fn limits(&self) -> &SharedLimits {
        &self.records.limits
    }

    /// How many changes the log has had: the index of the last one.
    pub fn index(&self) -> Index {
        self.records.index
    }

    /// Who is in.
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

    /// The key of receipts, once the log has it.
    pub fn receipt_key(&self) -> Option<&ReceiptKey> {
        self.records.receipt_key.as_ref()
    }

    /// Who owns what.
    pub fn ownership(&self) -> &Ownership {
        &self.records.ownership
    }

    /// The number that whatever concerns a gate rests on now.
    pub fn gate_number(&self, gate: &str) -> Number {
        self.records.ownership.number(Shard::of(gate))
    }

    /// The number that whatever settles a job rests on now: that of the queue in which it lies.
    pub fn job_number(&self, job: JobId) -> Number {
        let job = self.records.flows.jobs.find(job);
        let queue = job.and_then(|job| self.queue(job.queue));
        queue.map_or(Number(0), |queue| {
            self.records.ownership.number(queue.shard())
        })
    }

    /// Whether a session's home has left: its node was started again, or is out.
    pub fn is_orphan(&self, session: &SessionRecord) -> bool {
        !self.records.view.has(session.home.node, session.home.start)
    }

    /// A created gate's definition.
    pub fn gate(&self, name: &str) -> Option<&Definition> {
        self.records.gates.get(name)
    }

    /// Whether there is a gate whose ownership travels by an algorithm.
    #[inline]
    pub fn has_spread(&self) -> bool {
        !self.spread.is_empty()
    }

    /// Whether the ownership of a gate in this shard travels by an algorithm.
    pub fn is_spread(&self, shard: Shard) -> bool {
        self.spread.contains_key(&shard)
    }

    /// All created gates, by name.
    pub fn gates(&self) -> impl ExactSizeIterator<Item = (&Name, &Definition)> {
        self.records.gates.iter()
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

    /// How many once-keys are on record.
    pub fn once_keys(&self) -> usize {
        self.records.once.len()
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

    /// All flows behind a name, or all, by name.
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

    /// All queues behind one, or all, by identity.
    pub fn queues_after(&self, after: Option<QueueId>) -> impl Iterator<Item = (QueueId, &Queue)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let queues = self.records.flows.queues.range((from, Bound::Unbounded));
        queues.map(|(id, queue)| (*id, queue))
    }

    /// The queue that a text means: `flow/queue`, or a bare name in the given flow, else the only queue of that name.
    pub fn queue_named(&self, text: &str, flow: Option<&str>) -> Result<QueueId, Refusal> {
        self.records.flows.resolve(text, flow)
    }

    /// The names of the oldest jobs of each of these queues, at most [`Limits::STRANDED_NAMES`] of one.
    pub fn first_names(
        &self,
        queues: impl Iterator<Item = QueueId>,
    ) -> BTreeMap<QueueId, Vec<Name>> {
        self.records.flows.first_names(queues)
    }

    /// Whether one more job would find room in a queue now.
    pub fn check_room(&self, queue: QueueId) -> Result<(), Refusal> {
        self.records.flows.check_room(queue)
    }

    /// A living job.
    pub fn job(&self, id: JobId) -> Result<&Job, Refusal> {
        self.records.flows.jobs.find(id).ok_or_else(|| no_job(id))
    }

    /// The living job of that name.
    pub fn job_named(&self, flow: &str, name: &str) -> Option<JobId> {
        self.names.find(flow, name)
    }

    /// All living jobs, the oldest first.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.records.flows.jobs.iter()
    }

    /// The living jobs that are younger than one, the oldest first.
    pub fn jobs_after(&self, id: JobId) -> impl Iterator<Item = &Job> {
        self.records.flows.jobs.iter_after(id)
    }

    /// How many jobs live, and what they weigh together.
    pub fn job_sizes(&self) -> (usize, u64) {
        (self.records.flows.jobs.len(), self.records.flows.bytes)
    }

    fn check_create(&self, gate: &Name, definition: &Definition) -> Result<(), Refusal> {
        let Records { gates, limits, .. } = &self.records;
        match gates.get(gate) {
            // As it is, whatever the limits are by now.
            Some(existing) if existing == definition => return Ok(()),
            _ => definition.check(limits)?,
        }
        match gates.get(gate) {
            Some(existing) => Err(Refusal::new(
                Word::Busy,
                format!(
                    "gate {gate} exists as {} with another definition; delete it first",
                    existing.rule.word()
                ),
            )),
            None => below("gates", gates.len(), limits.gates),
        }
    }

    fn check_open(
        &self,
        session: SessionId,
        ttl_ms: u64,
        label: Option<&str>,
    ) -> Result<(), Refusal> {
        let limits = &self.records.limits;
        let (least, most) = (limits.ttl_ms_min, limits.ttl_ms_max);
        if !(least..=most).contains(&ttl_ms) {
            return Err(Refusal::new(
                Word::BadArg,
                format!("TTL {ttl_ms} is not in {least}..={most} milliseconds"),
            ));
        }
        if let Some(label) = label {
            check_text("LABEL", label, Limits::LABEL_BYTES)?;
        }
        if session.is_implicit() {
            return Err(Refusal::new(
                Word::BadArg,
                format!("session {session} has the identity of an implicit one"),
            ));
        }
        if self.records.sessions.contains_key(&session) {
            return Err(Refusal::new(
                Word::Busy,
                format!("session {session} is open already; draw another identity"),
            ));
        }
        let open = self.records.sessions.len();
        below("sessions", open, limits.sessions)
    }
}

fn below(limit: &str, count: usize, most: usize) -> Result<(), Refusal> {
    if count < most {
        return Ok(());
    }
    Err(Refusal::new(
        Word::Limit,
        format!("{count} {limit} exist, and the limit {limit} is {most}"),
    ))
}

/// The refusal of a gate that is not there.
pub fn no_gate(name: &str) -> Refusal {
    Refusal::new(
        Word::NoGate,
        format!("there is no gate {name}; GATE CREATE makes one, GATE LIST shows them"),
    )
}

/// The refusal of a session that is not there.
pub fn no_session(session: SessionId) -> Refusal {
    Refusal::new(
        Word::Stale,
        format!("session {session} was never opened, was closed or ran out; open a new one"),
    )
}

#[cfg(test)]
mod tests;
