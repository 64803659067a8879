//! What `flow check --json` prints: the findings, and the flow as lists of names.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{Diagnostic, Graph, Name, QueueOrder, Reading, Weight};

/// A reading for scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub valid: bool,
    pub errors: Vec<Diagnostic>,
    pub warnings: Vec<Diagnostic>,
    pub processes: Vec<ListedProcess>,
    pub queues: Vec<ListedQueue>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedProcess {
    pub name: Name,
    pub creates: BTreeSet<Name>,
    pub takes: BTreeSet<Name>,
    pub passes: BTreeSet<Name>,
    pub deletes: BTreeSet<Name>,
    pub limit: Option<u32>,
    pub rights: BTreeSet<Name>,
}

/// A queue with what holds for it, whether declared for it or for the whole flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ListedQueue {
    pub name: Name,
    pub limit: Option<u32>,
    pub order: QueueOrder,
    pub retries: u32,
    pub reject: Option<Name>,
    pub rights: BTreeSet<Name>,
    pub data: Option<String>,
}

impl Summary {
    pub fn of(reading: &Reading) -> Summary {
        let of = |weight| -> Vec<Diagnostic> {
            let found = reading
                .findings
                .iter()
                .filter(|finding| finding.weight == weight);
            found.cloned().collect()
        };
        Summary {
            valid: reading.flow.is_some(),
            errors: of(Weight::Error),
            warnings: of(Weight::Warning),
            processes: processes(&reading.graph),
            queues: queues(&reading.graph),
        }
    }
}

fn processes(graph: &Graph) -> Vec<ListedProcess> {
    let listed = graph.processes.iter().map(|(name, process)| ListedProcess {
        name: name.clone(),
        creates: process.creates.clone(),
        takes: process.takes.clone(),
        passes: process.passes.clone(),
        deletes: process.deletes.clone(),
        limit: process.limit,
        rights: process.rights.clone(),
    });
    listed.collect()
}

fn queues(graph: &Graph) -> Vec<ListedQueue> {
    let listed = graph.queues.iter().map(|(name, queue)| ListedQueue {
        name: name.clone(),
        limit: queue.limit,
        order: queue.order,
        retries: graph.retries(name),
        reject: graph.reject(name).cloned(),
        rights: queue.rights.clone(),
        data: queue.data.clone(),
    });
    listed.collect()
}
