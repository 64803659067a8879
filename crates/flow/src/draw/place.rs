//! From columns and their order to pixels. Each column is as wide as its widest node, a node as high as its arrows need;
//! heights are those that bring every node nearest to the middle of its neighbours without an overlap.

use super::layers::Layers;
use super::lettering::{shown, text_width};
use super::{Arrow, Drawing, Node, NodeKind};
use crate::Graph;

const MARGIN: f64 = 28.0;
/// Room for the title.
const TOP: f64 = 44.0;
/// Between two columns, more for each arrow beyond a few that one node there has, so that steep arrows leave and arrive
/// level.
const COLUMN_GAP: f64 = 46.0;
const COLUMN_GAP_MAX: f64 = 120.0;
const GAP_BY_ARROW: f64 = 5.0;
const FEW_ARROWS: usize = 3;
const ROW_GAP: f64 = 20.0;
const BEND_HEIGHT: f64 = 6.0;
/// A node is at least so high, and higher where many arrows meet it.
const NODE_HEIGHT_MIN: f64 = 36.0;
/// The share of a side on which arrows and bars meet it, and the least distances between two arrows and between an arrow
/// and a bar there.
const PORTS_SHARE: f64 = 0.68;
const ARROW_GAP: f64 = 11.0;
const BAR_GAP: f64 = 13.0;
const PROCESS_WIDTH_MIN: f64 = 40.0;
const QUEUE_WIDTH_MIN: f64 = 52.0;
/// The room beside the name.
const PADDING: f64 = 26.0;
/// Room for the bars of creators and deleters.
pub(super) const BAR: f64 = 14.0;
const SWEEPS: usize = 16;

pub(super) fn place(graph: &Graph, layers: &Layers) -> Drawing {
    let names: Vec<_> = graph.processes.keys().chain(graph.queues.keys()).collect();
    let width = |node: usize| -> f64 {
        let Some(name) = names.get(node) else {
            return 0.0;
        };
        let least = if node < layers.processes {
            PROCESS_WIDTH_MIN
        } else {
            QUEUE_WIDTH_MIN
        };
        (text_width(&shown(name)) + PADDING).max(least)
    };
    let met = met(layers);
    let most = |column: usize, on: fn(&(usize, usize)) -> usize| {
        let nodes = layers.columns.get(column).into_iter().flatten();
        let met = nodes.filter_map(|node| met.get(*node));
        met.map(on).max().unwrap_or(0)
    };
    let mut right_end = MARGIN + BAR;
    let mut spans = Vec::new();
    for (at, column) in layers.columns.iter().enumerate() {
        if at > 0 {
            let arrows = most(at - 1, |met| met.1).max(most(at, |met| met.0));
            let more = GAP_BY_ARROW * arrows.saturating_sub(FEW_ARROWS) as f64;
            right_end += (COLUMN_GAP + more).min(COLUMN_GAP_MAX);
        }
        let widest = column.iter().map(|node| width(*node)).fold(0.0, f64::max);
        spans.push((right_end, right_end + widest));
        right_end += widest;
    }
    let sizes = sizes(graph, layers, &met);
    let mut heights = heights(layers, &sizes);
    let edges = heights.iter().zip(&sizes);
    let top = edges
        .map(|(height, size)| height - size / 2.0)
        .fold(f64::INFINITY, f64::min);
    let top = if top.is_finite() { top } else { 0.0 };
    for height in &mut heights {
        *height += TOP + MARGIN - top;
    }
    let edges = heights.iter().zip(&sizes);
    let bottom = edges
        .map(|(height, size)| height + size / 2.0)
        .fold(TOP, f64::max);
    let node = |(number, name): (usize, &&crate::Name)| {
        let (left, right) = spans[layers.column[number]];
        Node {
            kind: if number < layers.processes {
                NodeKind::Process
            } else {
                NodeKind::Queue
            },
            name: (*name).clone(),
            x: f64::midpoint(left, right),
            y: heights[number],
            width: width(number),
            height: sizes[number],
            create: None,
            delete: None,
        }
    };
    let mut drawing = Drawing {
        width: right_end + BAR + MARGIN,
        height: bottom + MARGIN,
        nodes: names.iter().enumerate().map(node).collect(),
        arrows: Vec::new(),
    };
    Ports::of(graph, layers, &heights).connect(layers, &spans, &heights, &mut drawing);
    drawing
}

