//! `JOB CREATE|TAKE|PASS|DELETE|BACK|SHOW|HISTORY|FIND|LIST|COUNT|MOVE`.

use testigo_core::{
    Command, Deed, Fence, Hop, Job, JobId, LinePlace, QueueId, Refusal, Settled, Take, Taken, Word,
    fits,
};

use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answer, ClientId, House, Step, fence_reply};
use crate::stats::How;
use crate::users;
use crate::wire::{Reply, Words, bad_arg, refuse};

/// The class of a job that names none.
pub(super) const CLASS_DEFAULT: u32 = 1;

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
            // The first one is a queue, whatever it is called.
            let first = queues.is_empty();
            if !first && words.keyword("NAME") {
                note("NAME", words.text("NAME")?, &mut name)?;
            } else if !first && words.keyword("WAIT") {
                note("WAIT", words.number("WAIT")?, &mut wait_ms)?;
            } else if name.is_none() && wait_ms.is_none() {
                let queue = self.queue_of(id, words.text("a queue")?, users::Deed::Admin)?;
                self.allow_new_job(id, Deed::Take, queue)?;
                queues.push(queue);
            } else {
                words.end()?;
            }
        }
        let session = self.session_of(id)?;
        let take = Take {
            queues: queues.into(),
            name,
            wait_ms,
        };
        match self.ask(session, &Command::Take(take))? {
            testigo_core::Answer::Waiting(ticket) => {
                self.block_on(id, ticket);
                Ok(Answered::Later)
            }
            testigo_core::Answer::Settled(Settled::Taken(taken)) => {
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
        self.in_hand(id, job, attempt)?;
        let session = self.session_of(id)?;
        self.ask(session, &Command::GiveBack(Taken { job, attempt }))?;
        self.count_back(job, How::GivenBack);
        Ok(Answered::Now(Reply::Ok))
    }

    /// `JOB FIND pattern [IN queue] [CURSOR c] [LIMIT n]`: the oldest first.
    fn job_find(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern: Box<str> = words.text("the pattern")?.into();
        let queue = match words.keyword("IN") {
            true => Some(self.queue_of(id, words.text("the queue")?, users::Deed::Show)?),
            false => None,
        };
        let page = self.page(&mut words, |cursor| cursor.parse().ok().map(JobId))?;
        words.end()?;
        if let Some(queue) = queue {
            self.look_into(id, queue)?;
        }
        let mut rows = self.rows_for(id);
        let mut last = page.after.unwrap_or(JobId(0));
        self.in_slices(id, move |house, slice| {
            for job in house.replicated.jobs_after(last) {
                let full = rows.count() == page.rows_max;
                if full && !page.paged {
                    break;
                }
                if !slice.has_room() {
                    return Ok(None);
                }
                slice.spend(1);
                let there = queue.is_none_or(|queue| job.queue == queue);
                if there && fits(&job.name, &pattern) && house.look_into(id, job.queue).is_ok() {
                    // There is another page only if there is something for it.
                    if full {
                        let next = last.0.to_string();
                        return Ok(Some(page.answer(&mut rows, Some(next))));
                    }
                    rows.push(&house.job_row(job));
                }
                last = job.id;
            }
            Ok(Some(page.answer(&mut rows, None)))
        })?;
        Ok(Answered::Later)
    }

    /// `JOB LIST queue [CURSOR c] [LIMIT n]`: the jobs that wait, the next one first.
    fn job_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let queue = self.queue_of(id, words.text("the queue")?, users::Deed::Show)?;
        let page = self.page(&mut words, LinePlace::read)?;
        words.end()?;
        self.look_into(id, queue)?;
        let mut rows = self.rows_for(id);
        let mut last = page.after.clone();
        self.in_slices(id, move |house, slice| {
            house.look_into(id, queue)?;
            let after = last.take();
            let mut at = after.clone();
            let Some(places) = house.local.line_after(queue, after.as_ref()) else {
                return Err(house.other_order(queue, page.after.as_ref()));
            };
            for place in places {
                if rows.count() == page.rows_max {
                    let next = at.as_ref().map(LinePlace::to_string);
                    return Ok(Some(page.answer(&mut rows, next)));
                }
                if !slice.has_room() {
                    last = at;
                    return Ok(None);
                }
                slice.spend(1);
                if let Ok(job) = house.replicated.job(place.job()) {
                    rows.push(&house.job_row(job));
                }
                at = Some(place);
            }
            Ok(Some(page.answer(&mut rows, None)))
        })?;
        Ok(Answered::Later)
    }

    /// What was listed so far, or on the pages before, was in an order that the queue has no more.
    fn other_order(&self, queue: QueueId, cursor: Option<&LinePlace>) -> Refusal {
        let name = self.queue_name(queue);
        match cursor {
            Some(cursor) => bad_arg(format!(
                "the cursor is of order {}, which queue {name} has no more; begin again with CURSOR 0",
                cursor.order().word()
            )),
            None => refuse(
                Word::Busy,
                format!("the order of queue {name} changed while it was listed; ask again"),
            ),
        }
    }

    /// `JOB COUNT [queue]`: how many wait.
    fn job_count(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.left() > 0 {
            let queue = self.queue_of(id, words.text("the queue")?, users::Deed::Show)?;
            self.look_into(id, queue)?;
            words.end()?;
            return Ok(Answered::Now(Reply::number(self.waiting_in(queue))));
        }
        let (mut count, mut last) = (0, None);
        self.in_slices(id, move |house, slice| {
            for (queue, _) in house.replicated.queues_after(last) {
                if !slice.has_room() {
                    return Ok(None);
                }
                slice.spend(1);
                last = Some(queue);
                if house.look_into(id, queue).is_ok() {
                    count += house.waiting_in(queue);
                }
            }
            Ok(Some(Answer::Reply(Reply::number(count))))
        })?;
        Ok(Answered::Later)
    }

    fn waiting_in(&self, queue: QueueId) -> u64 {
        let view = self.local.queue_view(queue, 0);
        view.map_or(0, |view| view.waiting as u64)
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
