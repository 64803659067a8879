//! `MULTI`, `EXEC`, `DISCARD`: a unit of work over several jobs and queues.

use testigo_core::{Change, JobId, Refusal};

use super::table::{Answered, CommandRow, Outcome};
use crate::house::{Answers, ClientId, Done, House, Step, Unit, aborted, numbered, settled_job};
use crate::wire::{Reply, Words, bad_arg, shown};

/// What is allowed between `MULTI` and `EXEC`.
const STEPS: &str = "JOB CREATE, PASS, DELETE, BACK and MOVE";

/// Commands that are carried out even after `MULTI`.
pub(super) fn ends_unit(row: &CommandRow) -> bool {
    matches!(row.name, "EXEC" | "DISCARD" | "RESET" | "QUIT")
}

impl House {
    /// `MULTI`: from now on commands are collected.
    pub(super) fn multi(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        if let Some(client) = self.connections.client_mut(id) {
            client.unit = Some(Box::default());
        }
        Ok(Answered::Now(Reply::Ok))
    }

    /// `EXEC`: carries out everything collected, as one entry of the log, or nothing.
    pub(super) fn exec(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        let unit = self.unit_of(id, "EXEC")?;
        match self.carry_out_unit(id, unit) {
            Ok(true) => Ok(Answered::Later),
            Ok(false) => Ok(Answered::Now(Reply::Array(Vec::new()))),
            Err(refusal) => Ok(Answered::Now(aborted(&refusal))),
        }
    }

    /// Submits the unit of work that a connection has collected as one entry of the log. False if the unit is empty, so that
    /// it is answered at once.
    fn carry_out_unit(&mut self, id: ClientId, unit: Unit) -> Result<bool, Refusal> {
        let steps = unit.into_steps()?;
        let mut changes = Vec::with_capacity(steps.len());
        let mut done = Vec::with_capacity(steps.len());
        for (nth, step) in (1..).zip(steps) {
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

    /// `DISCARD`: forgets what was collected.
    pub(super) fn discard(&mut self, id: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        self.unit_of(id, "DISCARD")?;
        Ok(Answered::Now(Reply::Ok))
    }

    fn unit_of(&mut self, id: ClientId, command: &str) -> Result<Unit, Refusal> {
        let client = self.connections.client_mut(id);
        let unit = client.and_then(|client| client.unit.take());
        let unit = unit.ok_or_else(|| bad_arg(format!("{command} without MULTI")))?;
        Ok(*unit)
    }

    /// Collects a command between `MULTI` and `EXEC`.
    pub(super) fn collect(
        &mut self,
        id: ClientId,
        row: &CommandRow,
        mut words: Words<'_>,
    ) -> Outcome {
        let step = match row.name {
            "JOB" => self.job_step(id, &mut words)?,
            "MULTI" => return Err(bad_arg("MULTI is given already; EXEC or DISCARD ends it")),
            _ => None,
        };
        let Some(step) = step else {
            if row.name == "JOB" && words.keyword("TAKE") {
                return Err(bad_arg(
                    "JOB TAKE is no part of a unit of work, because what it gives is known only after EXEC; \
                     take first, then MULTI",
                ));
            }
            let which = match (row.name, words.next_bytes()) {
                ("JOB", Some(word)) => format!("JOB {}", shown(word).to_uppercase()),
                (name, _) => name.into(),
            };
            return Err(bad_arg(format!(
                "{which} is no part of a unit of work; between MULTI and EXEC are {STEPS}"
            )));
        };
        if let Some(unit) = self
            .connections
            .client_mut(id)
            .and_then(|c| c.unit.as_mut())
        {
            unit.add(step)?;
        }
        Ok(Answered::Now(Reply::Simple("QUEUED")))
    }

    /// Ends a unit of work of which nothing was done.
    pub(super) fn drop_unit(&mut self, id: ClientId) {
        if let Some(client) = self.connections.client_mut(id) {
            client.unit = None;
        }
    }

    /// A refused command spoils the unit of work to which it belongs.
    pub(super) fn spoil(&mut self, id: ClientId, refusal: &Refusal) {
        if let Some(unit) = self
            .connections
            .client_mut(id)
            .and_then(|c| c.unit.as_mut())
        {
            unit.spoil(refusal);
        }
    }
}

fn changed_twice(job: JobId) -> Refusal {
    bad_arg(format!(
        "a command before it changes job {job}; a unit of work changes a job once"
    ))
}
