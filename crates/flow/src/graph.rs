//! The one graph type that every pass works on: processes, queues, and who may do what with which queue. A [`Graph`]
//! may be half built, as an editor needs it; a [`Flow`](crate::Flow) is a graph that keeps the rules.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::limits::RETRIES_DEFAULT;
use crate::{Chain, Name};

/// Processes and queues by name. Two graphs are equal when they mean the same, however their texts were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Graph {
    pub processes: BTreeMap<Name, Process>,
    pub queues: BTreeMap<Name, Queue>,
    /// What holds for every queue that does not say otherwise.
    pub defaults: Defaults,
}

/// What the flow says for all of its queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    /// The reject queue of the flow.
    pub reject: Option<Name>,
    pub retries: Option<u32>,
}

/// What clients that present themselves under this name may do. All names are names of queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// May create new jobs into these; each is in `passes` as well.
    pub creates: BTreeSet<Name>,
    /// May take jobs from these.
    pub takes: BTreeSet<Name>,
    /// May pass jobs that it holds to these.
    pub passes: BTreeSet<Name>,
    /// May delete jobs that it took from these; each is in `takes` as well.
    pub deletes: BTreeSet<Name>,
    /// The most clients that may be presented as this process at a time.
    pub limit: Option<u32>,
    /// The users that may present themselves as this process; empty: every user.
    pub rights: BTreeSet<Name>,
}

/// A queue as declared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The most jobs, waiting and held together; a creator or passer finds the queue full beyond it.
    pub limit: Option<u32>,
    pub order: QueueOrder,
    /// How often a job may lose its worker here before it is rejected; see [`Graph::retries`].
    pub retries: Option<u32>,
    pub reject: Reject,
    /// The users that may administer this queue's jobs, besides administrators.
    pub rights: BTreeSet<Name>,
    /// Where the bodies are that jobs of this queue refer to.
    pub data: Option<String>,
}

/// Which waiting job is taken first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueOrder {
    /// The one that came first.
    #[default]
    Arrival,
    /// The most urgent class, and of one class the one that came first.
    Priority,
    /// The one whose name is the least in byte order.
    Key,
}

impl QueueOrder {
    pub const ALL: [QueueOrder; 3] = [QueueOrder::Arrival, QueueOrder::Priority, QueueOrder::Key];

    /// The word of the language.
    pub fn word(self) -> &'static str {
        match self {
            QueueOrder::Arrival => "arrival",
            QueueOrder::Priority => "priority",
            QueueOrder::Key => "key",
        }
    }
}

/// Where a queue's jobs go that keep losing their workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reject {
    /// To the flow's reject queue, if it has one.
    #[default]
    Inherited,
    /// Nowhere: they always come back to their queue.
    Never,
    To(Name),
}

impl Graph {
    /// Where a job of this queue goes after its last retry; `None`: back to the queue, always. A reject queue has no
    /// further one, unless it declares it.
    pub fn reject(&self, queue: &str) -> Option<&Name> {
        match &self.queues.get(queue)?.reject {
            Reject::To(name) => Some(name),
            Reject::Never => None,
            Reject::Inherited => {
                let flow = self.defaults.reject.as_ref()?;
                (**flow != *queue).then_some(flow)
            }
        }
    }

    /// How many workers a job of this queue may lose and still come back: with the next loss it is rejected.
    pub fn retries(&self, queue: &str) -> u32 {
        let own = self.queues.get(queue).and_then(|queue| queue.retries);
        own.or(self.defaults.retries).unwrap_or(RETRIES_DEFAULT)
    }

    /// The queues that others name as their reject queue: the node itself puts into them.
    pub fn reject_queues(&self) -> BTreeSet<&Name> {
        let named = self
            .queues
            .values()
            .filter_map(|queue| match &queue.reject {
                Reject::To(name) => Some(name),
                Reject::Inherited | Reject::Never => None,
            });
        named.chain(&self.defaults.reject).collect()
    }

    /// Adds what a chain says: equal names are one node, and what is said twice is said once.
    pub fn add_chain(&mut self, chain: &Chain) {
        for (at, queue) in chain.queues.iter().enumerate() {
            self.queues.entry(queue.clone()).or_default();
            if let Some(before) = chain.before(at) {
                let process = self.processes.entry(before.clone()).or_default();
                process.passes.insert(queue.clone());
                if at == 0 {
                    process.creates.insert(queue.clone());
                }
            }
            if let Some(after) = chain.after(at) {
                let process = self.processes.entry(after.clone()).or_default();
                process.takes.insert(queue.clone());
                if at + 1 == chain.queues.len() {
                    process.deletes.insert(queue.clone());
                }
            }
        }
    }

    /// The processes that put into a queue.
    pub fn putters<'a>(&'a self, queue: &'a str) -> impl Iterator<Item = &'a Name> {
        let puts = move |process: &&'a Process| process.passes.contains(queue);
        by(&self.processes, puts)
    }

    /// The processes that take from a queue.
    pub fn takers<'a>(&'a self, queue: &'a str) -> impl Iterator<Item = &'a Name> {
        let takes = move |process: &&'a Process| process.takes.contains(queue);
        by(&self.processes, takes)
    }

    /// How many arrows a drawing of the graph has.
    pub fn arrows(&self) -> usize {
        let arrows = |process: &Process| process.takes.len() + process.passes.len();
        self.processes.values().map(arrows).sum()
    }
}

fn by<'a>(
    processes: &'a BTreeMap<Name, Process>,
    which: impl Fn(&&'a Process) -> bool + 'a,
) -> impl Iterator<Item = &'a Name> {
    let chosen = processes.iter().filter(move |(_, process)| which(process));
    chosen.map(|(name, _)| name)
}
