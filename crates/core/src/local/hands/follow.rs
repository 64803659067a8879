//! How the log moves the books of jobs and flows: lines come and go with their queues, and a job in a new place is offered
//! there.

use super::Line;
use crate::command::WaitEnd;
use crate::event::Event;
use crate::fence::Fence;
use crate::job::{JobId, QueueId};
use crate::local::Local;
use crate::replicated::{JobOutcome, Replicated, Spot};
use crate::wait::Ticket;

/// How many jobs are brought into another order at once.
const REORDERED_AT_ONCE: usize = 1_000;

impl Local {
    /// Sets up the lines of a node that starts: all jobs wait.
    pub(in crate::local) fn line_up(&mut self, replicated: &Replicated) {
        for (id, queue) in replicated.queues() {
            let line = Line::new(queue, !self.hands.guarded);
            self.hands.lines.insert(id, line);
        }
        for job in replicated.jobs() {
            if let Some(line) = self.hands.lines.get_mut(&job.queue) {
                line.insert(job);
            }
        }
    }

    /// A flow was applied or deleted: adjusts the lines to its queues.
    pub(in crate::local) fn follow_flow(&mut self, replicated: &Replicated, out: &mut Vec<Event>) {
        let lines = self.hands.lines.keys();
        let gone: Vec<QueueId> = lines
            .filter(|id| replicated.queue(**id).is_none())
            .copied()
            .collect();
        for id in gone {
            if let Some(line) = self.hands.lines.remove(&id) {
                self.end_takers_of(id, line.takers.into_iter().collect(), out);
            }
        }
        let open = !self.hands.guarded;
        for (id, queue) in replicated.queues() {
            let lines = &mut self.hands.lines;
            let line = lines.entry(id).or_insert_with(|| Line::new(queue, open));
            line.begin_order(queue.rule.order);
            let mut most = REORDERED_AT_ONCE;
            if !line.reorder(replicated, &mut most) {
                self.hands.reordered.insert(id);
            }
        }
    }

    /// Brings lines into the order that their queues have been given, as many jobs as a node can in one turn. Says whether
    /// jobs are left; their lines go on in the former order.
    pub fn reorder(&mut self, replicated: &Replicated) -> bool {
        let mut most = REORDERED_AT_ONCE;
        while let Some(id) = self.hands.reordered.first().copied() {
            let line = self.hands.lines.get_mut(&id);
            if line.is_some_and(|line| !line.reorder(replicated, &mut most)) {
                return true;
            }
            self.hands.reordered.pop_first();
        }
        false
    }

    /// Whether jobs are left for [`Local::reorder`].
    pub fn is_reordering(&self) -> bool {
        !self.hands.reordered.is_empty()
    }

    /// Ends takes that no longer wait for any queue.
    fn end_takers_of(&mut self, queue: QueueId, tickets: Vec<Ticket>, out: &mut Vec<Event>) {
        for ticket in tickets {
            let Some(taker) = self.hands.takers.get_mut(&ticket) else {
                continue;
            };
            let left = taker.queues.iter().filter(|other| **other != queue);
            taker.queues = left.copied().collect();
            if taker.queues.is_empty() {
                self.end_taker(ticket, WaitEnd::Cancelled, out);
            }
        }
    }

    /// Jobs were created, passed, deleted, or lost their workers.
    pub(in crate::local) fn follow_jobs(
        &mut self,
        replicated: &Replicated,
        outcomes: &[JobOutcome],
        out: &mut Vec<Event>,
    ) {
        // Queues in which somebody waits.
        let mut wanted = Vec::new();
        // In a unit of work only a job's last place counts; where it was before the unit, it was held here.
        for outcome in outcomes {
            match outcome {
                JobOutcome::Created { job } => {
                    self.hands.counters.created += 1;
                    self.place(replicated, *job, &mut wanted);
                }
                JobOutcome::Passed { job, was, attempt } => {
                    self.hands.counters.passed += 1;
                    self.lift(replicated, *job, *was);
                    self.lift_attempts(replicated, *job, *was, *attempt, out);
                    self.place(replicated, *job, &mut wanted);
                }
                JobOutcome::Died { job, was, attempt } => {
                    self.hands.counters.died += 1;
                    self.lift(replicated, *job, *was);
                    self.lift_attempts(replicated, *job, *was, *attempt, out);
                    let record = replicated.job(*job);
                    if record.is_ok_and(|job| job.queue != was.queue) {
                        self.hands.counters.rejected += 1;
                    }
                    self.place(replicated, *job, &mut wanted);
                }
                JobOutcome::GivenBack { job } => {
                    self.hands.counters.given_back += 1;
                    self.take_from(*job);
                    self.place(replicated, *job, &mut wanted);
                }
                JobOutcome::Deleted(job) => {
                    self.hands.counters.deleted += 1;
                    self.take_from(job.id);
                    if let Some(line) = self.hands.lines.get_mut(&job.queue) {
                        line.remove(job, job.place);
                    }
                }
            }
        }
        self.serve_takers(replicated, &wanted, out);
    }

    /// Takes a job from where it was: out of its holder's hands and out of its line.
    fn lift(&mut self, replicated: &Replicated, id: JobId, was: Spot) {
        self.take_from(id);
        if let Ok(job) = replicated.job(id)
            && let Some(line) = self.hands.lines.get_mut(&was.queue)
        {
            line.remove(job, was.place);
        }
    }

    /// A job from another queue is taken under a higher attempt than any that it had there.
    fn lift_attempts(
        &mut self,
        replicated: &Replicated,
        id: JobId,
        was: Spot,
        attempt: Fence,
        out: &mut Vec<Event>,
    ) {
        let job = replicated.job(id).ok();
        let queue = job.map(|job| job.queue).filter(|queue| *queue != was.queue);
        if let Some(line) = queue.and_then(|queue| self.hands.lines.get(&queue)) {
            let shard = line.shard;
            let number = replicated.ownership().number(shard);
            if self.fences.lift(shard, number, attempt) {
                out.push(Event::FencesLow { shard });
            }
        }
    }

    /// Puts a job in the line where the log says it waits.
    fn place(&mut self, replicated: &Replicated, id: JobId, wanted: &mut Vec<QueueId>) {
        if let Ok(job) = replicated.job(id)
            && self.stand_in_line(job)
        {
            wanted.push(job.queue);
        }
    }
}
