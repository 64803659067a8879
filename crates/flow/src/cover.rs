//! Chains for a graph: as few and as long as a plain walk finds them, which together say exactly what the graph says.

use std::collections::HashSet;

use crate::ways::{Origin, Ways};
use crate::{Chain, Graph, Name};

/// The chains that must be added to the `known` ones. Arrows that lie on no way from a creator to a deleter are left
/// out: no chain can say them, and a checked flow has none.
pub(crate) fn chains<'a>(graph: &Graph, known: impl IntoIterator<Item = &'a Chain>) -> Vec<Chain> {
    let ways = Ways::of(graph);
    let mut cover = Cover {
        ways: &ways,
        takes: HashSet::new(),
        passes: HashSet::new(),
        creates: HashSet::new(),
        deletes: HashSet::new(),
        chains: Vec::new(),
    };
    for chain in known {
        cover.know(chain);
    }
    cover.start_at_creators();
    cover.go_through_passes();
    cover.go_through_takes();
    cover.chains
}

/// What the chains so far say, as arrows: a process and a queue.
struct Cover<'a> {
    ways: &'a Ways<'a>,
    takes: HashSet<(usize, usize)>,
    passes: HashSet<(usize, usize)>,
    creates: HashSet<(usize, usize)>,
    deletes: HashSet<(usize, usize)>,
    chains: Vec<Chain>,
}

/// A chain under construction: who creates, then each queue with the process that takes from it.
#[derive(Default)]
struct Walk {
    creator: Option<usize>,
    steps: Vec<(usize, usize)>,
}

impl Cover<'_> {
    /// A chain for every arrow along which jobs are created.
    fn start_at_creators(&mut self) {
        for (process, queue) in arrows(&self.ways.index.passes) {
            let starts = self.ways.index.creates(process, queue) && self.ways.has_end(queue);
            if starts && !self.creates.contains(&(process, queue)) {
                let walk = Walk {
                    creator: Some(process),
                    steps: Vec::new(),
                };
                self.go_on(walk, queue, None);
            }
        }
    }

    fn go_through_passes(&mut self) {
        for (process, queue) in arrows(&self.ways.index.passes) {
            let from = self.ways.index.takes[process].iter();
            let far = |queue: &&usize| self.ways.origins[**queue].map(|(_, far)| far);
            let from = from.filter(|queue| far(queue).is_some()).min_by_key(far);
            let known = self.passes.contains(&(process, queue)) || !self.ways.has_end(queue);
            if let (false, Some(from)) = (known, from) {
                let mut walk = self.way_to(*from);
                walk.steps.push((*from, process));
                self.go_on(walk, queue, None);
            }
        }
    }

    /// What is left: arrows along which jobs are taken, and those at which they are deleted.
    fn go_through_takes(&mut self) {
        for (process, queue) in arrows(&self.ways.index.takes) {
            let arrow = (process, queue);
            if !self.takes.contains(&arrow) && self.ways.take_is_on_a_way(process, queue) {
                let walk = self.way_to(queue);
                self.go_on(walk, queue, Some(process));
            }
            let deletes = self.ways.index.deletes(process, queue) && self.ways.is_reached(queue);
            if deletes && !self.deletes.contains(&arrow) {
                let mut walk = self.way_to(queue);
                walk.steps.push((queue, process));
                self.finish(walk);
            }
        }
    }

    /// The shortest way that ends before a queue.
    fn way_to(&self, queue: usize) -> Walk {
        let mut walk = Walk::default();
        let mut at = queue;
        while let Some((origin, _)) = self.ways.origins[at] {
            match origin {
                Origin::Created(process) => {
                    walk.creator = Some(process);
                    break;
                }
                Origin::Rejected => break,
                Origin::Passed(before, process) => {
                    walk.steps.push((before, process));
                    at = before;
                }
            }
        }
        walk.steps.reverse();
        walk
    }

    /// Goes on from a queue along arrows that no chain has yet, else by the shortest way to the end. Every round either
    /// uses up a new arrow or comes nearer to the end, so it ends.
    fn go_on(&mut self, mut walk: Walk, mut queue: usize, mut by: Option<usize>) {
        let index = &self.ways.index;
        loop {
            let new = |process: &&usize| {
                !self.takes.contains(&(**process, queue))
                    && self.ways.take_is_on_a_way(**process, queue)
            };
            let new = by
                .take()
                .or_else(|| index.takers[queue].iter().find(new).copied());
            let end = self.ways.ends[queue].map(|(process, _)| process);
            let Some(process) = new.or(end) else { return };
            walk.steps.push((queue, process));
            self.takes.insert((process, queue));
            let onward = || index.passes[process].iter().copied();
            let far = |queue: &usize| self.ways.ends[*queue].map(|(_, far)| far);
            let new = onward()
                .find(|next| !self.passes.contains(&(process, *next)) && self.ways.has_end(*next));
            let nearest = || onward().filter(|next| far(next).is_some()).min_by_key(far);
            let next = match new {
                None if index.deletes(process, queue) => return self.finish(walk),
                None => nearest(),
                new => new,
            };
            let Some(next) = next else { return };
            self.passes.insert((process, next));
            queue = next;
        }
    }

    fn finish(&mut self, walk: Walk) {
        let index = &self.ways.index;
        let process = |number: usize| -> Name { index.processes[number].0.clone() };
        let takers = walk.steps.iter().map(|(_, taker)| *taker);
        let chain = Chain {
            processes: walk
                .creator
                .into_iter()
                .chain(takers)
                .map(process)
                .collect(),
            queues: walk
                .steps
                .iter()
                .map(|(queue, _)| index.queues[*queue].clone())
                .collect(),
            from_reject: walk.creator.is_none(),
        };
        self.know(&chain);
        self.chains.push(chain);
    }

    /// Takes note of what a chain says.
    fn know(&mut self, chain: &Chain) {
        let index = &self.ways.index;
        let process = |name: &Name| index.process(name);
        for (at, queue) in chain.queues.iter().enumerate() {
            let Some(number) = index.queue(queue) else {
                continue;
            };
            if let Some(putter) = chain.before(at).and_then(process) {
                self.passes.insert((putter, number));
                if at == 0 {
                    self.creates.insert((putter, number));
                }
            }
            if let Some(taker) = chain.after(at).and_then(process) {
                self.takes.insert((taker, number));
                if at + 1 == chain.queues.len() {
                    self.deletes.insert((taker, number));
                }
            }
        }
    }
}

/// All pairs of a process and a queue, in order.
fn arrows(by_process: &[Vec<usize>]) -> Vec<(usize, usize)> {
    let by_process = by_process.iter().enumerate();
    by_process
        .flat_map(|(process, queues)| queues.iter().map(move |queue| (process, *queue)))
        .collect()
}
