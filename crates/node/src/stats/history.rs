//! Where a job has been, and who has held it. The log keeps a living job's hops. In addition this keeps, as long as the node
//! runs, the times in which somebody held a job that stayed in its queue, and the last jobs that ended.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use testigo_core::{Body, Hop, Job, JobId, QueueId};

use super::How;

/// Cap on remembered ended jobs.
pub(crate) const ENDED_MAX: usize = 10_000;
/// Cap on remembered holds without a hop per job; the oldest are forgotten first.
const HELD_MAX: usize = 64;
/// Cap on remembered holds of all living jobs together; later ones are dropped.
const HELD_ALL_MAX: usize = 200_000;
/// A longer body is not kept with an ended job: the next job gets its memory, at once and while it is still in the
/// processor's cache.
const BODY_MAX: usize = 256;

/// What is remembered about jobs.
#[derive(Debug, Default)]
pub(crate) struct Histories {
    held: FxHashMap<JobId, Vec<Held>>,
    /// How many there are in total.
    held_all: usize,
    ended: VecDeque<Ended>,
}

/// A hold of a job that stayed in its queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) queue: QueueId,
    /// When the job had arrived there, which distinguishes its stays.
    pub(crate) arrived: u64,
    pub(crate) by: Arc<str>,
    /// When the hold ended, by the wall clock.
    pub(crate) until: u64,
    pub(crate) held_ms: u64,
    pub(crate) how: How,
}

/// A job that has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Its last state, without a long body.
    pub(crate) job: Arc<Job>,
    held: Vec<Held>,
    /// Who deleted it.
    by: Arc<str>,
    /// How long that worker held it; `None` for an administrator, who deletes waiting jobs.
    held_ms: Option<u64>,
    /// When, by the wall clock.
    pub(crate) at: u64,
}

/// One stay of a job: in one queue, until somebody had held it or it left. Times are the wall clock's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stay {
    pub(crate) queue: QueueId,
    /// Since when it waited there.
    pub(crate) since: u64,
    /// When it was taken, if it was.
    pub(crate) taken: Option<u64>,
    pub(crate) until: u64,
    pub(crate) held_ms: u64,
    pub(crate) by: Arc<str>,
    pub(crate) how: &'static str,
}

impl Histories {
    /// Somebody gave a job back or died with it.
    pub(crate) fn held(&mut self, job: JobId, held: Held) {
        if self.held_all >= HELD_ALL_MAX {
            return;
        }
        let all = self.held.entry(job).or_default();
        match all.len() >= HELD_MAX {
            true => drop(all.remove(0)),
            false => self.held_all += 1,
        }
        all.push(held);
    }

    /// A job is deleted. It loses a long body.
    pub(crate) fn ended(
        &mut self,
        job: &mut Arc<Job>,
        by: Arc<str>,
        held_ms: Option<u64>,
        at: u64,
    ) {
        let held = self.held.remove(&job.id).unwrap_or_default();
        self.held_all -= held.len();
        if job.body.len() > BODY_MAX {
            Arc::make_mut(job).body = Body::default();
        }
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(Ended {
            job: Arc::clone(job),
            held,
            by,
            held_ms,
            at,
        });
    }

    /// An ended job, if it is remembered.
    pub(crate) fn find(&self, job: JobId) -> Option<&Ended> {
        self.ended.iter().rev().find(|ended| ended.job.id == job)
    }

    /// All ended stays of a living job.
    pub(crate) fn stays(&self, job: &Job) -> Vec<Stay> {
        stays(job, self.held.get(&job.id).map_or(&[], Vec::as_slice))
    }
}

impl Ended {
    /// All its stays, the last one included.
    pub(crate) fn stays(&self) -> Vec<Stay> {
        let mut stays = stays(&self.job, &self.held);
        let last = stays.last();
        let since = last.map_or(self.job.at, |last| last.until.max(self.job.at));
        stays.push(Stay {
            queue: self.job.queue,
            since,
            taken: self.held_ms.map(|held_ms| self.at.saturating_sub(held_ms)),
            until: self.at,
            held_ms: self.held_ms.unwrap_or(0),
            by: Arc::clone(&self.by),
            how: "deleted",
        });
        stays
    }
}

