//! What a connection wants changed about jobs, a step at a time: alone, or between `MULTI` and `EXEC` as a unit of work,
//! which is one entry of the log and done whole or not at all. Nothing in a unit waits, and a take is none of its
//! steps: what it gives would be known only afterwards.

use testigo_core::{Body, Change, Fence, JobChange, JobId, JobOutcome, Limits, Name, QueueId};
use testigo_core::{Outcome, Refusal, Word};

use super::answers::{Answers, settled_job, settled_jobs};
use super::{ClientId, House};
use crate::wire::{Reply, bad_arg, refuse};

/// A change of one job that goes through the log.
#[derive(Debug)]
pub(crate) enum Step {
    /// `JOB CREATE`.
    Create {
        queue: QueueId,
        name: Option<Name>,
        class: u32,
        body: Body,
    },
    /// `JOB PASS`.
    Pass {
        job: JobId,
        attempt: Fence,
        queue: QueueId,
        body: Option<Body>,
    },
    /// `JOB DELETE`; without an attempt, by an administrator.
    Delete { job: JobId, attempt: Option<Fence> },
    /// `JOB BACK`.
    Back {
        job: JobId,
        attempt: Fence,
        failed: bool,
    },
    /// `JOB MOVE`.
    Move { job: JobId, queue: QueueId },
}

impl Step {
    /// The job that it changes, unless it makes one.
    fn job(&self) -> Option<JobId> {
        match self {
            Step::Create { .. } => None,
            Step::Pass { job, .. }
            | Step::Delete { job, .. }
            | Step::Back { job, .. }
            | Step::Move { job, .. } => Some(*job),
        }
    }

    /// What it weighs in the log's entry, roughly.
    fn bytes(&self) -> usize {
        match self {
            Step::Create { name, body, .. } => name.as_ref().map_or(0, |n| n.len()) + body.len(),
            Step::Pass { body, .. } => body.as_ref().map_or(0, |body| body.len()),
            Step::Delete { .. } | Step::Back { .. } | Step::Move { .. } => 0,
        }
    }
}

/// A unit of work that is being collected.
#[derive(Debug, Default)]
pub(crate) struct Unit {
    steps: Vec<Step>,
    bytes: usize,
    /// The first command that cannot be in it, and why: then nothing is done.
    spoilt: Option<Refusal>,
}

impl Unit {
    /// One more step. What exceeds a limit is refused.
    pub(crate) fn add(&mut self, step: Step) -> Result<(), Refusal> {
        let bytes = self.bytes + step.bytes();
        if self.steps.len() >= Limits::UNIT_CHANGES {
            let most = Limits::UNIT_CHANGES;
            let why =
                format!("a unit of work has at most {most} commands (the limit unit_changes)");
            return Err(refuse(Word::Limit, why));
        }
        if bytes > Limits::UNIT_BYTES {
            let most = Limits::UNIT_BYTES;
            let why = format!(
                "the names and bodies of a unit of work have at most {most} bytes (the limit unit_bytes)"
            );
            return Err(refuse(Word::Limit, why));
        }
        if self.spoilt.is_none() {
            self.bytes = bytes;
            self.steps.push(step);
        }
        Ok(())
    }

    /// A command was refused, so nothing will come of the others.
    pub(crate) fn spoil(&mut self, refusal: &Refusal) {
        if self.spoilt.is_none() {
            self.spoilt = Some(numbered(self.steps.len() + 1, refusal.clone()));
            self.steps.clear();
        }
    }
}

/// What a step is answered when its unit is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The identity of the job that it created.
    Created,
    Ok,
}

impl House {
    /// One step by itself; the connection waits for the log.
    pub(crate) fn carry_out(&mut self, id: ClientId, step: Step) -> Result<(), Refusal> {
        let room = self.check_arrival(&step);
        if self.has_under_way(id) {
            // What is under way may make room; then it is tried again.
            room.clone()?;
        }
        let change = Change::Jobs(vec![self.prepare(id, step)?]);
        if let Err(refusal) = room {
            self.withdraw(id, settled_jobs(&change));
            self.count_full(&change, refusal.word);
            return Err(refusal);
        }
        self.submit(change, Answers::Client(id))
    }

