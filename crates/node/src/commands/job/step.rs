//! `JOB CREATE|PASS|DELETE|BACK|MOVE`: the commands that change a job through the log, alone or as a step of a unit of work.

use testigo_core::{Change, Fence, JobChange, Name, QueueId, Refusal};

use super::job_id;
use crate::house::{Answers, ClientId, House, Step, checked_body, settled_jobs};
use crate::users::Deed;
use crate::wire::{Words, bad_arg};

/// The class of a job that specifies none.
const CLASS_DEFAULT: u32 = 1;

impl House {
    /// The words after `JOB` as a step, if they are one.
    pub(in crate::commands) fn job_step(
        &self,
        id: ClientId,
        words: &mut Words<'_>,
    ) -> Result<Option<Step>, Refusal> {
        let step = if words.keyword("CREATE") {
            self.create_step(id, words)?
        } else if words.keyword("PASS") {
            self.pass_step(id, words)?
        } else if words.keyword("DELETE") {
            let job = job_id(words)?;
            let attempt = match words.left() {
                0 => None,
                _ => Some(attempt(words)?),
            };
            Step::Delete { job, attempt }
        } else if words.keyword("BACK") {
            let (job, attempt) = (job_id(words)?, attempt(words)?);
            let failed = words.keyword("FAILED");
            Step::Back {
                job,
                attempt,
                failed,
            }
        } else if words.keyword("MOVE") {
            let job = job_id(words)?;
            let queue = words.text("the queue")?;
            words.end()?;
            let queue = self.queue_near(id, job, queue)?;
            Step::Move { job, queue }
        } else {
            return Ok(None);
        };
        words.end()?;
        Ok(Some(step))
    }

    /// `JOB CREATE queue name|* body [CLASS c]`.
    fn create_step(&self, id: ClientId, words: &mut Words<'_>) -> Result<Step, Refusal> {
        let queue = self.queue_of(id, words.text("the queue")?, Deed::Admin)?;
        let name = match words.text("the job's name, or *")? {
            "*" => None,
            name => Some(Name::new(name)?),
        };
        let body = checked_body(body(words)?)?;
        let class = match words.keyword("CLASS") {
            true => words.small_number("CLASS")?,
            false => CLASS_DEFAULT,
        };
        Ok(Step::Create {
            queue,
            name,
            class,
            body,
        })
    }

    /// `JOB PASS id attempt queue [body]`.
    fn pass_step(&self, id: ClientId, words: &mut Words<'_>) -> Result<Step, Refusal> {
        let (job, attempt) = (job_id(words)?, attempt(words)?);
        let queue = words.text("the queue")?;
        let body = match words.left() {
            0 => None,
            _ => Some(checked_body(body(words)?)?),
        };
        words.end()?;
        let queue = self.queue_near(id, job, queue)?;
        Ok(Step::Pass {
            job,
            attempt,
            queue,
            body,
        })
    }

    /// Carries out one step on its own; the connection waits for the log.
    pub(super) fn carry_out(&mut self, id: ClientId, step: Step) -> Result<(), Refusal> {
        let room = self.check_arrival(&step);
        if self.connections.has_under_way(id) {
            // The changes under way may make room; then the step is tried again.
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

    /// Whether a step on its own would find room, so that a change that would be refused is not logged. In a unit of work
    /// earlier steps may make the room.
    fn check_arrival(&self, step: &Step) -> Result<(), Refusal> {
        match step {
            Step::Create { queue, name, .. } => {
                let room = self.replicated().check_room(*queue);
                // Then the log refuses it because of its name.
                let known = || name.as_ref().is_some_and(|name| self.lives(*queue, name));
                room.or_else(|full| if known() { Ok(()) } else { Err(full) })
            }
            Step::Pass { job, queue, .. } | Step::Move { job, queue } => {
                let room = self.replicated().check_room(*queue);
                // A pass within one queue makes its own room.
                let stays = || self.replicated().job(*job).is_ok_and(|j| j.queue == *queue);
                room.or_else(|full| if stays() { Ok(()) } else { Err(full) })
            }
            _ => Ok(()),
        }
    }

    /// Whether a queue's flow has a job with this name.
    fn lives(&self, queue: QueueId, name: &Name) -> bool {
        let flow = self.replicated().queue(queue).map(|queue| &queue.flow);
        flow.is_some_and(|flow| self.replicated().job_named(flow, name).is_some())
    }

    /// Checks a step and puts its job out of everybody's reach until the log has decided.
    pub(in crate::commands) fn prepare(
        &mut self,
        id: ClientId,
        step: Step,
    ) -> Result<JobChange, Refusal> {
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

fn attempt(words: &mut Words<'_>) -> Result<Fence, Refusal> {
    Ok(Fence(words.number("the attempt")?))
}

fn body<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Refusal> {
    words
        .next_bytes()
        .ok_or_else(|| bad_arg("the body is missing"))
}
