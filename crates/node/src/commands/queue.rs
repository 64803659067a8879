//! `QUEUE SHOW|LIST`.

use testigo_core::{Queue, QueueId, QueueView, fits};

use super::flow::order_word;
use super::table::{Answered, Outcome, unknown_word};
use crate::clock::wall_ms;
use crate::house::{ClientId, House};
use crate::wire::{Reply, Words};

/// Takers of a queue that are shown or counted.
const TAKERS_SHOWN: usize = 100;

impl House {
    pub(super) fn queue_command(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("SHOW") {
            let text = words.text("the queue's name")?;
            words.end()?;
            let queue = self.queue_of(id, text)?;
            self.look_into(id, queue)?;
            self.queue_show(queue)
        } else if words.keyword("LIST") {
            let pattern = match words.left() {
                0 => "*",
                _ => words.text("the pattern")?,
            };
            words.end()?;
            self.queue_list(id, pattern)
        } else {
            Err(unknown_word("QUEUE", words.text("a word")?, "SHOW, LIST"))
        }
    }

    /// `QUEUE SHOW name`.
    fn queue_show(&self, id: QueueId) -> Outcome {
        let queue = self.known(id)?;
        let view = self.local.queue_view(id, TAKERS_SHOWN);
        let takers = view.iter().flat_map(|view| &view.takers).map(|taker| {
            Reply::Map(vec![
                ("session", Reply::number(taker.session.number())),
                ("ticket", Reply::number(taker.ticket.0)),
                ("waits_ms", Reply::number(self.now - taker.since)),
            ])
        });
        let takers = Reply::Array(takers.collect());
        let mut row = self.queue_row(id, queue, view.as_ref());
        row.push(("takers", takers));
        Ok(Answered::Now(Reply::Map(row)))
    }

    /// `QUEUE LIST [pattern]`: by name, the same without the takers' particulars.
    fn queue_list(&self, id: ClientId, pattern: &str) -> Outcome {
        let queues = self.replicated.queues();
        let queues = queues.filter(|(queue, _)| self.look_into(id, *queue).is_ok());
        let queues = queues.map(|(id, queue)| (self.queue_name(id), id, queue));
        let mut queues: Vec<_> = queues.filter(|(name, ..)| fits(name, pattern)).collect();
        queues.sort_by(|a, b| a.0.cmp(&b.0));
        self.check_rows(queues.len(), "queues")?;
        let rows = queues.into_iter().map(|(_, id, queue)| {
            let view = self.local.queue_view(id, TAKERS_SHOWN);
            let takers = view.as_ref().map_or(0, |view| view.takers.len());
            let mut row = self.queue_row(id, queue, view.as_ref());
            row.push(("takers", Reply::number(takers as u64)));
            Reply::Map(row)
        });
        Ok(Answered::Now(Reply::Array(rows.collect())))
    }

    fn queue_row(
        &self,
        id: QueueId,
        queue: &Queue,
        view: Option<&QueueView>,
    ) -> Vec<(&'static str, Reply)> {
        let waiting = view.map_or(0, |view| view.waiting as u64);
        let next = view.and_then(|view| view.next);
        let next = next.and_then(|job| self.replicated.job(job).ok());
        let age_ms = next.map(|job| wall_ms().saturating_sub(job.at));
        let rule = &queue.rule;
        let totals = self.stats.totals(id);
        let (arrivals, departures) = self.stats.rates(self.now, id);
        let text = |text: Option<&str>| Reply::optional(text, Reply::text);
        vec![
            ("name", self.queue_reply(id)),
            ("order", Reply::text(order_word(rule.order))),
            ("limit", Reply::optional(rule.limit, Reply::number)),
            ("retries", Reply::number(rule.retries.into())),
            ("reject", text(rule.reject.as_deref())),
            ("data", text(rule.directory.as_deref())),
            ("waiting", Reply::number(waiting)),
            ("held", Reply::number(queue.jobs - waiting)),
            (
                "next",
                Reply::optional(next.map(|job| job.id.0), Reply::number),
            ),
            ("age_ms", Reply::optional(age_ms, Reply::number)),
            ("arrivals", Reply::number(totals.arrivals)),
            ("departures", Reply::number(totals.departures)),
            ("deaths", Reply::number(totals.deaths)),
            ("rejects", Reply::number(totals.rejects)),
            ("full", Reply::number(totals.full)),
            ("arrivals_per_second", Reply::real(arrivals)),
            ("departures_per_second", Reply::real(departures)),
        ]
    }
}
