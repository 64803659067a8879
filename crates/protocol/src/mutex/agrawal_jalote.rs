//! Agrawal and Jalote, 1992: every node is in two groups, of which any two share a node; it asks one, and
//! the other once a member of the first is dead.
//!
//! Source: message exclusion §1.5 and §3.3; the arbiter is `recall`, which needs no `Failed` and so replaces
//! the one that the thesis names. A node whose groups have both lost a member waits until one is back: one
//! death harms nobody but the dead, two can stop the node that stands in both groups.

use super::Mutex;
use super::recall::on_living;
use crate::quorum::{AgrawalJalote, Construction};
use crate::{Algorithm, Cost, Experiment, Figure, NodeId, Profile, Range, Setup};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "agrawal-jalote",
        title: "Two groups a node (Agrawal and Jalote, 1992)",
        source: "message exclusion §3.3",
        survives_crashes: true,
        keeps_storage: true,
        needs_delay_bound: true,
        costs: &[
            Cost::messages(
                "3(K−1), and 3 for each permission recalled, for groups of K = √(2N)",
                |setup| {
                    let (least, most) = group_sizes(setup);
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
        let groups = AgrawalJalote::new(setup.at_least(2)?);
        on_living(
            setup,
            Box::new(move |node, living| {
                let alive = |group: &&[usize]| group.iter().all(|&n| living(NodeId(n as u32)));
                let group = groups.of(node.index())?.into_iter().find(alive)?;
                Some(group.iter().map(|&member| NodeId(member as u32)).collect())
            }),
        )
    },
};

/// Thesis, §1.5 and table 4.1, for N = n(n−1)/2 nodes in n groups.
const FIGURES: [Figure; 4] = [
    Figure {
        what: "messages of the costliest entry, nobody in the way",
        formula: "3√(2N), n−2 for √(2N)",
        range: |setup| Range::exactly(3.0 * (groups(setup) - 2.0)),
        sizes: &[6, 10, 15],
        chosen: &[],
        experiment: Experiment::LoneEntryMost,
    },
    Figure {
        what: "quorum size",
        formula: "√(2N): n−1 for n groups",
        range: |setup| Range::exactly(groups(setup) - 1.0),
        sizes: &[6, 10, 15],
        chosen: &[],
        experiment: Experiment::QuorumSizes(Construction::AgrawalJalote),
    },
    Figure {
        what: "dead nodes, one at a time, that stop nobody else",
        formula: "N",
        range: |setup| Range::exactly(setup.users as u32),
        sizes: &[6, 10],
        chosen: &[],
        experiment: Experiment::NodeFailuresSurvived,
    },
    Figure {
        what: "dead links, one at a time, that stop nobody",
        formula: "N(N−1)/2",
        range: |setup| Range::exactly((setup.users * (setup.users - 1) / 2) as u32),
        sizes: &[6, 10],
        chosen: &[],
        experiment: Experiment::LinkFailuresSurvived,
    },
];

/// The number of groups, n.
fn groups(setup: &Setup) -> f64 {
    ((8.0 * setup.users as f64 + 1.0).sqrt() + 1.0) / 2.0
}

/// The smallest and the largest group that is some node's first choice.
fn group_sizes(setup: &Setup) -> (u32, u32) {
    let groups = AgrawalJalote::new(setup.users);
    let sizes = || {
        let first = |node| groups.of(node).map_or(1, |[first, _]| first.len() as u32);
        (0..setup.users).map(first)
    };
    (sizes().min().unwrap_or(1), sizes().max().unwrap_or(1))
}
