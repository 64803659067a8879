//! TSM: the tournament with registers that only one process writes (Cenci and Ardenghi, 2001).
//!
//! Source: thesis §3.3.5, figs. 3.8 to 3.12. A process adds the tickets of the opponents that it sees to its own, so
//! whoever comes later has none that is smaller; of equal tickets the right side wins. The wait looks at all
//! opponents afresh. As printed, it leaves out those that were seen idle (the frozen set), and with one access
//! per step two get in; and the guard of fig. 3.9 skips an opponent from n = 13 on. Both are specimens.

use crate::{
    Claimed, Local, Lone, Memory, PROCESSES_MAX, Plan, PlanError, Program, RegisterId, Registers,
    ThreadAlgorithm, ThreadProfile, ThreadTelling, Tree, Word,
};

pub(super) static TSM: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "tsm",
        title: "TSM, a tournament of single writers",
        source: "shared memory §5, thesis §3.3.5",
        lone: Some(Lone {
            formula: "N − 1 + 2⌈log2 N⌉",
            is_derived: false,
            range: |plan| [plan.processes - 1 + 2 * Tree::new(plan.processes).levels(); 2],
        }),
        registers: Some(Lone {
            formula: "N·⌈log2 N⌉",
            is_derived: false,
            range: |plan| [plan.processes * Tree::new(plan.processes).levels(); 2],
        }),
        grows: true,
        telling: ThreadTelling {
            entries: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, TsmForm::Repaired),
};

pub(super) static TSM_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "tsm-printed",
        title: "TSM with the guard of fig. 3.9",
        source: "shared memory §5.3, thesis fig. 3.9",
        specimen: Some("with 13 processes, process 11 does not look at process 12"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 13,
            present: &[11, 12],
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, TsmForm::Guarded),
};

pub(super) static TSM_FROZEN: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "tsm-frozen",
        title: "TSM with the frozen set of fig. 3.11",
        source: "shared memory §5.3, thesis fig. 3.11",
        specimen: Some("who was seen idle is not looked at again, one access per step"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 4,
            present: &[0, 2, 3],
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, TsmForm::Frozen),
};

fn made(plan: &Plan, form: TsmForm) -> Result<Box<dyn Program>, PlanError> {
    let processes = plan.processes(2, PROCESSES_MAX)?;
    Ok(Box::new(Tsm::new(processes, form)))
}

/// What is built of TSM.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TsmForm {
    /// One access per step, and the wait looks at all opponents.
    Repaired,
    /// The same with the guard of fig. 3.9.
    Guarded,
    /// The same with the frozen set.
    Frozen,
    /// The automaton of figs. 3.10 and 3.11 with the guard repaired: reading an opponent and adding its ticket is
    /// one action, and so is the whole exit. No memory does that in one step, so it is for the checker alone.
    Automaton,
}

/// The program.
#[derive(Debug)]
pub struct Tsm {
    processes: usize,
    tree: Tree,
    form: TsmForm,
}

/// Nothing is written.
const NULL: Word = 0;

impl Tsm {
    /// For so many processes, at least two.
    pub fn new(processes: usize, form: TsmForm) -> Tsm {
        Tsm {
            processes,
            tree: Tree::new(processes),
            form,
        }
    }

    /// A ticket t is written as t + 1.
    fn ticket(&self, process: usize, level: usize) -> RegisterId {
        (level - 1) * self.processes + process
    }

    fn is_frozen(&self) -> bool {
        matches!(self.form, TsmForm::Frozen | TsmForm::Automaton)
    }

    /// The next opponent to look at, from this one on.
    fn opponent(&self, me: usize, from: usize, at: &Local, waiting: bool) -> Option<usize> {
        let level = at.k as usize + 1;
        let mut opponents = self.tree.opponents(me, level);
        opponents.start = opponents.start.max(from);
        let skips = self.form == TsmForm::Guarded && !self.tree.guard_of_fig_3_9(me, level);
        let looks = |j: &usize| !(waiting && self.is_frozen() && at.has(*j));
        opponents.find(looks).filter(|_| !skips)
    }

