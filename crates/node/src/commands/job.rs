//! `JOB CREATE|TAKE|PASS|DELETE|BACK|SHOW|HISTORY|FIND|LIST|COUNT|MOVE`.

mod change;
mod history;
mod look;
mod step;

use testigo_core::{Answer, Command, JobId, QueueAct, Refusal, Settled, Take, Taken};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{ClientId, House, Step, there};
use crate::stats::How;
use crate::users;
use crate::wire::{Reply, Words, bad_arg};

const KNOWN: &str = "CREATE, TAKE, PASS, DELETE, BACK, SHOW, HISTORY, FIND, LIST, COUNT, MOVE";

impl House {
    pub(super) fn job(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("TAKE") {
            self.job_take(id, words)
        } else if let Some(step) = self.job_step(id, &mut words)? {
            self.job_change(id, step)
        } else if words.keyword("SHOW") {
            let job = job_id(&mut words)?;
            words.end()?;
            Ok(Answered::Now(self.job_reply(self.seen_job(id, job)?)))
        } else if words.keyword("HISTORY") {
            self.job_history(id, words)
        } else if words.keyword("FIND") {
            self.job_find(id, words)
        } else if words.keyword("LIST") {
            self.job_list(id, words)
        } else if words.keyword("COUNT") {
            self.job_count(id, words)
        } else {
            Err(unknown_word("JOB", words.text("a word")?, KNOWN))
        }
    }

    /// `JOB TAKE queue… [NAME n] [WAIT ms]`.
    fn job_take(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let mut queues = Vec::with_capacity(1);
        let (mut name, mut wait_ms) = (None, None);
        while words.left() > 0 {
            // The first word is a queue, whatever its name is.
            let first = queues.is_empty();
            if !first && words.keyword("NAME") {
                note("NAME", words.text("NAME")?, &mut name)?;
            } else if !first && words.keyword("WAIT") {
                note("WAIT", words.number("WAIT")?, &mut wait_ms)?;
            } else if name.is_none() && wait_ms.is_none() {
                let queue = self.queue_of(id, words.text("a queue")?, users::Deed::Admin)?;
                self.allow_new_job(id, QueueAct::Take, queue)?;
                queues.push(queue);
            } else {
                words.end()?;
            }
        }
        there(self.connections.client(id))?.may_take_jobs()?;
        let session = self.any_session_of(id)?;
        let take = Take {
            queues: queues.into(),
            name,
            wait_ms,
        };
        match self.ask(session, &Command::Take(take))? {
            Answer::Waiting(ticket) => {
                self.block_on(id, ticket);
                Ok(Answered::Later)
            }
            Answer::Settled(Settled::Taken(taken)) => {
                Ok(Answered::Now(self.taken_reply(id, taken)))
            }
            _ => Ok(Answered::Now(Reply::Null)),
        }
    }

    /// Changes a job; the connection waits for the log. Giving back without a death is not logged.
    fn job_change(&mut self, id: ClientId, step: Step) -> Outcome {
        let Step::Back {
            job,
            attempt,
            failed: false,
        } = step
        else {
            self.carry_out(id, step)?;
            return Ok(Answered::Later);
        };
        self.in_hand(id, job, attempt)?;
        let session = self.any_session_of(id)?;
        self.ask(session, &Command::GiveBack(Taken { job, attempt }))?;
        self.count_back(job, How::GivenBack);
        Ok(Answered::Now(Reply::Ok))
    }
}

/// Notes an option's value, which may appear only once.
pub(super) fn note<T>(option: &str, said: T, noted: &mut Option<T>) -> Result<(), Refusal> {
    match noted.replace(said) {
        None => Ok(()),
        Some(_) => Err(bad_arg(format!("{option} is said twice"))),
    }
}

fn job_id(words: &mut Words<'_>) -> Result<JobId, Refusal> {
    Ok(JobId(words.number("the job's id")?))
}
