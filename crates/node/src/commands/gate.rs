//! `GATE CREATE|SHOW|LIST|DELETE`.

use std::collections::BTreeMap;
use std::sync::Arc;

use testigo_core::{Change, Definition, GateOrder, Name, Pattern, Refusal, Rule, Shard, Using};

use super::lock::gate_name;
use super::show::{
    GATE_FIELDS, GateShown, gate_pairs, gate_reply, holder_reply, rule_words, waiter_reply,
};
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answer, ClientId, House, SLICE_ROWS};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, encode, encode_pair, map_head};

impl House {
    pub(super) fn gate(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("CREATE") {
            let gate = Name::new(words.text("the gate's name")?)?;
            let definition = definition(&mut words)?;
            self.allow(id, Deed::Define, &gate)?;
            let number = self.replicated().gate_number(&gate);
            let change = Change::CreateGate {
                gate,
                definition,
                number,
            };
            self.submit_named(change, id)?;
            Ok(Answered::Later)
        } else if words.keyword("SHOW") {
            let gate = gate_name(&mut words)?;
            words.end()?;
            self.allow(id, Deed::Show, gate)?;
            self.gate_show(id, gate)
        } else if words.keyword("LIST") {
            self.gate_list(id, words)
        } else if words.keyword("DELETE") {
            let gate = Name::new(words.text("the gate's name")?)?;
            words.end()?;
            self.allow(id, Deed::Define, &gate)?;
            let number = self.replicated().gate_number(&gate);
            self.submit_named(Change::DeleteGate { gate, number }, id)?;
            Ok(Answered::Later)
        } else {
            let known = "CREATE, SHOW, LIST, DELETE";
            Err(unknown_word("GATE", words.text("a word")?, known))
        }
    }

    /// `GATE LIST [pattern] [CURSOR c [LIMIT n]]`: by name; with pages, each page by itself is by name.
    fn gate_list(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        // The options come in pairs, so a gate may be named CURSOR.
        let (pairs, mut ahead) = (words.left().is_multiple_of(2), words);
        let pattern = match pairs && ahead.keyword("CURSOR") {
            true => Pattern::any().matcher(),
            false => words.pattern()?,
        };
        // The place of the first gate of the next page.
        let page = match words.left() {
            0 => None,
            _ => Some(self.page(&mut words, |cursor| cursor.parse::<usize>().ok())?),
        };
        words.end()?;
        let user = Arc::clone(self.user(id)?);
        let mut rows = self.rows_for(id);
        let mut at = page.as_ref().and_then(|page| page.after).unwrap_or(0);
        let (mut found, mut whole) = (BTreeMap::new(), false);
        self.in_slices(id, move |house, slice| {
            let end = house.local().gate_places();
            while !whole && slice.has_room() {
                let room = page
                    .as_ref()
                    .map_or(end, |page| page.rows_max - found.len());
                let until = end.min(at.saturating_add(room));
                let places = slice.places_of(&mut at, until, pattern.weight());
                let wanted = |name: &Name| {
                    name.as_election().is_none()
                        && user.sees(name, &pattern)
                        && house.services.owns(Shard::of(name))
                };
                for gate in house.local().gates_in(places, wanted) {
                    found.insert(gate.name, (gate.rule, gate.implicit));
                }
                let full = page
                    .as_ref()
                    .is_some_and(|page| page.rows_max == found.len());
                whole = full || at >= end;
                if page.is_none() {
                    house.check_rows(found.len(), "gates")?;
                }
            }
            while whole && slice.has_room() {
                let Some((name, (rule, implicit))) = found.pop_first() else {
                    let next = (at < end).then(|| at.to_string());
                    return Ok(Some(match &page {
                        Some(page) => page.answer(&mut rows, next),
                        None => rows.array(),
                    }));
                };
                slice.spend(1);
                rows.push(&Reply::Array(vec![
                    Reply::Name(name),
                    Reply::text(rule_words(rule)),
                    Reply::text(if implicit { "implicit" } else { "created" }),
                ]));
            }
            Ok(None)
        })?;
        Ok(Answered::Later)
    }

