//! `POOL CREATE|TAKE|GIVE|SHOW|LIST|DELETE`.

use std::ops::Bound;
use std::sync::Arc;

use testigo_core::pool::{
    DeskView, Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames, SlotSet,
};
use testigo_core::{Change, Name, NodeId, Refusal, SessionId, Word};

use super::cells::Fold;
use super::job::note;
use super::pool_shown::ShownPool;
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answers, ClientId, House, fence_reply, taken_slots_reply};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, refuse, shown};

/// Most slots in use that each node lists, and most runs of slots with one owner; their full counts are given, too.
const SHOWN_MAX: usize = 1_000;
/// Most slots that are listed with a label.
const LABELLED_MAX: usize = 100;

impl House {
    pub(super) fn pool(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("TAKE") {
            self.pool_take(id, words)
        } else if words.keyword("GIVE") {
            self.pool_give(id, words)
        } else if words.keyword("CREATE") {
            let pool = Name::new(words.text("the pool's name")?)?;
            let definition = Box::new(definition(&mut words)?);
            definition.check()?;
            self.allow(id, Deed::Define, &pool)?;
            if self.group().is_some() {
                return match self.create_in_group(id, &pool, &definition)? {
                    true => Ok(Answered::Later),
                    false => Ok(Answered::Now(Reply::Ok)),
                };
            }
            self.submit(Change::CreatePool { pool, definition }, Answers::Client(id))?;
            Ok(Answered::Later)
        } else if words.keyword("DELETE") {
            let pool = Name::new(words.text("the pool's name")?)?;
            words.end()?;
            self.allow(id, Deed::Define, &pool)?;
            // The node that was asked first asks all, itself included, and has the pool deleted if nobody uses it.
            let used = self.used_here(&pool)?;
            if self.is_visit(id) {
                return Ok(Answered::Now(Reply::number(used)));
            }
            self.delete_unused(id, &pool, &[(self.own().0, used)])?;
            Ok(Answered::Later)
        } else if words.keyword("SHOW") {
            let pool = words.text("the pool's name")?;
            let fold = Fold::read(&mut words)?;
            words.end()?;
            self.allow(id, Deed::Show, pool)?;
            self.pool_show(pool, fold)
        } else if words.keyword("LIST") {
            self.pool_list(id, words)
        } else {
            let known = "CREATE, TAKE, GIVE, SHOW, LIST, DELETE";
            Err(unknown_word("POOL", words.text("a word")?, known))
        }
    }

    /// `POOL TAKE name [COUNT c | UPTO c] [WHERE label] [WAIT ms] [ASYNC]`.
    fn pool_take(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pool = words.text("the pool's name")?;
        let (mut many, mut wait_ms, mut asynchronous) = (None, None, false);
        let mut label = None;
        while words.left() > 0 {
            let counted = match (words.keyword("COUNT"), words.keyword("UPTO")) {
                (true, _) => Some(Many::Exactly(count(&mut words, "COUNT")?)),
                (_, true) => Some(Many::UpTo(count(&mut words, "UPTO")?)),
                _ => None,
            };
            if let Some(counted) = counted {
                if many.replace(counted).is_some() {
                    return Err(bad_arg("a take has at most one COUNT or UPTO"));
                }
            } else if words.keyword("WAIT") {
                note("WAIT", words.number("WAIT")?, &mut wait_ms)?;
            } else if words.keyword("ASYNC") {
                self.check_pushes(id)?;
                asynchronous = true;
            } else if words.keyword("WHERE") {
                note("WHERE", words.text("the label after WHERE")?, &mut label)?;
            } else {
                words.end()?;
            }
        }
        self.allow(id, Deed::Use, pool)?;
        let most = self.services.limits().wait_ms_max;
        if let Some(ms) = wait_ms.filter(|ms| *ms > most) {
            return Err(bad_arg(format!(
                "WAIT {ms} is more than the {most} milliseconds that are allowed"
            )));
        }
        let take = PoolTake {
            pool,
            many: many.unwrap_or(Many::Exactly(1)),
            label,
            wait_ms,
        };
        let session = self.slots_session(id)?;
        match self.take_slots(session, take)? {
            PoolAnswer::Taken(taken) if asynchronous => {
                let ticket = self.instant_ticket();
                self.connections.send(id, Reply::number(ticket));
                self.push_slots(id, ticket, &taken);
                Ok(Answered::Later)
            }
            PoolAnswer::Waiting(ticket) if asynchronous => {
                self.push_later(id, ticket);
                Ok(Answered::Now(Reply::number(ticket.0)))
            }
            PoolAnswer::Taken(taken) if taken.is_empty() => Ok(Answered::Now(Reply::Null)),
            PoolAnswer::Taken(taken) => Ok(Answered::Now(taken_slots_reply(&taken))),
            PoolAnswer::Waiting(ticket) => {
                self.block_on(id, ticket);
                Ok(Answered::Later)
            }
        }
    }

