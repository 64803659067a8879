//! How the flows are doing since the node started: arrivals and departures of each queue, how long jobs waited and were
//! worked on, by how many workers, and what happened to the last jobs that ended. None of this is in the log, nothing depends
//! on it, and it starts over with the node. Time is always an argument.

mod arrows;
mod histogram;
mod history;
mod series;

pub(crate) use arrows::{Arrow, Arrows};
pub(crate) use histogram::Histogram;
pub(crate) use history::{Held, Histories, Stay};
pub(crate) use series::window_start;

use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use testigo_core::{JobId, Name, QueueId};

pub(crate) use series::Sums;
use series::{Rate, Series};

/// Cap on counted queues and processes together; later ones are not counted.
pub(crate) const SERIES_MAX: usize = 4_000;

/// The key of a process of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessKey(u32);

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    queues: FxHashMap<QueueId, QueueStats>,
    /// Since when each flow and each queue has been counted: since the node's start, or since the apply that created it.
    flows_begun: FxHashMap<Name, u64>,
    queues_begun: FxHashMap<QueueId, u64>,
    processes: Vec<ProcessStats>,
    keys: FxHashMap<(Name, Name), ProcessKey>,
    /// The held jobs.
    hands: FxHashMap<JobId, Hand>,
    pub(crate) arrows: Arrows,
    pub(crate) histories: Histories,
}

/// A held job.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) queue: QueueId,
    pub(crate) process: Option<ProcessKey>,
    /// The holder's name in a job's history.
    pub(crate) by: Arc<str>,
    /// When the job came into its queue, by the wall clock.
    pub(crate) arrived: u64,
    pub(crate) since: u64,
}

/// How a holder lost a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Passed,
    Deleted,
    GivenBack,
    Died,
}

#[derive(Debug, Default)]
struct QueueStats {
    total: QueueTotals,
    arrivals: Rate,
    departures: Rate,
    series: Series<QueueSums>,
}

/// Counts since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueTotals {
    pub(crate) arrivals: u64,
    pub(crate) departures: u64,
    pub(crate) deaths: u64,
    pub(crate) rejects: u64,
    pub(crate) full: u64,
}

/// What happened at a queue in some period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueueSums {
    pub(crate) arrivals: u64,
    /// How many of them were creates.
    pub(crate) created: u64,
    pub(crate) departures: u64,
    pub(crate) deaths: u64,
    pub(crate) rejects: u64,
    /// Creates and passes that were refused because it was full.
    pub(crate) full: u64,
    /// From arrival to being taken.
    pub(crate) waiting: Histogram,
}

#[derive(Debug, Default)]
struct ProcessStats {
    series: Series<ProcessSums>,
}

/// What a process did in some period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProcessSums {
    pub(crate) passed: u64,
    pub(crate) deleted: u64,
    pub(crate) given_back: u64,
    pub(crate) died: u64,
    /// How long its clients held jobs, in total; a client with two jobs counts twice.
    pub(crate) busy_ms: u64,
    /// How long its clients were there, in total.
    pub(crate) present_ms: u64,
    /// From being taken to being passed on, deleted, given back or lost.
    pub(crate) service: Histogram,
}

impl Sums for QueueSums {
    fn add(&mut self, other: &QueueSums) {
        self.arrivals += other.arrivals;
        self.created += other.created;
        self.departures += other.departures;
        self.deaths += other.deaths;
        self.rejects += other.rejects;
        self.full += other.full;
        self.waiting.add(&other.waiting);
    }
}

impl Sums for ProcessSums {
    fn add(&mut self, other: &ProcessSums) {
        self.passed = self.passed.saturating_add(other.passed);
        self.deleted = self.deleted.saturating_add(other.deleted);
        self.given_back = self.given_back.saturating_add(other.given_back);
        self.died = self.died.saturating_add(other.died);
        self.busy_ms = self.busy_ms.saturating_add(other.busy_ms);
        self.present_ms = self.present_ms.saturating_add(other.present_ms);
        self.service.add(&other.service);
    }
}

impl Stats {
    /// A queue's counts; `None` if there are too many already.
    fn queue(&mut self, queue: QueueId) -> Option<&mut QueueStats> {
        let full = self.queues.len() + self.processes.len() >= SERIES_MAX;
        if full && !self.queues.contains_key(&queue) {
            return None;
        }
        Some(self.queues.entry(queue).or_default())
    }

    /// A job came into a queue, new or from elsewhere.
    pub(crate) fn arrived(&mut self, now: u64, queue: QueueId, created: bool) {
        let Some(stats) = self.queue(queue) else {
            return;
        };
        stats.total.arrivals += 1;
        stats.arrivals.count(now);
        let sums = stats.series.now(now);
        sums.arrivals += 1;
        sums.created += u64::from(created);
    }

    /// A job left a queue: passed on, deleted, rejected or moved.
    pub(crate) fn departed(&mut self, now: u64, queue: QueueId) {
        let Some(stats) = self.queue(queue) else {
            return;
        };
        stats.total.departures += 1;
        stats.departures.count(now);
        stats.series.now(now).departures += 1;
    }

    /// A worker died or failed at a job of a queue, and whether the job was rejected for it.
    pub(crate) fn died(&mut self, now: u64, queue: QueueId, rejected: bool) {
        let Some(stats) = self.queue(queue) else {
            return;
        };
        stats.total.deaths += 1;
        stats.total.rejects += u64::from(rejected);
        let sums = stats.series.now(now);
        sums.deaths += 1;
        sums.rejects += u64::from(rejected);
    }

