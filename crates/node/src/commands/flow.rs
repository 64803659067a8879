//! `FLOW APPLY|SHOW|LIST|DELETE|CLIENTS|STATS` and `PRESENT`.

use std::sync::Arc;

use testigo_core::{Change, FlowMark, Name, QueueRule, Refusal, Role, Scheme, Word};

use super::table::{Answered, Outcome, unknown_word};
use crate::grants;
use crate::house::{Answers, ClientId, House};
use crate::scheme;
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, refuse};

impl House {
    pub(super) fn flow(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("APPLY") {
            let flow = Name::new(words.text("the flow's name")?)?;
            let text = words.text("the flow's text")?;
            let over = over(&mut words)?;
            words.end()?;
            self.no_process(id)?;
            self.allow(id, Deed::Define, &flow)?;
            let scheme = Box::new(scheme::read(text)?);
            self.check_apply(id, &flow, &scheme)?;
            let text = Arc::from(text);
            let change = match over {
                None => Change::ApplyFlow { flow, text, scheme },
                Some(over) => Change::ApplyFlowOver {
                    flow,
                    text,
                    scheme,
                    over,
                },
            };
            self.submit(change, Answers::Client(id))?;
            Ok(Answered::Later)
        } else if words.keyword("SHOW") {
            let flow = words.text("the flow's name")?;
            words.end()?;
            self.see_flow(id, flow)?;
            self.flow_show(flow)
        } else if words.keyword("LIST") {
            words.end()?;
            self.flow_list(id)
        } else if words.keyword("DELETE") {
            let flow = Name::new(words.text("the flow's name")?)?;
            words.end()?;
            self.no_process(id)?;
            self.allow(id, Deed::Define, &flow)?;
            self.submit(Change::DeleteFlow { flow }, Answers::Client(id))?;
            Ok(Answered::Later)
        } else if words.keyword("CLIENTS") {
            self.flow_clients(id, words)
        } else if words.keyword("STATS") {
            self.flow_stats(id, words)
        } else {
            let known = "APPLY, SHOW, LIST, DELETE, CLIENTS, STATS";
            Err(unknown_word("FLOW", words.text("a word")?, known))
        }
    }

    /// `FLOW LIST`: the flows that the user may see, by name.
    fn flow_list(&mut self, id: ClientId) -> Outcome {
        let mut rows = self.rows_for(id);
        let mut last: Option<Name> = None;
        self.in_slices(id, move |house, slice| {
            for (name, flow) in house.replicated().flows_after(last.take().as_ref()) {
                if house.see_flow(id, name).is_ok() {
                    let jobs = flow.queues().map(|(_, id)| house.replicated().queue(id));
                    let jobs: u64 = jobs.flatten().map(|queue| queue.jobs).sum();
                    rows.push(&Reply::Array(vec![
                        Reply::text(name.as_str()),
                        Reply::number(flow.scheme.processes.len() as u64),
                        Reply::number(flow.scheme.queues.len() as u64),
                        Reply::number(jobs),
                    ]));
                }
                slice.spend(1 + flow.scheme.queues.len());
                if !slice.has_room() {
                    last = Some(name.clone());
                    return Ok(None);
                }
            }
            Ok(Some(rows.array()))
        })?;
        Ok(Answered::Later)
    }

    /// Whether a connection's user may apply this to a flow.
    fn check_apply(&self, id: ClientId, flow: &Name, new: &Scheme) -> Result<(), Refusal> {
        let old = self.replicated().flow(flow).ok().map(|flow| &flow.scheme);
        grants::check_directories(self.files_root(), old, new)?;
        let author = self.user(id)?;
        if self.submissions.is_changing(flow) && !author.may(Deed::Admin, "") {
            let why = format!("flow {flow} is being changed; try again in a moment");
            return Err(refuse(Word::Busy, why));
        }
        grants::check(author, flow, old, new)
    }

    /// A process sees its own flow, a user those that its rights allow.
    pub(super) fn see_flow(&self, id: ClientId, flow: &str) -> Result<(), Refusal> {
        match self.presented(id) {
            Some(presented) => presented.check_flow(flow),
            None => self.allow(id, Deed::Show, flow),
        }
    }

    fn flow_show(&self, name: &str) -> Outcome {
        let flow = self.replicated().flow(name)?;
        let queues = flow.queues().filter_map(|(queue, id)| {
            let rule = flow.scheme.queues.get(queue)?;
            let jobs = self.replicated().queue(id)?.jobs;
            let waiting = match self.owns_queue(id) {
                true => self.local().queue_view(id, 0)?.waiting,
                false => 0,
            };
            Some(queue_row(queue, rule, jobs, waiting as u64))
        });
        let processes = flow.scheme.processes.iter();
        let processes = processes.map(|(process, role)| process_row(process, role));
        Ok(Answered::Now(Reply::Map(vec![
            ("name", Reply::text(name)),
            ("text", Reply::text(&*flow.text)),
            ("mark", Reply::text(flow.mark().to_string())),
            ("queues", Reply::Array(queues.collect())),
            ("processes", Reply::Array(processes.collect())),
        ])))
    }

    /// `PRESENT flow process`.
    pub(super) fn present(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let flow = words.text("the flow")?;
        let process = words.text("the process")?;
        words.end()?;
        self.present_as(id, flow, process)?;
        Ok(Answered::Now(Reply::Ok))
    }
}

/// `OVER mark`: only over the flow with that mark; `OVER NONE`: only if there is no such flow.
fn over(words: &mut Words<'_>) -> Result<Option<Option<FlowMark>>, Refusal> {
    if !words.keyword("OVER") {
        return Ok(None);
    }
    if words.keyword("NONE") {
        return Ok(Some(None));
    }
    let mark = words.text("the mark, or NONE")?;
    Ok(Some(Some(mark.parse().map_err(bad_arg)?)))
}

fn queue_row(name: &Name, rule: &QueueRule, jobs: u64, waiting: u64) -> Reply {
    Reply::Map(vec![
        ("name", Reply::text(name.as_str())),
        ("order", Reply::text(rule.order.word())),
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
        ("jobs", Reply::number(jobs)),
        ("waiting", Reply::number(waiting)),
    ])
}

fn process_row(name: &Name, role: &Role) -> Reply {
    let names = |names: &std::collections::BTreeSet<Name>| {
        Reply::Array(
            names
                .iter()
                .map(|name| Reply::text(name.as_str()))
                .collect(),
        )
    };
    Reply::Map(vec![
        ("name", Reply::text(name.as_str())),
        ("creates", names(&role.creates)),
        ("takes", names(&role.takes)),
        ("passes", names(&role.passes)),
        ("deletes", names(&role.deletes)),
        (
            "limit",
            Reply::optional(role.limit.map(u64::from), Reply::number),
        ),
    ])
}
