//! What can go wrong with a flow that keeps the rules: cycles of queues that can all be full at once, so that nobody in
//! them can pass a job on, and parts that only rejected jobs reach.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde::Serialize;

use crate::index::Index;
use crate::ways::{Origin, Ways};
use crate::{Flow, Name};

/// A finding of the deep check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Deep {
    /// The flow can stand still.
    Standstill(Standstill),
    /// Only jobs that were rejected come here.
    Rejected { queue: Name },
}

/// A cycle of queues that all have a limit. Which way a job goes is decided by the program that holds it, so it can
/// happen that all jobs of all these queues want to go on along the cycle while every queue is full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Standstill {
    /// Each queue, with the process that takes from it and passes to the next one; the last passes to the first.
    pub cycle: Vec<(Name, Name)>,
    /// How it comes about, from an empty flow.
    pub trace: Vec<Move>,
}

/// The same move so many times: a job is created by the process, put by the node (without a process), or passed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Move {
    pub process: Option<Name>,
    pub from: Option<Name>,
    pub to: Name,
    pub times: u32,
}

impl Deep {
    /// Whether the flow can stop working.
    pub fn is_grave(&self) -> bool {
        matches!(self, Deep::Standstill(_))
    }
}

/// Looks for what the rules do not see.
pub fn deep_check(flow: &Flow) -> Vec<Deep> {
    let ways = Ways::of(flow);
    let mut found: Vec<Deep> = cycles(&ways.index)
        .into_iter()
        .map(|cycle| Deep::Standstill(standstill(&ways, &cycle)))
        .collect();
    found.extend(only_rejected(&ways));
    found
}

/// A queue and a process that takes from it and passes to the next.
type Link = (usize, usize);

/// For every knot of limited queues that can reach each other, the shortest cycle through its first queue.
fn cycles(index: &Index<'_>) -> Vec<Vec<Link>> {
    let limited = |queue: usize| index.graph.queues[index.queues[queue]].limit.is_some();
    let mut known = vec![false; index.queues.len()];
    let mut found: Vec<Vec<Link>> = Vec::new();
    for start in 0..index.queues.len() {
        if known[start] || !limited(start) {
            continue;
        }
        if let Some(cycle) = shortest_cycle(index, start, limited) {
            found.push(cycle);
            let after = reach(start, limited, &index.takers, &index.passes);
            let before = reach(start, limited, &index.putters, &index.takes);
            for (queue, known) in known.iter_mut().enumerate() {
                *known |= after[queue] && before[queue];
            }
        }
    }
    found
}

/// The limited queues that can be reached from one, by processes of a queue and the queues of a process.
fn reach(
    start: usize,
    limited: impl Fn(usize) -> bool,
    processes: &[Vec<usize>],
    queues: &[Vec<usize>],
) -> Vec<bool> {
    let mut reached = vec![false; processes.len()];
    let mut waiting = vec![start];
    while let Some(queue) = waiting.pop() {
        if std::mem::replace(&mut reached[queue], true) {
            continue;
        }
        let next = processes[queue]
            .iter()
            .flat_map(|process| &queues[*process]);
        waiting.extend(next.filter(|next| limited(**next) && !reached[**next]));
    }
    reached
}

