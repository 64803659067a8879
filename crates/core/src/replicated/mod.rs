//! The replicated half: what every node knows and what changes only in the order of the log. Definitions of gates, opened
//! sessions, members and titles, once-keys, decisions, flows and their jobs, the key of receipts. An acknowledged change is
//! durable, because the node applies only what is in the log. Nothing here knows who is inside a gate.

pub mod before;
mod change;
mod checks;
mod cluster;
mod decisions;
mod flows;
mod groups;
mod home;
mod job_change;
mod jobs;
mod look;
mod mark;
mod once;
mod rests;

pub use change::{Applied, Change, Outcome, Stamp};
use checks::below;
pub use cluster::{Address, Admission, Cluster, ClusterId, Newcomer};
pub(crate) use flows::no_flow;
pub use flows::{Flow, Queue};
pub use flows::{ambiguous_queue, no_job, no_queue};
pub use groups::{GroupEvent, GroupJoined, GroupMessage, GroupOrder, GroupRecord, GroupUsing};
pub use home::{Home, SessionRecord};
pub use job_change::{JobChange, JobOutcome, Lost, Spot};
pub use mark::FlowMark;
pub use once::{OnceAnswer, OnceAttempt, OnceStart};
pub use rests::late_resume;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::gate::{Definition, Using};
use crate::job::QueueId;
use crate::limits::{Limits, SharedLimits};
use crate::name::Name;
use crate::ownership::{Index, Ownership, Shard, View};
use crate::pool::{Closings, Delivered, EndedElsewhere, Pools, Unsaid};
use crate::receipt::ReceiptKey;
use crate::session::SessionId;
use crate::shared_map::SharedMap;
use decisions::Decisions;
use flows::{Flows, Names};
use groups::{Groups, check_body};
use jobs::Jobs;
use once::OnceKeys;

/// The replicated half. Two nodes that applied the same log are equal.
#[derive(Clone, Debug)]
pub struct Replicated {
    records: Records,
    names: Names,
    /// For each shard, how many of its gates have their ownership moved by an algorithm.
    spread: BTreeMap<Shard, u32>,
    /// What the last entry delivered to the members of pools.
    delivered: Delivered,
    /// Pools whose deletion ended with the last entry and that stay.
    reopened: Vec<Name>,
    /// What the last entry means to listeners of groups.
    group_events: Vec<GroupEvent>,
}

/// Everything that a snapshot of the replicated half holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Records {
    /// How many changes the log has had.
    index: Index,
    view: View,
    ownership: Ownership,
    gates: SharedMap<Name, Definition>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    once: OnceKeys,
    flows: Flows,
    receipt_key: Option<ReceiptKey>,
    limits: SharedLimits,
    cluster: Cluster,
    pools: Pools,
    decisions: Decisions,
    groups: Groups,
    unsaid: Unsaid,
    /// The number of the last resume of each session whose client numbers them.
    serials: BTreeMap<SessionId, u64>,
    ended_elsewhere: EndedElsewhere,
    closings: Closings,
}

impl Records {
    /// Whether both are equal except for the number of changes and the sequences of those who submitted them: all that a
    /// refused change may alter.
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
    /// An empty state, before the first entry of the log. All nodes begin with the default limits; the log changes them.
    pub fn new(limits: Limits) -> Replicated {
        Replicated::restore(Records {
            limits: limits.shared(),
            ..Records::default()
        })
    }

    /// Restores the state of a snapshot.
    pub fn restore(mut records: Records) -> Replicated {
        // Older snapshots do not have the starts.
        records.cluster.follow(&records.view);
        let names = Names::of(&records.flows);
        let mut replicated = Replicated {
            records,
            names,
            spread: BTreeMap::new(),
            delivered: Vec::new(),
            reopened: Vec::new(),
            group_events: Vec::new(),
        };
        let gates = replicated.records.gates.iter();
        let spread = gates.filter(|(_, gate)| gate.travels.using != Using::Log);
        for (gate, _) in spread {
            *replicated.spread.entry(Shard::of(gate)).or_default() += 1;
        }
        replicated
    }

