//! Columns: every arrow goes to the right, except those that close a cycle, where the text comes back to what it has named
//! before. An arrow over several columns gets a bend in each that it crosses.

use std::collections::BTreeSet;

use super::{BENDS_MAX, TooLarge};
use crate::chain::Step;
use crate::index::Index;
use crate::ways::Ways;
use crate::{Document, Graph};

/// A node of the layout: the processes, then the queues, then the bends.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) processes: usize,
    pub(super) queues: usize,
    /// By column: the nodes from top to bottom.
    pub(super) columns: Vec<Vec<usize>>,
    /// By node: its column.
    pub(super) column: Vec<usize>,
    /// By node: its neighbours in the column at the left, and at the right.
    pub(super) left: Vec<Vec<usize>>,
    pub(super) right: Vec<Vec<usize>>,
    pub(super) arrows: Vec<Route>,
}

/// An arrow with the nodes along it, from left to right.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) back: bool,
    pub(super) nodes: Vec<usize>,
}

impl Layers {
    pub(super) fn of(graph: &Graph, text: Option<&Document>) -> Result<Layers, TooLarge> {
        let ways = Ways::of(graph);
        let index = &ways.index;
        let (processes, queues) = (index.processes.len(), index.queues.len());
        let arrows = arrows(index);
        let nodes = processes + queues;
        let told = Told::of(index, text);
        let rank = ranks(&ways, nodes, &arrows, &told);
        // From left to right, whichever way the arrow points.
        let directed: Vec<(usize, usize, bool)> = arrows
            .iter()
            .map(|(from, to)| match rank[*from] < rank[*to] {
                true => (*from, *to, false),
                false => (*to, *from, true),
            })
            .collect();
        let column = columns(&rank, &directed);
        let mut layers = Layers {
            processes,
            queues,
            columns: vec![Vec::new(); column.iter().max().map_or(0, |last| last + 1)],
            left: vec![Vec::new(); nodes],
            right: vec![Vec::new(); nodes],
            column,
            arrows: Vec::new(),
        };
        for (from, to, back) in directed {
            layers.route(from, to, back)?;
        }
        for (node, column) in layers.column.iter().enumerate() {
            layers.columns[*column].push(node);
        }
        for column in &mut layers.columns {
            column.sort_by_key(|node| told.first.get(*node).copied().unwrap_or(usize::MAX));
        }
        Ok(layers)
    }

    pub(super) fn is_bend(&self, node: usize) -> bool {
        node >= self.processes + self.queues
    }

    fn route(&mut self, from: usize, to: usize, back: bool) -> Result<(), TooLarge> {
        let mut nodes = vec![from];
        for column in self.column[from] + 1..self.column[to] {
            nodes.push(self.column.len());
            self.column.push(column);
            self.left.push(Vec::new());
            self.right.push(Vec::new());
        }
        if self.column.len() > BENDS_MAX {
            return Err(TooLarge);
        }
        nodes.push(to);
        for pair in nodes.windows(2) {
            self.right[pair[0]].push(pair[1]);
            self.left[pair[1]].push(pair[0]);
        }
        self.arrows.push(Route { back, nodes });
        Ok(())
    }
}

/// What a text says about the order of its nodes.
struct Told {
    /// By node: how many names stand before its first one.
    first: Vec<usize>,
    /// Arrows along which a chain comes back to what it has named before, unless an earlier chain goes along them.
    back: BTreeSet<(usize, usize)>,
}

impl Told {
    fn of(index: &Index<'_>, text: Option<&Document>) -> Told {
        let processes = index.processes.len();
        let nodes = processes + index.queues.len();
        let Some(text) = text else {
            return Told {
                first: (0..nodes).collect(),
                back: BTreeSet::new(),
            };
        };
        let mut told = Told {
            first: vec![usize::MAX; nodes],
            back: BTreeSet::new(),
        };
        let (mut at, mut forward) = (0, BTreeSet::new());
        for chain in text.chains() {
            // What a chain comes back to begins its way anew from there.
            let mut way: Vec<usize> = Vec::new();
            for step in chain.steps() {
                let node = match step {
                    Step::Process(name) => index.process(name),
                    Step::Queue(name) => index.queue(name).map(|queue| processes + queue),
                };
                let Some(node) = node else {
                    continue;
                };
                told.first[node] = told.first[node].min(at);
                at += 1;
                let arrow = way.last().map(|last| (*last, node));
                let named = way.iter().position(|before| *before == node);
                match (arrow, named) {
                    (Some(arrow), Some(_)) if !forward.contains(&arrow) => {
                        told.back.insert(arrow);
                    }
                    (Some(arrow), None) if !told.back.contains(&arrow) => {
                        forward.insert(arrow);
                    }
                    _ => {}
                }
                match named {
                    Some(at) => way.truncate(at + 1),
                    None => way.push(node),
                }
            }
        }
        told
    }
}

