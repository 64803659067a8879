//! Clients that race for once-keys, each in a session of its own.

use super::Client;
use crate::door::{Door, Heard};
use crate::stage::{Stage, in_round};
use crate::up::Value;

/// Keys of a round.
const KEYS: u64 = 3;

pub(crate) fn run(stage: &Stage, number: u64) {
    let mut client = Client::new(stage, number);
    while client.rests(120) && client.races().is_some() {}
}

impl Client<'_> {
    fn races(&mut self) -> Option<()> {
        let stage = self.stage;
        let key = in_round("once", stage.round(), self.below(KEYS));
        let end = self.below(4);
        let (door, fresh) = self.connected()?;
        if fresh && !opened(door) {
            self.leave();
            return Some(());
        }
        let said = door.call(&["ONCE", "START", &key, "0"]);
        let attempt = match &said.heard {
            Heard::Answer(Value::List(row)) => match &row[..] {
                [Value::Text(word), Value::Int(attempt)] if word == "RUN" => *attempt,
                [Value::Text(word), ..] if word == "DONE" => return Some(()),
                _ => {
                    let found = stage.records().once.undone(&key, said.sent);
                    return stage.must(found);
                }
            },
            Heard::Refused(why) if why.starts_with("BUSY") => {
                let found = stage.records().once.undone(&key, said.sent);
                return stage.must(found);
            }
            _ => {
                self.leave();
                return Some(());
            }
        };
        let found = stage.records().once.runs(&key, attempt, said.sent);
        stage.must(found)?;
        stage.count("once");
        let attempt = attempt.to_string();
        match end {
            // It leaves without a word.
            0 => self.leave(),
            1 => {
                let number = attempt.parse().unwrap_or(0);
                stage.records().once.abandons(&key, number);
                let said = self.present()?.call(&["ONCE", "ABANDON", &key, &attempt]);
                if !matches!(said.heard, Heard::Answer(_)) {
                    self.leave();
                }
            }
            _ => {
                let said = self.present()?.call(&["ONCE", "DONE", &key, "0", &attempt]);
                match said.heard {
                    Heard::Answer(_) => stage.records().once.done(&key, said.received),
                    _ => self.leave(),
                }
            }
        }
        Some(())
    }
}

fn opened(door: &mut Door<'_>) -> bool {
    let said = door.call(&["SESSION", "OPEN", "TTL", "2000"]);
    matches!(said.heard, Heard::Answer(Value::Int(_)))
}
