//! A queue's line: the waiting jobs, in the order in which they are taken, and the takers that wait for one.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;

use crate::job::{Job, JobId, QueueOrder};
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::{Queue, Replicated};
use crate::wait::Ticket;

/// The line of one queue.
#[derive(Debug)]
pub(super) struct Line {
    /// The shard whose number its attempts are made from.
    pub(super) shard: Shard,
    order: QueueOrder,
    /// Whether this node hands out its jobs.
    pub(super) open: bool,
    waiting: BTreeSet<(Rank, JobId)>,
    /// The same jobs in another order, which takes effect when all of them are there.
    next: Option<NextOrder>,
    /// What is left of former orders, to be freed.
    former: Vec<BTreeSet<(Rank, JobId)>>,
    /// In order of arrival.
    pub(super) takers: BTreeSet<Ticket>,
}

/// An order into which a line is brought, some jobs at a time.
#[derive(Debug)]
struct NextOrder {
    order: QueueOrder,
    waiting: BTreeSet<(Rank, JobId)>,
    /// The jobs up to this one in the present order are there.
    until: Option<(Rank, JobId)>,
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
            next: None,
            former: Vec::new(),
            takers: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn insert(&mut self, job: &Job) {
        let rank = Rank::of(self.order, job, job.place);
        self.waiting.insert((rank, job.id));
        if let Some(next) = &mut self.next {
            let rank = Rank::of(next.order, job, job.place);
            next.waiting.insert((rank, job.id));
        }
    }

    pub(super) fn contains(&self, job: &Job) -> bool {
        let rank = Rank::of(self.order, job, job.place);
        self.waiting.contains(&(rank, job.id))
    }

    /// Removes a job from a place, which may no longer be its present one. False if it is not there.
    pub(super) fn remove(&mut self, job: &Job, place: u64) -> bool {
        if let Some(next) = &mut self.next {
            let rank = Rank::of(next.order, job, place);
            next.waiting.remove(&(rank, job.id));
        }
        let rank = Rank::of(self.order, job, place);
        self.waiting.remove(&(rank, job.id))
    }

    /// Removes the next job.
    pub(super) fn pop(&mut self, replicated: &Replicated) -> Option<JobId> {
        let (_, id) = self.waiting.pop_first()?;
        if let (Some(next), Ok(job)) = (&mut self.next, replicated.job(id)) {
            let rank = Rank::of(next.order, job, job.place);
            next.waiting.remove(&(rank, id));
        }
        Some(id)
    }

    /// The line is to have this order. Until [`Line::reorder`] is done it goes on in the present one.
    pub(super) fn begin_order(&mut self, order: QueueOrder) {
        if self.next.as_ref().map_or(self.order, |next| next.order) == order {
            return;
        }
        self.former
            .extend(self.next.take().map(|next| next.waiting));
        if self.order != order {
            self.next = Some(NextOrder {
                order,
                waiting: BTreeSet::new(),
                until: None,
            });
        }
    }

    /// Brings some jobs into the next order, or frees what is left of a former one: about `most`, which it counts down. True
    /// when all is done.
    pub(super) fn reorder(&mut self, replicated: &Replicated, most: &mut usize) -> bool {
        if *most == 0 {
            return self.next.is_none() && self.former.is_empty();
        }
        if let Some(next) = &mut self.next {
            let from = match next.until.take() {
                Some(until) => Bound::Excluded(until),
                None => Bound::Unbounded,
            };
            let mut rest = self.waiting.range((from, Bound::Unbounded));
            let mut last = None;
            for (rank, id) in rest.by_ref().take(*most) {
                if let Ok(job) = replicated.job(*id) {
                    let rank = Rank::of(next.order, job, job.place);
                    next.waiting.insert((rank, *id));
                }
                last = Some((rank, id));
                *most -= 1;
            }
            if rest.next().is_some() {
                next.until = last.map(|(rank, id)| (rank.clone(), *id));
                return false;
            }
        }
        if let Some(next) = self.next.take() {
            self.order = next.order;
            let former = std::mem::replace(&mut self.waiting, next.waiting);
            self.former.push(former);
        }
        while let Some(former) = self.former.last_mut() {
            while *most > 0 && former.pop_first().is_some() {
                *most -= 1;
            }
            if !former.is_empty() {
                return false;
            }
            self.former.pop();
        }
        true
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
