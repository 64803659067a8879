//! What older versions wrote, and what it means now. They knew one node, which owned everything in *epochs*: a new one with
//! every start, with fences of `epoch·2^32 + counter`. An epoch counts as 64 numbers, and every shard has the last of them,
//! so that everything granted afterwards is above it.
//!
//! These types are read and never written, and must stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::decisions::Decisions;
use super::flows::Flows;
use super::groups::Groups;
use super::once::{self, OnceKeys};
use super::{Applied, Cluster, Home, Lost, OnceAttempt, Outcome, Replicated, rests};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::Definition;
use crate::job::{Body, JobId, QueueId, Scheme};
use crate::limits::SharedLimits;
use crate::local::Books;
use crate::name::Name;
use crate::ownership::{Index, Member, NodeId, Number, Ownership, Shard, Start, Title, View};
use crate::pool::{Closings, EndedElsewhere, Pools, Unsaid};
use crate::receipt::ReceiptKey;
use crate::session::SessionId;

/// An entry of the log.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as they are now, but for what is said above")]
pub enum Change {
    Reign {
        node: NodeId,
        at_least: u64,
    },
    CreateGate {
        gate: Name,
        definition: Definition,
    },
    DeleteGate {
        gate: Name,
    },
    OpenSession {
        session: SessionId,
        ttl_ms: u64,
        label: Option<String>,
        user: Option<String>,
    },
    CloseSession {
        session: SessionId,
    },
    StartOnce(OnceStart),
    FinishOnce {
        key: Name,
        period: u64,
        attempt: Fence,
    },
    AbandonOnce {
        key: Name,
        attempt: Fence,
    },
    ForgetOnce {
        key: Name,
    },
    ApplyFlow {
        flow: Name,
        text: Arc<str>,
        scheme: Box<Scheme>,
    },
    DeleteFlow {
        flow: Name,
    },
    Jobs(Vec<JobChange>),
    ShareReceiptKey {
        key: ReceiptKey,
    },
}

/// The start of a once-key. Its attempt was the fence of the gate that the runner held.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as they are now, but for what is said above")]
pub struct OnceStart {
    pub key: Name,
    pub period: u64,
    pub attempt: Fence,
    pub session: SessionId,
    pub retry_unknown: bool,
}

/// A change of jobs. Each attempt belonged to the epoch in which the job was taken.
#[derive(Debug, Deserialize)]
#[expect(missing_docs, reason = "as they are now, but for what is said above")]
pub enum JobChange {
    Create {
        queue: QueueId,
        name: Option<Name>,
        class: u32,
        body: Body,
        by: Arc<str>,
    },
    Pass {
        job: JobId,
        attempt: Fence,
        queue: QueueId,
        body: Option<Body>,
        held_ms: u64,
        by: Arc<str>,
    },
    Delete {
        job: JobId,
        attempt: Fence,
    },
    /// Like `Lose`, in logs that do not say who held the jobs.
    Die {
        jobs: Vec<(JobId, Fence)>,
    },
    Back {
        job: JobId,
        attempt: Fence,
    },
    Lose {
        jobs: Vec<(JobId, Fence, u64)>,
        by: Arc<str>,
    },
}

/// A snapshot.
#[derive(Debug, Deserialize)]
pub struct Records {
    epoch: u64,
    ownership: Everything,
    gates: BTreeMap<Name, Definition>,
    sessions: BTreeMap<SessionId, SessionRecord>,
    once: BTreeMap<Name, OnceRecord>,
    flows: Flows,
    receipt_key: Option<ReceiptKey>,
}

#[derive(Debug, Deserialize)]
struct OnceRecord {
    done: Option<OnceDone>,
    started: Option<OnceStarted>,
}

#[derive(Debug, Deserialize)]
struct OnceDone {
    period: u64,
    attempt: Fence,
    at: u64,
}

#[derive(Debug, Deserialize)]
struct OnceStarted {
    period: u64,
    attempt: Fence,
    session: SessionId,
    at: u64,
}

impl From<OnceRecord> for once::Record {
    fn from(before: OnceRecord) -> once::Record {
        once::Record {
            done: before.done.map(|done| once::Done {
                period: done.period,
                attempt: once_attempt(done.attempt, None),
                at: done.at,
            }),
            started: before.started.map(|started| once::Started {
                period: started.period,
                attempt: once_attempt(started.attempt, Some(started.session)),
                at: started.at,
            }),
        }
    }
}

/// An attempt at a once-key. If it is done, its session is not on record.
fn once_attempt(attempt: Fence, session: Option<SessionId>) -> once::Attempt {
    once::Attempt {
        number: attempt.0,
        given: session.map(|_| attempt.0),
        session: session.unwrap_or(SessionId::opened(0)),
    }
}

