//! What would change if one flow took the place of another, and which jobs would be stranded by it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::canonical::values;
use crate::{Graph, Name, Process, Subject, Value};

/// The difference between two flows. Empty when they mean the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub changes: Vec<Change>,
    /// Queues that would vanish with jobs in them: such a change is refused.
    pub stranded: Vec<Stranded>,
    /// Processes that would vanish or lose an arrow, by name.
    pub losing: Vec<Losing>,
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

/// A process that would vanish or lose an arrow. Such a change is not refused, but whoever works as the process feels it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Losing {
    pub process: Name,
    /// Its arrows that would go; none when the process itself goes.
    pub arrows: Vec<String>,
    /// Who works as the process, as far as whoever plans knows.
    pub clients: Vec<AtWork>,
}

/// A client that works as a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AtWork {
    pub id: u64,
    pub name: String,
    pub machine: String,
    /// The names of the jobs that it holds.
    pub jobs: Vec<String>,
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
    plan.losing = losing(old, new);
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

/// Which processes would be gone, or may do less.
fn losing(old: &Graph, new: &Graph) -> Vec<Losing> {
    let mut losing = Vec::new();
    for (name, process) in &old.processes {
        let arrows = match new.processes.get(name) {
            None => Vec::new(),
            Some(stays) => {
                let (had, has) = (arrows_of(name, process), arrows_of(name, stays));
                match had.difference(&has).cloned().collect::<Vec<_>>() {
                    lost if lost.is_empty() => continue,
                    lost => lost,
                }
            }
        };
        losing.push(Losing {
            process: name.clone(),
            arrows,
            clients: Vec::new(),
        });
    }
    losing
}

/// Who may do what, one line each.
fn arrows(graph: &Graph) -> BTreeSet<String> {
    let processes = graph.processes.iter();
    let arrows = processes.flat_map(|(name, process)| arrows_of(name, process));
    arrows.collect()
}

fn arrows_of(name: &Name, process: &Process) -> BTreeSet<String> {
    let takes = process.takes.iter();
    let takes = takes.map(|queue| format!("[{queue}] -> {name}"));
    let passes = process.passes.iter();
    let passes = passes.map(|queue| format!("{name} -> [{queue}]"));
    let creates = process.creates.iter();
    let creates = creates.map(|queue| format!("{name} creates into [{queue}]"));
    let deletes = process.deletes.iter();
    let deletes = deletes.map(|queue| format!("{name} deletes from [{queue}]"));
    takes.chain(passes).chain(creates).chain(deletes).collect()
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

/// One line for each client at work; nothing where there is none.
impl fmt::Display for Losing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Losing {
            process, arrows, ..
        } = self;
        let what = match arrows.join(", ") {
            arrows if arrows.is_empty() => "would be gone".to_owned(),
            arrows => format!("would lose {arrows}"),
        };
        for (at, client) in self.clients.iter().enumerate() {
            let end = if at > 0 { "\n" } else { "" };
            write!(f, "{end}{client} works as {process}, which {what}")?;
        }
        Ok(())
    }
}

impl fmt::Display for AtWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AtWork {
            id,
            name,
            machine,
            jobs,
        } = self;
        write!(f, "client {id} (")?;
        if !name.is_empty() {
            write!(f, "{name}, ")?;
        }
        write!(f, "{machine})")?;
        match jobs.join(", ") {
            jobs if jobs.is_empty() => Ok(()),
            jobs => write!(f, " with {jobs} in hand"),
        }
    }
}