    /// `POOL GIVE name slot…`: all or none.
    fn pool_give(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pool = words.text("the pool's name")?;
        let mut slots = vec![words.text("a slot")?];
        while words.left() > 0 {
            slots.push(words.text("a slot")?);
        }
        self.allow(id, Deed::Use, pool)?;
        let session = self.slots_session(id)?;
        match self.give_slots(session, pool, &slots)? {
            None => Ok(Answered::Now(Reply::Ok)),
            Some(change) => {
                self.submit(change, Answers::Client(id))?;
                Ok(Answered::Later)
            }
        }
    }

    /// How many slots of this node sessions have, or may have.
    fn used_here(&self, pool: &str) -> Result<u64, Refusal> {
        let view = self
            .services
            .desk()
            .view(self.services.shelves(), pool, 0)?;
        // A session that comes back may still claim a withheld slot.
        Ok(u64::from(view.used))
    }

    /// Deletes a pool that nobody uses: whoever had slots would lose them. The nodes' answers tell the caller where slots are in
    /// use; what counts is how the nodes vote once the request is in the log.
    pub(crate) fn delete_unused(
        &mut self,
        id: ClientId,
        pool: &str,
        used: &[(NodeId, u64)],
    ) -> Result<(), Refusal> {
        let out_of_reach = self.shown_pool(pool)?.out_of_reach();
        let used = used.iter().filter(|(_, used)| *used > 0);
        let mut where_used: Vec<String> = used
            .map(|(node, used)| format!("{used} in use at node {node}"))
            .collect();
        where_used.extend(
            out_of_reach
                .into_iter()
                .filter(|(_, slots)| *slots > 0)
                .map(|(node, slots)| {
                    format!("{slots} out of reach with node {node}, where they may be in use")
                }),
        );
        if where_used.is_empty() {
            let pool = Name::new(pool)?;
            return match self.group() {
                Some(_) => self.delete_in_group(id, &pool),
                None => self
                    .submit(Change::ClosePool { pool }, Answers::Client(id))
                    .map(drop),
            };
        }
        let why = format!(
            "pool {pool} has slots in use: {}; POOL SHOW says by whom",
            where_used.join(", ")
        );
        Err(refuse(Word::Busy, why))
    }