/// Hops and the holds between them, in order.
fn stays(job: &Job, held: &[Held]) -> Vec<Stay> {
    let mut held = held.iter().peekable();
    let mut stays: Vec<Stay> = Vec::with_capacity(job.hops.len() + held.len());
    let mut between = |arrived: u64, stays: &mut Vec<Stay>| {
        let mut since = arrived;
        while let Some(one) = held.next_if(|one| one.arrived <= arrived) {
            stays.push(Stay {
                queue: one.queue,
                since,
                taken: Some(one.until.saturating_sub(one.held_ms)),
                until: one.until,
                held_ms: one.held_ms,
                by: Arc::clone(&one.by),
                how: match one.how {
                    How::Died => "died",
                    _ => "given back",
                },
            });
            since = one.until;
        }
        since
    };
    for hop in &job.hops {
        let mut since = between(hop.arrived, &mut stays);
        // An administrator moves waiting jobs, and the node rejects jobs that nobody holds any more.
        let by_hand = hop.by.starts_with("administrator@") && hop.held_ms == 0;
        let taken = Some(hop.left.saturating_sub(hop.held_ms));
        let mut by = Arc::clone(&hop.by);
        let (how, taken) = match (&*hop.by, by_hand) {
            ("", _) => ("rejected", None),
            (_, true) => ("moved", None),
            (text, _) => match text.strip_prefix(Hop::LOST_BY) {
                Some(who) => {
                    by = Arc::from(who);
                    // A death and the rejection that follows are one stay.
                    if let Some(death) = stays.pop_if(|stay| stay.how == "died" && stay.by == by) {
                        since = death.since;
                    }
                    ("rejected", taken)
                }
                None => ("passed", taken),
            },
        };
        stays.push(Stay {
            queue: hop.queue,
            since,
            taken,
            until: hop.left,
            held_ms: hop.held_ms,
            by,
            how,
        });
    }
    between(job.at, &mut stays);
    stays
}

#[cfg(test)]
mod tests {
    use super::*;
    use testigo_core::Name;

    fn job() -> Job {
        let hop = |queue, arrived, left, held_ms, by: &str| Hop {
            queue: QueueId(queue),
            arrived,
            left,
            held_ms,
            by: by.into(),
        };
        Job {
            id: JobId(7),
            name: Name::new("a").unwrap(),
            queue: QueueId(3),
            place: 1,
            class: 1,
            deaths: 0,
            rejected_from: None,
            body: Body::from(&[0; 2048][..]),
            at: 300,
            created: 100,
            creator: "x".into(),
            hops: vec![hop(1, 100, 200, 50, "price@a"), hop(2, 200, 300, 0, "")],
        }
    }

    #[test]
    fn a_history_tells_hops_and_hands_in_order() {
        let mut histories = Histories::default();
        let held = |queue, arrived, until, how| Held {
            queue: QueueId(queue),
            arrived,
            by: "price@b".into(),
            until,
            held_ms: 10,
            how,
        };
        histories.held(JobId(7), held(1, 100, 130, How::GivenBack));
        histories.held(JobId(7), held(2, 200, 303, How::Died));
        let mut job = Arc::new(job());
        let told = |stays: &[Stay]| -> Vec<(u32, u64, Option<u64>, u64, &'static str)> {
            let one = |stay: &Stay| (stay.queue.0, stay.since, stay.taken, stay.until, stay.how);
            stays.iter().map(one).collect()
        };
        let mut right = vec![
            (1, 100, Some(120), 130, "given back"),
            (1, 130, Some(150), 200, "passed"),
            // The log's clock and the node's may differ by some milliseconds.
            (2, 200, Some(293), 303, "died"),
            (2, 303, None, 300, "rejected"),
        ];
        assert_eq!(told(&histories.stays(&job)), right);
        histories.ended(&mut job, "clerk@c".into(), Some(20), 400);
        right.push((3, 300, Some(380), 400, "deleted"));
        let ended = histories.find(JobId(7)).unwrap();
        assert_eq!(told(&ended.stays()), right);
        assert!(ended.job.body.is_empty() && histories.held.is_empty());
        assert_eq!(histories.held_all, 0);
    }

    #[test]
    fn a_reject_tells_whose_death_it_was_with_and_without_what_the_node_remembers() {
        let mut job = job();
        job.hops[1].by = "lost by price@b".into();
        job.hops[1].held_ms = 10;
        let mut histories = Histories::default();
        let after_a_restart = histories.stays(&job);
        for until in [240, 300] {
            let death = Held {
                queue: QueueId(2),
                arrived: 200,
                by: "price@b".into(),
                until,
                held_ms: 10,
                how: How::Died,
            };
            histories.held(JobId(7), death);
        }
        let hows = |stays: &[Stay]| -> Vec<&str> { stays.iter().map(|stay| stay.how).collect() };
        assert_eq!(hows(&after_a_restart), ["passed", "rejected"]);
        let stays = histories.stays(&job);
        assert_eq!(hows(&stays), ["passed", "died", "rejected"]);
        for (stays, since) in [(after_a_restart, 200), (stays, 240)] {
            let last = stays.last().unwrap();
            let told = (last.since, last.taken, last.until, last.held_ms, &*last.by);
            assert_eq!(told, (since, Some(290), 300, 10, "price@b"));
        }
    }

    #[test]
    fn only_the_last_ended_jobs_are_remembered() {
        let mut histories = Histories::default();
        for id in 0..=ENDED_MAX as u64 {
            let mut job = Arc::new(Job {
                id: JobId(id),
                ..job()
            });
            histories.ended(&mut job, "".into(), None, 400);
        }
        assert!(histories.find(JobId(0)).is_none() && histories.find(JobId(1)).is_some());
        assert_eq!(histories.ended.len(), ENDED_MAX);
    }
}