/// The shortest way from a queue back to itself, through limited queues only. A process that passes to the queue it took
/// from needs no room.
fn shortest_cycle(
    index: &Index<'_>,
    start: usize,
    limited: impl Fn(usize) -> bool,
) -> Option<Vec<Link>> {
    let mut came: BTreeMap<usize, Link> = BTreeMap::new();
    let mut waiting = VecDeque::from([start]);
    while let Some(queue) = waiting.pop_front() {
        for process in &index.takers[queue] {
            for next in index.passes[*process]
                .iter()
                .filter(|next| **next != queue && limited(**next))
            {
                if *next == start {
                    let mut cycle = vec![(queue, *process)];
                    let mut at = queue;
                    while at != start {
                        let (before, process) = came[&at];
                        cycle.push((before, process));
                        at = before;
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if !came.contains_key(next) {
                    came.insert(*next, (queue, *process));
                    waiting.push_back(*next);
                }
            }
        }
    }
    None
}

/// Fills the queues of a cycle, those first that are farthest from the creators: the shortest way to a queue leads through
/// nearer ones only, and these are still empty.
fn standstill(ways: &Ways<'_>, cycle: &[Link]) -> Standstill {
    let index = &ways.index;
    let mut queues: Vec<usize> = cycle.iter().map(|(queue, _)| *queue).collect();
    queues.sort_by_key(|queue| std::cmp::Reverse(ways.origins[*queue].map_or(0, |(_, far)| far)));
    let mut trace = Vec::new();
    for queue in queues {
        let times = index.graph.queues[index.queues[queue]].limit.unwrap_or(1);
        trace.extend(filling(ways, queue, times));
    }
    let name = |(queue, process): &Link| {
        (
            index.queues[*queue].clone(),
            index.processes[*process].0.clone(),
        )
    };
    Standstill {
        cycle: cycle.iter().map(name).collect(),
        trace,
    }
}

/// The moves that bring one job after the other into a queue.
fn filling(ways: &Ways<'_>, queue: usize, times: u32) -> Vec<Move> {
    let index = &ways.index;
    let mut moves = Vec::new();
    let mut at = queue;
    while let Some((origin, _)) = ways.origins[at] {
        let (process, from) = match origin {
            Origin::Created(process) => (Some(process), None),
            Origin::Rejected => (None, None),
            Origin::Passed(before, process) => (Some(process), Some(before)),
        };
        moves.push(Move {
            process: process.map(|process| index.processes[process].0.clone()),
            from: from.map(|from| index.queues[from].clone()),
            to: index.queues[at].clone(),
            times,
        });
        match from {
            Some(before) => at = before,
            None => break,
        }
    }
    moves.reverse();
    moves
}

fn only_rejected(ways: &Ways<'_>) -> Vec<Deep> {
    let index = &ways.index;
    let rejects = index.graph.reject_queues();
    let from_reject = |queue: usize| -> bool {
        let mut at = queue;
        loop {
            match ways.origins[at] {
                Some((Origin::Passed(before, _), _)) => at = before,
                Some((Origin::Rejected, _)) => return true,
                _ => return false,
            }
        }
    };
    // A way from a creator, were it longer, counts as well.
    let created = created(index);
    let queues = (0..index.queues.len()).filter(|queue| !created[*queue] && from_reject(*queue));
    let queues = queues.filter(|queue| !rejects.contains(index.queues[*queue]));
    queues
        .map(|queue| Deep::Rejected {
            queue: index.queues[queue].clone(),
        })
        .collect()
}

/// The queues that a job can reach without being rejected.
fn created(index: &Index<'_>) -> Vec<bool> {
    let mut reached = vec![false; index.queues.len()];
    let mut waiting: Vec<usize> = Vec::new();
    for (queue, putters) in index.putters.iter().enumerate() {
        if putters.iter().any(|process| index.creates(*process, queue)) {
            reached[queue] = true;
            waiting.push(queue);
        }
    }
    while let Some(queue) = waiting.pop() {
        for process in &index.takers[queue] {
            for next in &index.passes[*process] {
                if !std::mem::replace(&mut reached[*next], true) {
                    waiting.push(*next);
                }
            }
        }
    }
    reached
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Move { to, times, .. } = self;
        let jobs = if *times == 1 {
            "1 job".into()
        } else {
            format!("{times} jobs")
        };
        match (&self.process, &self.from) {
            (Some(process), Some(from)) => {
                write!(f, "{process} passes {jobs} from [{from}] to [{to}]")
            }
            (Some(process), None) => write!(f, "{process} creates {jobs} into [{to}]"),
            (None, _) => write!(f, "{jobs} are rejected into [{to}]"),
        }
    }
}

impl fmt::Display for Deep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deep::Rejected { queue } => write!(f, "only jobs that were rejected come to [{queue}]"),
            Deep::Standstill(Standstill { cycle, trace }) => {
                let queues: Vec<String> = cycle
                    .iter()
                    .map(|(queue, _)| format!("[{queue}]"))
                    .collect();
                writeln!(
                    f,
                    "the flow can stand still: {} can all be full at once",
                    queues.join(" ")
                )?;
                for step in trace {
                    writeln!(f, "  {step}")?;
                }
                for (at, (queue, process)) in cycle.iter().enumerate() {
                    let (next, _) = &cycle[(at + 1) % cycle.len()];
                    writeln!(
                        f,
                        "  {process} takes from [{queue}] and wants to pass to [{next}], which is full"
                    )?;
                }
                write!(
                    f,
                    "  nobody can go on; give one of these queues no limit, or keep its jobs out of the cycle"
                )
            }
        }
    }
}