#[derive(Debug, Deserialize)]
struct Everything(Option<EpochTitle>);

#[derive(Debug, Deserialize)]
struct EpochTitle {
    owner: NodeId,
    #[expect(dead_code, reason = "that of the records")]
    epoch: u64,
    #[expect(dead_code, reason = "there was one way")]
    travels: Travels,
}

#[derive(Debug, Deserialize)]
enum Travels {
    Log,
}

#[derive(Debug, Deserialize)]
struct SessionRecord {
    ttl_ms: u64,
    label: Option<String>,
    user: Option<String>,
}

/// The image of a clean stop.
#[derive(Debug, Deserialize)]
pub struct Image {
    epoch: u64,
    books: Books,
}

impl Image {
    /// The numbers under which it was made.
    pub(crate) fn numbers(&self) -> Vec<(Shard, Number)> {
        vec![(Shard(0), last_of(self.epoch))]
    }

    pub(crate) fn into_books(self) -> Books {
        self.books
    }
}

/// How many numbers an epoch counts for.
const EPOCH_NUMBERS: u64 = 1 << (32 - Fence::COUNT_BITS);

/// The last number of an epoch; for an epoch too high to be real, a number that nothing has.
fn last_of(epoch: u64) -> Number {
    let first = epoch.checked_mul(EPOCH_NUMBERS);
    let last = first.and_then(|first| u32::try_from(first + EPOCH_NUMBERS - 1).ok());
    Number(last.unwrap_or(u32::MAX))
}

/// The view and the ownership of a node in an epoch.
fn owned(index: Index, node: NodeId, epoch: u64) -> (View, Ownership) {
    let start = Start(0);
    let view = View {
        index,
        members: vec![Member {
            node,
            start,
            sequence: 0,
        }],
        generation: 0,
    };
    let ownership = Ownership::of_one(Title {
        owner: node,
        start,
        number: last_of(epoch),
        since: last_of(epoch),
    });
    (view, ownership)
}

impl From<Records> for super::Records {
    fn from(before: Records) -> super::Records {
        let owner = before.ownership.0.map(|title| title.owner);
        let owned = owner.map(|owner| owned(Index(0), owner, before.epoch));
        let (view, ownership) = owned.unwrap_or_default();
        let home = Home {
            node: owner.unwrap_or_default(),
            ..Home::default()
        };
        let sessions = before.sessions.into_iter().map(|(id, record)| {
            let SessionRecord {
                ttl_ms,
                label,
                user,
            } = record;
            let record = super::SessionRecord {
                ttl_ms,
                label,
                user,
                home,
            };
            (id, record)
        });
        super::Records {
            index: Index(0),
            view,
            ownership,
            gates: before.gates.into_iter().collect(),
            sessions: sessions.collect(),
            once: OnceKeys(
                before
                    .once
                    .into_iter()
                    .map(|(key, record)| (key, record.into()))
                    .collect(),
            ),
            flows: before.flows,
            receipt_key: before.receipt_key,
            limits: SharedLimits::default(),
            cluster: Cluster::default(),
            pools: Pools::default(),
            decisions: Decisions::default(),
            groups: Groups::default(),
            unsaid: Unsaid::default(),
            serials: BTreeMap::new(),
            ended_elsewhere: EndedElsewhere::default(),
            closings: Closings::default(),
        }
    }
}

impl Replicated {
    /// Applies the next entry of an older log.
    pub fn apply_before(&mut self, at: u64, change: Change) -> Result<Applied, Refusal> {
        let change = match change {
            Change::Reign { node, at_least } => return self.reign(node, at_least),
            Change::CreateGate { gate, definition } => super::Change::CreateGate {
                number: self.gate_number(&gate),
                gate,
                definition,
            },
            Change::DeleteGate { gate } => super::Change::DeleteGate {
                number: self.gate_number(&gate),
                gate,
            },
            Change::OpenSession {
                session,
                ttl_ms,
                label,
                user,
            } => super::Change::OpenSession {
                session,
                ttl_ms,
                label,
                user,
            },
            Change::CloseSession { session } => super::Change::CloseSession {
                session,
                home: self
                    .session(session)
                    .map(|record| record.home.index)
                    .unwrap_or_default(),
            },
            Change::StartOnce(start) => return self.start_once(at, start),
            Change::FinishOnce {
                key,
                period,
                attempt,
            } => return self.finish_once(at, key, period, attempt),
            Change::AbandonOnce { key, attempt } => super::Change::AbandonOnce {
                key,
                attempt: named(attempt),
            },
            Change::ForgetOnce { key } => super::Change::ForgetOnce { key },
            Change::ApplyFlow { flow, text, scheme } => {
                super::Change::ApplyFlow { flow, text, scheme }
            }
            Change::DeleteFlow { flow } => super::Change::DeleteFlow { flow },
            Change::Jobs(changes) => {
                super::Change::Jobs(changes.into_iter().map(Into::into).collect())
            }
            Change::ShareReceiptKey { key } => super::Change::ShareReceiptKey { key },
        };
        self.apply(at, &change)
    }

