//! Maekawa, 1985: ask a quorum of about √N nodes, each of which has one vote.
//!
//! Source: coordination and agreement §2.5, message exclusion §3.1. The algorithm as published can
//! deadlock: a queued request that is passed by an older one is never told that it has failed. Here
//! whoever stops being best is told, which is the whole repair; see `arbiter`.

use super::Mutex;
use super::arbiter::{Rules, on_quorums, per_member};
use crate::{Algorithm, Cost, Profile, Range};

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
        ..Profile::PLAIN
    },
    machine: |setup| on_quorums(setup, Rules::Repaired),
};
