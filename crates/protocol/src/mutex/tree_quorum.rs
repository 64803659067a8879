//! Tree quorums, Agrawal and El Abbadi, 1991: ask a path from the root of a binary tree to a leaf; a dead
//! node on it is replaced by paths below both its children.
//!
//! Source: message exclusion §3.5, figure 4.6; the arbiter is `recall`. While all are alive a node asks the
//! path that it is on itself, so that leaves share the load; the root is on every path.

use super::Mutex;
use super::recall::on_living;
use crate::quorum::{Construction, Tree};
use crate::{Algorithm, Cost, Experiment, Figure, NodeId, Profile, Range, Setup};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "tree-quorum",
        title: "Tree quorums (Agrawal and El Abbadi, 1991)",
        source: "message exclusion §3.5",
        survives_crashes: true,
        keeps_storage: true,
        needs_delay_bound: true,
        costs: &[
            Cost::messages(
                "3(K−1), and 3 for each permission recalled, for paths of K = log2(N+1)",
                |setup| {
                    let (least, most) = path_sizes(setup);
                    Range::new(3 * (least - 1), 6 * (most - 1))
                },
            ),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("2, or 1 by a permission of its own", |_| Range::new(1, 2)),
        ],
        figures: &FIGURES,
        ..Profile::PLAIN
    },
    machine: |setup| {
        let tree = Tree::new(setup.users);
        on_living(
            setup,
            Box::new(move |node, living| {
                let path = tree.path(node.index()).into_iter();
                let path: Vec<NodeId> = path.map(|member| NodeId(member as u32)).collect();
                match path.iter().all(|&member| living(member)) {
                    true => Some(path),
                    false => tree.quorum(living),
                }
            }),
        )
    },
};

/// Thesis, §1.5 and table 4.1, for complete trees.
const FIGURES: [Figure; 2] = [
    Figure {
        what: "messages of the costliest entry, nobody in the way",
        formula: "3 log N, log2(N+1)−1 for log N",
        range: |setup| Range::exactly(3.0 * (levels(setup) - 1.0)),
        sizes: &[3, 7, 15],
        chosen: &[],
        experiment: Experiment::LoneEntryMost,
    },
    Figure {
        what: "quorum size",
        formula: "log2(N+1) to (N+1)/2",
        range: |setup| Range::new(levels(setup), (setup.users as f64 + 1.0) / 2.0),
        sizes: &[3, 7, 15],
        chosen: &[],
        experiment: Experiment::QuorumSizes(Construction::Tree),
    },
];

fn levels(setup: &Setup) -> f64 {
    f64::from((setup.users as u32 + 1).ilog2())
}

/// The shortest and the longest path: the last level may be incomplete.
fn path_sizes(setup: &Setup) -> (u32, u32) {
    let tree = Tree::new(setup.users);
    let sizes = || (0..setup.users).map(|node| tree.path(node).len() as u32);
    (sizes().min().unwrap_or(1), sizes().max().unwrap_or(1))
}
