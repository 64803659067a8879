//! `JOB HISTORY`: every stay of a job with every holder, even after the job's end.

use testigo_core::{Job, JobId, Refusal};

use super::super::table::{Answered, Outcome};
use super::job_id;
use crate::house::{ClientId, House};
use crate::stats::Stay;
use crate::users::Deed;
use crate::wire::{Reply, Words};

impl House {
    /// `JOB HISTORY id`.
    pub(super) fn job_history(&self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let job = job_id(&mut words)?;
        words.end()?;
        let reply = match self.seen_job(id, job) {
            Ok(living) => {
                let stays = self.stats().histories.stays(living);
                self.history_reply(living, self.condition(job), None, &stays)
            }
            Err(unknown) => self.ended_history(id, job, unknown)?,
        };
        Ok(Answered::Now(reply))
    }

    fn ended_history(&self, id: ClientId, job: JobId, unknown: Refusal) -> Result<Reply, Refusal> {
        let seen = |queue| match self.replicated().queue(queue) {
            Some(_) => self.look_into(id, queue).is_ok(),
            // Its flow is gone, too: only a user that may see everything may see it.
            None => self.no_process(id).is_ok() && self.allow(id, Deed::Show, "").is_ok(),
        };
        let ended = self.stats().histories.find(job);
        let Some(ended) = ended.filter(|ended| seen(ended.job.queue)) else {
            return Err(Refusal {
                sentence: format!("{}, or its end is long ago", unknown.sentence),
                ..unknown
            });
        };
        Ok(self.history_reply(&ended.job, "ended", Some(ended.at), &ended.stays()))
    }

    fn history_reply(&self, job: &Job, state: &str, ended: Option<u64>, stays: &[Stay]) -> Reply {
        let hand = self.stats().hand(job.id).filter(|_| ended.is_none());
        let held = hand.map(|hand| self.now() - hand.since);
        let age = |until: u64| Reply::number(until.saturating_sub(job.created));
        let stays = stays.iter().map(|stay| self.stay_reply(stay));
        Reply::Map(vec![
            ("id", Reply::number(job.id.0)),
            ("name", Reply::Name(job.name.clone())),
            ("queue", self.queue_reply(job.queue)),
            ("state", Reply::text(state)),
            ("by", Reply::optional(hand, |hand| Reply::text(&*hand.by))),
            ("held_ms", Reply::optional(held, Reply::number)),
            ("deaths", Reply::number(job.deaths.into())),
            ("created", Reply::number(job.created)),
            ("creator", Reply::text(&*job.creator)),
            ("ended", Reply::optional(ended, Reply::number)),
            ("life_ms", age(ended.unwrap_or_else(|| self.wall_now()))),
            ("hops", Reply::Array(stays.collect())),
        ])
    }

    fn stay_reply(&self, stay: &Stay) -> Reply {
        let waited_ms = stay.taken.unwrap_or(stay.until).saturating_sub(stay.since);
        Reply::Map(vec![
            ("queue", self.queue_reply(stay.queue)),
            ("since", Reply::number(stay.since)),
            ("waited_ms", Reply::number(waited_ms)),
            ("taken", Reply::optional(stay.taken, Reply::number)),
            ("by", Reply::text(&*stay.by)),
            ("held_ms", Reply::number(stay.held_ms)),
            ("until", Reply::number(stay.until)),
            ("how", Reply::text(stay.how)),
        ])
    }
}