    /// The contents of a snapshot.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Applies the next entry of the log. A refused change leaves the state as it was, on every node alike, except for the
    /// count of changes and the submitter's sequence.
    pub fn apply(&mut self, stamp: impl Into<Stamp>, change: &Change) -> Result<Applied, Refusal> {
        let stamp = stamp.into();
        let Stamp {
            at: now, origin, ..
        } = stamp;
        self.records.index.0 += 1;
        self.delivered.clear();
        self.reopened.clear();
        self.group_events.clear();
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
            pools,
            view,
            decisions,
            groups,
            unsaid,
            serials,
            ended_elsewhere,
            closings,
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
            Change::CloseSession { session, .. } | Change::EndSession { session, .. } => {
                let record = sessions.remove(session).expect("it was checked");
                pools.end_session(*session);
                unsaid.settle(*session);
                serials.remove(session);
                let at = (record.home.node, record.home.start);
                // If the home itself ends a session, it was silent for its whole TTL, and its client no longer believes in
                // it.
                let known = match change {
                    Change::EndSession { asked, .. } => *asked,
                    _ => at == (home.node, home.start),
                };
                if !known && pools.iter().len() > 0 {
                    ended_elsewhere.end(*index, at, record.ttl_ms);
                }
                groups.end_session(*session, &mut self.group_events);
                Outcome::SessionClosed {
                    session: *session,
                    record,
                }
            }
            Change::MoveSession { session, .. } | Change::ResumeSession { session, .. } => {
                let record = sessions.get_mut(session).expect("it was checked");
                let from = std::mem::replace(&mut record.home, home);
                let from = (from.node, from.start);
                groups.move_session(*index, *session);
                if let Change::ResumeSession {
                    serial: Some(serial),
                    ..
                } = change
                {
                    serials.insert(*session, *serial);
                }
                let slots = match change {
                    Change::ResumeSession {
                        slots: Some(slots), ..
                    } => {
                        unsaid.settle(*session);
                        Some(pools.claim_only(*session, slots))
                    }
                    _ => {
                        if from != (home.node, home.start) && pools.iter().len() > 0 {
                            unsaid.leave(*session, from);
                        }
                        None
                    }
                };
                Outcome::SessionMoved {
                    session: *session,
                    from,
                    slots,
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
                if let Change::Address {
                    node,
                    address: None,
                } = change
                {
                    pools.remove(*index, *node, &mut self.delivered);
                    closings.end_all(&mut self.reopened);
                    unsaid.remove(*node);
                    ended_elsewhere.remove(*node);
                }
                cluster.apply(change)
            }
            Change::DeletePool { .. } | Change::ClosePool { .. } | Change::PoolVote { .. } => {
                let to = (pools, &mut self.reopened);
                closings.apply((*index, view), home.node, change, to)?
            }
            Change::ClaimSlots {
                session,
                claims,
                all,
            } => {
                if *all {
                    unsaid.said_by(*session, home.node);
                }
                let record = sessions.get(session);
                let left = record.is_some_and(|record| record.home.node != home.node);
                pools.claim(*session, claims, left.then_some(home.node));
                Outcome::SlotsClaimed {
                    session: *session,
                    claims: claims.clone(),
                }
            }
            Change::CreatePool { .. } => {
                let staying = cluster.staying(view);
                pools.apply((*index, &staying), home.node, change, &mut self.delivered)?
            }
            Change::PoolLetter { .. } | Change::GiveSlots { .. } => {
                pools.apply((*index, view), home.node, change, &mut self.delivered)?
            }
            Change::Decide { name, value } => Outcome::Decided {
                value: decisions.decide(name, value),
            },
            Change::ForgetDecision { name } => Outcome::DecisionForgotten {
                was: decisions.forget(name),
            },
            Change::JoinGroup {
                group,
                session,
                order,
                using,
                after,
                ..
            } => {
                let told = &mut self.group_events;
                let asked = (*order, *using);
                let joined = groups.join(*index, group, *session, asked, *after, told);
                Outcome::GroupJoined(Box::new(joined))
            }
            Change::SendToGroup {
                group,
                session,
                body,
                ..
            } => Outcome::GroupSent {
                number: groups.send(group, *session, body, &mut self.group_events),
            },
            Change::LeaveGroup { group, session, .. } => {
                groups.leave(group, *session, &mut self.group_events);
                Outcome::GroupLeft {
                    group: group.clone(),
                }
            }
            Change::RaiseGroup { group, to } => {
                groups.raise(group, *to);
                Outcome::Unchanged
            }
            Change::PlaceMember {
                group,
                session,
                after,
                ..
            } => {
                groups.place(group, *session, *after);
                Outcome::Unchanged
            }
            Change::EndsWaited { last } => {
                ended_elsewhere.waited(home.node, *last);
                Outcome::EndsWaited { node: home.node }
            }
        };
        Ok(Applied(outcome))
    }

    /// Whether a change would be refused if it were the next entry of the log. Checking first keeps obvious mistakes out of
    /// the log; only [`Replicated::apply`] decides. Once-keys and jobs are judged only there.
    pub fn check(&self, change: &Change) -> Result<(), Refusal> {
        self.check_for(change, &|_| true)
    }

    /// Like [`Replicated::check`], for a caller that may see the jobs of some queues only: a refusal names no others.
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
            Change::CloseSession { session, home }
            | Change::EndSession { session, home, .. }
            | Change::MoveSession { session, home } => self.check_close(*session, *home),
            Change::ResumeSession {
                session,
                home,
                serial,
                ..
            } => {
                self.check_serial(*session, *serial)?;
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
            Change::CreatePool { .. } | Change::DeletePool { .. } => {
                self.records.pools.check(change)
            }
            Change::ClosePool { pool } => {
                let Records { pools, view, .. } = &self.records;
                pools.check_close(pool, view)
            }
            Change::Decide { name, value } => self.records.decisions.check(name, value),
            Change::JoinGroup {
                group,
                session,
                home,
                order,
                using,
                after,
            } => {
                self.check_close(*session, *home)?;
                let groups = &self.records.groups;
                groups.check_join(group, *session, *order, *using, *after)
            }
            Change::SendToGroup {
                group,
                session,
                home,
                body,
            } => {
                check_body(body)?;
                self.check_close(*session, *home)?;
                self.records.groups.check_member(group, *session)
            }
            Change::LeaveGroup {
                group,
                session,
                home,
            }
            | Change::PlaceMember {
                group,
                session,
                home,
                ..
            } => {
                self.check_close(*session, *home)?;
                self.records.groups.check_member(group, *session)
            }
            Change::ClaimSlots { session, .. } | Change::GiveSlots { session, .. } => {
                match self.records.sessions.contains_key(session) {
                    true => Ok(()),
                    false => Err(no_session(*session)),
                }
            }
            _ => Ok(()),
        }
    }
}

/// The refusal of a gate that does not exist.
pub fn no_gate(name: &str) -> Refusal {
    Refusal::new(
        Word::NoGate,
        format!("there is no gate {name}; GATE CREATE makes one, GATE LIST shows them"),
    )
}

/// The refusal of a session that does not exist.
pub fn no_session(session: SessionId) -> Refusal {
    Refusal::new(
        Word::Stale,
        format!("session {session} was never opened, was closed or ran out; open a new one"),
    )
}

#[cfg(test)]
mod tests;
