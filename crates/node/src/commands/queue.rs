//! `QUEUE SHOW`.

use super::flow::order_word;
use super::table::{Answered, Outcome, unknown_word};
use crate::clock::wall_ms;
use crate::house::{ClientId, House};
use crate::wire::{Reply, Words};

/// Takers of a queue that are shown; how many more there are is said.
const TAKERS_SHOWN: usize = 100;

impl House {
    /// `QUEUE SHOW name`.
    pub(super) fn queue_command(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if !words.keyword("SHOW") {
            return Err(unknown_word("QUEUE", words.text("SHOW")?, "SHOW"));
        }
        let text = words.text("the queue's name")?;
        words.end()?;
        let queue = self.queue_of(id, text)?;
        self.look_into(id, queue)?;
        let id = queue;
        let queue = self.known(id)?;
        let view = self.local.queue_view(id, TAKERS_SHOWN);
        let (waiting, next, takers) = match view {
            Some(view) => (view.waiting as u64, view.next, view.takers),
            None => (0, None, Vec::new()),
        };
        let next = next.and_then(|job| self.replicated.job(job).ok());
        let takers = takers.iter().map(|taker| {
            Reply::Map(vec![
                ("session", Reply::number(taker.session.number())),
                ("ticket", Reply::number(taker.ticket.0)),
                ("waits_ms", Reply::number(self.now - taker.since)),
            ])
        });
        let rule = &queue.rule;
        Ok(Answered::Now(Reply::Map(vec![
            ("name", Reply::text(self.queue_name(id))),
            ("order", Reply::text(order_word(rule.order))),
            ("limit", Reply::optional(rule.limit, Reply::number)),
            ("retries", Reply::number(rule.retries.into())),
            (
                "reject",
                Reply::optional(rule.reject.as_deref(), Reply::text),
            ),
            (
                "data",
                Reply::optional(rule.directory.as_deref(), Reply::text),
            ),
            ("waiting", Reply::number(waiting)),
            ("held", Reply::number(queue.jobs - waiting)),
            ("next", Reply::optional(next.map(|job| job.id.0), Reply::number)),
            (
                "age_ms",
                Reply::optional(
                    next.map(|job| wall_ms().saturating_sub(job.at)),
                    Reply::number,
                ),
            ),
            ("takers", Reply::Array(takers.collect())),
        ])))
    }
}
