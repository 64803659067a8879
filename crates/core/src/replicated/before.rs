//! What older versions wrote, and what it means now. They knew one node, which owned everything in *epochs*: a new one with
//! every start, with fences of `epoch·2^32 + counter`. Such an epoch counts as 64 numbers, of which every shard has the
//! last, so that whatever is granted afterwards is above it.
//!
//! These types are read and never written, and must stay as they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::flows::Flows;
use super::once::OnceKeys;
use super::{Applied, Home, Lost, OnceStart, Outcome, Replicated, rests};
use crate::error::Refusal;
use crate::fence::Fence;
use crate::gate::Definition;
use crate::job::{Body, JobId, QueueId, Scheme};
use crate::local::Books;
use crate::name::Name;
use crate::ownership::{Index, Member, NodeId, Number, Ownership, Shard, Start, Title, View};
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

/// A change of jobs. Each attempt was of the epoch in which the job was taken.
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
    /// As `Lose`, in logs that do not say whose the jobs were.
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
    once: OnceKeys,
    flows: Flows,
    receipt_key: Option<ReceiptKey>,
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
    /// The numbers that it was made under.
    pub(crate) fn numbers(&self) -> Vec<(Shard, Number)> {
        vec![(Shard(0), last_of(self.epoch))]
    }

    pub(crate) fn into_books(self) -> Books {
        self.books
    }
}

/// How many numbers an epoch counts as.
const EPOCH_NUMBERS: u64 = 1 << (32 - Fence::COUNT_BITS);

/// The last number of an epoch; of one that never was, a number that nothing has.
fn last_of(epoch: u64) -> Number {
    let first = epoch.checked_mul(EPOCH_NUMBERS);
    let last = first.and_then(|first| u32::try_from(first + EPOCH_NUMBERS - 1).ok());
    Number(last.unwrap_or(u32::MAX))
}

/// What a node owned in an epoch, and the view that it was.
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
            gates: before.gates,
            sessions: sessions.collect(),
            once: before.once,
            flows: before.flows,
            receipt_key: before.receipt_key,
        }
    }
}

impl Replicated {
    /// Applies the next entry of a log of before.
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
            Change::StartOnce(start) => super::Change::StartOnce(start),
            Change::FinishOnce {
                key,
                period,
                attempt,
            } => super::Change::FinishOnce {
                key,
                period,
                attempt,
            },
            Change::AbandonOnce { key, attempt } => super::Change::AbandonOnce { key, attempt },
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

/// The number that an attempt rested on.
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
