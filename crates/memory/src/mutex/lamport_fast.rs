//! Lamport's fast mutual exclusion, 1987: seven accesses with nobody else there, and five where time is known.
//!
//! Source: thesis §3.3.6, fig. 3.13. The timed form is only mentioned there; it is Lamport's own. Its delay must
//! outlast what another process does from having read `y` as free to its exit, and the program says exactly
//! that: the bound is an assumption about others, not something that registers can tell. The specimen does
//! not wait.

use crate::{
    Claimed, Local, Lone, Memory, PROCESSES_MAX, Plan, PlanError, Program, Region, RegisterId,
    Registers, ThreadAlgorithm, ThreadProfile, ThreadTelling,
};

pub(super) static LAMPORT_FAST: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "lamport-fast",
        title: "Lamport's fast mutual exclusion, 1987",
        source: "shared memory §6, thesis §3.3.6",
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        lone: Some(Lone {
            formula: "7",
            is_derived: false,
            range: |_| [7; 2],
        }),
        registers: Some(Lone {
            formula: "N+2",
            is_derived: false,
            range: |plan| [plan.processes + 2; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let processes = plan.processes(1, PROCESSES_MAX)?;
        Ok(Box::new(LamportFast { processes }))
    },
};

pub(super) static LAMPORT_TIMED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "lamport-timed",
        title: "Lamport's fast mutual exclusion with a delay",
        source: "shared memory §6, thesis §3.3.6",
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        needs_time_bound: true,
        lone: Some(Lone {
            formula: "5",
            is_derived: false,
            range: |_| [5; 2],
        }),
        registers: Some(Lone {
            formula: "2",
            is_derived: false,
            range: |_| [2; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| timed(plan, true),
};

pub(super) static LAMPORT_HASTY: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "lamport-hasty",
        title: "Lamport's timed form without its delay",
        source: "shared memory §6",
        specimen: Some("it does not wait for who has read `y` before it was written"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| timed(plan, false),
};

fn timed(plan: &Plan, delays: bool) -> Result<Box<dyn Program>, PlanError> {
    let processes = plan.processes(1, PROCESSES_MAX)?;
    Ok(Box::new(LamportTimed { processes, delays }))
}

const X: RegisterId = 0;
const Y: RegisterId = 1;
/// Nobody, in `y`.
const NOBODY: u64 = 0;

/// A process as `x` and `y` name it.
fn id(process: usize) -> u64 {
    process as u64 + 1
}

fn x_and_y(processes: usize) -> Registers {
    let mut all = Registers::default();
    all.shared("x", Vec::from_iter(1..=processes as u64));
    all.shared("y", [NOBODY]);
    all
}

#[derive(Debug)]
struct LamportFast {
    processes: usize,
}

/// Whether a process wants in.
fn wants(process: usize) -> RegisterId {
    2 + process
}

impl Program for LamportFast {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        let mut all = x_and_y(self.processes);
        for process in 0..self.processes {
            all.at(process, format!("b[{process}]"), [0]);
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        match at.line {
            0 => {
                memory.store(wants(me), 1);
                at.go(1);
            }
            1 => {
                memory.store(X, id(me));
                at.go(2);
            }
            2 => at.go(match memory.load(Y) {
                NOBODY => 5,
                _ => 3,
            }),
            3 => {
                memory.store(wants(me), 0);
                at.go(4);
            }
            4 => {
                if memory.load(Y) == NOBODY {
                    at.go(0);
                }
            }
            5 => {
                memory.store(Y, id(me));
                at.go(6);
            }
            6 => match memory.load(X) == id(me) {
                true => at.enter(),
                false => at.go(7),
            },
            7 => {
                memory.store(wants(me), 0);
                at.go(8);
            }
            8 => {
                if memory.load(wants(at.j as usize)) == 0 {
                    at.j += 1;
                }
                if at.j as usize == self.processes {
                    at.j = 0;
                    at.go(9);
                }
            }
            9 => match memory.load(Y) == id(me) {
                true => at.enter(),
                false => at.go(4),
            },
            Local::EXIT => {
                memory.store(Y, NOBODY);
                at.go(Local::EXIT + 1);
            }
            _ => {
                memory.store(wants(me), 0);
                at.end();
            }
        }
    }
}

#[derive(Debug)]
struct LamportTimed {
    processes: usize,
    delays: bool,
}

/// The line behind the delay.
const DELAYED: u8 = 4;

impl Program for LamportTimed {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        x_and_y(self.processes)
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        match at.line {
            0 => {
                memory.store(X, id(me));
                at.go(1);
            }
            1 => at.go(match memory.load(Y) {
                NOBODY => 2,
                _ => 0,
            }),
            2 => {
                memory.store(Y, id(me));
                at.go(3);
            }
            3 => match memory.load(X) == id(me) {
                true => at.enter(),
                false => at.go(DELAYED),
            },
            DELAYED => match memory.load(Y) == id(me) {
                true => at.enter(),
                false => at.go(0),
            },
            _ => {
                memory.store(Y, NOBODY);
                at.end();
            }
        }
    }

    /// The delay lasts while another process may have read `y` as free and not have written it, tested `x`, and
    /// left its critical section.
    fn is_delayed(&self, actor: usize, locals: &[Local]) -> bool {
        let on_its_way =
            |other: &Local| matches!(other.region, Region::Inside) || matches!(other.line, 2 | 3);
        let mut others = locals
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != actor);
        self.delays && locals[actor].line == DELAYED && others.any(|(_, other)| on_its_way(other))
    }
}
