//! Where nodes stand: in columns of a table, or where their construction puts them.

use testigo_protocol::quorum::Layout;

use super::{MARGIN, PAPER_WIDTH};

/// Where the columns of nodes are.
pub(super) struct Columns {
    pub(super) step: f64,
}

impl Columns {
    const LEFT: f64 = MARGIN + 44.0;

    pub(super) fn new(nodes: usize) -> Columns {
        let room = PAPER_WIDTH - Self::LEFT - MARGIN;
        Columns {
            step: (room / nodes.max(1) as f64).clamp(8.0, 48.0),
        }
    }

    pub(super) fn x(&self, node: usize) -> f64 {
        Self::LEFT + node as f64 * self.step
    }
}

/// Of the circle that a node of a panel is.
pub(super) const RADIUS: f64 = 11.0;
/// From the centre of a node to the next.
const STEP: f64 = 30.0;

/// Where the nodes of a panel are, and which are joined by a line.
pub(super) struct Places {
    pub(super) at: Vec<(f64, f64)>,
    pub(super) edges: Vec<(usize, usize)>,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Places {
    pub(super) fn new(layout: Layout, nodes: usize) -> Places {
        let mut edges = Vec::new();
        // In steps from the left and from the top.
        let steps: Vec<(f64, f64)> = match layout {
            Layout::Row => (0..nodes).map(|node| (node as f64, 0.0)).collect(),
            Layout::Rows(width) => (0..nodes)
                .map(|node| ((node % width) as f64, (node / width) as f64))
                .collect(),
            Layout::Triangle => (0_usize..)
                .flat_map(|row| (0..=row).map(move |column| (column as f64, row as f64)))
                .take(nodes)
                .collect(),
            Layout::Tree => {
                edges.extend((1..nodes).map(|node| ((node - 1) / 2, node)));
                let levels = nodes.ilog2();
                let leaves = f64::from(1_u32 << levels);
                (1..=nodes)
                    .map(|number| {
                        let level = number.ilog2();
                        let place = (number - (1 << level)) as f64 + 0.5;
                        let wide = leaves / f64::from(1_u32 << level);
                        (place * wide - 0.5, f64::from(level) * 1.3)
                    })
                    .collect()
            }
        };
        let extent = |part: fn(&(f64, f64)) -> f64| {
            steps.iter().map(part).fold(0.0, f64::max) * STEP + 2.0 * RADIUS
        };
        let (width, height) = (extent(|step| step.0), extent(|step| step.1));
        let place = |(x, y): &(f64, f64)| (x * STEP + RADIUS, y * STEP + RADIUS);
        Places {
            at: steps.iter().map(place).collect(),
            edges,
            width: width.max(130.0),
            height,
        }
    }
}