/// Every arrow, from node to node.
fn arrows(index: &Index<'_>) -> Vec<(usize, usize)> {
    let processes = index.processes.len();
    let mut arrows = Vec::new();
    for process in 0..processes {
        let takes = index.takes[process].iter();
        arrows.extend(takes.map(|queue| (processes + queue, process)));
        let passes = index.passes[process].iter();
        arrows.extend(passes.map(|queue| (process, processes + queue)));
    }
    arrows
}

/// The nodes in a row in which only arrows that close a cycle point back: those of which the text says so, and where more
/// cycles are left, those that come back to where a walk along the arrows is on its way from. Walks begin where nothing
/// leads to, in the order of the text, then nearest to a creator.
fn ranks(ways: &Ways<'_>, nodes: usize, arrows: &[(usize, usize)], told: &Told) -> Vec<usize> {
    let mut walk = Walk {
        out: vec![Vec::new(); nodes],
        seen: vec![false; nodes],
        done: Vec::new(),
    };
    let first = &told.first;
    let mut led_to = vec![false; nodes];
    for (from, to) in arrows.iter().filter(|arrow| !told.back.contains(arrow)) {
        walk.out[*from].push(*to);
        led_to[*to] = true;
    }
    for out in &mut walk.out {
        out.sort_by_key(|node| first[*node]);
    }
    let mut starts: Vec<usize> = (0..nodes).collect();
    starts.sort_by_key(|node| {
        let far = if led_to[*node] {
            distance(ways, *node)
        } else {
            0
        };
        (led_to[*node], far, first[*node])
    });
    for start in starts {
        walk.visit(start);
    }
    let mut rank = vec![0; nodes];
    for (at, node) in walk.done.iter().rev().enumerate() {
        rank[*node] = at;
    }
    rank
}

/// A walk along the arrows, to the end of each way before the next.
struct Walk {
    out: Vec<Vec<usize>>,
    seen: Vec<bool>,
    /// The nodes whose ways were all gone, in that order.
    done: Vec<usize>,
}

impl Walk {
    fn visit(&mut self, start: usize) {
        if self.seen[start] {
            return;
        }
        self.seen[start] = true;
        // The way so far, with how many arrows of each node were followed.
        let mut way = vec![(start, 0)];
        while let Some((node, followed)) = way.last_mut() {
            match self.out[*node].get(*followed).copied() {
                Some(next) => {
                    *followed += 1;
                    if !self.seen[next] {
                        self.seen[next] = true;
                        way.push((next, 0));
                    }
                }
                None => {
                    self.done.push(*node);
                    way.pop();
                }
            }
        }
    }
}

/// How far a node is from where jobs are created.
fn distance(ways: &Ways<'_>, node: usize) -> usize {
    let processes = ways.index.processes.len();
    let of_queue = |queue: usize| ways.origins[queue].map_or(usize::MAX, |(_, far)| 2 * far + 1);
    match node.checked_sub(processes) {
        Some(queue) => of_queue(queue),
        None => {
            let from = ways.index.takes[node].iter().map(|queue| of_queue(*queue));
            from.min().map_or(0, |far| far.saturating_add(1))
        }
    }
}

/// The longest way from the left, with starts pulled next to what follows them.
fn columns(rank: &[usize], directed: &[(usize, usize, bool)]) -> Vec<usize> {
    let mut column = vec![0; rank.len()];
    let mut sorted: Vec<&(usize, usize, bool)> = directed.iter().collect();
    sorted.sort_by_key(|(from, _, _)| rank[*from]);
    for (from, to, _) in &sorted {
        column[*to] = column[*to].max(column[*from] + 1);
    }
    for node in 0..rank.len() {
        let is_start = directed.iter().all(|(_, to, _)| *to != node);
        let right = directed.iter().filter(|(from, _, _)| *from == node);
        let nearest = right.map(|(_, to, _)| column[*to]).min();
        if let (true, Some(nearest)) = (is_start, nearest) {
            column[node] = nearest - 1;
        }
    }
    column
}
