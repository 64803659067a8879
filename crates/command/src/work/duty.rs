//! What a process of a flow does with a job: where it takes from, and where a program's exit code sends it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use testigo_client::Value;

use crate::reach::Ended;

/// A program that cannot do it now and says so, as `sysexits.h` has it.
const TEMPORARY: u8 = 75;
/// A command that cannot run, as shells have it.
const UNRUNNABLE: [u8; 2] = [126, 127];

/// What becomes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Pass(String),
    Delete,
    /// It failed, which counts.
    Fail,
    /// It waits again, which does not count.
    Back,
    /// It waits again, and the harness ends with this code.
    Stop(u8),
}

/// An option `--exit CODE=WHAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    code: u8,
    way: Way,
}

/// A text that is no `CODE=WHAT`.
#[derive(Debug)]
pub(super) struct BadExit(String);

impl std::error::Error for BadExit {}

impl fmt::Display for BadExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(
            f,
            "{text:?} is no exit code and what it means; write for example 3=rework, 4=delete, 5=back or 6=fail"
        )
    }
}

impl FromStr for Exit {
    type Err = BadExit;

    fn from_str(text: &str) -> Result<Exit, BadExit> {
        let bad = || BadExit(text.to_owned());
        let (code, what) = text.split_once('=').ok_or_else(bad)?;
        let way = match what {
            "" | "[]" => return Err(bad()),
            "delete" => Way::Delete,
            "back" => Way::Back,
            "fail" => Way::Fail,
            queue => {
                let inside = queue.strip_prefix('[').and_then(|q| q.strip_suffix(']'));
                Way::Pass(inside.unwrap_or(queue).to_owned())
            }
        };
        let code = code.parse().map_err(|_| bad())?;
        Ok(Exit { code, way })
    }
}

/// What a process does, by the flow as it was shown and the options of the harness.
#[derive(Clone, Debug)]
pub(super) struct Duty {
    pub(super) flow: String,
    pub(super) process: String,
    /// The queues that it takes from.
    pub(super) inputs: Vec<String>,
    outputs: BTreeSet<String>,
    deletes: BTreeSet<String>,
    exits: BTreeMap<u8, Way>,
    /// The data directories of all queues of the flow that have one.
    pub(super) directories: BTreeMap<String, String>,
    /// The retries of the queues from which no job is rejected.
    staying: BTreeMap<String, u64>,
}

impl Duty {
    /// Reads it from `FLOW SHOW`, and refuses what leaves open where a job would go.
    pub(super) fn read(flow: &Value, process: &str, exits: &[Exit]) -> Result<Duty, Ended> {
        let name = flow.field("name").and_then(Value::text).unwrap_or_default();
        let rows = |field: &str| flow.field(field).and_then(Value::list).unwrap_or_default();
        let is = |row: &&Value| row.field("name").and_then(Value::text) == Some(process);
        let Some(role) = rows("processes").iter().find(is) else {
            let known = rows("processes").iter();
            let known: Vec<&str> = known.filter_map(|row| row.field("name")?.text()).collect();
            let known = known.join(", ");
            return Err(Ended::bad_input(format!(
                "flow {name} has no process {process}; it has {known}"
            )));
        };
        let names = |field: &str| -> BTreeSet<String> {
            let names = role.field(field).and_then(Value::list).unwrap_or_default();
            let names = names.iter().filter_map(Value::text);
            names.map(str::to_owned).collect()
        };
        let directory = |row: &Value| {
            let name = row.field("name")?.text()?;
            Some((name.to_owned(), row.field("data")?.text()?.to_owned()))
        };
        let staying = |row: &Value| {
            let name = row.field("name")?.text()?;
            let reject = row.field("reject").and_then(Value::text);
            let stays = reject.is_none_or(|reject| reject == name);
            let retries = row.field("retries").and_then(Value::number);
            stays.then(|| (name.to_owned(), retries.unwrap_or(0)))
        };
        let duty = Duty {
            flow: name.to_owned(),
            process: process.to_owned(),
            inputs: names("takes").into_iter().collect(),
            outputs: names("passes"),
            deletes: names("deletes"),
            exits: exits
                .iter()
                .map(|exit| (exit.code, exit.way.clone()))
                .collect(),
            directories: rows("queues").iter().filter_map(directory).collect(),
            staying: rows("queues").iter().filter_map(staying).collect(),
        };
        if duty.exits.len() < exits.len() {
            return Err(twice(exits));
        }
        duty.check()?;
        Ok(duty)
    }

