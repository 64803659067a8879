//! What a flow means to the services: its queues with their rules, and for each process what the graph allows it. The
//! language that people write is another crate's business; here a flow is already checked.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::limits::SharedLimits;
use crate::name::Name;

/// A flow's queues and processes, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheme {
    /// The queues.
    pub queues: BTreeMap<Name, QueueRule>,
    /// The processes.
    pub processes: BTreeMap<Name, Role>,
}

/// How a queue treats its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRule {
    /// How many jobs may lie in it, including those held; more are refused with `FULL`.
    pub limit: Option<u64>,
    /// Which job is taken first.
    pub order: QueueOrder,
    /// How many deaths or failures of workers a job may cause here before it is rejected.
    pub retries: u32,
    /// The queue of the same flow to which it is rejected. Without one it stays, at the end of its queue.
    pub reject: Option<Name>,
    /// The users that may administer its jobs, in addition to administrators.
    pub users: BTreeSet<Name>,
    /// The directory in which programs keep the data of its jobs. It is only shown to them.
    pub directory: Option<String>,
}

/// Which job of a queue is taken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum QueueOrder {
    /// The one that came first.
    #[default]
    Arrival,
    /// The most urgent class first; within a class, the job that came first.
    Priority,
    /// The lowest name.
    Key,
}

impl QueueOrder {
    /// Its word in the language of flows.
    pub fn word(self) -> &'static str {
        match self {
            QueueOrder::Arrival => "arrival",
            QueueOrder::Priority => "priority",
            QueueOrder::Key => "key",
        }
    }

    /// The order with this word.
    pub(crate) fn of_word(word: &str) -> Option<QueueOrder> {
        let all = [QueueOrder::Arrival, QueueOrder::Priority, QueueOrder::Key];
        all.into_iter().find(|order| order.word() == word)
    }
}

/// What a process may do with which queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Queues in which it creates jobs.
    pub creates: BTreeSet<Name>,
    /// Queues from which it takes.
    pub takes: BTreeSet<Name>,
    /// Queues to which it passes.
    pub passes: BTreeSet<Name>,
    /// Queues whose jobs it takes and deletes.
    pub deletes: BTreeSet<Name>,
    /// How many clients may present themselves as this process at a time.
    pub limit: Option<u32>,
    /// The users that may present themselves as this process; empty: every user.
    pub users: BTreeSet<Name>,
}

/// Something that a flow may allow a process to do with a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueAct {
    /// Create a job in it.
    Create,
    /// Take a job from it.
    Take,
    /// Pass a job to it.
    Pass,
    /// Delete a job that was taken from it.
    Delete,
}

impl Role {
    /// Whether the graph allows it.
    pub fn may(&self, act: QueueAct, queue: &str) -> bool {
        let queues = match act {
            QueueAct::Create => &self.creates,
            QueueAct::Take => &self.takes,
            QueueAct::Pass => &self.passes,
            QueueAct::Delete => &self.deletes,
        };
        queues.contains(queue)
    }

    /// Its arrows: each queue that it puts jobs into, with `true`, and each that it takes jobs from, with `false`.
    pub fn arrows(&self) -> impl Iterator<Item = (&Name, bool)> {
        let into = self.creates.union(&self.passes).map(|queue| (queue, true));
        let out = self.takes.union(&self.deletes).map(|queue| (queue, false));
        into.chain(out)
    }
}

impl QueueAct {
    /// The act in a sentence: "may not … queue".
    pub fn words(self) -> &'static str {
        match self {
            QueueAct::Create => "create in",
            QueueAct::Take => "take from",
            QueueAct::Pass => "pass to",
            QueueAct::Delete => "delete from",
        }
    }
}

impl Scheme {
    /// Whether the services can run it: its sizes are within the limits, and every queue that it names exists.
    pub(crate) fn check(&self, limits: &SharedLimits) -> Result<(), Refusal> {
        let sizes = [
            ("flow_queues", self.queues.len(), limits.flow_queues),
            (
                "flow_processes",
                self.processes.len(),
                limits.flow_processes,
            ),
        ];
        for (limit, count, most) in sizes {
            if count > most {
                return Err(Refusal::new(
                    Word::Limit,
                    format!("the flow has {count}; the limit {limit} is {most}"),
                ));
            }
        }
        for (name, rule) in &self.queues {
            if let Some(reject) = &rule.reject {
                self.has(reject, || format!("the reject queue of {name}"))?;
            }
        }
        for (name, role) in &self.processes {
            let Role {
                creates,
                takes,
                passes,
                deletes,
                ..
            } = role;
            for queue in [creates, takes, passes, deletes].into_iter().flatten() {
                self.has(queue, || format!("a queue of process {name}"))?;
            }
        }
        Ok(())
    }

    fn has(&self, queue: &Name, what: impl Fn() -> String) -> Result<(), Refusal> {
        if self.queues.contains_key(queue) {
            return Ok(());
        }
        let what = what();
        Err(Refusal::new(
            Word::BadFlow,
            format!("{queue}, {what}, is not a queue of the flow"),
        ))
    }
}
