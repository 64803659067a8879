//! `JOB CREATE|TAKE|PASS|DELETE|BACK|SHOW|HISTORY|FIND|LIST|COUNT|MOVE`.

use testigo_core::{
    Answer, Deed, Fence, Hop, Job, JobId, QueueId, Refusal, Settled, Take, Word, fits,
};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{ClientId, House, Step, fence_reply};
use crate::stats::How;
use crate::wire::{Reply, Words, bad_arg, refuse};

/// The class of a job that names none.
pub(super) const CLASS_DEFAULT: u32 = 1;

/// Rows of `JOB FIND` and `JOB LIST` unless more are asked for.
const ROWS_DEFAULT: u64 = 1_000;

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
            self.look_into(id, self.replicated.job(job)?.queue)?;
            Ok(Answered::Now(self.job_reply(self.replicated.job(job)?)))
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
            // The first one is a queue, whatever it is called.
            let first = queues.is_empty();
            if !first && words.keyword("NAME") {
                note("NAME", words.text("NAME")?, &mut name)?;
            } else if !first && words.keyword("WAIT") {
                note("WAIT", words.number("WAIT")?, &mut wait_ms)?;
            } else if name.is_none() && wait_ms.is_none() {
                let queue = self.queue_of(id, words.text("a queue")?)?;
                self.allow_new_job(id, Deed::Take, queue)?;
                queues.push(queue);
            } else {
                words.end()?;
            }
        }
        let session = self.session_of(id)?;
        let take = Take {
            queues: &queues,
            name,
            wait_ms,
        };
        let answer =
            self.local
                .take_job(self.now, session, &self.replicated, &take, &mut self.events)?;
        match answer {
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

    /// A job changes, and the connection waits for the log; giving it back without a death is nothing to the log.
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
        let session = self.session_of(id)?;
        let held = (job, attempt);
        self.local
            .give_back(self.now, session, &self.replicated, held, &mut self.events)?;
        self.count_back(job, How::GivenBack);
        Ok(Answered::Now(Reply::Ok))
    }

    /// `JOB FIND pattern [IN queue] [LIMIT n]`.
    fn job_find(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern = words.text("the pattern")?;
        let queue = match words.keyword("IN") {
            true => Some(self.queue_of(id, words.text("the queue")?)?),
            false => None,
        };
        let most = self.rows(&mut words)?;
        words.end()?;
        if let Some(queue) = queue {
            self.look_into(id, queue)?;
        }
        let found = self.replicated.jobs();
        let found = found.filter(|job| queue.is_none_or(|queue| job.queue == queue));
        let found = found.filter(|job| fits(&job.name, pattern));
        let found = found.filter(|job| self.look_into(id, job.queue).is_ok());
        let found = found.take(most);
        let rows = found.map(|job| self.job_row(job)).collect();
        Ok(Answered::Now(Reply::Array(rows)))
    }

    /// `JOB LIST queue [LIMIT n]`: the jobs that wait, the next one first.
    fn job_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let queue = self.queue_of(id, words.text("the queue")?)?;
        let most = self.rows(&mut words)?;
        words.end()?;
        self.look_into(id, queue)?;
        let jobs = self.local.waiting_jobs(queue).take(most);
        let jobs = jobs.filter_map(|job| self.replicated.job(job).ok());
        let rows = jobs.map(|job| self.job_row(job)).collect();
        Ok(Answered::Now(Reply::Array(rows)))
    }

    /// `JOB COUNT [queue]`: how many wait.
    fn job_count(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let waiting = |queue: QueueId| {
            let view = self.local.queue_view(queue, 0);
            view.map_or(0, |view| view.waiting as u64)
        };
        let count = match words.left() {
            0 => {
                let queues = self.replicated.queues().map(|(queue, _)| queue);
                let seen = queues.filter(|queue| self.look_into(id, *queue).is_ok());
                seen.map(waiting).sum()
            }
            _ => {
                let queue = self.queue_of(id, words.text("the queue")?)?;
                self.look_into(id, queue)?;
                waiting(queue)
            }
        };
        words.end()?;
        Ok(Answered::Now(Reply::number(count)))
    }

    /// A bare queue name said of a job means its own flow's queue.
    pub(super) fn queue_near(
        &self,
        id: ClientId,
        job: JobId,
        text: &str,
    ) -> Result<QueueId, Refusal> {
        if self.presented(id).is_some() || text.contains('/') {
            return self.queue_of(id, text);
        }
        let flow = &self.known(self.replicated.job(job)?.queue)?.flow;
        self.replicated.queue_named(text, Some(flow))
    }

    fn rows(&self, words: &mut Words<'_>) -> Result<usize, Refusal> {
        let rows = match words.keyword("LIMIT") {
            true => words.number("LIMIT")?,
            false => ROWS_DEFAULT,
        };
        match usize::try_from(rows) {
            Ok(rows) if rows <= self.wire.list_rows => Ok(rows),
            _ => Err(refuse(
                Word::Limit,
                format!(
                    "LIMIT {rows} is above the limit list_rows of {}",
                    self.wire.list_rows
                ),
            )),
        }
    }

    /// A job in a list: identity, name, queue, whether it waits or is held, deaths.
    fn job_row(&self, job: &Job) -> Reply {
        Reply::Array(vec![
            Reply::number(job.id.0),
            Reply::Name(job.name.clone()),
            self.queue_reply(job.queue),
            Reply::text(self.condition(job.id)),
            Reply::number(job.deaths.into()),
        ])
    }

    pub(super) fn condition(&self, job: JobId) -> &'static str {
        match self.local.held_job(job) {
            None => "waiting",
            Some(held) if held.settling => "settling",
            Some(_) => "held",
        }
    }

    fn job_reply(&self, job: &Job) -> Reply {
        let held = self.local.held_job(job.id);
        let session = held.and_then(|held| held.session);
        Reply::Map(vec![
            ("id", Reply::number(job.id.0)),
            ("name", Reply::Name(job.name.clone())),
            ("queue", self.queue_reply(job.queue)),
            ("state", Reply::text(self.condition(job.id))),
            (
                "session",
                Reply::optional(session.map(|session| session.number()), Reply::number),
            ),
            (
                "attempt",
                Reply::optional(held.map(|held| held.attempt), fence_reply),
            ),
            (
                "held_ms",
                Reply::optional(held.map(|held| self.now - held.since), Reply::number),
            ),
            ("class", Reply::number(job.class.into())),
            ("deaths", Reply::number(job.deaths.into())),
            (
                "rejected_from",
                Reply::optional(job.rejected_from, |queue| self.queue_reply(queue)),
            ),
            ("created", Reply::number(job.created)),
            ("creator", Reply::text(&*job.creator)),
            ("arrived", Reply::number(job.at)),
            (
                "hops",
                Reply::Array(job.hops.iter().map(|hop| self.hop_reply(hop)).collect()),
            ),
            ("body", Reply::Body(job.body.clone())),
        ])
    }

    fn hop_reply(&self, hop: &Hop) -> Reply {
        Reply::Map(vec![
            ("queue", self.queue_reply(hop.queue)),
            ("arrived", Reply::number(hop.arrived)),
            ("left", Reply::number(hop.left)),
            ("held_ms", Reply::number(hop.held_ms)),
            ("by", Reply::text(&*hop.by)),
        ])
    }
}

/// Notes what an option says, which it does once.
fn note<T>(option: &str, said: T, noted: &mut Option<T>) -> Result<(), Refusal> {
    match noted.replace(said) {
        None => Ok(()),
        Some(_) => Err(bad_arg(format!("{option} is said twice"))),
    }
}

pub(super) fn job_id(words: &mut Words<'_>) -> Result<JobId, Refusal> {
    Ok(JobId(words.number("the job's id")?))
}

pub(super) fn attempt(words: &mut Words<'_>) -> Result<Fence, Refusal> {
    Ok(Fence(words.number("the attempt")?))
}

pub(super) fn body<'a>(words: &mut Words<'a>) -> Result<&'a [u8], Refusal> {
    words
        .next_bytes()
        .ok_or_else(|| bad_arg("the body is missing"))
}
