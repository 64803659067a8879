//! Columns: every arrow goes to the right, except those that close a cycle. These are few, by the heuristic of Eades,
//! Lin and Smyth. An arrow over several columns gets a bend in each that it crosses.

use super::{BENDS_MAX, TooLarge};
use crate::Graph;
use crate::index::Index;
use crate::ways::Ways;

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
    pub(super) fn of(graph: &Graph) -> Result<Layers, TooLarge> {
        let ways = Ways::of(graph);
        let index = &ways.index;
        let (processes, queues) = (index.processes.len(), index.queues.len());
        let arrows = arrows(index);
        let nodes = processes + queues;
        let rank = ranks(&ways, nodes, &arrows);
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
            column.sort_by_key(|node| rank.get(*node).copied().unwrap_or(usize::MAX));
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

/// The nodes in a row in which few arrows point back: ends are taken from the right, starts from the left, and of what is
/// left in cycles the node with the most arrows out, and of these the one nearest to a creator.
fn ranks(ways: &Ways<'_>, nodes: usize, arrows: &[(usize, usize)]) -> Vec<usize> {
    let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
    for (from, to) in arrows {
        out[*from].push(*to);
        into[*to].push(*from);
    }
    let mut outs: Vec<usize> = out.iter().map(Vec::len).collect();
    let mut ins: Vec<usize> = into.iter().map(Vec::len).collect();
    let mut rank = vec![usize::MAX; nodes];
    let (mut first, mut last) = (0, nodes);
    let mut open: Vec<usize> = (0..nodes).collect();
    while !open.is_empty() {
        let end = open.iter().rposition(|node| outs[*node] == 0);
        let start = || open.iter().position(|node| ins[*node] == 0);
        let best = || {
            let key = |at: &usize| {
                let node = open[*at];
                let surplus = ins[node] as i64 - outs[node] as i64;
                (surplus, distance(ways, node), node)
            };
            (0..open.len()).min_by_key(key).unwrap_or(0)
        };
        let at = end.or_else(start).unwrap_or_else(best);
        let node = open.remove(at);
        rank[node] = match end {
            Some(_) => {
                last -= 1;
                last
            }
            None => {
                first += 1;
                first - 1
            }
        };
        for next in &out[node] {
            ins[*next] = ins[*next].saturating_sub(1);
        }
        for before in &into[node] {
            outs[*before] = outs[*before].saturating_sub(1);
        }
    }
    rank
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
