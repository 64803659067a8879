//! Clients that create, delete and look at gates, at any node.

use super::Client;
use crate::check::linear::{Answer, Ask, Call};
use crate::door::{Heard, field, text};
use crate::stage::{Stage, in_round};
use crate::up::Value;

/// Names of a round.
const NAMES: u64 = 4;
const RULES: [&str; 2] = ["MUTEX", "SHARED"];

pub(crate) fn run(stage: &Stage, number: u64) {
    let mut client = Client::new(stage, number);
    while client.rests(60) && client.defines().is_some() {}
}

impl Client<'_> {
    fn defines(&mut self) -> Option<()> {
        let stage = self.stage;
        let name = in_round("defined", stage.round(), self.below(NAMES));
        let ask = match self.below(5) {
            0 | 1 => Ask::Create(self.one_of(&RULES).to_owned()),
            2 => Ask::Delete,
            _ => Ask::Show,
        };
        if self.below(4) == 0 {
            self.leave();
        }
        let (door, _) = self.connected()?;
        let words = match &ask {
            Ask::Create(rule) => vec!["GATE", "CREATE", &name, rule],
            Ask::Delete => vec!["GATE", "DELETE", &name],
            Ask::Show => vec!["GATE", "SHOW", &name],
        };
        // It may be done from now on, also if nobody ever says so.
        let mut records = stage.records();
        let calls = records.definitions.entry(name.clone()).or_default();
        let at = calls.len();
        calls.push(Call::begun(ask.clone(), stage.now()));
        drop(records);
        let said = door.call(&words);
        let answer = match &said.heard {
            Heard::Answer(Value::Simple(_)) => Some(Answer::Done),
            Heard::Answer(map) if ask == Ask::Show => {
                let rule = field(map, "rule").and_then(text).unwrap_or("?");
                Some(Answer::Found(rule.to_owned()))
            }
            Heard::Answer(other) => {
                stage.fail(format!("{words:?} was answered {other}"));
                return None;
            }
            heard if heard.is_refused("NOGATE") => Some(Answer::NoGate),
            Heard::Refused(_) | Heard::Unknown => None,
        };
        let mut records = stage.records();
        let calls = records.definitions.get_mut(&name);
        let Some(call) = calls.and_then(|calls| calls.get_mut(at)) else {
            // The round is long over, and it was judged as unknown.
            return Some(());
        };
        match (answer, &said.heard) {
            // Nothing was done: it is as if it had only looked, and not said what it saw.
            (None, Heard::Refused(_)) => call.ask = Ask::Show,
            (answer, _) => {
                call.received = if answer.is_some() {
                    said.received
                } else {
                    call.received
                };
                call.answer = answer;
            }
        }
        drop(records);
        match said.heard {
            Heard::Answer(_) => stage.count("definitions"),
            heard if heard.is_refused("UNAVAILABLE") => {
                stage.count("refused");
                self.leave();
            }
            Heard::Unknown => self.leave(),
            Heard::Refused(_) => {}
        }
        Some(())
    }
}
