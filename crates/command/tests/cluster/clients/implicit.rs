//! Clients without a session of their own: what they hold ends with their connection. They are inside, for certain, from
//! the answer to `LOCK` until they sent the last command whose answer proves that they still were.

use super::{Client, WAIT_MS};
use crate::check::exclusion::Hold;
use crate::check::fences::Grant;
use crate::door::Heard;
use crate::stage::Stage;
use crate::up::Value;

pub(crate) fn run(stage: &Stage, number: u64) {
    let mut client = Client::new(stage, number);
    while client.rests(8) && client.stay().is_some() {}
}

impl Client<'_> {
    /// Enters a gate, uses what it protects, and leaves. Nothing when the run is over.
    fn stay(&mut self) -> Option<()> {
        let (stage, number) = (self.stage, self.number);
        let (gate, mode) = match self.below(3) {
            0 => (self.one_of(stage.gates.shared), self.one_of(&[true, false])),
            _ => (self.one_of(stage.gates.mutexes), true),
        };
        let uses = self.below(4);
        let long = self.below(20) == 0;
        let room = self.room();
        let (door, _) = self.connected()?;
        let mut words = vec!["LOCK", gate];
        words.extend(stage.gates.mode(gate, mode, &room));
        words.extend(["WAIT", WAIT_MS]);
        let said = door.call(&words);
        let fence = match said.heard {
            Heard::Answer(Value::Int(fence)) => fence,
            Heard::Answer(Value::Nil) => return Some(()),
            Heard::Answer(other) => {
                stage.fail(format!("{words:?} was answered {other}"));
                return None;
            }
            Heard::Refused(why) => {
                // The session of a connection ends when its node is cut off; a moment later the connection does.
                let expected = ["UNAVAILABLE", "BUSY", "STALE"];
                if !expected.iter().any(|word| why.starts_with(word)) {
                    stage.fail(format!("{words:?} of a client without holds: {why}"));
                    return None;
                }
                stage.count("refused");
                self.leave();
                return Some(());
            }
            Heard::Unknown => {
                self.leave();
                return Some(());
            }
        };
        stage.count("grants");
        let mut hold = Hold {
            gate: gate.to_owned(),
            client: number,
            exclusive: mode,
            fence,
            from: said.received,
            until: said.received,
        };
        stage.records().grants.push(Grant {
            gate: gate.to_owned(),
            client: number,
            exclusive: mode,
            fence,
            sent: said.sent,
            received: said.received,
        });
        let text = fence.to_string();
        let mut inside = true;
        for _ in 0..uses {
            let used = stage.records().store.uses(gate, number, mode, fence);
            stage.must(used)?;
            if !stage.goes_on_after(if long { 300 } else { 1 }) {
                break;
            }
            let said = self.present()?.call(&["FENCE", "CHECK", gate, &text]);
            match said.heard {
                Heard::Answer(Value::Int(1)) => hold.until = hold.until.max(said.sent),
                Heard::Answer(other) => {
                    let why = format!("client {number} holds {gate} under {fence}: {other}");
                    stage.fail(why);
                    return None;
                }
                Heard::Refused(_) => {}
                Heard::Unknown => {
                    inside = false;
                    break;
                }
            }
        }
        if inside {
            let said = self.present()?.call(&["UNLOCK", gate, &text]);
            match said.heard {
                Heard::Answer(_) => hold.until = hold.until.max(said.sent),
                Heard::Refused(why) if why.starts_with("UNAVAILABLE") => self.leave(),
                Heard::Refused(why) => {
                    stage.fail(format!(
                        "client {number} holds {gate} under {fence}: UNLOCK: {why}"
                    ));
                    return None;
                }
                Heard::Unknown => self.leave(),
            }
        } else {
            self.leave();
        }
        stage.records().holds.push(hold);
        Some(())
    }
}
