//! `GATE CREATE|SHOW|LIST|DELETE`.

use testigo_core::{Change, Definition, Name, Order, Refusal, Rule, Word};

use super::show::{gate_reply, rule_words};
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words, refuse};

impl House {
    pub(super) fn gate(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("CREATE") {
            let gate = Name::new(words.text("the gate's name")?)?;
            let definition = definition(&mut words)?;
            self.allow(id, Deed::Define, &gate)?;
            self.change(id, Change::CreateGate { gate, definition })?;
            Ok(Answered::Later)
        } else if words.keyword("SHOW") {
            let gate = words.text("the gate's name")?;
            words.end()?;
            self.allow(id, Deed::Show, gate)?;
            let view = self.local.gate(gate)?;
            Ok(Answered::Now(gate_reply(&view, self.user(id)?, self.now)))
        } else if words.keyword("LIST") {
            let pattern = match words.left() {
                0 => "*",
                _ => words.text("the pattern")?,
            };
            words.end()?;
            let mut list = self.local.list(pattern);
            let user = self.user(id)?;
            list.retain(|gate| user.may(Deed::Show, &gate.name));
            self.check_rows(list.len(), "gates")?;
            let rows = list.into_iter().map(|gate| {
                Reply::Array(vec![
                    Reply::text(gate.name),
                    Reply::text(rule_words(gate.rule)),
                    Reply::text(if gate.implicit { "implicit" } else { "created" }),
                ])
            });
            Ok(Answered::Now(Reply::Array(rows.collect())))
        } else if words.keyword("DELETE") {
            let gate = Name::new(words.text("the gate's name")?)?;
            words.end()?;
            self.allow(id, Deed::Define, &gate)?;
            self.change(id, Change::DeleteGate { gate })?;
            Ok(Answered::Later)
        } else {
            let known = "CREATE, SHOW, LIST, DELETE";
            Err(unknown_word("GATE", words.text("a word")?, known))
        }
    }

    pub(super) fn check_rows(&self, rows: usize, what: &str) -> Result<(), Refusal> {
        let most = self.wire.list_rows;
        match rows <= most {
            true => Ok(()),
            false => Err(refuse(
                Word::Limit,
                format!("{rows} {what} are more than the limit list_rows of {most}"),
            )),
        }
    }
}

/// `MUTEX|SHARED|PERMITS k|ROOMS [ORDER ARRIVAL|CLASS|READERS|WRITERS] [CLASSES n] [OVERTAKES n] [LEASE ms]
/// [CAPACITY n] [STAY ms]`.
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
    while words.left() > 0 {
        if words.keyword("ORDER") {
            definition.order = order(words)?;
        } else if words.keyword("CLASSES") {
            definition.classes = words.small_number("CLASSES")?;
        } else if words.keyword("OVERTAKES") {
            definition.overtakes = words.small_number("OVERTAKES")?;
        } else if words.keyword("LEASE") {
            definition.lease_ms = Some(words.number("LEASE")?);
        } else if words.keyword("CAPACITY") {
            definition.capacity = Some(words.small_number("CAPACITY")?);
        } else if words.keyword("STAY") {
            definition.stay_ms = Some(words.number("STAY")?);
        } else {
            words.end()?;
        }
    }
    Ok(definition)
}

fn order(words: &mut Words<'_>) -> Result<Order, Refusal> {
    for order in [Order::Arrival, Order::Class, Order::Readers, Order::Writers] {
        if words.keyword(order.word()) {
            return Ok(order);
        }
    }
    let known = "ARRIVAL, CLASS, READERS, WRITERS";
    Err(unknown_word("ORDER", words.text("ORDER")?, known))
}