/// By process and queue: how many arrows meet it at its left and at its right.
fn met(layers: &Layers) -> Vec<(usize, usize)> {
    let mut met = vec![(0, 0); layers.processes + layers.queues];
    for arrow in &layers.arrows {
        met[arrow.nodes[arrow.nodes.len() - 1]].0 += 1;
        met[arrow.nodes[0]].1 += 1;
    }
    met
}

/// By node: how high it is, so that its arrows and bars have room on its sides.
fn sizes(graph: &Graph, layers: &Layers, met: &[(usize, usize)]) -> Vec<f64> {
    let mut sizes = vec![BEND_HEIGHT; layers.column.len()];
    let mut processes = graph.processes.values();
    for (size, (left, right)) in sizes.iter_mut().zip(met) {
        let process = processes.next();
        let bar = |is_there: fn(&crate::Process) -> bool| process.is_some_and(is_there);
        let left = reach(*left, bar(|process| !process.creates.is_empty()));
        let right = reach(*right, bar(|process| !process.deletes.is_empty()));
        *size = (left.max(right) / PORTS_SHARE).max(NODE_HEIGHT_MIN);
    }
    sizes
}

/// From the first to the last of so many arrows on a side, and a bar.
fn reach(arrows: usize, bar: bool) -> f64 {
    let between = ARROW_GAP * arrows.saturating_sub(1) as f64;
    match bar && arrows > 0 {
        true => between + BAR_GAP,
        false => between,
    }
}

/// By node: the height of its centre.
fn heights(layers: &Layers, sizes: &[f64]) -> Vec<f64> {
    let size = |node: usize| sizes[node];
    let mut heights = vec![0.0; layers.column.len()];
    for column in &layers.columns {
        let offsets = offsets(column, size);
        let middle = offsets.last().copied().unwrap_or(0.0) / 2.0;
        for (node, offset) in column.iter().zip(offsets) {
            heights[*node] = offset - middle;
        }
    }
    for sweep in 0..SWEEPS {
        let columns = layers.columns.iter();
        let columns: Vec<&Vec<usize>> = match sweep % 2 {
            0 => columns.collect(),
            _ => columns.rev().collect(),
        };
        for column in columns {
            let wanted = |node: &usize| -> (f64, f64) {
                let near = layers.left[*node].iter().chain(&layers.right[*node]);
                let (mut sum, mut weight) = (0.0, 0.0);
                for other in near {
                    // Bends in a row want to be in line.
                    let pull = if layers.is_bend(*node) && layers.is_bend(*other) {
                        4.0
                    } else {
                        1.0
                    };
                    sum += pull * heights[*other];
                    weight += pull;
                }
                match weight > 0.0 {
                    true => (sum / weight, weight),
                    false => (heights[*node], 1.0),
                }
            };
            let wanted: Vec<(f64, f64)> = column.iter().map(wanted).collect();
            let offsets = offsets(column, size);
            for (node, height) in column.iter().zip(settle(&wanted, &offsets)) {
                heights[*node] = height;
            }
        }
    }
    heights
}

/// The least distances of a column's nodes from its first.
fn offsets(column: &[usize], size: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut offsets = Vec::with_capacity(column.len());
    let mut at = 0.0;
    for (row, node) in column.iter().enumerate() {
        if row > 0 {
            at += f64::midpoint(size(column[row - 1]), size(*node)) + ROW_GAP;
        }
        offsets.push(at);
    }
    offsets
}

/// The heights nearest to the wanted ones (by weighted squares) that keep the distances: pooling of neighbours that
/// would overlap.
fn settle(wanted: &[(f64, f64)], offsets: &[f64]) -> Vec<f64> {
    let mut pools: Vec<(f64, f64, usize)> = Vec::new();
    for ((height, weight), offset) in wanted.iter().zip(offsets) {
        let mut pool = ((height - offset) * weight, *weight, 1);
        while let Some(above) = pools
            .last()
            .copied()
            .filter(|above| above.0 / above.1 > pool.0 / pool.1)
        {
            pool = (pool.0 + above.0, pool.1 + above.1, pool.2 + above.2);
            pools.pop();
        }
        pools.push(pool);
    }
    let levels = pools
        .iter()
        .flat_map(|(sum, weight, n)| std::iter::repeat_n(sum / weight, *n));
    levels
        .zip(offsets)
        .map(|(level, offset)| level + offset)
        .collect()
}

/// Where arrows and bars meet the sides of a node, from top to bottom.
struct Ports {
    /// By node: the arrows at its left and at its right; `None` is a bar.
    left: Vec<Vec<Option<usize>>>,
    right: Vec<Vec<Option<usize>>>,
}

