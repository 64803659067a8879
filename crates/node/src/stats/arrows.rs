//! Counts per arrow. An arrow is a process and a queue that it puts jobs into or takes them out of. Several arrows may share
//! a queue, so neither the queue's counts nor the process's say how many jobs went along which arrow.

use rustc_hash::FxHashMap;
use testigo_core::QueueId;

use super::ProcessKey;
use super::series::{Rate, Series};

/// Cap on counted arrows; later ones are not counted.
const ARROWS_MAX: usize = 20_000;

/// The key of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Arrow {
    pub(crate) process: ProcessKey,
    pub(crate) queue: QueueId,
    /// From the process into the queue; otherwise from the queue to the process.
    pub(crate) into: bool,
}

impl Arrow {
    pub(crate) fn new(process: ProcessKey, queue: QueueId, into: bool) -> Arrow {
        Arrow {
            process,
            queue,
            into,
        }
    }
}

#[derive(Debug, Default)]
struct ArrowStats {
    total: u64,
    rate: Rate,
    /// For an arrow into a queue: the jobs that were passed rather than created.
    passed: Series<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Arrows(FxHashMap<Arrow, ArrowStats>);

impl Arrows {
    fn at(&mut self, arrow: Arrow) -> Option<&mut ArrowStats> {
        if self.0.len() >= ARROWS_MAX && !self.0.contains_key(&arrow) {
            return None;
        }
        Some(self.0.entry(arrow).or_default())
    }

    /// A process put a job into a queue: it created the job, or passed it on.
    pub(crate) fn put(&mut self, now: u64, process: ProcessKey, queue: QueueId, created: bool) {
        let arrow = Arrow::new(process, queue, true);
        if let Some(stats) = self.at(arrow) {
            stats.count(now);
            if !created {
                *stats.passed.now(now) += 1;
            }
        }
    }

    /// A process took a job out of a queue by passing it on or deleting it.
    pub(crate) fn took(&mut self, now: u64, process: ProcessKey, queue: QueueId) {
        let arrow = Arrow::new(process, queue, false);
        if let Some(stats) = self.at(arrow) {
            stats.count(now);
        }
    }

    /// Drops the counts of arrows that no longer exist.
    pub(crate) fn keep(&mut self, known: impl Fn(&Arrow) -> bool) {
        self.0.retain(|arrow, _| known(arrow));
    }

    /// How many jobs went along it since the node started, and how many per second over the last seconds.
    pub(crate) fn counted(&self, now: u64, arrow: Arrow) -> (u64, f64) {
        let stats = self.0.get(&arrow);
        stats.map_or((0, 0.0), |stats| (stats.total, stats.rate.per_second(now)))
    }

    /// How many jobs each process has passed to which queues since a time.
    pub(crate) fn passed_since(&self, start: u64) -> FxHashMap<ProcessKey, Vec<(QueueId, u64)>> {
        let mut ways: FxHashMap<ProcessKey, Vec<(QueueId, u64)>> = FxHashMap::default();
        for (arrow, stats) in &self.0 {
            let passed = stats.passed.since(start);
            if passed > 0 {
                let ways = ways.entry(arrow.process).or_default();
                ways.push((arrow.queue, passed));
            }
        }
        ways.values_mut().for_each(|ways| ways.sort_unstable());
        ways
    }
}

impl ArrowStats {
    fn count(&mut self, now: u64) {
        self.total += 1;
        self.rate.count(now);
    }
}
