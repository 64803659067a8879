//! `MULTI`, `EXEC`, `DISCARD`: a unit of work over several jobs and queues; and how a command becomes a step of one.

use testigo_core::{Name, Refusal};

use super::job::{CLASS_DEFAULT, attempt, body, job_id};
use super::table::{Answered, Entry, Outcome};
use crate::house::{ClientId, House, Step, Unit, aborted, checked_body};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, shown};

/// What may stand between `MULTI` and `EXEC`.
const STEPS: &str = "JOB CREATE, PASS, DELETE, BACK and MOVE";

/// What is carried out also behind `MULTI`.
pub(super) fn ends_unit(entry: &Entry) -> bool {
    matches!(entry.name, "EXEC" | "DISCARD" | "RESET" | "QUIT")
}

impl House {
    /// `MULTI`: from now on commands are collected.
    pub(super) fn multi(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        if let Some(client) = self.clients.get_mut(&id) {
            client.unit = Some(Box::default());
        }
        Ok(Answered::Now(Reply::Ok))
    }

    /// `EXEC`: all that was collected, as one entry of the log, or nothing.
    pub(super) fn exec(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        let unit = self.unit_of(id, "EXEC")?;
        match self.carry_out_unit(id, unit) {
            Ok(true) => Ok(Answered::Later),
            Ok(false) => Ok(Answered::Now(Reply::Array(Vec::new()))),
            Err(refusal) => Ok(Answered::Now(aborted(&refusal))),
        }
    }

    /// `DISCARD`: what was collected is forgotten.
    pub(super) fn discard(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        self.unit_of(id, "DISCARD")?;
        Ok(Answered::Now(Reply::Ok))
    }

    fn unit_of(&mut self, id: ClientId, command: &str) -> Result<Unit, Refusal> {
        let client = self.clients.get_mut(&id);
        let unit = client.and_then(|client| client.unit.take());
        let unit = unit.ok_or_else(|| bad_arg(format!("{command} without MULTI")))?;
        Ok(*unit)
    }

    /// A command between `MULTI` and `EXEC`.
    pub(super) fn collect(&mut self, id: ClientId, entry: &Entry, mut words: Words<'_>) -> Outcome {
        let step = match entry.name {
            "JOB" => self.job_step(id, &mut words)?,
            "MULTI" => return Err(bad_arg("MULTI is given already; EXEC or DISCARD ends it")),
            _ => None,
        };
        let Some(step) = step else {
            if words.keyword("TAKE") {
                return Err(bad_arg(
                    "JOB TAKE is no part of a unit of work, because what it gives is known only after EXEC; \
                     take first, then MULTI",
                ));
            }
            let which = match (entry.name, words.next_bytes()) {
                ("JOB", Some(word)) => format!("JOB {}", shown(word).to_uppercase()),
                (name, _) => name.into(),
            };
            return Err(bad_arg(format!(
                "{which} is no part of a unit of work; between MULTI and EXEC are {STEPS}"
            )));
        };
        if let Some(unit) = self.clients.get_mut(&id).and_then(|c| c.unit.as_mut()) {
            unit.add(step)?;
        }
        Ok(Answered::Now(Reply::Simple("QUEUED")))
    }

    /// A refused command spoils the unit of work that it was to be part of.
    pub(super) fn spoil(&mut self, id: ClientId, refusal: &Refusal) {
        if let Some(unit) = self.clients.get_mut(&id).and_then(|c| c.unit.as_mut()) {
            unit.spoil(refusal);
        }
    }

    /// The words behind `JOB` as a step, if they are one.
    pub(super) fn job_step(
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
