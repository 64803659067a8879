//! A queue's line: the waiting jobs, in the order in which they are taken, and the takers that wait for one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;

use crate::job::{Job, JobId, QueueOrder};
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::Queue;
use crate::wait::Ticket;

/// The line of one queue.
#[derive(Debug)]
pub(super) struct Line {
    /// The shard whose number its attempts are made from.
    pub(super) shard: Shard,
    pub(super) order: QueueOrder,
    /// Whether this node hands out its jobs.
    pub(super) open: bool,
    waiting: BTreeSet<(Rank, JobId)>,
    /// In order of arrival.
    pub(super) takers: BTreeSet<Ticket>,
}

/// Where a job stands in a line: only this module knows about order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    class: u32,
    name: Option<Name>,
    place: u64,
}

/// Where a job stands in its queue's line, valid for one order only. The job keeps it for as long as it lies in the queue and
/// the order stays, even while it is held. It is written and read as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePlace {
    order: QueueOrder,
    rank: Rank,
    job: JobId,
}

impl LinePlace {
    /// The job at this place.
    pub fn job(&self) -> JobId {
        self.job
    }

    /// The order in which this is a place.
    pub fn order(&self) -> QueueOrder {
        self.order
    }

    /// Reads what its [`Display`](fmt::Display) wrote.
    pub fn read(text: &str) -> Option<LinePlace> {
        let mut parts = text.splitn(5, '.');
        let order = QueueOrder::of_word(parts.next()?)?;
        let class = parts.next()?.parse().ok()?;
        let place = parts.next()?.parse().ok()?;
        let job = JobId(parts.next()?.parse().ok()?);
        let name = parts.next().map(Name::new).transpose().ok()?;
        let rank = Rank { class, name, place };
        Some(LinePlace { order, rank, job })
    }
}

impl fmt::Display for LinePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rank { class, name, place } = &self.rank;
        write!(f, "{}.{class}.{place}.{}", self.order.word(), self.job.0)?;
        match name {
            Some(name) => write!(f, ".{name}"),
            None => Ok(()),
        }
    }
}

impl Rank {
    fn of(order: QueueOrder, job: &Job, place: u64) -> Rank {
        let (class, name) = match order {
            QueueOrder::Arrival => (0, None),
            QueueOrder::Priority => (job.class, None),
            QueueOrder::Key => (0, Some(job.name.clone())),
        };
        Rank { class, name, place }
    }
}

impl Line {
    pub(super) fn new(queue: &Queue, open: bool) -> Line {
        Line {
            shard: queue.shard(),
            order: queue.rule.order,
            open,
            waiting: BTreeSet::new(),
            takers: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn insert(&mut self, job: &Job) {
        let rank = Rank::of(self.order, job, job.place);
        self.waiting.insert((rank, job.id));
    }

    pub(super) fn contains(&self, job: &Job) -> bool {
        let rank = Rank::of(self.order, job, job.place);
        self.waiting.contains(&(rank, job.id))
    }

    /// Removes a job from a place, which may no longer be its present one. False if it is not there.
    pub(super) fn remove(&mut self, job: &Job, place: u64) -> bool {
        let rank = Rank::of(self.order, job, place);
        self.waiting.remove(&(rank, job.id))
    }

    pub(super) fn pop(&mut self) -> Option<JobId> {
        self.waiting.pop_first().map(|(_, job)| job)
    }

    /// The jobs that wait behind a place, the next one first, each with its own place. `None` if the place belongs to another
    /// order.
    pub(super) fn iter_after(
        &self,
        after: Option<&LinePlace>,
    ) -> Option<impl Iterator<Item = LinePlace>> {
        let order = self.order;
        let from = match after {
            Some(place) if place.order != order => return None,
            Some(place) => Bound::Excluded((place.rank.clone(), place.job)),
            None => Bound::Unbounded,
        };
        let behind = self.waiting.range((from, Bound::Unbounded));
        Some(behind.map(move |(rank, job)| LinePlace {
            order,
            rank: rank.clone(),
            job: *job,
        }))
    }

    /// The waiting jobs, the next one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = JobId> {
        self.waiting.iter().map(|(_, job)| *job)
    }
}