impl Ports {
    fn of(graph: &Graph, layers: &Layers, heights: &[f64]) -> Ports {
        let nodes = layers.processes + layers.queues;
        let mut ports = Ports {
            left: vec![Vec::new(); nodes],
            right: vec![Vec::new(); nodes],
        };
        let mut arrows: Vec<usize> = (0..layers.arrows.len()).collect();
        let second = |arrow: &usize| heights[layers.arrows[*arrow].nodes[1]];
        arrows.sort_by(|a, b| second(a).total_cmp(&second(b)));
        for arrow in &arrows {
            ports.right[layers.arrows[*arrow].nodes[0]].push(Some(*arrow));
        }
        let before_last = |arrow: &usize| {
            let nodes = &layers.arrows[*arrow].nodes;
            heights[nodes[nodes.len() - 2]]
        };
        arrows.sort_by(|a, b| before_last(a).total_cmp(&before_last(b)));
        for arrow in arrows {
            let nodes = &layers.arrows[arrow].nodes;
            ports.left[nodes[nodes.len() - 1]].push(Some(arrow));
        }
        for (number, process) in graph.processes.values().enumerate() {
            if !process.creates.is_empty() {
                ports.left[number].insert(0, None);
            }
            if !process.deletes.is_empty() {
                ports.right[number].push(None);
            }
        }
        ports
    }

    fn connect(
        &self,
        layers: &Layers,
        spans: &[(f64, f64)],
        heights: &[f64],
        drawing: &mut Drawing,
    ) {
        let (mut starts, mut ends) = (
            vec![(0.0, 0.0); layers.arrows.len()],
            vec![(0.0, 0.0); layers.arrows.len()],
        );
        for (number, node) in drawing.nodes.iter_mut().enumerate() {
            for (port, place) in side(node, &self.left[number], -1.0) {
                match port {
                    Some(arrow) => ends[arrow] = place,
                    None => node.create = Some(place),
                }
            }
            for (port, place) in side(node, &self.right[number], 1.0) {
                match port {
                    Some(arrow) => starts[arrow] = place,
                    None => node.delete = Some(place),
                }
            }
        }
        for (number, route) in layers.arrows.iter().enumerate() {
            let inner = &route.nodes[1..route.nodes.len() - 1];
            let bends = inner.iter().flat_map(|bend| {
                let (left, right) = spans[layers.column[*bend]];
                [(left, heights[*bend]), (right, heights[*bend])]
            });
            let mut points: Vec<(f64, f64)> = [starts[number]]
                .into_iter()
                .chain(bends)
                .chain([ends[number]])
                .collect();
            let (mut from, mut to) = (route.nodes[0], route.nodes[route.nodes.len() - 1]);
            if route.back {
                points.reverse();
                (from, to) = (to, from);
            }
            let back = route.back;
            drawing.arrows.push(Arrow {
                from,
                to,
                back,
                points,
            });
        }
    }
}

/// The places of the ports on a side of a node: -1 is left, 1 right.
fn side(node: &Node, ports: &[Option<usize>], direction: f64) -> Vec<(Option<usize>, (f64, f64))> {
    let mut offsets = Vec::with_capacity(ports.len());
    let mut at = 0.0;
    for (row, port) in ports.iter().enumerate() {
        if row > 0 {
            let bar = port.is_none() || ports[row - 1].is_none();
            at += if bar { BAR_GAP } else { ARROW_GAP };
        }
        offsets.push(at);
    }
    let stretch = match at > 0.0 {
        true => PORTS_SHARE * node.height / at,
        false => 1.0,
    };
    let place = |offset: f64| {
        let dy = (offset - at / 2.0) * stretch;
        let bulge = match node.kind {
            NodeKind::Queue => 1.0,
            NodeKind::Process => (1.0 - (2.0 * dy / node.height).powi(2)).max(0.0).sqrt(),
        };
        (node.x + direction * node.width / 2.0 * bulge, node.y + dy)
    };
    let places = offsets.into_iter().map(place);
    ports.iter().copied().zip(places).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settling_keeps_distances_and_moves_no_more_than_it_must() {
        let wanted = [(0.0, 1.0), (0.0, 1.0), (100.0, 1.0)];
        assert_eq!(settle(&wanted, &[0.0, 10.0, 20.0]), [-5.0, 5.0, 100.0]);
        assert_eq!(settle(&[], &[]), [0.0; 0]);
    }
}