    /// `POOL SHOW name`: what the engine says, and this node's own part.
    fn pool_show(&self, pool: &str, fold: Option<Fold>) -> Outcome {
        let shown = self.shown_pool(pool)?;
        let slots = &shown.definition.slots;
        let shelves = self.services.shelves();
        let view = self.services.desk().view(shelves, pool, SHOWN_MAX)?;
        let runs = shown.runs();
        let rows = runs.iter().take(SHOWN_MAX).map(|(first, last, owner)| {
            let name = |slot: u32| Reply::text(slots.name(slot));
            let owner = Reply::optional(*owner, |owner| Reply::number(owner.0));
            Reply::Array(vec![name(*first), name(*last), owner])
        });
        let out = shown.out_of_reach().into_iter().map(|(node, slots)| {
            Reply::Array(vec![
                Reply::number(node.0),
                Reply::number(u64::from(slots)),
                Reply::text(shown.out_of_reach_words(node, slots)),
            ])
        });
        let number = |count: u32| Reply::number(u64::from(count));
        let names = match slots {
            SlotNames::Numbered(_) => "numbered",
            SlotNames::Named(_) | SlotNames::Labelled { .. } => "named",
        };
        let own = shown.own;
        let mut map = vec![
            ("name", Reply::text(pool)),
            ("slots", number(slots.count())),
            ("names", Reply::text(names)),
            ("free_low", number(shown.definition.free_low)),
            ("free", number(view.free)),
            ("used", number(view.used)),
            ("waiting", number(view.waiting)),
            ("donated", Reply::number(view.received)),
            ("nodes", Reply::Array(vec![node_row(own, &view)])),
            ("out_of_reach", Reply::Array(out.collect())),
            (
                "missing",
                Reply::Array(
                    self.other_members()
                        .into_iter()
                        .map(Reply::number)
                        .collect(),
                ),
            ),
            ("runs", Reply::number(runs.len() as u64)),
            ("owners", Reply::Array(rows.collect())),
            ("taken", Reply::Array(self.taken_rows(own, slots, &view))),
            ("waits", Reply::Array(self.wait_rows(own, slots, &view))),
            ("labels", Reply::Array(label_rows(&shown))),
        ];
        if let Some(status) = shown.status() {
            map.push(("engine", Reply::text("corosync")));
            map.push(("status", Reply::text(status)));
        }
        if let Some(fold) = fold {
            map.extend(self.folded(pool, &shown, fold)?);
        }
        Ok(Answered::Now(Reply::Map(map)))
    }

    fn wait_rows(&self, own: NodeId, slots: &SlotNames, view: &DeskView) -> Vec<Reply> {
        let labels = slots.labels();
        let rows = view.waits.iter().map(|wait| {
            let wanted = wait.label.and_then(|label| labels.get(label as usize));
            let waits_ms = self.now().saturating_sub(wait.since);
            Reply::Map(vec![
                ("node", Reply::number(own.0)),
                ("session", Reply::number(wait.session.number())),
                (
                    "label",
                    Reply::optional(self.session_label(wait.session), Reply::text),
                ),
                ("least", Reply::number(u64::from(wait.many.least()))),
                ("most", Reply::number(u64::from(wait.many.most()))),
                ("waits_ms", Reply::number(waits_ms)),
                (
                    "where",
                    Reply::optional(wanted, |label| Reply::text(&**label)),
                ),
            ])
        });
        rows.collect()
    }

    fn session_label(&self, session: SessionId) -> Option<String> {
        self.replicated().session(session)?.label.clone()
    }

    fn taken_rows(&self, own: NodeId, slots: &SlotNames, view: &DeskView) -> Vec<Reply> {
        let rows = view.slots.iter().map(|taken| {
            let session = taken.session;
            Reply::Map(vec![
                ("slot", Reply::text(slots.name(taken.slot))),
                ("node", Reply::number(own.0)),
                (
                    "session",
                    Reply::optional(session, |session| Reply::number(session.number())),
                ),
                (
                    "label",
                    Reply::optional(
                        session.and_then(|session| self.session_label(session)),
                        Reply::text,
                    ),
                ),
                ("fence", fence_reply(taken.fence)),
                (
                    "held_ms",
                    Reply::number(self.now().saturating_sub(taken.since)),
                ),
            ])
        });
        rows.collect()
    }

