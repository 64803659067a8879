//! `PING`, `ECHO`, `SELECT`, `COMMAND`, `INFO`, `STATUS`, `STATE`.

use std::sync::Arc;

use bytes::Bytes;

use super::table::{Answered, COMMANDS, CommandRow, Outcome, unknown_word};
use crate::health::{Health, Reason};
use crate::house::{Answer, ClientId, Closing, House, there};
use crate::http::{FlowsMaker, Part, StateMaker};
use crate::wire::{Reply, Words, bad_arg};

impl House {
    /// `PING [text]`.
    pub(super) fn ping(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let text = words.next_bytes();
        words.end()?;
        self.check_joined()?;
        let client = there(self.connections.client(id))?;
        if client.subscriptions() == 0 {
            client.opened_first()?;
        }
        Ok(Answered::Now(match (client.only_listens(), text) {
            (true, text) => Reply::Push(vec![
                Reply::text("pong"),
                Reply::Text(Bytes::copy_from_slice(text.unwrap_or_default())),
            ]),
            (false, None) => Reply::Simple("PONG"),
            (false, Some(text)) => Reply::Text(Bytes::copy_from_slice(text)),
        }))
    }

    /// `ECHO text`.
    pub(super) fn echo(&mut self, _: ClientId, mut words: Words<'_>) -> Outcome {
        let text = words.next_bytes().unwrap_or_default();
        words.end()?;
        Ok(Answered::Now(Reply::Text(Bytes::copy_from_slice(text))))
    }

    /// `SELECT 0`: there is only one database.
    pub(super) fn select(&mut self, _: ClientId, mut words: Words<'_>) -> Outcome {
        let number = words.number("the number")?;
        words.end()?;
        match number {
            0 => Ok(Answered::Now(Reply::Ok)),
            _ => Err(bad_arg("there is only SELECT 0")),
        }
    }

    /// `COMMAND [COUNT|DOCS|LIST|INFO name…]`.
    pub(super) fn command_command(&mut self, _: ClientId, mut words: Words<'_>) -> Outcome {
        let reply = if words.left() == 0 {
            Reply::Array(COMMANDS.iter().map(description).collect())
        } else if words.keyword("COUNT") {
            Reply::number(COMMANDS.len() as u64)
        } else if words.keyword("DOCS") {
            Reply::Map(Vec::new())
        } else if words.keyword("LIST") {
            let names = COMMANDS.iter().map(|row| Reply::text(row.name));
            Reply::Array(names.collect())
        } else if words.keyword("INFO") {
            let mut found = Vec::new();
            while let Some(name) = words.next_bytes() {
                let row = COMMANDS
                    .iter()
                    .find(|row| row.name.as_bytes().eq_ignore_ascii_case(name));
                found.push(Reply::optional(row, description));
            }
            Reply::Array(found)
        } else {
            let known = "COUNT, DOCS, LIST, INFO";
            return Err(unknown_word("COMMAND", words.text("a word")?, known));
        };
        Ok(Answered::Now(reply))
    }