    fn check(&self) -> Result<(), Ended> {
        let Duty { flow, process, .. } = self;
        if self.inputs.is_empty() {
            return Err(Ended::bad_input(format!(
                "process {process} of flow {flow} takes from no queue, so there is nothing to run for; it creates jobs \
                 with: testigo job create"
            )));
        }
        for (code, way) in &self.exits {
            let wrong = match way {
                Way::Pass(queue) if !self.outputs.contains(queue) => format!(
                    "process {process} passes nothing to queue {queue}; it may pass to {}",
                    listed(&self.outputs)
                ),
                Way::Delete if self.deletes.is_empty() => {
                    format!("process {process} may delete from no queue")
                }
                _ => continue,
            };
            return Err(Ended::bad_input(format!("--exit {code}: {wrong}")));
        }
        match self.inputs.iter().find(|queue| self.usual(queue).is_none()) {
            None => Ok(()),
            Some(queue) => {
                let also = match self.deletes.contains(queue) {
                    true => " or delete it",
                    false => "",
                };
                let first = self.outputs.first().map_or("delete", |queue| queue);
                Err(Ended::bad_input(format!(
                    "process {process} may pass a job from {queue} to {}{also}; say which is meant by exit code 0, for \
                     example --exit 0={first}",
                    listed(&self.outputs)
                )))
            }
        }
    }

    /// Where a job from a queue goes if its program ended well; nothing when that is not clear.
    fn usual(&self, from: &str) -> Option<Way> {
        if let Some(way) = self.exits.get(&0) {
            return Some(way.clone());
        }
        let mut outputs = self.outputs.iter();
        match (outputs.next(), outputs.next(), self.deletes.contains(from)) {
            (None, _, true) => Some(Way::Delete),
            (Some(queue), None, false) => Some(Way::Pass(queue.clone())),
            _ => None,
        }
    }

    /// What becomes of a job from a queue whose program ended with a code, or with none because of a signal.
    pub(super) fn way(&self, from: &str, code: Option<u8>) -> Way {
        let Some(code) = code else {
            return Way::Fail;
        };
        let way = match self.exits.get(&code) {
            Some(way) => way.clone(),
            None if code == 0 => self.usual(from).unwrap_or(Way::Back),
            None if code == TEMPORARY => Way::Back,
            None if UNRUNNABLE.contains(&code) => Way::Stop(code),
            None => Way::Fail,
        };
        match way {
            // The graph deletes from some of its queues only.
            Way::Delete if !self.deletes.contains(from) => Way::Fail,
            way => way,
        }
    }

    /// A queue's name within the flow.
    pub(super) fn bare<'a>(&self, queue: &'a str) -> &'a str {
        let inside = queue.strip_prefix(&self.flow);
        let inside = inside.and_then(|queue| queue.strip_prefix('/'));
        inside.unwrap_or(queue)
    }

    /// The retries of a queue in which a job stays however often it fails: nothing rejects it.
    pub(super) fn stays(&self, queue: &str) -> Option<u64> {
        self.staying.get(self.bare(queue)).copied()
    }

    /// The queues that a job may be passed to by some exit code.
    pub(super) fn destinations(&self) -> BTreeSet<&str> {
        let usual = self.inputs.iter().filter_map(|queue| self.usual(queue));
        let ways = self.exits.values().cloned().chain(usual);
        let queues = ways.filter_map(|way| match way {
            Way::Pass(queue) => self.outputs.get(&queue).map(String::as_str),
            _ => None,
        });
        queues.collect()
    }

    pub(super) fn describe(&self) -> String {
        let destinations: Vec<&str> = self.destinations().into_iter().collect();
        let to = match destinations.is_empty() {
            true => "deletes".to_owned(),
            false => format!("passes to {}", destinations.join(", ")),
        };
        let from = self.inputs.join(", ");
        format!("{}/{} takes from {from} and {to}", self.flow, self.process)
    }
}

