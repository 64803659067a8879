//! What `JOB SHOW`, `FIND`, `LIST` and `COUNT` show.

use testigo_core::{Hop, Job, JobId, LinePlace, Pattern, QueueId, Refusal, Word};

use super::super::table::{Answered, Outcome};
use crate::house::{Answer, ClientId, House, fence_reply};
use crate::users;
use crate::wire::{Reply, Words, bad_arg, refuse};

impl House {
    /// `JOB FIND pattern [IN queue] [CURSOR c] [LIMIT n]`: oldest first.
    pub(super) fn job_find(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern = Pattern::new(words.text("the pattern")?)?.matcher();
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
            for job in house.replicated().jobs_after(last) {
                let full = rows.count() == page.rows_max;
                if full && !page.paged {
                    break;
                }
                if !slice.has_room() {
                    return Ok(None);
                }
                slice.spend(pattern.weight());
                let there = match queue {
                    Some(queue) => job.queue == queue,
                    None => house.owns_queue(job.queue),
                };
                if there && house.look_into(id, job.queue).is_ok() && pattern.fits(&job.name) {
                    // There is another page only if it would have a row.
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

    /// `JOB LIST queue [CURSOR c] [LIMIT n]`: the waiting jobs, the next one first.
    pub(super) fn job_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
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
            let Some(places) = house.local().line_after(queue, after.as_ref()) else {
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
                if let Ok(job) = house.replicated().job(place.job()) {
                    rows.push(&house.job_row(job));
                }
                at = Some(place);
            }
            Ok(Some(page.answer(&mut rows, None)))
        })?;
        Ok(Answered::Later)
    }

    /// What was listed so far, or on earlier pages, was in an order that the queue no longer has.
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
    pub(super) fn job_count(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.left() > 0 {
            let queue = self.queue_of(id, words.text("the queue")?, users::Deed::Show)?;
            self.look_into(id, queue)?;
            words.end()?;
            return Ok(Answered::Now(Reply::number(self.waiting_in(queue))));
        }
        let (mut count, mut last) = (0, None);
        self.in_slices(id, move |house, slice| {
            for (queue, known) in house.replicated().queues_after(last) {
                if !slice.has_room() {
                    return Ok(None);
                }
                slice.spend(1);
                last = Some(queue);
                if house.services.owns(known.shard()) && house.look_into(id, queue).is_ok() {
                    count += house.waiting_in(queue);
                }
            }
            Ok(Some(Answer::Reply(Reply::number(count))))
        })?;
        Ok(Answered::Later)
    }

    fn waiting_in(&self, queue: QueueId) -> u64 {
        let view = self.local().queue_view(queue, 0);
        view.map_or(0, |view| view.waiting as u64)
    }

    /// A job in a list: ID, name, queue, whether it waits or is held, deaths.
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
        match self.local().held_job(job) {
            None => "waiting",
            Some(held) if held.settling => "settling",
            Some(_) => "held",
        }
    }

    pub(super) fn job_reply(&self, job: &Job) -> Reply {
        let held = self.local().held_job(job.id);
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
                Reply::optional(held.map(|held| self.now() - held.since), Reply::number),
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
