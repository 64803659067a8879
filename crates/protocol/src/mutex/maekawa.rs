//! Maekawa, 1985: ask a quorum of about √N nodes, each of which has one vote.
//!
//! Source: coordination and agreement §2.5, message exclusion §3.1. The algorithm as published can
//! deadlock: a queued request that is passed by an older one is never told that it has failed. Here
//! whoever stops being best is told, which is the whole repair; see `arbiter`.

use super::Mutex;
use super::arbiter::{Rules, on_quorums, per_member};
use crate::{Algorithm, Channels, Claim, Cost, Measure, Profile, Range, Telling};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "maekawa",
        title: "Maekawa, 1985",
        source: "coordination and agreement §2.5, message exclusion §3.1",
        specimen: None,
        channels: Channels::Fifo,
        survives_crashes: false,
        needs_delay_bound: false,
        survives_lies: false,
        idle_traffic: false,
        claims: &[Claim::Safety, Claim::DeadlockFreedom, Claim::LockoutFreedom],
        costs: &[
            Cost {
                measure: Measure::Messages,
                formula: "3(K−1) to 5(K−1)",
                range: |setup| per_member(setup, 3, 5),
            },
            Cost {
                measure: Measure::EntryDelay,
                formula: "2",
                range: |_| Range::exactly(2),
            },
            Cost {
                measure: Measure::SynchronisationDelay,
                formula: "2, or 1 by a vote of its own",
                range: |_| Range::new(1, 2),
            },
        ],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
    },
    machine: |setup| on_quorums(setup, Rules::Repaired),
};
