//! Maekawa's basic form, with every node voting for itself too: safe, but votes that are never
//! recalled can be held in a circle.
//!
//! Source: coordination and agreement §2.5.3.

use crate::mutex::Mutex;
use crate::mutex::arbiter::{Rules, on_quorums, per_member};
use crate::mutex::maekawa;
use crate::{Algorithm, Cost, Profile, Telling};

pub(crate) const ALGORITHM: Algorithm<Mutex> = Algorithm {
    profile: Profile {
        name: "maekawa-basic",
        title: "Maekawa's basic form, corrected to be safe",
        source: "coordination and agreement §2.5.3",
        specimen: Some(
            "deadlock: three users each hold their own vote and wait for the next one's",
        ),
        costs: &[Cost::messages("3(K−1)", |setup| per_member(setup, 3, 3))],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        ..maekawa::ALGORITHM.profile
    },
    machine: |setup| on_quorums(setup, Rules::NoRecall),
};
