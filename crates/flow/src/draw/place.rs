//! From columns and their order to pixels. Each column is as wide as its widest node; heights are those that bring every
//! node nearest to the middle of its neighbours without an overlap.

use super::layers::Layers;
use super::{Arrow, Drawing, Node, NodeKind};
use crate::Graph;

const MARGIN: f64 = 28.0;
/// Room for the title.
const TOP: f64 = 44.0;
const COLUMN_GAP: f64 = 46.0;
const ROW_GAP: f64 = 20.0;
const BEND_HEIGHT: f64 = 6.0;
pub(super) const NODE_HEIGHT: f64 = 36.0;
const PROCESS_WIDTH_MIN: f64 = 40.0;
const QUEUE_WIDTH_MIN: f64 = 52.0;
/// A letter's width and the room beside the name.
const LETTER: f64 = 7.6;
const PADDING: f64 = 26.0;
/// Room for the bars of creators and deleters.
pub(super) const BAR: f64 = 14.0;
/// Names are cut here; the whole name is in the tooltip.
pub(super) const NAME_CHARS_MAX: usize = 28;
const SWEEPS: usize = 16;

pub(super) fn place(graph: &Graph, layers: &Layers) -> Drawing {
    let names: Vec<_> = graph.processes.keys().chain(graph.queues.keys()).collect();
    let width = |node: usize| -> f64 {
        let Some(name) = names.get(node) else {
            return 0.0;
        };
        let letters = name.chars().count().min(NAME_CHARS_MAX) as f64;
        let least = if node < layers.processes {
            PROCESS_WIDTH_MIN
        } else {
            QUEUE_WIDTH_MIN
        };
        (letters * LETTER + PADDING).max(least)
    };
    let mut x = MARGIN + BAR;
    let mut spans = Vec::new();
    for column in &layers.columns {
        let widest = column.iter().map(|node| width(*node)).fold(0.0, f64::max);
        spans.push((x, x + widest));
        x += widest + COLUMN_GAP;
    }
    let mut heights = heights(layers);
    let top = heights.iter().copied().fold(f64::INFINITY, f64::min);
    let top = if top.is_finite() { top } else { 0.0 };
    for height in &mut heights {
        *height += TOP + MARGIN + NODE_HEIGHT / 2.0 - top;
    }
    let bottom = heights.iter().copied().fold(TOP, f64::max);
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
            height: NODE_HEIGHT,
            create: None,
            delete: None,
        }
    };
    let mut drawing = Drawing {
        width: x - COLUMN_GAP + BAR + MARGIN,
        height: bottom + NODE_HEIGHT / 2.0 + MARGIN,
        nodes: names.iter().enumerate().map(node).collect(),
        arrows: Vec::new(),
    };
    Ports::of(graph, layers, &heights).connect(layers, &spans, &heights, &mut drawing);
    drawing
}

/// By node: the height of its centre.
fn heights(layers: &Layers) -> Vec<f64> {
    let size = |node: usize| {
        if layers.is_bend(node) {
            BEND_HEIGHT
        } else {
            NODE_HEIGHT
        }
    };
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
            for (at, port) in self.left[number].iter().enumerate() {
                let place = side(node, at, self.left[number].len(), -1.0);
                match port {
                    Some(arrow) => ends[*arrow] = place,
                    None => node.create = Some(place),
                }
            }
            for (at, port) in self.right[number].iter().enumerate() {
                let place = side(node, at, self.right[number].len(), 1.0);
                match port {
                    Some(arrow) => starts[*arrow] = place,
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

/// The place of a port on a side of a node: -1 is left, 1 right.
fn side(node: &Node, at: usize, ports: usize, direction: f64) -> (f64, f64) {
    let reach = 0.34 * node.height;
    let dy = match ports {
        0 | 1 => 0.0,
        n => reach * (2.0 * at as f64 / (n - 1) as f64 - 1.0),
    };
    let bulge = match node.kind {
        NodeKind::Queue => 1.0,
        NodeKind::Process => (1.0 - (2.0 * dy / node.height).powi(2)).max(0.0).sqrt(),
    };
    (node.x + direction * node.width / 2.0 * bulge, node.y + dy)
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
