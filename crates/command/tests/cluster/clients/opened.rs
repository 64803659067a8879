//! Clients with an opened session. They believe in what they hold for 9/10 of the TTL, counted from when they sent the
//! last command that was answered; meanwhile they may lose their node, resume elsewhere with their receipts, and go on.

use std::collections::BTreeMap;

use super::{Client, WAIT_MS};
use crate::check::Time;
use crate::check::exclusion::Hold;
use crate::check::fences::Grant;
use crate::door::{Heard, Said, field, text};
use crate::stage::Stage;
use crate::up::Value;

const TTL_MS: u64 = 4_000;
const BELIEVED_US: u64 = TTL_MS * 900;

pub(crate) fn run(stage: &Stage, number: u64) {
    let mut worker = Worker {
        client: Client::new(stage, number),
        session: None,
    };
    for turn in 0.. {
        if !worker.client.rests(8) || worker.turn(turn).is_none() {
            return;
        }
    }
}

struct Worker<'a> {
    client: Client<'a>,
    session: Option<Session>,
}

struct Session {
    id: i64,
    /// When the last command was sent that was answered.
    renewed: Time,
    holds: BTreeMap<&'static str, Held>,
}

#[derive(Clone)]
struct Held {
    exclusive: bool,
    fence: i64,
    receipt: Option<String>,
    from: Time,
}

impl Session {
    fn deadline(&self) -> Time {
        self.renewed + BELIEVED_US
    }
}

/// What became of a command.
enum Outcome {
    Answer(Value),
    Refused(String),
    /// The session was believed in for as long as possible, and is no more.
    Gone,
}

