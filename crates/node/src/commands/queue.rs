//! `QUEUE SHOW|LIST`.

use std::collections::BTreeMap;

use testigo_core::{Matcher, Queue, QueueId, QueueView};

use super::table::{Answered, Outcome, unknown_word};
use crate::clock::wall_ms;
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words};

/// A queue's row is as much work as this many of a plain list.
const ROW_WEIGHT: usize = 4;

/// Cap on a queue's takers that are shown or counted.
const TAKERS_SHOWN: usize = 100;

impl House {
    pub(super) fn queue_command(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("SHOW") {
            let text = words.text("the queue's name")?;
            words.end()?;
            let queue = self.queue_of(id, text, Deed::Show)?;
            self.look_into(id, queue)?;
            self.queue_show(queue)
        } else if words.keyword("LIST") {
            let pattern = words.pattern()?;
            words.end()?;
            self.queue_list(id, pattern)
        } else {
            Err(unknown_word("QUEUE", words.text("a word")?, "SHOW, LIST"))
        }
    }

    /// `QUEUE SHOW name`.
    fn queue_show(&self, id: QueueId) -> Outcome {
        let queue = self.known(id)?;
        let view = self.local().queue_view(id, TAKERS_SHOWN);
        let takers = view.iter().flat_map(|view| &view.takers).map(|taker| {
            Reply::Map(vec![
                ("session", Reply::number(taker.session.number())),
                ("ticket", Reply::number(taker.ticket.0)),
                ("waits_ms", Reply::number(self.now() - taker.since)),
            ])
        });
        let takers = Reply::Array(takers.collect());
        let mut row = self.queue_row(id, queue, view.as_ref());
        row.push(("takers", takers));
        Ok(Answered::Now(Reply::Map(row)))
    }

    /// `QUEUE LIST [pattern]`: by name, the same without details of the takers.
    fn queue_list(&mut self, id: ClientId, pattern: Matcher) -> Outcome {
        let mut rows = self.rows_for(id);
        let (mut found, mut last, mut whole) = (BTreeMap::new(), None, false);
        self.in_slices(id, move |house, slice| {
            if !whole {
                for (queue, known) in house.replicated().queues_after(last) {
                    if !slice.has_room() {
                        return Ok(None);
                    }
                    slice.spend(pattern.weight());
                    last = Some(queue);
                    if !house.services.owns(known.shard()) {
                        continue;
                    }
                    if house.look_into(id, queue).is_err() {
                        continue;
                    }
                    let name = house.queue_name(queue);
                    if pattern.fits(&name) {
                        found.insert(name, queue);
                    }
                }
                whole = true;
                house.check_rows(found.len(), "queues")?;
            }
            while slice.has_room() {
                let Some((_, queue)) = found.pop_first() else {
                    return Ok(Some(rows.array()));
                };
                slice.spend(ROW_WEIGHT);
                rows.extend(house.queue_list_row(queue));
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }

    /// `None` if the queue is gone.
    fn queue_list_row(&self, id: QueueId) -> Option<Reply> {
        let queue = self.replicated().queue(id)?;
        let view = self.local().queue_view(id, TAKERS_SHOWN);
        let takers = view.as_ref().map_or(0, |view| view.takers.len());
        let mut row = self.queue_row(id, queue, view.as_ref());
        row.push(("takers", Reply::number(takers as u64)));
        Some(Reply::Map(row))
    }

    fn queue_row(
        &self,
        id: QueueId,
        queue: &Queue,
        view: Option<&QueueView>,
    ) -> Vec<(&'static str, Reply)> {
        let waiting = view.map_or(0, |view| view.waiting as u64);
        let next = view.and_then(|view| view.next);
        let next = next.and_then(|job| self.replicated().job(job).ok());
        let age_ms = next.map(|job| wall_ms().saturating_sub(job.at));
        let rule = &queue.rule;
        let totals = self.stats().totals(id);
        let (arrivals, departures) = self.stats().rates(self.now(), id);
        let text = |text: Option<&str>| Reply::optional(text, Reply::text);
        vec![
            ("name", self.queue_reply(id)),
            ("order", Reply::text(rule.order.word())),
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
