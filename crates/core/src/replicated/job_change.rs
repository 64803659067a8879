//! Changes of jobs in the log, and what applying them yields.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fence::Fence;
use crate::job::{Body, Job, JobId, QueueId};
use crate::name::Name;
use crate::ownership::Number;

/// A change of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobChange {
    /// A new job at the end of a queue.
    Create {
        /// The queue.
        queue: QueueId,
        /// Its name; without one it is named after its identity.
        name: Option<Name>,
        /// Its priority class.
        class: u32,
        /// The work.
        body: Body,
        /// Its creator.
        by: Arc<str>,
    },
    /// Moves a job from the queue in which it is held to the end of another, in one step.
    Pass {
        /// The job.
        job: JobId,
        /// The attempt that holds it.
        attempt: Fence,
        /// The number of its present queue's shard.
        number: Number,
        /// The queue that it goes to.
        queue: QueueId,
        /// The new body; without one, the body stays.
        body: Option<Body>,
        /// How long the worker held it.
        held_ms: u64,
        /// Who passes it.
        by: Arc<str>,
    },
    /// The job is done.
    Delete {
        /// The job.
        job: JobId,
        /// The number of its queue's shard.
        number: Number,
    },
    /// In a unit of work: the job waits again in its old place. Giving back alone is not logged.
    Back {
        /// The job.
        job: JobId,
        /// The number of its queue's shard.
        number: Number,
    },
    /// A worker died or failed: its jobs go back, or to the reject queue after too many deaths.
    Lose {
        /// The jobs.
        jobs: Vec<Lost>,
        /// Who held them.
        by: Arc<str>,
    },
}

/// A job whose worker died or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// The job.
    pub job: JobId,
    /// The attempt that held it.
    pub attempt: Fence,
    /// The number of its queue's shard.
    pub number: Number,
    /// For how long it was held.
    pub held_ms: u64,
}

/// The outcome of a change of jobs. The local half updates its books by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// A new job waits.
    Created {
        /// The job.
        job: JobId,
    },
    /// A job waits elsewhere.
    Passed {
        /// The job.
        job: JobId,
        /// Where it was.
        was: Spot,
        /// The attempt that held it.
        attempt: Fence,
    },
    /// The job is deleted.
    Deleted(Arc<Job>),
    /// A job's worker is gone; the job waits where it was or in the reject queue.
    Died {
        /// The job.
        job: JobId,
        /// Where it was.
        was: Spot,
        /// The attempt that held it.
        attempt: Fence,
    },
    /// A job waits again in its old place.
    GivenBack {
        /// The job.
        job: JobId,
    },
}

/// Where a job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The queue.
    pub queue: QueueId,
    /// Its place in the queue.
    pub place: u64,
}