    /// A start of a once-key, whose fence must be higher than that of the previous start.
    fn start_once(&mut self, at: u64, before: OnceStart) -> Result<Applied, Refusal> {
        let records = &mut self.records;
        records.index.0 += 1;
        let number = before.attempt.0;
        let start = super::OnceStart {
            key: before.key,
            period: before.period,
            given: Some(number),
            session: before.session,
            retry_unknown: before.retry_unknown,
        };
        let record = records.once.0.get(&start.key);
        let done = record.and_then(|record| record.done.as_ref());
        let earlier = record.and_then(|record| record.started.as_ref());
        let stale = |earlier: &once::Started| {
            let same = (earlier.attempt.session, earlier.period) == (start.session, start.period)
                && earlier.attempt.number == number;
            earlier.attempt.number >= number && !same
        };
        if done.is_none_or(|done| done.period < start.period) && earlier.is_some_and(stale) {
            return Err(Refusal::new(
                Word::Stale,
                format!("once-key {} was started with a later attempt", start.key),
            ));
        }
        let sessions = &records.sessions;
        let alive = |session| sessions.contains_key(&session);
        let limits = &records.limits;
        let answer = records.once.start(at, limits, (&start, number), alive)?;
        Ok(Applied(Outcome::Once(answer)))
    }

    /// Older snapshots do not say whose attempt it was, so a replayed log does not either.
    fn finish_once(
        &mut self,
        at: u64,
        key: Name,
        period: u64,
        attempt: Fence,
    ) -> Result<Applied, Refusal> {
        let finish = super::Change::FinishOnce {
            key: key.clone(),
            period,
            attempt: named(attempt),
        };
        let applied = self.apply(at, &finish)?;
        let record = self.records.once.0.find_mut(&key);
        if let Some(done) = record.and_then(|record| record.done.as_mut()) {
            done.attempt = once_attempt(attempt, None);
        }
        Ok(applied)
    }

    /// A node began to own everything, in a new epoch.
    fn reign(&mut self, node: NodeId, at_least: u64) -> Result<Applied, Refusal> {
        let records = &mut self.records;
        records.index.0 += 1;
        let present = u64::from(records.ownership.highest().0) / EPOCH_NUMBERS;
        let epoch = at_least.max(present + 1);
        if last_of(epoch) > Number::MAX {
            return Err(rests::no_number());
        }
        (records.view, records.ownership) = owned(records.index, node, epoch);
        Ok(Applied(Outcome::Viewed))
    }
}

/// The name of an attempt at a once-key.
fn named(attempt: Fence) -> OnceAttempt {
    OnceAttempt {
        number: attempt.0,
        session: None,
    }
}

/// The number on which an attempt rested.
fn rested_on(attempt: Fence) -> Number {
    last_of(attempt.0 >> 32)
}

fn lost(job: JobId, attempt: Fence, held_ms: u64) -> Lost {
    Lost {
        job,
        attempt,
        number: rested_on(attempt),
        held_ms,
    }
}

impl From<JobChange> for super::JobChange {
    fn from(before: JobChange) -> super::JobChange {
        match before {
            JobChange::Create {
                queue,
                name,
                class,
                body,
                by,
            } => super::JobChange::Create {
                queue,
                name,
                class,
                body,
                by,
            },
            JobChange::Pass {
                job,
                attempt,
                queue,
                body,
                held_ms,
                by,
            } => super::JobChange::Pass {
                job,
                attempt,
                number: rested_on(attempt),
                queue,
                body,
                held_ms,
                by,
            },
            JobChange::Delete { job, attempt } => super::JobChange::Delete {
                job,
                number: rested_on(attempt),
            },
            JobChange::Die { jobs } => super::JobChange::Lose {
                jobs: jobs
                    .into_iter()
                    .map(|(job, attempt)| lost(job, attempt, 0))
                    .collect(),
                by: Arc::from(""),
            },
            JobChange::Back { job, attempt } => super::JobChange::Back {
                job,
                number: rested_on(attempt),
            },
            JobChange::Lose { jobs, by } => super::JobChange::Lose {
                jobs: jobs
                    .into_iter()
                    .map(|(job, attempt, held_ms)| lost(job, attempt, held_ms))
                    .collect(),
                by,
            },
        }
    }
}

#[cfg(test)]
#[path = "before_tests.rs"]
mod tests;