    /// `GATE SHOW name`. If very many are inside or waiting, it shows those who are still there when their row is made.
    fn gate_show(&mut self, id: ClientId, gate: &str) -> Outcome {
        let frame = self.gate_view(gate, 0)?;
        if frame.inside + frame.waiting <= SLICE_ROWS {
            let view = self.gate_view(gate, SLICE_ROWS)?;
            let travels = self.travel_pairs(gate, &view.definition);
            let shown = GateShown {
                user: self.user(id)?,
                now: self.now(),
                node: self.node_shown(gate),
            };
            return Ok(Answered::Now(gate_reply(&view, travels, &shown)));
        }
        let user = Arc::clone(self.user(id)?);
        let protocol = self.connections[id].protocol;
        let name = gate.to_owned();
        let people = self.local().people(gate)?;
        let (mut holders, mut waiters) = (self.rows_for(id), self.rows_for(id));
        let mut at = 0;
        self.in_slices(id, move |house, slice| {
            let shown = GateShown {
                user: &user,
                now: house.now(),
                node: house.node_shown(&name),
            };
            let (inside, waiting) = (people.inside(), people.waiting());
            for at in slice.places(&mut at, inside + waiting) {
                if at < inside {
                    if let Some(mut holder) = house.local().holder(&people, at) {
                        house.label(holder.session, &mut holder.label);
                        holders.push(&holder_reply(&holder, &shown));
                    }
                } else if let Some(mut waiter) = house.local().waiter(&people, at - inside) {
                    house.label(waiter.session, &mut waiter.label);
                    waiters.push(&waiter_reply(&waiter, &shown));
                }
            }
            if at < inside + waiting {
                return Ok(None);
            }
            let mut whole = map_head(GATE_FIELDS, protocol);
            let travels = house.travel_pairs(&name, &frame.definition);
            for (key, value) in gate_pairs(&frame).into_iter().chain(travels) {
                encode_pair(key, &value, protocol, &mut whole);
            }
            encode(&Reply::text("holders"), protocol, &mut whole);
            whole = holders.array_behind(whole);
            encode(&Reply::text("waiters"), protocol, &mut whole);
            Ok(Some(Answer::Written(waiters.array_behind(whole))))
        })?;
        Ok(Answered::Later)
    }
}

/// The options of `GATE CREATE` after the rule.
const OPTIONS: [&str; 8] = [
    "ORDER",
    "CLASSES",
    "OVERTAKES",
    "LEASE",
    "CAPACITY",
    "STAY",
    "USING",
    "BURST",
];

/// `MUTEX|SHARED|PERMITS k|ROOMS [ORDER ARRIVAL|CLASS|READERS|WRITERS] [CLASSES n] [OVERTAKES n] [LEASE ms]
/// [CAPACITY n] [STAY ms] [USING algorithm] [BURST n]`.
fn definition(words: &mut Words<'_>) -> Result<Definition, Refusal> {
    let rule = if words.keyword("MUTEX") {
        Rule::Mutex
    } else if words.keyword("SHARED") {
        Rule::Shared
    } else if words.keyword("PERMITS") {
        Rule::Permits(words.small_number("PERMITS")?)
    } else if words.keyword("ROOMS") {
        Rule::Rooms
    } else {
        let known = "MUTEX, SHARED, PERMITS k, ROOMS";
        return Err(unknown_word("the rule", words.text("the rule")?, known));
    };
    let mut definition = Definition::new(rule);
    let mut given: Vec<&str> = Vec::new();
    while words.left() > 0 {
        let Some(option) = OPTIONS.into_iter().find(|option| words.keyword(option)) else {
            words.end()?;
            break;
        };
        if given.contains(&option) {
            let why = format!("{option} is given twice; give each option once");
            return Err(bad_arg(why));
        }
        given.push(option);
        match option {
            "ORDER" => definition.order = order(words)?,
            "CLASSES" => definition.classes = words.small_number(option)?,
            "OVERTAKES" => definition.overtakes = words.small_number(option)?,
            "LEASE" => definition.lease_ms = Some(words.number(option)?),
            "CAPACITY" => definition.capacity = Some(words.small_number(option)?),
            "STAY" => definition.stay_ms = Some(words.number(option)?),
            "USING" => definition.travels.using = using(words.text(option)?)?,
            _ => definition.travels.burst = words.small_number(option)?,
        }
    }
    Ok(definition)
}

fn using(name: &str) -> Result<Using, Refusal> {
    Using::named(&name.to_ascii_lowercase()).ok_or_else(|| {
        let names = Using::ALL.map(Using::name);
        unknown_word("USING", name, &names.join(", "))
    })
}

fn order(words: &mut Words<'_>) -> Result<GateOrder, Refusal> {
    for order in [
        GateOrder::Arrival,
        GateOrder::Class,
        GateOrder::Readers,
        GateOrder::Writers,
    ] {
        if words.keyword(order.word()) {
            return Ok(order);
        }
    }
    let known = "ARRIVAL, CLASS, READERS, WRITERS";
    Err(unknown_word("ORDER", words.text("ORDER")?, known))
}