    /// `INFO [section]`: what Redis tools look for, and the node's own numbers.
    pub(super) fn info(&mut self, _: ClientId, _: Words<'_>) -> Outcome {
        let mut text = format!(
            "# Server\r\ntestigo_version:{}\r\nredis_version:7.2.0\r\nredis_mode:standalone\r\nrole:master\r\n# Testigo\r\n",
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in self.status_rows() {
            if let Value::Number(number) = value {
                text.push_str(&format!("{name}:{number}\r\n"));
            }
        }
        Ok(Answered::Now(Reply::text(text)))
    }

    /// `STATUS`: the node in a dozen lines.
    pub(super) fn status(&mut self, _: ClientId, words: Words<'_>) -> Outcome {
        words.end()?;
        let rows = self.status_rows().into_iter().map(|(name, value)| {
            let reply = match value {
                Value::Number(number) => Reply::number(number),
                Value::Text(text) => Reply::text(text),
                Value::List(texts) => Reply::Array(texts.into_iter().map(Reply::text).collect()),
            };
            (name, reply)
        });
        Ok(Answered::Now(Reply::Map(rows.collect())))
    }

    /// `STATE [pattern [GATE|SESSIONS|WAITS|FLOWS|LIVE]]`: what the console shows, or a part of it, as JSON.
    pub(super) fn state(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let pattern = match words.left() {
            0 => "*",
            _ => words.text("the pattern")?,
        };
        let part = match words.left() {
            0 => Part::default(),
            _ => {
                let word = words.text("the part")?;
                let part = Part::of(word);
                part.ok_or_else(|| {
                    unknown_word("STATE", word, "GATE, SESSIONS, WAITS, FLOWS, LIVE")
                })?
            }
        };
        words.end()?;
        let user = Arc::clone(self.user(id)?);
        let mut flows = FlowsMaker::new(Arc::clone(&user), part == Part::Flows);
        let mut state = StateMaker::new(pattern, part, user)?;
        self.in_slices(id, move |house, slice| {
            let text = match part.is_of_flows() {
                true => flows
                    .slice(house, slice)
                    .map(|flows| serde_json::to_string(&flows)),
                false => state
                    .slice(house, slice)
                    .map(|state| serde_json::to_string(&state)),
            };
            let text = text.map(Result::unwrap_or_default);
            Ok(text.map(|text| Answer::Reply(Reply::text(text))))
        })?;
        Ok(Answered::Later)
    }

    fn status_rows(&self) -> Vec<(&'static str, Value)> {
        let [gates, sessions, holds, waits] = self.local().sizes();
        let counters = self.local().counters();
        let log = self.submissions.size();
        let disk = self.submissions.trouble().unwrap_or_else(|| "ok".into());
        let awaited = self.local().awaited_sessions();
        let awaited: Vec<String> = awaited.iter().map(|s| s.to_string()).collect();
        let number = Value::Number;
        let health = Health::of(self, Some(self.submissions.free_bytes()));
        let reasons: Vec<String> = health.reasons().iter().map(Reason::to_string).collect();
        let mut rows = vec![
            ("version", Value::Text(env!("CARGO_PKG_VERSION").into())),
            ("ready", number(reasons.is_empty().into())),
            ("reasons", Value::List(reasons)),
            ("uptime_ms", number(self.now())),
            ("start", number(self.start().0)),
            (
                "number",
                number(self.replicated().ownership().highest().0.into()),
            ),
            ("epoch", number(self.start().0)),
            ("recovering", number(self.local().recovering().into())),
            ("awaited", number(self.local().awaited() as u64)),
            ("awaited_sessions", Value::Text(awaited.join(" "))),
            ("disk", Value::Text(disk)),
            ("connections", number(self.connections.len() as u64)),
            ("gates", number(gates as u64)),
            ("elections", number(self.local().elections() as u64)),
            ("sessions", number(sessions as u64)),
            ("holds", number(holds as u64)),
            ("waits", number(waits as u64)),
            ("once_keys", number(self.replicated().once_keys() as u64)),
            ("log_entries", number(log.entries)),
            ("log_bytes", number(log.bytes)),
            ("connections_ever", number(self.connections.ever())),
            ("commands_ever", number(self.counters().commands)),
            ("slices_ever", number(self.counters().slices)),
            ("grants_ever", number(counters.grants)),
            ("releases_ever", number(counters.releases)),
            ("losses_ever", number(counters.losses)),
            ("waits_ever", number(counters.waits)),
            ("waits_ended_ever", number(counters.waits_ended)),
            ("deadlocks_ever", number(counters.deadlocks)),
            ("terms_ever", number(counters.terms)),
        ];
        rows.push((
            "unfinished_bytes",
            number(self.connections.unfinished_bytes() as u64),
        ));
        rows.push((
            "subscriptions",
            number(self.connections.channels.total() as u64),
        ));
        rows.push((
            "unread_bytes",
            number(self.connections.unread().bytes() as u64),
        ));
        rows.push((
            "unaccepted_ever",
            number(self.connections.closings().unaccepted()),
        ));
        rows.extend(
            Closing::ALL.map(|why| (why.status(), number(self.connections.closings().count(why)))),
        );
        rows
    }
}

enum Value {
    Number(u64),
    Text(String),
    List(Vec<String>),
}

/// A command as Redis clients read it: name, arity, flags, and no keys.
fn description(row: &CommandRow) -> Reply {
    Reply::Array(vec![
        Reply::text(row.name.to_ascii_lowercase()),
        Reply::Int(-(row.words_min as i64)),
        Reply::Array(Vec::new()),
        Reply::Int(0),
        Reply::Int(0),
        Reply::Int(0),
    ])
}
