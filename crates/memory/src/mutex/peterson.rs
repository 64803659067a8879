//! Peterson, 1981, for two processes and for any number: at each level the last to come waits.
//!
//! Source: thesis §3.3.2 and §3.3.3, figs. 3.3 and 3.4. As printed, the form for n processes writes 1 in place of
//! the level, and two get in: the specimen. For two processes the index of the other is printed wrong.

use crate::levels::Levels;
use crate::{
    Claimed, Lone, PROCESSES_MAX, Plan, PlanError, Program, ThreadAlgorithm, ThreadProfile,
    ThreadTelling,
};

pub(super) static PETERSON_2: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "peterson-2",
        title: "Peterson, 1981, two processes",
        source: "shared memory §4.2, thesis §3.3.2",
        lone: Some(Lone {
            formula: "4",
            is_derived: false,
            range: |_| [4; 2],
        }),
        registers: Some(Lone {
            formula: "3",
            is_derived: false,
            range: |_| [3; 2],
        }),
        telling: ThreadTelling {
            processes: 2,
            entries: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, [2, 2], false),
};

pub(super) static PETERSON_N: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "peterson-n",
        title: "Peterson, 1981, any number",
        source: "shared memory §4.3, thesis §3.3.3",
        lone: Some(Lone {
            formula: "N²",
            is_derived: false,
            range: |plan| [plan.processes * plan.processes; 2],
        }),
        registers: Some(Lone {
            formula: "2N−1",
            is_derived: false,
            range: |plan| [2 * plan.processes - 1; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, [1, PROCESSES_MAX], false),
};

pub(super) static PETERSON_N_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "peterson-n-printed",
        title: "Peterson for n as the thesis prints it",
        source: "shared memory §4.3, thesis fig. 3.4",
        specimen: Some("the flag is 1 at every level, so nobody is seen above the first"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, [2, PROCESSES_MAX], true),
};

fn made(
    plan: &Plan,
    [least, most]: [usize; 2],
    printed: bool,
) -> Result<Box<dyn Program>, PlanError> {
    Ok(Box::new(Levels {
        processes: plan.processes(least, most)?,
        rooms: None,
        printed,
    }))
}
