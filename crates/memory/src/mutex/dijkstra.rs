//! Dijkstra, 1965: first own the turn, then see that nobody else got as far.
//!
//! Source: thesis §3.3.1, fig. 3.2. The turn that was read is kept for the look at its owner's flag: that
//! are two accesses, and between them the turn may change.

use crate::program::other;
use crate::{
    Claimed, Local, Lone, Memory, PROCESSES_MAX, Program, RegisterId, Registers, ThreadAlgorithm,
    ThreadProfile,
};

pub(super) static DIJKSTRA: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "dijkstra",
        title: "Dijkstra, 1965",
        source: "shared memory §4.1, thesis §3.3.1",
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        lone: Some(Lone {
            formula: "N+3 or N+6",
            is_derived: false,
            range: |plan| [plan.processes + 3, plan.processes + 6],
        }),
        registers: Some(Lone {
            formula: "N+1",
            is_derived: false,
            range: |plan| [plan.processes + 1; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let processes = plan.processes(1, PROCESSES_MAX)?;
        Ok(Box::new(Dijkstra { processes }))
    },
};

#[derive(Debug)]
struct Dijkstra {
    processes: usize,
}

const TURN: RegisterId = 0;

fn flag(process: usize) -> RegisterId {
    1 + process
}

impl Program for Dijkstra {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        all.shared("turn", Vec::from_iter(0..self.processes as u64));
        for process in 0..self.processes {
            all.at(process, format!("flag[{process}]"), [0]);
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        match at.line {
            0 => {
                memory.store(flag(me), 1);
                at.go(1);
            }
            1 => match memory.load(TURN) {
                turn if turn == me as u64 => at.go(4),
                turn => {
                    at.v = turn;
                    at.go(2);
                }
            },
            2 => {
                let idle = memory.load(flag(at.v as usize)) == 0;
                at.v = 0;
                at.go(if idle { 3 } else { 1 });
            }
            3 => {
                memory.store(TURN, me as u64);
                at.go(1);
            }
            4 => {
                memory.store(flag(me), 2);
                self.look_at(me, 0, at);
            }
            5 => match memory.load(flag(at.j as usize)) {
                2 => {
                    at.j = 0;
                    at.go(0);
                }
                _ => self.look_at(me, at.j as usize + 1, at),
            },
            _ => {
                memory.store(flag(me), 0);
                at.end();
            }
        }
    }
}

impl Dijkstra {
    fn look_at(&self, me: usize, from: usize, at: &mut Local) {
        match other(me, from, self.processes) {
            Some(j) => {
                at.j = j as u8;
                at.go(5);
            }
            None => at.enter(),
        }
    }
}
