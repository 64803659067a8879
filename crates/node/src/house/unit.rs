//! What a connection wants changed about jobs, one step at a time: alone, or between `MULTI` and `EXEC` as a unit of work,
//! which is one entry of the log and is done entirely or not at all. Nothing in a unit waits, and a take cannot be one of its
//! steps, because the job that it gets would be known only afterwards.

use serde::{Deserialize, Serialize};
use testigo_core::{Body, Fence, JobId, JobOutcome, Limits, Name, Outcome, QueueId, Refusal, Word};

use crate::wire::{Reply, refuse};

/// A change of one job that goes through the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// The job that it changes, unless it creates one.
    pub(crate) fn job(&self) -> Option<JobId> {
        match self {
            Step::Create { .. } => None,
            Step::Pass { job, .. }
            | Step::Delete { job, .. }
            | Step::Back { job, .. }
            | Step::Move { job, .. } => Some(*job),
        }
    }

    /// Its approximate weight in the log's entry.
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
    /// Adds a step. What exceeds a limit is refused.
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

    /// The collected steps; refused if any command was.
    pub(crate) fn into_steps(self) -> Result<Vec<Step>, Refusal> {
        match self.spoilt {
            Some(refusal) => Err(refusal),
            None => Ok(self.steps),
        }
    }

    /// The steps so far.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// A unit whose steps another node has collected.
    pub(crate) fn of(steps: Vec<Step>) -> Unit {
        Unit {
            steps,
            ..Unit::default()
        }
    }

    /// A command was refused, so none of the others will be done.
    pub(crate) fn spoil(&mut self, refusal: &Refusal) {
        if self.spoilt.is_none() {
            self.spoilt = Some(numbered(self.steps.len() + 1, refusal.clone()));
            self.steps.clear();
        }
    }
}

/// The reply to a step when its unit is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// The ID of the job that it created.
    Created,
    Ok,
}

/// The reply to `EXEC` when the log has decided.
pub(super) fn unit_reply(done: &[Done], outcome: Result<Outcome, Refusal>) -> Reply {
    let outcomes = match outcome {
        Ok(Outcome::Jobs(outcomes)) => outcomes,
        Ok(_) => Vec::new(),
        // The log does not number a command that is alone in its unit.
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

/// Whether the reason is the node itself, and none of the unit's commands.
fn is_the_nodes(word: Word) -> bool {
    matches!(word, Word::Unavailable | Word::Unknown)
}

/// Nothing of a unit was done, and why; or its outcome is unknown.
pub(crate) fn aborted(refusal: &Refusal) -> Reply {
    match refusal.word {
        Word::Unknown => refusal.clone().into(),
        _ => Reply::Error(format!("EXECABORT {refusal}; nothing was done")),
    }
}

/// A refusal with the number of the command in its unit.
pub(crate) fn numbered(nth: usize, mut refusal: Refusal) -> Refusal {
    refusal.sentence = format!("command {nth}: {}", refusal.sentence);
    refusal
}
