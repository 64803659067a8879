//! What a run counted.

use serde::Serialize;
use testigo_sim::Time;

use crate::Name;

/// A run. Times are in seconds, rates a second, both of the time behind the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    pub processes: Vec<ProcessRun>,
    pub queues: Vec<QueueRun>,
    /// Seconds that were counted.
    pub seconds: f64,
    pub created: u64,
    pub deleted: u64,
    pub rejected: u64,
    /// Jobs in the flow at the end, all of the run.
    pub left: u64,
    /// The mean time from creation to deletion.
    pub time: Option<f64>,
    /// When nothing could go on any more, every worker and creator before a full queue.
    pub stood_still: Option<f64>,
    /// The run was ended early, because there were too many jobs or events.
    pub overflowed: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessRun {
    pub name: Name,
    pub workers: u32,
    /// Jobs taken a second.
    pub taken: f64,
    /// The share of the workers' time that they worked, or were away after a death.
    pub utilisation: f64,
    /// The share of the workers' time that they stood before a full queue.
    pub blocked: f64,
    pub deaths: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRun {
    pub name: Name,
    /// Jobs that arrived a second.
    pub arrivals: f64,
    /// The mean time that a job waited here.
    pub waiting: Option<f64>,
    /// The mean number of waiting jobs.
    pub jobs: f64,
    /// The most waiting jobs.
    pub jobs_max: usize,
}

/// A number that changes in time, and its mean.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    value: u64,
    since: Time,
    area: f64,
}

impl Level {
    pub(super) fn set(&mut self, now: Time, value: u64) {
        self.settle(now);
        self.value = value;
    }

    pub(super) fn add(&mut self, now: Time, change: i64) {
        let value = self.value.saturating_add_signed(change);
        self.set(now, value);
    }

    fn settle(&mut self, now: Time) {
        self.area += self.value as f64 * now.since(self.since).as_units();
        self.since = now;
    }

    /// Forgets what was, but not the value.
    pub(super) fn restart(&mut self, now: Time) {
        self.settle(now);
        self.area = 0.0;
    }

    pub(super) fn mean(&mut self, now: Time, seconds: f64) -> f64 {
        self.settle(now);
        if seconds > 0.0 {
            self.area / seconds
        } else {
            0.0
        }
    }
}
