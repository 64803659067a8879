//! What can happen to jobs in the log, and what applying it yields.

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
        /// Where.
        queue: QueueId,
        /// Its name; without one it is called after its identity.
        name: Option<Name>,
        /// Its priority class.
        class: u32,
        /// The work.
        body: Body,
        /// Who creates it.
        by: Arc<str>,
    },
    /// From the queue in which it is held to the end of another, in one step.
    Pass {
        /// Which job.
        job: JobId,
        /// The attempt that holds it.
        attempt: Fence,
        /// The number of the shard of the queue in which it lies.
        number: Number,
        /// Where to.
        queue: QueueId,
        /// What the work has become; without it, it is as it was.
        body: Option<Body>,
        /// How long the worker held it.
        held_ms: u64,
        /// Who passes it.
        by: Arc<str>,
    },
    /// The job is done.
    Delete {
        /// Which job.
        job: JobId,
        /// The number of the shard of the queue in which it lies.
        number: Number,
    },
    /// In a unit of work: the job waits again where it was. Alone, giving back is not logged.
    Back {
        /// Which job.
        job: JobId,
        /// The number of the shard of the queue in which it lies.
        number: Number,
    },
    /// A worker died or failed: its jobs go back, or to the reject queue when it has been too often.
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
    /// Which job.
    pub job: JobId,
    /// The attempt that held it.
    pub attempt: Fence,
    /// The number of the shard of the queue in which it lies.
    pub number: Number,
    /// For how long it was held.
    pub held_ms: u64,
}

/// What a change of jobs came to. The local half moves its own books by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// A new job waits.
    Created {
        /// Which.
        job: JobId,
    },
    /// A job waits elsewhere.
    Passed {
        /// Which.
        job: JobId,
        /// Where it was.
        was: Spot,
        /// The attempt that held it.
        attempt: Fence,
    },
    /// A job is gone.
    Deleted(Arc<Job>),
    /// A job's worker is gone; it waits where it was or in the reject queue.
    Died {
        /// Which.
        job: JobId,
        /// Where it was.
        was: Spot,
        /// The attempt that held it.
        attempt: Fence,
    },
    /// A job waits again where it was.
    GivenBack {
        /// Which.
        job: JobId,
    },
}

/// Where a job lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// In which queue.
    pub queue: QueueId,
    /// At which place.
    pub place: u64,
}
