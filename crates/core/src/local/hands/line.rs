//! A queue's line: the jobs that wait in the order in which they are taken, and the takers that wait for one.

use std::collections::BTreeSet;

use crate::job::{Job, JobId, QueueOrder};
use crate::name::Name;
use crate::wait::Ticket;

/// The line of one queue.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) order: QueueOrder,
    waiting: BTreeSet<(Rank, JobId)>,
    /// In order of arrival.
    pub(super) takers: BTreeSet<Ticket>,
}

/// Where a job stands in a line: this one module is all that knows about order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    class: u32,
    name: Option<Name>,
    place: u64,
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
    pub(super) fn new(order: QueueOrder) -> Line {
        Line {
            order,
            ..Line::default()
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

    /// Takes a job out that stands at a place, which may not be its present one any more. False if it is not there.
    pub(super) fn remove(&mut self, job: &Job, place: u64) -> bool {
        let rank = Rank::of(self.order, job, place);
        self.waiting.remove(&(rank, job.id))
    }

    pub(super) fn pop(&mut self) -> Option<JobId> {
        self.waiting.pop_first().map(|(_, job)| job)
    }

    /// The jobs that wait, the next one first.
    pub(super) fn iter(&self) -> impl Iterator<Item = JobId> {
        self.waiting.iter().map(|(_, job)| *job)
    }
}
