//! What people see of queues: how many jobs wait, how many are held and by whom, and who waits for one.

use super::{JobCounters, LinePlace};
use crate::fence::Fence;
use crate::job::{JobId, QueueId};
use crate::local::Local;
use crate::session::SessionId;
use crate::wait::Ticket;

/// A queue as `QUEUE SHOW` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueView {
    /// How many jobs wait.
    pub waiting: usize,
    /// The job that would be taken next.
    pub next: Option<JobId>,
    /// The takes that wait for a job, the longest first.
    pub takers: Vec<TakerView>,
}

/// A take that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakerView {
    /// The session.
    pub session: SessionId,
    /// The request's ticket.
    pub ticket: Ticket,
    /// Since when.
    pub since: u64,
}

/// A job in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldView {
    /// The job.
    pub job: JobId,
    /// Its holder, unless its session has ended or an administrator is just moving it.
    pub session: Option<SessionId>,
    /// The attempt.
    pub attempt: Fence,
    /// Since when.
    pub since: u64,
    /// Whether it is on its way through the log.
    pub settling: bool,
}

impl Local {
    /// A queue's line, with at most `takers_most` takers.
    pub fn queue_view(&self, queue: QueueId, takers_most: usize) -> Option<QueueView> {
        let line = self.hands.lines.get(&queue)?;
        let takers = line.takers.iter().take(takers_most).map(|ticket| {
            let taker = &self.hands.takers[ticket];
            TakerView {
                session: self.sessions[taker.session].id,
                ticket: *ticket,
                since: taker.since,
            }
        });
        Some(QueueView {
            waiting: line.len(),
            next: line.iter().next(),
            takers: takers.collect(),
        })
    }

    /// The jobs that wait in a queue, the next one first.
    pub fn waiting_jobs(&self, queue: QueueId) -> impl Iterator<Item = JobId> {
        let line = self.hands.lines.get(&queue);
        line.into_iter().flat_map(|line| line.iter())
    }

    /// The places behind `after` in a queue's line, or all of them, the next one first. `None` if that place belongs to
    /// another order, or there is no such queue.
    pub fn line_after(
        &self,
        queue: QueueId,
        after: Option<&LinePlace>,
    ) -> Option<impl Iterator<Item = LinePlace>> {
        self.hands.lines.get(&queue)?.iter_after(after)
    }

    /// Who holds a job.
    pub fn held_job(&self, job: JobId) -> Option<HeldView> {
        let held = self.hands.held.get(&job)?;
        Some(HeldView {
            job,
            session: held.holder.map(|s| self.sessions[s].id),
            attempt: held.attempt,
            since: held.since,
            settling: held.settling,
        })
    }

    /// The jobs that a session has in hand, in the order in which it took them.
    pub fn jobs_of(&self, session: SessionId) -> Vec<HeldView> {
        let Ok(s) = self.session(session) else {
            return Vec::new();
        };
        let jobs = self.sessions[s].jobs.iter();
        jobs.filter_map(|job| self.held_job(*job)).collect()
    }

    /// How many jobs are held, and how many takes wait.
    pub fn hand_sizes(&self) -> (usize, usize) {
        (self.hands.held.len(), self.hands.takers.len())
    }

    /// Counts of what happened to jobs so far.
    pub fn job_counters(&self) -> JobCounters {
        self.hands.counters
    }
}
