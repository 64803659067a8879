//! Peterson's levels for rooms (Vidyasankar): at a level, those who want the same room do not push each other.
//!
//! Source: thesis §5.2.2. Whether a process at the level wants another room is read from its flag and then from its
//! forum, one access each; a forum that has been taken back counts as another one.

use super::sizes;
use crate::levels::Levels;
use crate::{Lone, ThreadAlgorithm, ThreadProfile};

pub(super) static PETERSON_GME: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "peterson-gme",
        title: "Peterson's levels for rooms",
        problem: "threads-rooms",
        source: "group exclusion §3.2, thesis §5.2.2",
        lone: Some(Lone {
            formula: "N²+2",
            is_derived: true,
            range: |plan| [plan.processes * plan.processes + 2; 2],
        }),
        registers: Some(Lone {
            formula: "3N−1",
            is_derived: true,
            range: |plan| [3 * plan.processes - 1; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let (processes, rooms) = sizes(plan)?;
        Ok(Box::new(Levels {
            processes,
            rooms: Some(rooms),
            printed: false,
        }))
    },
};