/// Two meanings of one exit code.
fn twice(exits: &[Exit]) -> Ended {
    let mut said = BTreeSet::new();
    let again = exits.iter().find(|exit| !said.insert(exit.code));
    let code = again.map_or(0, |exit| exit.code);
    Ended::bad_input(format!(
        "--exit {code}=… is said twice; a code means one thing"
    ))
}

fn listed(queues: &BTreeSet<String>) -> String {
    match queues.is_empty() {
        true => "none".into(),
        false => queues
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn duty(
        takes: &[&str],
        passes: &[&str],
        deletes: &[&str],
        exits: &[&str],
    ) -> Result<Duty, String> {
        let text = |text: &str| Value::Text(text.into());
        let list = |names: &[&str]| Value::List(names.iter().map(|name| text(name)).collect());
        let process = Value::Map(vec![
            (text("name"), text("p")),
            (text("takes"), list(takes)),
            (text("passes"), list(passes)),
            (text("deletes"), list(deletes)),
        ]);
        let flow = Value::Map(vec![
            (text("name"), text("f")),
            (text("processes"), Value::List(vec![process])),
        ]);
        let exits: Vec<Exit> = exits.iter().map(|exit| exit.parse().expect(exit)).collect();
        Duty::read(&flow, "p", &exits).map_err(|ended| ended.why)
    }

    #[test]
    fn the_only_way_needs_no_option() {
        let passer = duty(&["a"], &["b"], &[], &[]).expect("clear");
        assert_eq!(passer.way("a", Some(0)), Way::Pass("b".into()));
        let deleter = duty(&["a"], &[], &["a"], &[]).expect("clear");
        assert_eq!(deleter.way("a", Some(0)), Way::Delete);
        assert_eq!(deleter.way("a", Some(1)), Way::Fail);
        assert_eq!(deleter.way("a", None), Way::Fail);
        assert_eq!(deleter.way("a", Some(75)), Way::Back);
        assert_eq!(deleter.way("a", Some(127)), Way::Stop(127));
    }

    #[test]
    fn several_ways_need_one() {
        let why = duty(&["a"], &["b", "c"], &[], &["3=c"]).expect_err("not clear");
        assert!(why.contains("--exit 0=b"), "{why}");
        let why = duty(&["a"], &["b"], &["a"], &[]).expect_err("not clear");
        assert!(why.contains("or delete it"), "{why}");
        let both = duty(&["a"], &["b"], &["a"], &["0=b", "4=delete", "127=fail"]).expect("clear");
        assert_eq!(both.way("a", Some(4)), Way::Delete);
        assert_eq!(both.way("a", Some(127)), Way::Fail);
    }

    #[test]
    fn what_the_graph_does_not_allow_is_refused() {
        let why = duty(&["a"], &["b"], &[], &["3=x"]).expect_err("no such output");
        assert!(why.contains("it may pass to b"), "{why}");
        let why = duty(&["a"], &["b"], &[], &["3=delete"]).expect_err("no deleter");
        assert!(why.contains("may delete from no queue"), "{why}");
        let why = duty(&["a"], &["b", "c"], &[], &["0=b", "3=c", "0=c"]).expect_err("two meanings");
        assert!(why.contains("--exit 0=… is said twice"), "{why}");
        let why = duty(&[], &["b"], &[], &[]).expect_err("a creator");
        assert!(why.contains("testigo job create"), "{why}");
    }

    #[test]
    fn a_queue_named_like_a_word_is_written_in_brackets() {
        let exit: Exit = "3=[delete]".parse().expect("a queue");
        assert_eq!(exit.way, Way::Pass("delete".into()));
        for text in ["", "3", "3=", "x=a", "256=a", "-1=a", "3=[]"] {
            let bad = text.parse::<Exit>().expect_err(text);
            assert!(bad.to_string().contains("3=rework"), "{text}");
        }
    }
}
