//! The state of a run: queues, workers, creators, and what is counted of them.

use std::collections::{BTreeMap, VecDeque};

use testigo_sim::{Agenda, Generator, Time};

use super::Span;
use super::tally::Level;
use crate::index::Index;
use crate::load::{Arrivals, Load, Out, Work};
use crate::{Flow, Name};

#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) created: Time,
    /// When it began to wait where it is.
    pub(super) since: Time,
    pub(super) deaths: u32,
}

#[derive(Debug)]
pub(super) enum Event {
    /// A job is due from this source.
    Create(usize),
    /// A worker is done with a job from this queue.
    Done(usize, usize, Job),
    /// A worker dies of a job from this queue.
    Dies(usize, usize, Job),
    /// A worker is there again.
    Returns(usize),
}

/// Who stands before a full queue.
#[derive(Debug)]
pub(super) enum Blocked {
    Source(usize),
    /// A worker of this process, with a job from this queue.
    Worker(usize, usize, Job),
}

#[derive(Debug, Default)]
pub(super) struct QueueState {
    pub(super) waiting: VecDeque<Job>,
    /// Waiting and held.
    pub(super) jobs: usize,
    pub(super) blocked: VecDeque<Blocked>,
    pub(super) level: Level,
    pub(super) arrivals: u64,
    /// Jobs that were taken for the first time since they came.
    pub(super) taken: u64,
    pub(super) waited: f64,
    pub(super) most: usize,
}

#[derive(Debug)]
pub(super) struct ProcessState<'a> {
    pub(super) work: Option<&'a Work>,
    pub(super) idle: Idle,
    pub(super) busy: Level,
    pub(super) blocked: Level,
    /// Its workers that stand before a full queue: how many, by the queue of the job and the full one.
    pub(super) blocked_at: BTreeMap<(usize, usize), u32>,
    pub(super) taken: u64,
    pub(super) deaths: u64,
}

/// The idle workers of a process, those first that have been idle longest.
#[derive(Debug)]
pub(super) struct Idle {
    /// Those that have not worked yet.
    pub(super) fresh: u32,
    /// The others, by the turn in which they became idle.
    pub(super) turns: VecDeque<u64>,
}

/// A process that creates into a queue.
#[derive(Debug)]
pub(super) struct Source<'a> {
    pub(super) process: usize,
    pub(super) queue: usize,
    pub(super) arrivals: &'a Arrivals,
    pub(super) created: u64,
    pub(super) blocked: Level,
}

impl Idle {
    /// Since which turn the first has been idle.
    pub(super) fn since(&self) -> Option<u64> {
        match self.fresh {
            0 => self.turns.front().copied(),
            _ => Some(0),
        }
    }

    pub(super) fn leave(&mut self) {
        match self.fresh {
            0 => drop(self.turns.pop_front()),
            _ => self.fresh -= 1,
        }
    }
}

pub(super) struct Run<'a> {
    pub(super) index: Index<'a>,
    pub(super) outs: Vec<Vec<Vec<(Out, f64)>>>,
    pub(super) limits: Vec<usize>,
    pub(super) rejects: Vec<Option<usize>>,
    pub(super) retries: Vec<u32>,
    pub(super) queues: Vec<QueueState>,
    pub(super) processes: Vec<ProcessState<'a>>,
    pub(super) sources: Vec<Source<'a>>,
    pub(super) agenda: Agenda<Event>,
    pub(super) generator: Generator,
    pub(super) span: Span,
    pub(super) now: Time,
    /// When counting began: behind the warm-up, or at the start if the run did not get there.
    pub(super) counted_from: Time,
    /// Since when a part of the flow can never go on.
    pub(super) stood_still: Option<Time>,
    /// Counts the times that a worker became idle.
    pub(super) turn: u64,
    pub(super) inside: usize,
    pub(super) created: u64,
    pub(super) deleted: u64,
    pub(super) rejected: u64,
    pub(super) lived: f64,
}

impl<'a> Run<'a> {
    pub(super) fn new(flow: &'a Flow, load: &'a Load, span: Span) -> Run<'a> {
        let index = Index::of(flow);
        let process = |(name, _): &(&Name, &crate::Process)| {
            let work = load.works.get(*name);
            ProcessState {
                work,
                idle: Idle {
                    fresh: work.map_or(0, |work| work.workers),
                    turns: VecDeque::new(),
                },
                busy: Level::default(),
                blocked: Level::default(),
                blocked_at: BTreeMap::new(),
                taken: 0,
                deaths: 0,
            }
        };
        let outs = |process: usize| {
            let takes = index.takes[process].iter();
            takes
                .map(|queue| load.outs(&index, process, *queue))
                .collect()
        };
        let source = |((process, queue), arrivals): (&(Name, Name), &'a Arrivals)| {
            Some(Source {
                process: index.process(process)?,
                queue: index.queue(queue).filter(|_| arrivals.rate() > 0.0)?,
                arrivals,
                created: 0,
                blocked: Level::default(),
            })
        };
        let names = || index.queues.iter();
        Run {
            outs: (0..index.processes.len()).map(outs).collect(),
            limits: names()
                .map(|name| {
                    flow.queues[*name]
                        .limit
                        .map_or(usize::MAX, |limit| limit as usize)
                })
                .collect(),
            rejects: names()
                .map(|name| flow.reject(name).and_then(|name| index.queue(name)))
                .collect(),
            retries: names().map(|name| flow.retries(name)).collect(),
            queues: names().map(|_| QueueState::default()).collect(),
            processes: index.processes.iter().map(process).collect(),
            sources: load.creates.iter().filter_map(source).collect(),
            index,
            agenda: Agenda::default(),
            generator: Generator::new(span.seed),
            span,
            now: Time::ZERO,
            counted_from: Time::ZERO,
            stood_still: None,
            turn: 0,
            inside: 0,
            created: 0,
            deleted: 0,
            rejected: 0,
            lived: 0.0,
        }
    }
}