    /// The unit of work that a connection has collected: one entry of the log. Nothing if it is empty, so that it is
    /// answered at once.
    pub(crate) fn carry_out_unit(&mut self, id: ClientId, unit: Unit) -> Result<bool, Refusal> {
        if let Some(refusal) = unit.spoilt {
            return Err(refusal);
        }
        let mut changes = Vec::with_capacity(unit.steps.len());
        let mut done = Vec::with_capacity(unit.steps.len());
        for (nth, step) in (1..).zip(unit.steps) {
            done.push(match step {
                Step::Create { .. } => Done::Created,
                _ => Done::Ok,
            });
            let wanted = step.job();
            match self.prepare(id, step) {
                Ok(change) => changes.push(change),
                Err(refusal) => {
                    let jobs: Vec<JobId> = changes.iter().filter_map(settled_job).collect();
                    let twice = wanted.filter(|job| jobs.contains(job));
                    let refusal = twice.map_or(refusal, changed_twice);
                    self.withdraw(id, jobs);
                    return Err(numbered(nth, refusal));
                }
            }
        }
        if changes.is_empty() {
            return Ok(false);
        }
        let answers = Answers::Unit(id, done.into());
        self.submit(Change::Jobs(changes), answers)?;
        Ok(true)
    }

    /// Whether a step alone would find room, so that what would be refused is not logged first. In a unit of work the
    /// steps before it may make the room.
    fn check_arrival(&self, step: &Step) -> Result<(), Refusal> {
        match step {
            Step::Create { queue, name, .. } => {
                let room = self.replicated.check_room(*queue);
                // Then the log refuses it by its name.
                let known = || name.as_ref().is_some_and(|name| self.lives(*queue, name));
                room.or_else(|full| if known() { Ok(()) } else { Err(full) })
            }
            Step::Pass { job, queue, .. } | Step::Move { job, queue } => {
                let room = self.replicated.check_room(*queue);
                // A pass within one queue makes room for itself.
                let stays = || self.replicated.job(*job).is_ok_and(|j| j.queue == *queue);
                room.or_else(|full| if stays() { Ok(()) } else { Err(full) })
            }
            _ => Ok(()),
        }
    }

    /// Whether a queue's flow has a job of this name.
    fn lives(&self, queue: QueueId, name: &Name) -> bool {
        let flow = self.replicated.queue(queue).map(|queue| &queue.flow);
        flow.is_some_and(|flow| self.replicated.job_named(flow, name).is_some())
    }

    /// Checks a step and takes its job out of everybody's reach until the log has spoken.
    fn prepare(&mut self, id: ClientId, step: Step) -> Result<JobChange, Refusal> {
        match step {
            Step::Create {
                queue,
                name,
                class,
                body,
            } => self.create_change(id, queue, name, class, body),
            Step::Pass {
                job,
                attempt,
                queue,
                body,
            } => self.pass_change(id, (job, attempt), queue, body),
            Step::Delete {
                job,
                attempt: Some(attempt),
            } => self.delete_change(id, job, attempt),
            Step::Delete { job, attempt: None } => self.discard_change(id, job),
            Step::Back {
                job,
                attempt,
                failed: true,
            } => self.fail_change(id, job, attempt),
            Step::Back { job, attempt, .. } => self.back_change(id, job, attempt),
            Step::Move { job, queue } => self.move_change(id, job, queue),
        }
    }
}

/// What `EXEC` is answered when the log has spoken.
pub(super) fn unit_reply(done: &[Done], outcome: Result<Outcome, Refusal>) -> Reply {
    let outcomes = match outcome {
        Ok(Outcome::Jobs(outcomes)) => outcomes,
        Ok(_) => Vec::new(),
        // Of one command alone the log does not say which it was.
        Err(refusal) if done.len() == 1 && !is_the_nodes(refusal.word) => {
            return aborted(&numbered(1, refusal));
        }
        Err(refusal) => return aborted(&refusal),
    };
    let mut created = outcomes.iter().filter_map(|outcome| match outcome {
        JobOutcome::Created { job } => Some(Reply::number(job.0)),
        _ => None,
    });
    let replies = done.iter().map(|done| match done {
        Done::Created => created.next().unwrap_or(Reply::Null),
        Done::Ok => Reply::Ok,
    });
    Reply::Array(replies.collect())
}

/// Whether the node itself is the reason, and none of the unit's commands.
fn is_the_nodes(word: Word) -> bool {
    matches!(word, Word::Unavailable | Word::Unknown)
}

/// Nothing of a unit was done, and why; unless that is unknown.
pub(crate) fn aborted(refusal: &Refusal) -> Reply {
    match refusal.word {
        Word::Unknown => refusal.clone().into(),
        _ => Reply::Error(format!("EXECABORT {refusal}; nothing was done")),
    }
}

fn changed_twice(job: JobId) -> Refusal {
    bad_arg(format!(
        "a command before it changes job {job}; a unit of work changes a job once"
    ))
}

fn numbered(nth: usize, mut refusal: Refusal) -> Refusal {
    refusal.sentence = format!("command {nth}: {}", refusal.sentence);
    refusal
}
