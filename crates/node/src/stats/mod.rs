//! How the flows have been doing since the node started: what arrived at each queue and left it, how long jobs waited and
//! were worked on, by how many, and what became of the last jobs that ended. Nothing of it is in the log, nothing
//! depends on it, and it starts anew with the node. Everything here knows time only as it is told.

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

/// Queues and processes together that are kept count of. Beyond it new ones are not.
pub(crate) const SERIES_MAX: usize = 4_000;

/// A process of a flow, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProcessKey(u32);

/// Everything that is counted.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    queues: FxHashMap<QueueId, QueueStats>,
    /// Since when each flow and each queue is counted: from the node's start on, or from the apply that brought it.
    flows_begun: FxHashMap<Name, u64>,
    queues_begun: FxHashMap<QueueId, u64>,
    processes: Vec<ProcessStats>,
    keys: FxHashMap<(Name, Name), ProcessKey>,
    /// The jobs in hands.
    hands: FxHashMap<JobId, Hand>,
    pub(crate) arrows: Arrows,
    pub(crate) histories: Histories,
}

/// A job in somebody's hands.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) queue: QueueId,
    pub(crate) process: Option<ProcessKey>,
    /// Who, as a job's history says it.
    pub(crate) by: Arc<str>,
    /// When the job came into its queue, by the wall clock.
    pub(crate) arrived: u64,
    pub(crate) since: u64,
}

/// How a job left somebody's hands.
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

/// Since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueTotals {
    pub(crate) arrivals: u64,
    pub(crate) departures: u64,
    pub(crate) deaths: u64,
    pub(crate) rejects: u64,
    pub(crate) full: u64,
}

/// What happened at a queue in some time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct QueueSums {
    pub(crate) arrivals: u64,
    /// Of those, by a create.
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

/// What a process did in some time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ProcessSums {
    pub(crate) passed: u64,
    pub(crate) deleted: u64,
    pub(crate) given_back: u64,
    pub(crate) died: u64,
    /// How long its clients had jobs in hand, all together; one that holds two counts twice.
    pub(crate) busy_ms: u64,
    /// How long its clients were there, all together.
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
    /// A queue's books; none when too many are kept already.
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

    /// Somebody was told that a queue is full.
    pub(crate) fn full(&mut self, now: u64, queue: QueueId) {
        let Some(stats) = self.queue(queue) else {
            return;
        };
        stats.total.full += 1;
        stats.series.now(now).full += 1;
    }

    /// A job that waited for so long is in somebody's hands.
    pub(crate) fn taken(&mut self, job: JobId, hand: Hand, waited_ms: u64) {
        let (now, queue) = (hand.since, hand.queue);
        self.hands.insert(job, hand);
        if let Some(stats) = self.queue(queue) {
            stats.series.now(now).waiting.record(waited_ms);
        }
    }

    /// A job is in nobody's hands any more. Says whose it was; nothing if an administrator's or the node's.
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

    /// A process of a flow as it is counted; none when too many are already.
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

    /// A client is a process no longer.
    pub(crate) fn left(&mut self, now: u64, process: ProcessKey, since: u64) {
        if let Some(stats) = self.processes.get_mut(process.0 as usize) {
            let present = |sums: &mut ProcessSums, ms| sums.present_ms += ms;
            stats.series.spend(since, now, present);
        }
    }

    /// A flow is there, with these queues: what was not there before begins now.
    pub(crate) fn begin(&mut self, now: u64, flow: &Name, queues: impl Iterator<Item = QueueId>) {
        self.flows_begun.entry(flow.clone()).or_insert(now);
        for queue in queues {
            self.queues_begun.entry(queue).or_insert(now);
        }
    }

    /// A flow is no more.
    pub(crate) fn end(&mut self, flow: &Name) {
        self.flows_begun.remove(flow);
    }

    /// Queues that are no more need no books.
    pub(crate) fn keep_queues(&mut self, known: impl Fn(QueueId) -> bool) {
        self.queues.retain(|queue, _| known(*queue));
        self.queues_begun.retain(|queue, _| known(*queue));
    }

    /// What the processes did that a flow has no longer is forgotten.
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

/// What is read.
impl Stats {
    pub(crate) fn totals(&self, queue: QueueId) -> QueueTotals {
        self.queues
            .get(&queue)
            .map_or_else(QueueTotals::default, |stats| stats.total)
    }

    /// Arrivals and departures a second, over the last seconds.
    pub(crate) fn rates(&self, now: u64, queue: QueueId) -> (f64, f64) {
        let stats = self.queues.get(&queue);
        stats.map_or((0.0, 0.0), |stats| {
            (
                stats.arrivals.per_second(now),
                stats.departures.per_second(now),
            )
        })
    }

    /// Since when a flow is counted.
    pub(crate) fn flow_begun(&self, flow: &Name) -> u64 {
        self.flows_begun.get(flow).copied().unwrap_or(0)
    }

    /// Since when a queue is counted.
    pub(crate) fn queue_begun(&self, queue: QueueId) -> u64 {
        self.queues_begun.get(&queue).copied().unwrap_or(0)
    }

    pub(crate) fn queue_since(&self, queue: QueueId, start: u64) -> QueueSums {
        let stats = self.queues.get(&queue);
        stats.map_or_else(QueueSums::default, |stats| stats.series.since(start))
    }

    /// What a process did since a time, without the jobs that it still has in hand.
    pub(crate) fn process_since(&self, key: ProcessKey, start: u64) -> ProcessSums {
        let stats = self.processes.get(key.0 as usize);
        stats.map_or_else(ProcessSums::default, |stats| stats.series.since(start))
    }

    /// For how long since a time the processes have had what they have in hand.
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
