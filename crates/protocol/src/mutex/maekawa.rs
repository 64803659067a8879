//! Maekawa, 1985: ask a quorum of about √N nodes, each of which has one vote.
//!
//! Source: coordination and agreement §2.5, message exclusion §3.1. The algorithm as published can
//! deadlock: a queued request that is passed by an older one is never told that it has failed. Here
//! whoever stops being best is told, which is the whole repair; see `arbiter`.

use super::Mutex;
use super::arbiter::{Rules, on_quorums, per_member};
use crate::quorum::Construction;
use crate::{Algorithm, Cost, Experiment, Figure, Profile, Range, Setup};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "maekawa",
        title: "Maekawa, 1985",
        source: "coordination and agreement §2.5, message exclusion §3.1",
        costs: &[
            Cost::messages("3(K−1) to 5(K−1)", |setup| per_member(setup, 3, 5)),
            Cost::entry_delay("2", |_| Range::exactly(2)),
            Cost::synchronisation_delay("2, or 1 by a vote of its own", |_| Range::new(1, 2)),
        ],
        figures: &FIGURES,
        ..Profile::PLAIN
    },
    machine: |setup| on_quorums(setup, Rules::Repaired),
};

const GRID: &[(&str, &str)] = &[("quorum", "grid")];
const TRIANGLE: &[(&str, &str)] = &[("quorum", "triangle")];
const SQUARES: &[usize] = &[4, 9, 16];
const TRIANGLES: &[usize] = &[6, 10, 15];

/// Thesis, table 4.1, and course, §2.5.5. Messages to oneself are not counted here, so K of them are K−1.
const FIGURES: [Figure; 10] = [
    Figure {
        what: "messages to enter, nobody in the way",
        formula: "√N + √N, K−1 for √N",
        range: |setup| per_member(setup, 2, 2),
        sizes: &[7, 13],
        chosen: &[],
        experiment: Experiment::LoneKinds(&["Request", "Grant"]),
    },
    Figure {
        what: "messages at an exit",
        formula: "√N, K−1 for √N",
        range: |setup| per_member(setup, 1, 1),
        sizes: &[7, 13],
        chosen: &[],
        experiment: Experiment::LoneKinds(&["Release"]),
    },
    Figure {
        what: "messages of the costliest entry, nobody in the way",
        formula: "3√N, K−1 for √N",
        range: |setup| per_member(setup, 3, 3),
        sizes: &[7, 13],
        chosen: &[],
        experiment: Experiment::LoneEntryMost,
    },
    Figure {
        what: "messages by Ricart and Agrawala's, nobody in the way",
        formula: "below 1 if N > 4, by 3√N to 2(N−1)",
        range: better_above_four,
        sizes: SQUARES,
        chosen: GRID,
        experiment: Experiment::LoneRatio("ricart-agrawala"),
    },
    Figure {
        what: "messages by Ricart and Agrawala's at full load",
        formula: "below 1 if N > 4, by 3√N to 2(N−1)",
        range: better_above_four,
        sizes: SQUARES,
        chosen: GRID,
        experiment: Experiment::FullLoadRatio("ricart-agrawala"),
    },
    Figure {
        what: "messages per entry, grid",
        formula: "6√N−3 to 10√N−5, less 3 to 5 to itself",
        range: |setup| {
            let side = (setup.users as f64).sqrt();
            Range::new(6.0 * side - 6.0, 10.0 * side - 10.0)
        },
        sizes: SQUARES,
        chosen: GRID,
        experiment: Experiment::FullLoad,
    },
    Figure {
        what: "quorum size, grid",
        formula: "2√N−1",
        range: |setup| Range::exactly(2.0 * (setup.users as f64).sqrt() - 1.0),
        sizes: SQUARES,
        chosen: GRID,
        experiment: Experiment::QuorumSizes(Construction::Grid),
    },
    Figure {
        what: "messages of the costliest entry, triangle",
        formula: "3√(2N), 3(k−1) for N = k(k+1)/2",
        range: |setup| Range::exactly(3.0 * (rows(setup) - 1.0)),
        sizes: TRIANGLES,
        chosen: TRIANGLE,
        experiment: Experiment::LoneEntryMost,
    },
    Figure {
        what: "messages per entry, triangle",
        formula: "3√(2N) to 5√(2N), k−1 for √(2N)",
        range: |setup| Range::new(3.0 * (rows(setup) - 1.0), 5.0 * (rows(setup) - 1.0)),
        sizes: TRIANGLES,
        chosen: TRIANGLE,
        experiment: Experiment::FullLoad,
    },
    Figure {
        what: "quorum size, triangle",
        formula: "√(2N): k for N = k(k+1)/2",
        range: |setup| Range::exactly(rows(setup)),
        sizes: TRIANGLES,
        chosen: TRIANGLE,
        experiment: Experiment::QuorumSizes(Construction::Triangle),
    },
];

/// The rows of a triangle.
fn rows(setup: &Setup) -> f64 {
    ((8.0 * setup.users as f64 + 1.0).sqrt() - 1.0) / 2.0
}

/// The course: better than Ricart and Agrawala if N > 4, and as good at 4.
fn better_above_four(setup: &Setup) -> Range {
    match setup.users {
        4 => Range::exactly(1),
        _ => Range::new(0, 0.999),
    }
}