impl Worker<'_> {
    /// Enters some gates, uses what they protect, and leaves. Nothing when the run is over.
    fn turn(&mut self, turn: u64) -> Option<()> {
        let stage = self.client.stage;
        let (mutexes, shared) = (stage.gates.mutexes, stage.gates.shared);
        let wanted: Vec<(&'static str, bool)> = match self.client.below(6) {
            0 | 1 => {
                let exclusive = self.client.below(2) == 0;
                vec![(self.client.one_of(shared), exclusive)]
            }
            2 => {
                let at = self.client.below(mutexes.len() as u64) as usize;
                let other = mutexes[(at + 1) % mutexes.len()];
                vec![(mutexes[at], true), (other, true)]
            }
            _ => vec![(self.client.one_of(mutexes), true)],
        };
        if !self.enter(&wanted, turn)? {
            return Some(());
        }
        let long = self.client.below(15) == 0;
        for _ in 0..self.client.below(5) {
            if !self.uses()? || !stage.goes_on_after(if long { 400 } else { 1 }) {
                break;
            }
            // Now and then it moves on with what it holds.
            if self.client.below(25) == 0 {
                self.client.leave();
            }
            let asked = match self.client.below(2) {
                0 => self.ask(&["PING"])?,
                _ => self.ask(&["SESSION", "INFO"])?,
            };
            if matches!(asked, Outcome::Gone) {
                return Some(());
            }
        }
        for (gate, _) in wanted {
            self.exit(gate)?;
        }
        Some(())
    }

    /// Whether it is inside all of them.
    fn enter(&mut self, wanted: &[(&'static str, bool)], turn: u64) -> Option<bool> {
        let stage = self.client.stage;
        let id = format!("{}-{turn}", self.client.number);
        let count = wanted.len().to_string();
        let room = self.client.room();
        let mut words = match wanted.len() {
            1 => vec!["LOCK"],
            _ => vec!["LOCKALL", &count],
        };
        for (gate, exclusive) in wanted {
            words.push(gate);
            words.extend(stage.gates.mode(gate, *exclusive, &room));
        }
        words.extend(["WAIT", WAIT_MS, "ID", &id, "RECEIPT"]);
        let sent = stage.now();
        let grants = match self.ask(&words)? {
            Outcome::Answer(grant @ Value::List(_)) if wanted.len() == 1 => vec![grant],
            Outcome::Answer(Value::List(grants)) => grants,
            Outcome::Answer(Value::Nil) | Outcome::Gone => return Some(false),
            Outcome::Answer(other) => {
                stage.fail(format!("{words:?} was answered {other}"));
                return None;
            }
            // It was granted while nobody could be told, and not remembered under its ID.
            Outcome::Refused(why) if why.starts_with("HELD") => {
                stage.count("held before");
                for (gate, _) in wanted {
                    if matches!(self.ask(&["UNLOCK", gate])?, Outcome::Gone) {
                        break;
                    }
                }
                return Some(false);
            }
            Outcome::Refused(why) => {
                stage.fail(format!("{words:?} of a session without holds: {why}"));
                return None;
            }
        };
        let received = stage.now();
        for ((gate, exclusive), grant) in wanted.iter().zip(&grants) {
            let (fence, receipt) = match grant {
                Value::List(both) => match &both[..] {
                    [Value::Int(fence), receipt] => (*fence, text(receipt).map(str::to_owned)),
                    other => panic!("{other:?} is no grant"),
                },
                other => panic!("{other} is no grant"),
            };
            stage.count("grants");
            stage.records().grants.push(Grant {
                gate: (*gate).to_owned(),
                client: self.client.number,
                exclusive: *exclusive,
                fence,
                sent,
                received,
            });
            let held = Held {
                exclusive: *exclusive,
                fence,
                receipt,
                from: received,
            };
            let session = self.session.as_mut()?;
            session.holds.insert(gate, held);
        }
        Some(true)
    }

    /// Uses what it holds, if it still believes.
    fn uses(&mut self) -> Option<bool> {
        let stage = self.client.stage;
        let Some(session) = &self.session else {
            return Some(false);
        };
        for (gate, held) in &session.holds {
            if stage.now() >= session.deadline() {
                return Some(false);
            }
            let (number, exclusive) = (self.client.number, held.exclusive);
            let used = stage
                .records()
                .store
                .uses(gate, number, exclusive, held.fence);
            stage.must(used)?;
        }
        Some(true)
    }

    fn exit(&mut self, gate: &'static str) -> Option<()> {
        let stage = self.client.stage;
        let Some(session) = &mut self.session else {
            return Some(());
        };
        // From here on it does nothing that the gate protects, whatever becomes of the command.
        let Some(held) = session.holds.remove(gate) else {
            return Some(());
        };
        let until = stage.now().min(session.deadline());
        self.record(gate, &held, until);
        let fence = held.fence.to_string();
        match self.ask(&["UNLOCK", gate, &fence])? {
            Outcome::Answer(_) | Outcome::Gone => Some(()),
            // Done before, and the answer was lost.
            Outcome::Refused(why) if why.starts_with("NOTHELD") => Some(()),
            Outcome::Refused(why) => {
                stage.fail(format!("UNLOCK {gate} {fence}: {why}"));
                None
            }
        }
    }

    fn record(&self, gate: &str, held: &Held, until: Time) {
        self.client.stage.records().holds.push(Hold {
            gate: gate.to_owned(),
            client: self.client.number,
            exclusive: held.exclusive,
            fence: held.fence,
            from: held.from,
            until,
        });
    }

    /// Asks, in its session, at whichever node answers, until it is answered or the session is no more. Nothing when the
    /// run is over.
    fn ask(&mut self, words: &[&str]) -> Option<Outcome> {
        let stage = self.client.stage;
        let began = self.session.is_some();
        loop {
            if self
                .session
                .as_ref()
                .is_some_and(|s| stage.now() >= s.deadline())
            {
                self.give_up();
            }
            // What was asked in one session is not asked in the next.
            if began && self.session.is_none() {
                return Some(Outcome::Gone);
            }
            let (_, fresh) = self.client.connected()?;
            if (fresh || self.session.is_none()) && !self.come_back()? {
                self.client.leave();
                stage.goes_on_after(30);
                continue;
            }
            let Said { sent, heard, .. } = self.client.present()?.call(words);
            match heard {
                Heard::Answer(value) => {
                    if let Some(session) = &mut self.session {
                        session.renewed = session.renewed.max(sent);
                    }
                    return Some(Outcome::Answer(value));
                }
                Heard::Unknown => self.client.leave(),
                Heard::Refused(why) if why.starts_with("UNAVAILABLE") => {
                    stage.count("refused");
                    self.client.leave();
                    stage.goes_on_after(30);
                }
                // It was resumed elsewhere by us, or has ended: the next RESUME says which.
                Heard::Refused(why) if why.starts_with("STALE") => self.client.leave(),
                Heard::Refused(why) => return Some(Outcome::Refused(why)),
            }
        }
    }

    /// Opens a session, or resumes it with what it holds. Whether that was done.
    fn come_back(&mut self) -> Option<bool> {
        let stage = self.client.stage;
        let Some(session) = &self.session else {
            let ttl = TTL_MS.to_string();
            let said = self
                .client
                .present()?
                .call(&["SESSION", "OPEN", "TTL", &ttl]);
            let Heard::Answer(Value::Int(id)) = said.heard else {
                return Some(false);
            };
            self.session = Some(Session {
                id,
                renewed: said.sent,
                holds: BTreeMap::new(),
            });
            return Some(true);
        };
        let room = self.client.room();
        let mut words = vec![
            "SESSION".to_owned(),
            "RESUME".into(),
            session.id.to_string(),
        ];
        words.extend(["HOLDING".to_owned(), session.holds.len().to_string()]);
        for (gate, held) in &session.holds {
            words.extend([(*gate).to_owned(), held.fence.to_string()]);
            let mode = self.client.stage.gates.mode(gate, held.exclusive, &room);
            words.extend(mode.into_iter().map(str::to_owned));
        }
        words.push("RECEIPTS".to_owned());
        let receipts = session.holds.values().map(|held| held.receipt.clone());
        words.extend(receipts.map(|receipt| receipt.unwrap_or_else(|| "-".into())));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (id, deadline) = (session.id, session.deadline());
        let said = self.client.present()?.call(&words);
        let early = said.received < deadline;
        match said.heard {
            Heard::Answer(resumed) => {
                stage.count("resumed");
                self.judge_claims(&resumed, early)?;
                let session = self.session.as_mut()?;
                session.renewed = session.renewed.max(said.sent);
                self.give_back_others(&resumed)
            }
            Heard::Refused(why) if why.starts_with("STALE") => {
                if early {
                    stage.fail(format!("session {id} ended before its time: {why}"));
                    return None;
                }
                self.give_up();
                Some(false)
            }
            Heard::Refused(why) if ["UNAVAILABLE", "BUSY"].iter().any(|w| why.starts_with(w)) => {
                Some(false)
            }
            Heard::Refused(why) => {
                stage.fail(format!("{words:?}: {why}"));
                None
            }
            Heard::Unknown => Some(false),
        }
    }

    /// Gives back what it has without having been told so: of waits that ended, and of releases that were not answered.
    /// Whether that was done.
    fn give_back_others(&mut self, resumed: &Value) -> Option<bool> {
        let Some(Value::List(holds)) = field(resumed, "holds") else {
            return Some(true);
        };
        let gates = holds.iter().filter_map(|hold| match hold {
            Value::List(both) => text(both.first()?),
            _ => None,
        });
        let session = self.session.as_ref()?;
        let others: Vec<&str> = gates
            .filter(|gate| !session.holds.contains_key(gate))
            .collect();
        for gate in others {
            self.client.stage.count("given back at once");
            let said = self.client.present()?.call(&["UNLOCK", gate]);
            if !matches!(said.heard, Heard::Answer(_)) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whoever believed in its holds until the answer came must have kept them.
    fn judge_claims(&mut self, resumed: &Value, early: bool) -> Option<()> {
        let stage = self.client.stage;
        let Some(Value::List(claims)) = field(resumed, "claims") else {
            stage.fail(format!("RESUME was answered {resumed}"));
            return None;
        };
        let session = self.session.as_mut()?;
        let gates: Vec<&'static str> = session.holds.keys().copied().collect();
        let deadline = session.deadline();
        for (gate, claim) in gates.into_iter().zip(claims.clone()) {
            if text(&claim) == Some("HELD") {
                stage.count("kept");
                continue;
            }
            let session = self.session.as_mut()?;
            let held = session.holds.remove(gate)?;
            if early && held.receipt.is_some() {
                let (id, fence) = (session.id, held.fence);
                stage.fail(format!(
                    "session {id} claimed {gate} under {fence} in time, with its receipt: {claim}"
                ));
                return None;
            }
            self.record(gate, &held, deadline);
        }
        Some(())
    }

    /// It does not believe any more. The deadline was the last moment at which it did.
    fn give_up(&mut self) {
        self.client.stage.count("given up");
        if let Some(session) = self.session.take() {
            let deadline = session.deadline();
            for (gate, held) in &session.holds {
                self.record(gate, held, deadline);
            }
        }
        self.client.leave();
    }
}
