//! What would change if one flow took the place of another, and which jobs would be stranded by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::canonical::values;
use crate::{Graph, Name, Subject, Value};

/// The difference between two flows. Empty when they mean the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub changes: Vec<Change>,
    /// Queues that would vanish with jobs in them: such a change is refused.
    pub stranded: Vec<Stranded>,
}

/// One change, as a line that starts with `+`, `-` or `~`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    pub kind: ChangeKind,
    /// Such as `queue audit` or `[orders] -> price`.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    Added,
    Removed,
    Changed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stranded {
    pub queue: Name,
    pub jobs: u64,
    /// What the first of them are called, as far as whoever plans knows.
    pub names: Vec<String>,
}

impl Plan {
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// Compares two flows. `jobs` says how many jobs are in the queues of the old one, waiting and held; a queue that it does
/// not name has none.
pub fn plan(old: &Graph, new: &Graph, jobs: &BTreeMap<Name, u64>) -> Plan {
    let mut plan = Plan::default();
    let removed = plan.names("queue", names(&old.queues), names(&new.queues));
    plan.names("process", names(&old.processes), names(&new.processes));
    plan.lists(arrows(old), arrows(new));
    for subject in subjects(old, new) {
        plan.declarations(&subject, old, new);
    }
    for queue in removed {
        let jobs = jobs.get(queue).copied().unwrap_or(0);
        if jobs > 0 {
            plan.stranded.push(Stranded {
                queue: queue.clone(),
                jobs,
                names: Vec::new(),
            });
        }
    }
    plan
}

impl Plan {
    fn push(&mut self, kind: ChangeKind, what: String) {
        self.changes.push(Change { kind, what });
    }

    /// What came and what went; gives what went.
    fn names<'a>(
        &mut self,
        what: &str,
        old: BTreeSet<&'a Name>,
        new: BTreeSet<&'a Name>,
    ) -> Vec<&'a Name> {
        for name in new.difference(&old) {
            self.push(ChangeKind::Added, format!("{what} {name}"));
        }
        let removed: Vec<&Name> = old.difference(&new).copied().collect();
        for name in &removed {
            self.push(ChangeKind::Removed, format!("{what} {name}"));
        }
        removed
    }

    fn lists(&mut self, old: BTreeSet<String>, new: BTreeSet<String>) {
        for arrow in new.difference(&old) {
            self.push(ChangeKind::Added, arrow.clone());
        }
        for arrow in old.difference(&new) {
            self.push(ChangeKind::Removed, arrow.clone());
        }
    }

    fn declarations(&mut self, subject: &Subject, old: &Graph, new: &Graph) {
        let (old, new) = (values(old, subject), values(new, subject));
        let of = |values: &[Value], word: &str| -> Option<String> {
            let found = values.iter().find(|value| value.word() == word)?;
            Some(found.to_string())
        };
        for word in ["limit", "order", "retries", "reject", "rights", "data"] {
            let what = |text: String| format!("{subject}: {text}");
            match (of(&old, word), of(&new, word)) {
                (None, Some(new)) => self.push(ChangeKind::Added, what(new)),
                (Some(old), None) => self.push(ChangeKind::Removed, what(old)),
                (Some(old), Some(new)) if old != new => {
                    self.push(ChangeKind::Changed, what(format!("{old}, then {new}")));
                }
                _ => {}
            }
        }
    }
}

fn names<T>(map: &BTreeMap<Name, T>) -> BTreeSet<&Name> {
    map.keys().collect()
}

/// Who may do what, one line each.
fn arrows(graph: &Graph) -> BTreeSet<String> {
    let mut arrows = BTreeSet::new();
    for (name, process) in &graph.processes {
        arrows.extend(
            process
                .takes
                .iter()
                .map(|queue| format!("[{queue}] -> {name}")),
        );
        arrows.extend(
            process
                .passes
                .iter()
                .map(|queue| format!("{name} -> [{queue}]")),
        );
        let creates = process.creates.iter();
        arrows.extend(creates.map(|queue| format!("{name} creates into [{queue}]")));
        let deletes = process.deletes.iter();
        arrows.extend(deletes.map(|queue| format!("{name} deletes from [{queue}]")));
    }
    arrows
}

/// The flow and what is in both; what came or went brings or takes its declarations along.
fn subjects(old: &Graph, new: &Graph) -> Vec<Subject> {
    let queues = new
        .queues
        .keys()
        .filter(|name| old.queues.contains_key(*name));
    let processes = new
        .processes
        .keys()
        .filter(|name| old.processes.contains_key(*name));
    let queues = queues.cloned().map(Subject::Queue);
    let processes = processes.cloned().map(Subject::Process);
    [Subject::Flow]
        .into_iter()
        .chain(queues)
        .chain(processes)
        .collect()
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.kind {
            ChangeKind::Added => '+',
            ChangeKind::Removed => '-',
            ChangeKind::Changed => '~',
        };
        write!(f, "{sign} {}", self.what)
    }
}

impl fmt::Display for Stranded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stranded { queue, jobs, names } = self;
        let more = jobs.saturating_sub(names.len() as u64);
        let jobs = match jobs {
            1 => "1 job".to_owned(),
            jobs => format!("{jobs} jobs"),
        };
        let names = match (names.join(", "), more) {
            (names, _) if names.is_empty() => String::new(),
            (names, 0) => format!(" ({names})"),
            (names, more) => format!(" ({names} and {more} more)"),
        };
        write!(
            f,
            "[{queue}] would vanish with {jobs} in it{names}; drain it or move them first"
        )
    }
}
