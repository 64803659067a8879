//! Ways through a graph: how a job comes into each queue, and how it gets out of the flow from there.

use std::collections::VecDeque;

use crate::Graph;
use crate::index::Index;

/// How a job first gets into a queue, by the shortest way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This process creates it there.
    Created(usize),
    /// The node puts it there: it is a reject queue.
    Rejected,
    /// From this queue, by this process.
    Passed(usize, usize),
}

/// The shortest ways to and from every queue.
#[derive(Debug)]
pub(crate) struct Ways<'a> {
    pub(crate) index: Index<'a>,
    pub(crate) origins: Vec<Option<(Origin, usize)>>,
    /// By queue: the process that is next on the shortest way out of the flow, and how many passes that takes.
    pub(crate) ends: Vec<Option<(usize, usize)>>,
}

impl<'a> Ways<'a> {
    pub(crate) fn of(graph: &'a Graph) -> Ways<'a> {
        let index = Index::of(graph);
        Ways {
            origins: origins(&index),
            ends: ends(&index),
            index,
        }
    }

    /// A job can get into this queue.
    pub(crate) fn is_reached(&self, queue: usize) -> bool {
        self.origins[queue].is_some()
    }

    /// A job can leave the flow from this queue.
    pub(crate) fn has_end(&self, queue: usize) -> bool {
        self.ends[queue].is_some()
    }

    /// A job that this process took from this queue can come to it, and can leave the flow after it.
    pub(crate) fn take_is_on_a_way(&self, process: usize, queue: usize) -> bool {
        let onward = || {
            self.index.passes[process]
                .iter()
                .any(|next| self.has_end(*next))
        };
        self.is_reached(queue) && (self.index.deletes(process, queue) || onward())
    }

    /// The same for what the process puts into the queue.
    pub(crate) fn pass_is_on_a_way(&self, process: usize, queue: usize) -> bool {
        let taken = || {
            self.index.takes[process]
                .iter()
                .any(|from| self.is_reached(*from))
        };
        self.has_end(queue) && (self.index.creates(process, queue) || taken())
    }
}

fn origins(index: &Index<'_>) -> Vec<Option<(Origin, usize)>> {
    let mut origins: Vec<Option<(Origin, usize)>> = vec![None; index.queues.len()];
    let mut waiting = VecDeque::new();
    for (queue, origin) in origins.iter_mut().enumerate() {
        let mut putters = index.putters[queue].iter();
        if let Some(process) = putters.find(|process| index.creates(**process, queue)) {
            *origin = Some((Origin::Created(*process), 0));
            waiting.push_back(queue);
        }
    }
    for name in index.graph.reject_queues() {
        if let Some(queue) = index.queue(name)
            && origins[queue].is_none()
        {
            origins[queue] = Some((Origin::Rejected, 0));
            waiting.push_back(queue);
        }
    }
    while let Some(queue) = waiting.pop_front() {
        let far = origins[queue].map_or(0, |(_, far)| far);
        for process in &index.takers[queue] {
            for next in &index.passes[*process] {
                if origins[*next].is_none() {
                    origins[*next] = Some((Origin::Passed(queue, *process), far + 1));
                    waiting.push_back(*next);
                }
            }
        }
    }
    origins
}

fn ends(index: &Index<'_>) -> Vec<Option<(usize, usize)>> {
    let mut ends: Vec<Option<(usize, usize)>> = vec![None; index.queues.len()];
    let mut waiting = VecDeque::new();
    for (queue, end) in ends.iter_mut().enumerate() {
        let mut takers = index.takers[queue].iter();
        if let Some(process) = takers.find(|process| index.deletes(**process, queue)) {
            *end = Some((*process, 0));
            waiting.push_back(queue);
        }
    }
    while let Some(queue) = waiting.pop_front() {
        let far = ends[queue].map_or(0, |(_, far)| far);
        for process in &index.putters[queue] {
            for before in &index.takes[*process] {
                if ends[*before].is_none() {
                    ends[*before] = Some((*process, far + 1));
                    waiting.push_back(*before);
                }
            }
        }
    }
    ends
}
