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
    /// How it comes about, from an empty flow: round by round, and in each move by move. No move finds a full queue.
    pub trace: Vec<Round>,
}

/// Moves that follow each other, so many times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Round {
    pub times: u32,
    pub moves: Vec<Move>,
}

/// The same move so many times: a job is created by the process, rejected (without a process), or passed on.
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
        .map(|cycle| Deep::Standstill(standstill(&ways.index, &cycle)))
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
fn standstill(index: &Index<'_>, cycle: &[Link]) -> Standstill {
    let arrivals = arrivals(index);
    let mut queues: Vec<usize> = cycle.iter().map(|(queue, _)| *queue).collect();
    queues.sort_by_key(|queue| {
        let arrival = arrivals[*queue];
        std::cmp::Reverse(arrival.map_or(0, |arrival| arrival.far))
    });
    let name = |(queue, process): &Link| {
        (
            index.queues[*queue].clone(),
            index.processes[*process].0.clone(),
        )
    };
    Standstill {
        cycle: cycle.iter().map(name).collect(),
        trace: queues
            .into_iter()
            .flat_map(|queue| filling(index, &arrivals, queue))
            .collect(),
    }
}

/// How a job can come into a queue first.
#[derive(Clone, Copy)]
struct Arrival {
    /// How many moves that takes, behind its creation.
    far: usize,
    /// Who brings it; nobody, if it is rejected.
    process: Option<usize>,
    /// From where; nowhere, if it is created.
    from: Option<usize>,
}

/// By queue, on the shortest way from a creator, which may lead through a reject queue.
fn arrivals(index: &Index<'_>) -> Vec<Option<Arrival>> {
    let mut arrivals: Vec<Option<Arrival>> = vec![None; index.queues.len()];
    let mut waiting = VecDeque::new();
    for (queue, arrival) in arrivals.iter_mut().enumerate() {
        let mut putters = index.putters[queue].iter();
        if let Some(process) = putters.find(|process| index.creates(**process, queue)) {
            *arrival = Some(Arrival {
                far: 0,
                process: Some(*process),
                from: None,
            });
            waiting.push_back(queue);
        }
    }
    while let Some(queue) = waiting.pop_front() {
        let far = arrivals[queue].map_or(0, |arrival| arrival.far) + 1;
        let passed = index.takers[queue].iter().flat_map(|process| {
            let passes = index.passes[*process].iter();
            passes.map(|next| (Some(*process), *next))
        });
        let reject = index.graph.reject(index.queues[queue]);
        let rejected = reject.and_then(|name| index.queue(name));
        let taken = !index.takers[queue].is_empty();
        let rejected = rejected.filter(|_| taken).map(|next| (None, next));
        for (process, next) in passed.chain(rejected) {
            if arrivals[next].is_none() {
                arrivals[next] = Some(Arrival {
                    far,
                    process,
                    from: Some(queue),
                });
                waiting.push_back(next);
            }
        }
    }
    arrivals
}

/// The moves that fill a queue: as many jobs at a time as there is room for on the way.
fn filling(index: &Index<'_>, arrivals: &[Option<Arrival>], queue: usize) -> Vec<Round> {
    let limit = |queue: usize| index.graph.queues[index.queues[queue]].limit;
    let jobs = limit(queue).unwrap_or(1);
    let (mut way, mut at, mut room) = (Vec::new(), queue, jobs);
    while let Some(arrival) = arrivals[at] {
        way.push((arrival, at));
        let Some(before) = arrival.from else { break };
        room = room.min(limit(before).unwrap_or(jobs));
        at = before;
    }
    let round = |times: u32, jobs: u32| Round {
        times,
        moves: way
            .iter()
            .rev()
            .map(|(arrival, to)| Move {
                process: arrival
                    .process
                    .map(|process| index.processes[process].0.clone()),
                from: arrival.from.map(|from| index.queues[from].clone()),
                to: index.queues[*to].clone(),
                times: jobs,
            })
            .collect(),
    };
    let rounds = [round(jobs / room, room), round(1, jobs % room)];
    let filled = rounds.into_iter().take(1 + usize::from(jobs % room > 0));
    filled.collect()
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
            (None, from) => {
                let from = from.as_ref().map_or("", |from| from.as_str());
                let are = if *times == 1 { "is" } else { "are" };
                write!(f, "{jobs} of [{from}] {are} rejected into [{to}]")
            }
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
                for Round { times, moves } in trace {
                    let indent = if *times == 1 { "  " } else { "    " };
                    if *times > 1 {
                        writeln!(f, "  {times} times:")?;
                    }
                    for step in moves {
                        writeln!(f, "{indent}{step}")?;
                    }
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
