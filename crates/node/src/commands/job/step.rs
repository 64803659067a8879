//! `JOB CREATE|PASS|DELETE|BACK|MOVE`: what changes a job through the log, alone or as a step of a unit of work.

use testigo_core::{Fence, Name, Refusal};

use super::job_id;
use crate::house::{ClientId, House, Step, checked_body};
use crate::users::Deed;
use crate::wire::{Words, bad_arg};

/// The class of a job that names none.
const CLASS_DEFAULT: u32 = 1;

impl House {
    /// The words behind `JOB` as a step, if they are one.
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
}

fn attempt(words: &mut Words<'_>) -> Result<Fence, Refusal> {
    Ok(Fence(words.number("the attempt")?))
}

fn body<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Refusal> {
    words
        .next_bytes()
        .ok_or_else(|| bad_arg("the body is missing"))
}