    /// After an opponent whose ticket is counted: the next, or the wait, or the next level. The local `w` says
    /// whether any was there.
    fn counted(&self, me: usize, from: usize, at: &mut Local) {
        match self.opponent(me, from, at, false) {
            Some(j) => {
                at.j = j as u8;
                at.go(1);
            }
            None if at.w == 1 => {
                at.w = 0;
                self.waited(me, 0, at);
            }
            None => self.won(at),
        }
    }

    fn waited(&self, me: usize, from: usize, at: &mut Local) {
        match self.opponent(me, from, at, true) {
            Some(j) => {
                at.j = j as u8;
                at.go(3);
            }
            None => self.won(at),
        }
    }

    fn won(&self, at: &mut Local) {
        (at.j, at.v, at.w, at.set) = (0, 0, 0, 0);
        match (at.k as usize) + 1 < self.tree.levels() {
            true => {
                at.k += 1;
                at.go(0);
            }
            false => at.enter(),
        }
    }
}

impl Program for Tsm {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for level in 1..=self.tree.levels() {
            for process in 0..self.processes {
                all.at(process, format!("ticket[{level}][{process}]"), [NULL]);
            }
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let level = at.k as usize + 1;
        let j = at.j as usize;
        match at.line {
            // The local `v` is what is written in one's own register.
            0 => {
                at.v = self.tree.role(me, level) as Word + 1;
                memory.store(self.ticket(me, level), at.v);
                self.counted(me, 0, at);
            }
            1 => match memory.load(self.ticket(j, level)) {
                NULL => {
                    if self.is_frozen() {
                        at.add(j);
                    }
                    self.counted(me, j + 1, at);
                }
                theirs => {
                    (at.v, at.w) = (at.v + theirs - 1, 1);
                    at.go(2);
                    if self.form == TsmForm::Automaton {
                        self.step(me, at, memory);
                    }
                }
            },
            2 => {
                memory.store(self.ticket(me, level), at.v);
                self.counted(me, j + 1, at);
            }
            3 => {
                let theirs = memory.load(self.ticket(j, level));
                let wins = theirs == NULL || at.v < theirs || at.v == theirs && me > j;
                self.waited(me, if wins { j + 1 } else { 0 }, at);
            }
            _ => {
                memory.store(self.ticket(me, level), NULL);
                match level < self.tree.levels() {
                    true => {
                        at.k += 1;
                        if self.form == TsmForm::Automaton {
                            self.step(me, at, memory);
                        }
                    }
                    false => at.end(),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CountedMemory, Region};

    /// Fig. 3.12: of 8 processes, P5 and P7 meet at level 2, one after the other. The tickets of both, and who wins.
    fn play(first: usize, second: usize) -> (Word, Word, usize) {
        let tsm = Tsm::new(8, TsmForm::Repaired);
        let mut memory = CountedMemory::new(&tsm.registers());
        let mut locals = [Local::asking(0); 8];
        let mut until = |process: usize, level: u8, line: u8, memory: &mut CountedMemory| {
            while (locals[process].k + 1, locals[process].line) != (level, line) {
                tsm.step(process, &mut locals[process], memory);
            }
        };
        until(first, 2, 0, &mut memory);
        until(second, 2, 0, &mut memory);
        until(first, 3, 0, &mut memory);
        until(second, 2, 3, &mut memory);
        let words = [5, 7].map(|process| memory.words[tsm.ticket(process, 2)] - 1);
        let winner = if locals[5].k > locals[7].k { 5 } else { 7 };
        assert_eq!(locals[5].region, Region::Trying);
        (words[0], words[1], winner)
    }

    #[test]
    fn the_worked_example_of_the_thesis_gives_its_tickets_and_its_winner() {
        // P5 first: tickets 0 and 1. P7 first: P5 reads 1, tickets 1 and 1, and the right side wins.
        assert_eq!(play(5, 7), (0, 1, 5));
        assert_eq!(play(7, 5), (1, 1, 7));
    }
}
