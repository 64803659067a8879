//! Clients that create jobs, and clients that move them through a flow: pass, delete, give back, replace one by another
//! in a unit of work, or vanish with a job in hand.

use testigo_core::monitor::Fate;

use super::{Client, WAIT_MS};
use crate::check::jobs::{End, Take};
use crate::door::Heard;
use crate::stage::Stage;
use crate::up::Value;

pub(crate) const FLOW: &str = "\
    intake -> [orders] -> price -> [priced] -> bill\n\
    [rejected] -> mend -> [orders] -> price -> [priced] -> bill\n\
    queue orders { limit 100; retries 1; reject [rejected] }\n\
    queue priced { retries 3; reject [rejected] }\n";
pub(crate) const FLOW_NAME: &str = "shop";
const QUEUES: [&str; 3] = ["shop/orders", "shop/priced", "shop/rejected"];

pub(crate) fn create(stage: &Stage, number: u64) {
    let mut client = Client::new(stage, number);
    for nth in 0.. {
        if !client.rests(30) || client.creates(&format!("job-{number}-{nth}")).is_none() {
            return;
        }
    }
}

pub(crate) fn work(stage: &Stage, number: u64) {
    let mut client = Client::new(stage, number);
    while client.rests(8) && client.works().is_some() {}
}

/// Refusals that say nothing worse than that it is not the time, or that the job is somebody else's by now.
const EXPECTED: [&str; 8] = [
    "UNAVAILABLE",
    "BUSY",
    "FULL",
    "NOTYOURS",
    "STALE",
    "NOJOB",
    "LIMIT",
    "EXECABORT",
];

/// What an answer says of a change.
fn fate(heard: &Heard) -> Fate {
    match heard {
        Heard::Answer(_) => Fate::Yes,
        Heard::Refused(_) => Fate::No,
        Heard::Unknown => Fate::Unknown,
    }
}

impl Client<'_> {
    fn creates(&mut self, name: &str) -> Option<()> {
        let stage = self.stage;
        let (door, _) = self.connected()?;
        stage.records().jobs.created(name, Fate::Unknown);
        let said = door.call(&["JOB", "CREATE", QUEUES[0], name, name]);
        stage.records().jobs.created(name, fate(&said.heard));
        self.go_on(&said.heard, "jobs");
        Some(())
    }

    /// Whoever is not served looks elsewhere.
    fn go_on(&mut self, heard: &Heard, what: &'static str) {
        match heard {
            Heard::Answer(_) => self.stage.count(what),
            Heard::Refused(why) if why.starts_with("UNAVAILABLE") => {
                self.stage.count("refused");
                self.leave();
                self.stage.goes_on_after(30);
            }
            Heard::Refused(why) if EXPECTED.iter().any(|word| why.starts_with(word)) => {}
            Heard::Refused(why) => self.stage.fail(format!("no {what}: {why}")),
            Heard::Unknown => self.leave(),
        }
    }

    fn works(&mut self) -> Option<()> {
        let (stage, client) = (self.stage, self.number);
        let [first, second] = match self.below(2) {
            0 => [QUEUES[1], QUEUES[0]],
            _ => [QUEUES[2], QUEUES[1]],
        };
        let (door, _) = self.connected()?;
        let said = door.call(&["JOB", "TAKE", first, second, "WAIT", WAIT_MS]);
        let row = match &said.heard {
            Heard::Answer(Value::List(row)) => row.clone(),
            Heard::Answer(_) => return Some(()),
            other => {
                let other = other.clone();
                self.go_on(&other, "takes");
                return Some(());
            }
        };
        let [
            Value::Int(id),
            Value::Text(name),
            Value::Text(queue),
            Value::Int(attempt),
            Value::Text(body),
        ] = &row[..]
        else {
            stage.fail(format!("JOB TAKE was answered {row:?}"));
            return None;
        };
        if body != name {
            stage.fail(format!("job {name} has another's body: {body}"));
            return None;
        }
        stage.count("takes");
        let take = Take {
            client,
            attempt: *attempt,
            sent: said.sent,
            received: said.received,
        };
        stage.records().jobs.taken(name, take);
        if self.below(30) == 0 {
            stage.goes_on_after(500);
        }
        let (id, attempt_text) = (id.to_string(), attempt.to_string());
        match self.below(12) {
            0 => self.leave(),
            1 => {
                let said = self.present()?.call(&["JOB", "BACK", &id, &attempt_text]);
                self.go_on(&said.heard, "given back");
            }
            2 | 3 => self.replaces(name, &id, *attempt)?,
            _ if queue == QUEUES[1] => {
                let words = ["JOB", "DELETE", &id, &attempt_text];
                self.settles(name, *attempt, End::Deleted, &words)?;
            }
            _ => {
                let to = if queue == QUEUES[2] {
                    QUEUES[0]
                } else {
                    QUEUES[1]
                };
                let words = ["JOB", "PASS", &id, &attempt_text, to];
                self.settles(name, *attempt, End::Passed, &words)?;
            }
        }
        Some(())
    }

    fn settles(&mut self, job: &str, attempt: i64, end: End, words: &[&str]) -> Option<()> {
        let stage = self.stage;
        let which = stage.records().jobs.settles(job, attempt, end, stage.now());
        let said = self.present()?.call(words);
        let (fate, received) = (fate(&said.heard), said.received);
        stage.records().jobs.settled(which, fate, received);
        self.go_on(&said.heard, "settled");
        // A job that was refused for want of room is given back with the connection.
        if fate == Fate::No {
            self.leave();
        }
        Some(())
    }

    /// A unit of work: one job ends and another begins, both or neither.
    fn replaces(&mut self, job: &str, id: &str, attempt: i64) -> Option<()> {
        let stage = self.stage;
        // A name that no other unit of work gives.
        let next = format!("next-{}-{}", self.number, stage.now());
        let attempt_text = attempt.to_string();
        let end = End::Replaced(next.clone());
        let which = stage.records().jobs.settles(job, attempt, end, stage.now());
        let door = self.present()?;
        let mut fate_of_unit = Fate::No;
        let parts: [&[&str]; 3] = [
            &["MULTI"],
            &["JOB", "DELETE", id, &attempt_text],
            &["JOB", "CREATE", QUEUES[1], &next, &next],
        ];
        let collected = parts
            .iter()
            .all(|words| matches!(door.call(words).heard, Heard::Answer(_)));
        // Nothing is done before EXEC.
        if collected {
            let said = door.call(&["EXEC"]);
            fate_of_unit = fate(&said.heard);
        }
        let received = stage.now();
        let mut records = stage.records();
        records.jobs.settled(which, fate_of_unit, received);
        drop(records);
        match fate_of_unit {
            Fate::Yes => stage.count("units"),
            // What was collected is forgotten with the connection.
            _ => self.leave(),
        }
        Some(())
    }
}
