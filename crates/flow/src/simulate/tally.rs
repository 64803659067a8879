//! What a run counted.

use serde::Serialize;
use testigo_sim::Time;

use super::state::Run;
use crate::Name;

/// A run. Times are in seconds, rates a second, both of the time that was counted: from the end of the warm-up to the end of
/// the run. A run that overflowed or stood still before the warm-up was over is counted from its start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    pub processes: Vec<ProcessRun>,
    pub queues: Vec<QueueRun>,
    pub creators: Vec<CreatorRun>,
    /// When counting began.
    pub counted_from: f64,
    /// Seconds that were counted.
    pub seconds: f64,
    pub created: u64,
    pub deleted: u64,
    pub rejected: u64,
    /// Jobs in the flow at the end, all of the run.
    pub left: u64,
    /// The mean time from creation to deletion.
    pub time: Option<f64>,
    /// When a part of the flow could not go on any more, for ever: workers stood before full queues that only they could
    /// empty. If nothing else could go on either, the run ended there.
    pub stood_still: Option<f64>,
    /// The queues of that part, at the end.
    pub stuck: Vec<Name>,
    /// When the run was ended early, because there were too many jobs or events.
    pub overflowed: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessRun {
    pub name: Name,
    pub workers: u32,
    /// Jobs taken per second.
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
    /// The mean time that a job that was taken had waited here, over all its attempts.
    pub waiting: Option<f64>,
    /// The mean number of waiting jobs.
    pub jobs: f64,
    /// The most waiting jobs.
    pub jobs_max: usize,
}

/// A process that creates into a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CreatorRun {
    pub process: Name,
    pub queue: Name,
    /// Jobs created per second.
    pub created: f64,
    /// The share of the time that it stood before the full queue.
    pub blocked: f64,
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

impl Run<'_> {
    pub(super) fn tally(mut self, overflowed: bool) -> Simulation {
        let now = self.now;
        let seconds = now.since(self.counted_from).as_units();
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let stuck = (0..self.queues.len())
            .filter(|queue| !self.queues[*queue].blocked.is_empty() && self.is_stuck(*queue))
            .map(|queue| self.index.queues[queue].clone())
            .collect();
        let names = self.index.processes.iter().map(|(name, _)| (*name).clone());
        let processes = names.zip(&mut self.processes).filter_map(|(name, state)| {
            let workers = state.work?.workers;
            Some(ProcessRun {
                name,
                workers,
                taken: rate(state.taken),
                utilisation: state.busy.mean(now, seconds) / f64::from(workers),
                blocked: state.blocked.mean(now, seconds) / f64::from(workers),
                deaths: state.deaths,
            })
        });
        let names = self.index.queues.iter().map(|name| (*name).clone());
        let queues = names.zip(&mut self.queues).map(|(name, state)| QueueRun {
            name,
            arrivals: rate(state.arrivals),
            waiting: (state.taken > 0).then(|| state.waited / state.taken as f64),
            jobs: state.level.mean(now, seconds),
            jobs_max: state.most,
        });
        let creators = self.sources.iter_mut().map(|source| CreatorRun {
            process: self.index.processes[source.process].0.clone(),
            queue: self.index.queues[source.queue].clone(),
            created: rate(source.created),
            blocked: source.blocked.mean(now, seconds),
        });
        Simulation {
            processes: processes.collect(),
            queues: queues.collect(),
            creators: creators.collect(),
            counted_from: self.counted_from.as_units(),
            seconds,
            created: self.created,
            deleted: self.deleted,
            rejected: self.rejected,
            left: self.inside as u64,
            time: (self.deleted > 0).then(|| self.lived / self.deleted as f64),
            stood_still: self.stood_still.map(Time::as_units),
            stuck,
            overflowed: overflowed.then(|| now.as_units()),
        }
    }
}