    /// `POOL LIST [pattern]`: name, number of slots, and FREELOW.
    fn pool_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern = words.pattern()?;
        words.end()?;
        let user = Arc::clone(self.user(id)?);
        let mut rows = self.rows_for(id);
        let mut last: Option<Name> = None;
        self.in_slices(id, move |house, slice| {
            while slice.has_room() {
                let after = last.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
                let Some((name, definition)) = house.pool_after(after) else {
                    return Ok(Some(rows.array()));
                };
                slice.spend(pattern.weight());
                if user.sees(name, &pattern) {
                    rows.push(&Reply::Array(vec![
                        Reply::Name(name.clone()),
                        Reply::number(u64::from(definition.slots.count())),
                        Reply::number(u64::from(definition.free_low)),
                    ]));
                }
                last = Some(name.clone());
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }
}

fn node_row(own: NodeId, view: &DeskView) -> Reply {
    let number = |count: u32| Reply::number(u64::from(count));
    Reply::Map(vec![
        ("node", Reply::number(own.0)),
        ("owned", number(view.owned)),
        ("free", number(view.free)),
        ("used", number(view.used)),
        ("withheld", number(view.withheld)),
        ("waiting", number(view.waiting)),
        ("received", Reply::number(view.received)),
        ("given", Reply::number(view.given)),
    ])
}

fn count(words: &mut Words<'_>, what: &str) -> Result<u32, Refusal> {
    let count = words.number(what)?;
    u32::try_from(count).map_err(|_| bad_arg(format!("{what} {count} is more than any pool has")))
}

/// Each label, with how many slots have it, the first of them, and how many nodes wish for.
fn label_rows(shown: &ShownPool<'_>) -> Vec<Reply> {
    let slots = &shown.definition.slots;
    let labelled = shown.definition.labelled();
    let labels = slots.labels().iter().map(|label| &**label);
    let rows = labels.zip(labelled.iter()).zip(0..);
    let row = |((label, having), number): ((&str, &SlotSet), u32)| {
        let names = having.iter().take(LABELLED_MAX);
        let names = names.map(|slot| Reply::text(slots.name(slot)));
        let wished = shown.wished(number);
        Reply::Map(vec![
            ("label", Reply::text(label)),
            ("slots", Reply::number(u64::from(having.len()))),
            ("wished", Reply::number(wished)),
            ("names", Reply::Array(names.collect())),
        ])
    };
    rows.map(row).collect()
}

fn too_few_names(said: u64, there: usize) -> Refusal {
    let wanted = match said {
        1 => "1 name".into(),
        said => format!("{said} names"),
    };
    let there = match there {
        0 => "there is none".into(),
        1 => "there is 1".into(),
        there => format!("there are {there}"),
    };
    bad_arg(format!("NAMES {said} needs {wanted}; {there}"))
}

/// Checked here, because a definition has the labels of all slots together, and could not say whose is empty.
fn check_slot(slot: &str, at: u64) -> Result<(), Refusal> {
    let (name, labels) = match slot.split_once(':') {
        Some((name, labels)) => (name, Some(labels)),
        None => (slot, None),
    };
    if name.is_empty() {
        return Err(bad_arg(format!("the name of slot {at} is empty")));
    }
    if labels.is_some_and(|labels| labels.split(',').any(str::is_empty)) {
        return Err(bad_arg(format!(
            "slot {} has an empty label; a slot with two is written NAME:big,fast",
            shown(name.as_bytes())
        )));
    }
    Ok(())
}

/// `SLOTS n | NAMES n a b:label,label c… [FREELOW f]`.
fn definition(words: &mut Words<'_>) -> Result<PoolDefinition, Refusal> {
    let slots = if words.keyword("SLOTS") {
        SlotNames::Numbered(count(words, "SLOTS")?)
    } else if words.keyword("NAMES") {
        let names = words.number("the number after NAMES")?;
        if names > words.left() as u64 {
            return Err(too_few_names(names, words.left()));
        }
        let mut named = Vec::new();
        for at in 1..=names {
            let slot = words.text("a slot's name")?;
            check_slot(slot, at)?;
            named.push(slot);
        }
        SlotNames::read(named.into_iter())
    } else {
        return Err(bad_arg("a pool needs SLOTS n or NAMES n name…"));
    };
    let mut free_low = None;
    while words.left() > 0 {
        if words.keyword("FREELOW") {
            note("FREELOW", count(words, "FREELOW")?, &mut free_low)?;
        } else {
            words.end()?;
        }
    }
    let free_low = free_low.unwrap_or(0);
    Ok(PoolDefinition { slots, free_low })
}