    /// A client was told that a queue is full.
    pub(crate) fn full(&mut self, now: u64, queue: QueueId) {
        let Some(stats) = self.queue(queue) else {
            return;
        };
        stats.total.full += 1;
        stats.series.now(now).full += 1;
    }

    /// A job that waited this long was taken.
    pub(crate) fn taken(&mut self, job: JobId, hand: Hand, waited_ms: u64) {
        let (now, queue) = (hand.since, hand.queue);
        self.hands.insert(job, hand);
        if let Some(stats) = self.queue(queue) {
            stats.series.now(now).waiting.record(waited_ms);
        }
    }

    /// A job is no longer held. Returns its hold; `None` if an administrator or the node had it.
    pub(crate) fn let_go(&mut self, now: u64, job: JobId, how: How) -> Option<Hand> {
        let hand = self.hands.remove(&job)?;
        if let Some(process) = hand.process
            && let Some(stats) = self.processes.get_mut(process.0 as usize)
        {
            let busy = |sums: &mut ProcessSums, ms| sums.busy_ms += ms;
            stats.series.spend(hand.since, now, busy);
            let sums = stats.series.now(now);
            sums.service.record(now.saturating_sub(hand.since));
            *match how {
                How::Passed => &mut sums.passed,
                How::Deleted => &mut sums.deleted,
                How::GivenBack => &mut sums.given_back,
                How::Died => &mut sums.died,
            } += 1;
        }
        Some(hand)
    }

    /// The key of a process of a flow; `None` if there are too many already.
    pub(crate) fn process(&mut self, flow: &Name, process: &Name) -> Option<ProcessKey> {
        let name = (flow.clone(), process.clone());
        if let Some(key) = self.keys.get(&name) {
            return Some(*key);
        }
        if self.queues.len() + self.processes.len() >= SERIES_MAX {
            return None;
        }
        let key = ProcessKey(u32::try_from(self.processes.len()).ok()?);
        self.processes.push(ProcessStats::default());
        self.keys.insert(name, key);
        Some(key)
    }

    /// A client is no longer a process.
    pub(crate) fn left(&mut self, now: u64, process: ProcessKey, since: u64) {
        if let Some(stats) = self.processes.get_mut(process.0 as usize) {
            let present = |sums: &mut ProcessSums, ms| sums.present_ms += ms;
            stats.series.spend(since, now, present);
        }
    }

    /// A flow exists, with these queues: counting begins for the new ones.
    pub(crate) fn begin(&mut self, now: u64, flow: &Name, queues: impl Iterator<Item = QueueId>) {
        self.flows_begun.entry(flow.clone()).or_insert(now);
        for queue in queues {
            self.queues_begun.entry(queue).or_insert(now);
        }
    }

    /// A flow is gone.
    pub(crate) fn end(&mut self, flow: &Name) {
        self.flows_begun.remove(flow);
    }

    /// Drops the counts of queues that no longer exist.
    pub(crate) fn keep_queues(&mut self, known: impl Fn(QueueId) -> bool) {
        self.queues.retain(|queue, _| known(*queue));
        self.queues_begun.retain(|queue, _| known(*queue));
    }

    /// Drops the counts of processes that a flow no longer has.
    pub(crate) fn keep_processes(&mut self, flow: &Name, known: impl Fn(&Name) -> bool) {
        for ((of, process), key) in &self.keys {
            if of == flow
                && !known(process)
                && let Some(stats) = self.processes.get_mut(key.0 as usize)
            {
                *stats = ProcessStats::default();
            }
        }
    }
}

/// Reading the counts.
impl Stats {
    pub(crate) fn totals(&self, queue: QueueId) -> QueueTotals {
        self.queues
            .get(&queue)
            .map_or_else(QueueTotals::default, |stats| stats.total)
    }

    /// Arrivals and departures per second, over the last seconds.
    pub(crate) fn rates(&self, now: u64, queue: QueueId) -> (f64, f64) {
        let stats = self.queues.get(&queue);
        stats.map_or((0.0, 0.0), |stats| {
            (
                stats.arrivals.per_second(now),
                stats.departures.per_second(now),
            )
        })
    }

    /// Since when a flow has been counted.
    pub(crate) fn flow_begun(&self, flow: &Name) -> u64 {
        self.flows_begun.get(flow).copied().unwrap_or(0)
    }

    /// Since when a queue has been counted.
    pub(crate) fn queue_begun(&self, queue: QueueId) -> u64 {
        self.queues_begun.get(&queue).copied().unwrap_or(0)
    }

    pub(crate) fn queue_since(&self, queue: QueueId, start: u64) -> QueueSums {
        let stats = self.queues.get(&queue);
        stats.map_or_else(QueueSums::default, |stats| stats.series.since(start))
    }

    /// What a process did since a time, without the jobs that it still holds.
    pub(crate) fn process_since(&self, key: ProcessKey, start: u64) -> ProcessSums {
        let stats = self.processes.get(key.0 as usize);
        stats.map_or_else(ProcessSums::default, |stats| stats.series.since(start))
    }

    /// How long since a time the processes have held their present jobs.
    pub(crate) fn in_hand(&self, now: u64, start: u64) -> FxHashMap<ProcessKey, u64> {
        let mut in_hand = FxHashMap::default();
        for hand in self.hands.values() {
            if let Some(process) = hand.process {
                let held = now.saturating_sub(hand.since.max(start));
                *in_hand.entry(process).or_default() += held;
            }
        }
        in_hand
    }

    pub(crate) fn key(&self, flow: &Name, process: &Name) -> Option<ProcessKey> {
        self.keys.get(&(flow.clone(), process.clone())).copied()
    }

    pub(crate) fn hand(&self, job: JobId) -> Option<&Hand> {
        self.hands.get(&job)
    }
}
