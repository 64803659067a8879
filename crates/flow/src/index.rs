//! A graph by number, for the passes that walk it: processes and queues are numbered in the order of their names.

use std::collections::BTreeMap;

use crate::{Graph, Name, Process};

/// Arrows as lists of numbers. Arrows to queues that do not exist are left out.
#[derive(Debug)]
pub(crate) struct Index<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) processes: Vec<(&'a Name, &'a Process)>,
    pub(crate) queues: Vec<&'a Name>,
    /// By process: the queues that it takes from.
    pub(crate) takes: Vec<Vec<usize>>,
    /// By process: the queues that it puts into.
    pub(crate) passes: Vec<Vec<usize>>,
    /// By queue: the processes that take from it.
    pub(crate) takers: Vec<Vec<usize>>,
    /// By queue: the processes that put into it.
    pub(crate) putters: Vec<Vec<usize>>,
    queue_numbers: BTreeMap<&'a str, usize>,
    process_numbers: BTreeMap<&'a str, usize>,
}

impl<'a> Index<'a> {
    pub(crate) fn of(graph: &'a Graph) -> Index<'a> {
        let queues: Vec<&Name> = graph.queues.keys().collect();
        let number: BTreeMap<&str, usize> = queues
            .iter()
            .enumerate()
            .map(|(at, name)| (name.as_str(), at))
            .collect();
        let processes: Vec<(&Name, &Process)> = graph.processes.iter().collect();
        let numbers = |names: &std::collections::BTreeSet<Name>| -> Vec<usize> {
            names
                .iter()
                .filter_map(|name| number.get(name.as_str()).copied())
                .collect()
        };
        let takes: Vec<Vec<usize>> = processes.iter().map(|(_, p)| numbers(&p.takes)).collect();
        let passes: Vec<Vec<usize>> = processes.iter().map(|(_, p)| numbers(&p.passes)).collect();
        Index {
            graph,
            takers: turned(&takes, queues.len()),
            putters: turned(&passes, queues.len()),
            processes,
            queues,
            takes,
            passes,
            queue_numbers: number,
            process_numbers: graph
                .processes
                .keys()
                .enumerate()
                .map(|(at, name)| (name.as_str(), at))
                .collect(),
        }
    }

    pub(crate) fn queue(&self, name: &str) -> Option<usize> {
        self.queue_numbers.get(name).copied()
    }

    pub(crate) fn process(&self, name: &str) -> Option<usize> {
        self.process_numbers.get(name).copied()
    }

    pub(crate) fn creates(&self, process: usize, queue: usize) -> bool {
        self.processes[process]
            .1
            .creates
            .contains(self.queues[queue])
    }

    /// After how many deaths a job of a queue is rejected, if it ever is.
    pub(crate) fn deaths_max(&self, queue: usize) -> Option<u32> {
        let name = self.queues[queue];
        self.graph.reject(name)?;
        Some(self.graph.retries(name) + 1)
    }

    pub(crate) fn deletes(&self, process: usize, queue: usize) -> bool {
        self.processes[process]
            .1
            .deletes
            .contains(self.queues[queue])
    }
}

/// By queue instead of by process.
fn turned(arrows: &[Vec<usize>], queues: usize) -> Vec<Vec<usize>> {
    let mut turned = vec![Vec::new(); queues];
    for (process, reached) in arrows.iter().enumerate() {
        for queue in reached {
            turned[*queue].push(process);
        }
    }
    turned
}
