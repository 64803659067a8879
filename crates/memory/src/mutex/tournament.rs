//! Tournament: Peterson's two processes at every node of a binary tree.
//!
//! Source: thesis §3.3.4, figs. 3.5 to 3.7. The guard of fig. 3.7, for a number of processes that is no power of
//! two, skips opponents that exist (from n = 5 on): the specimen. An empty set of opponents needs no guard.

use crate::{
    Claimed, Local, Lone, Memory, PROCESSES_MAX, Plan, PlanError, Program, RegisterId, Registers,
    ThreadAlgorithm, ThreadProfile, ThreadTelling, Tree,
};

pub(super) static TOURNAMENT: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "tournament",
        title: "Tournament, any number",
        source: "shared memory §4.4, thesis §3.3.4",
        lone: Some(Lone {
            formula: "N + 2⌈log2 N⌉",
            is_derived: false,
            range: |plan| [plan.processes + 2 * Tree::new(plan.processes).levels(); 2],
        }),
        // 2N−1 where N is a power of two.
        registers: Some(Lone {
            formula: "N + 2^⌈log2 N⌉ − 1",
            is_derived: false,
            range: |plan| [plan.processes + Tree::new(plan.processes).nodes(); 2],
        }),
        telling: ThreadTelling {
            processes: 3,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| tournament(plan, false),
};

pub(super) static TOURNAMENT_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "tournament-printed",
        title: "Tournament with the guard of fig. 3.7",
        source: "shared memory §4.4, thesis fig. 3.7",
        specimen: Some("with 5 processes, process 3 does not look at process 4"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 5,
            present: &[3, 4],
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| tournament(plan, true),
};

fn tournament(plan: &Plan, printed: bool) -> Result<Box<dyn Program>, PlanError> {
    let processes = plan.processes(1, PROCESSES_MAX)?;
    Ok(Box::new(Tournament {
        processes,
        tree: Tree::new(processes),
        printed,
    }))
}

#[derive(Debug)]
struct Tournament {
    processes: usize,
    tree: Tree,
    printed: bool,
}

impl Tournament {
    fn turn(&self, me: usize, level: usize) -> RegisterId {
        self.processes + self.tree.node(me, level)
    }

    /// Looks at opponents from this one on; the local `k` is the level less one.
    fn look_at(&self, me: usize, from: usize, at: &mut Local) {
        let level = at.k as usize + 1;
        let opponents = self.tree.opponents(me, level);
        let skips = self.printed && !self.tree.guard_of_fig_3_7(me, level);
        match from.max(opponents.start) {
            next if next < opponents.end && !skips => {
                at.j = next as u8;
                at.go(2);
            }
            _ => self.won(at),
        }
    }

    fn won(&self, at: &mut Local) {
        at.j = 0;
        match (at.k as usize) + 1 < self.tree.levels() {
            true => {
                at.k += 1;
                at.go(0);
            }
            false => at.enter(),
        }
    }
}

impl Program for Tournament {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for process in 0..self.processes {
            all.at(process, format!("flag[{process}]"), [0]);
        }
        for node in 0..self.tree.nodes() {
            all.shared(format!("turn[{node}]"), [0, 1]);
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let level = at.k as usize + 1;
        match at.line {
            0 if self.tree.levels() == 0 => {
                memory.store(me, 1);
                at.enter();
            }
            0 => {
                memory.store(me, level as u64);
                at.go(1);
            }
            1 => {
                let role = self.tree.role(me, level);
                memory.store(self.turn(me, level), role as u64);
                self.look_at(me, 0, at);
            }
            2 => match memory.load(at.j as usize) < level as u64 {
                true => self.look_at(me, at.j as usize + 1, at),
                false => {
                    at.j = 0;
                    at.go(3);
                }
            },
            3 => match memory.load(self.turn(me, level)) == self.tree.role(me, level) as u64 {
                true => self.look_at(me, 0, at),
                false => self.won(at),
            },
            _ => {
                memory.store(me, 0);
                at.end();
            }
        }
    }
}
