//! A job as the log knows it: its queue and its place there, how often its workers died, where it has been. Who holds it just
//! now is up to the local half.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::body::Body;
use crate::name::Name;

/// The identity of a job, given by the log and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobId(pub u64);

/// The identity of a queue, given by the log and never reused: a queue that is deleted and created again gets another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueueId(pub u32);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A job of a flow, waiting or held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its identity.
    pub id: JobId,
    /// The name that its creator gave it; no two living jobs of a flow have the same.
    pub name: Name,
    /// The queue that it lies in, even while it is held.
    pub queue: QueueId,
    /// Its place: of two jobs in a queue, the one with the lower place came first.
    pub place: u64,
    /// Its priority class; 0 is most urgent. Only queues ordered by priority look at it.
    pub class: u32,
    /// How many of its workers died or failed in this queue.
    pub deaths: u32,
    /// The queue from which it was rejected, if it was.
    pub rejected_from: Option<QueueId>,
    /// The work itself.
    pub body: Body,
    /// When it came into its present queue, by the wall clock.
    pub at: u64,
    /// When it was created, by the wall clock.
    pub created: u64,
    /// Who created it.
    pub creator: Arc<str>,
    /// Where it has been, the latest last; at most [`Job::HOPS`].
    pub hops: Vec<Hop>,
}

/// One step of a job: out of a queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hop {
    /// The queue that it left.
    pub queue: QueueId,
    /// When it had arrived there.
    pub arrived: u64,
    /// When it left.
    pub left: u64,
    /// How long its last worker held it.
    pub held_ms: u64,
    /// Who moved it. If the node did, because its workers died: [`Hop::LOST_BY`] and the last of them, or nothing in logs
    /// that do not say who that was.
    pub by: Arc<str>,
}

impl Hop {
    /// Stands before the name of a worker that died or failed.
    pub const LOST_BY: &str = "lost by ";
}

impl Job {
    /// Cap on remembered hops; the oldest are forgotten first.
    pub const HOPS: usize = 64;

    /// How many bytes the job counts for against the limit `job_bytes`.
    pub(crate) fn weight(&self) -> u64 {
        (self.name.len() + self.body.len()) as u64
    }

    /// Notes that the job leaves its queue now.
    pub(crate) fn hop(&mut self, now: u64, held_ms: u64, by: Arc<str>) {
        if self.hops.len() >= Job::HOPS {
            self.hops.remove(0);
        }
        self.hops.push(Hop {
            queue: self.queue,
            arrived: self.at,
            left: now,
            held_ms,
            by,
        });
        self.at = now;
    }
}
