//! Tree quorums, Agrawal and El Abbadi, 1991: ask a path from the root of a binary tree to a leaf; a dead
//! node on it is replaced by paths below both its children.
//!
//! Source: message exclusion §3.5, figure 4.6; the arbiter is `recall`. While all are alive a node asks the
//! path that it is on itself, so that leaves share the load; the root is on every path.

use super::Mutex;
use super::recall::on_living;
use crate::quorum::Tree;
use crate::{Algorithm, Cost, NodeId, Profile, Range, Setup};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "tree-quorum",
        title: "Tree quorums (Agrawal and El Abbadi, 1991)",
        source: "message exclusion §3.5",
        survives_crashes: true,
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

/// The shortest and the longest path: the last level may be incomplete.
fn path_sizes(setup: &Setup) -> (u32, u32) {
    let tree = Tree::new(setup.users);
    let sizes = || (0..setup.users).map(|node| tree.path(node).len() as u32);
    (sizes().min().unwrap_or(1), sizes().max().unwrap_or(1))
}
