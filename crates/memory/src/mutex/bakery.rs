//! Lamport's bakery, 1974, and the adaptive bakery of Afek, Stupp and Touitou, 1999: take a number, and let smaller
//! ones go first.
//!
//! Source: thesis §3.4 and fig. 3.16. The adaptive form asks only those in an *active set*, which here is an array of
//! flags that is read one by one: right, and not adaptive by itself. As printed, a process waits for itself: the
//! specimen.

use crate::program::other;
use crate::{
    Claimed, Local, Lone, Memory, PROCESSES_MAX, Plan, PlanError, Program, RegisterId, Registers,
    ThreadAlgorithm, ThreadProfile, ThreadTelling,
};

pub(super) static BAKERY: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "bakery",
        title: "Lamport's bakery, 1974",
        source: "shared memory §7.4",
        grows: true,
        lone: Some(Lone {
            formula: "3N+1",
            is_derived: true,
            range: |plan| [3 * plan.processes + 1; 2],
        }),
        registers: Some(Lone {
            formula: "2N",
            is_derived: false,
            range: |plan| [2 * plan.processes; 2],
        }),
        telling: ThreadTelling {
            entries: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Form::Plain),
};

pub(super) static ADAPTIVE_BAKERY: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-bakery",
        title: "The bakery with an active set",
        source: "shared memory §7.4, thesis fig. 3.16",
        grows: true,
        lone: Some(Lone {
            formula: "2N+4",
            is_derived: true,
            range: |plan| [2 * plan.processes + 4; 2],
        }),
        // Two each, and a flag each for the active set.
        registers: Some(Lone {
            formula: "3N",
            is_derived: false,
            range: |plan| [3 * plan.processes; 2],
        }),
        telling: ThreadTelling {
            entries: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Form::Adaptive),
};

pub(super) static ADAPTIVE_BAKERY_PRINTED: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "adaptive-bakery-printed",
        title: "The adaptive bakery as the thesis prints it",
        source: "shared memory §7.4, thesis fig. 3.16",
        specimen: Some("a process is in the active set itself, and waits for its own number to go"),
        claims: &[Claimed::Exclusion, Claimed::DeadlockFreedom],
        telling: ThreadTelling {
            processes: 2,
            ..ThreadProfile::PLAIN.telling
        },
        ..ThreadProfile::PLAIN
    },
    program: |plan| made(plan, Form::Printed),
};

fn made(plan: &Plan, form: Form) -> Result<Box<dyn Program>, PlanError> {
    let processes = plan.processes(1, PROCESSES_MAX)?;
    Ok(Box::new(Bakery { processes, form }))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Plain,
    Adaptive,
    Printed,
}

#[derive(Debug)]
struct Bakery {
    processes: usize,
    form: Form,
}

impl Bakery {
    fn number(&self, process: usize) -> RegisterId {
        process
    }

    fn choosing(&self, process: usize) -> RegisterId {
        self.processes + process
    }

    fn active(&self, process: usize) -> RegisterId {
        2 * self.processes + process
    }

    /// The next line reads the active set, and then goes on with `after`.
    fn collect(&self, me: usize, after: u8, at: &mut Local) {
        at.k = after;
        at.set = match self.form {
            Form::Plain => u64::MAX,
            Form::Adaptive => 0,
            Form::Printed => 1 << me,
        };
        match other(me, 0, self.processes).filter(|_| self.form != Form::Plain) {
            Some(j) => {
                at.j = j as u8;
                at.go(COLLECT);
            }
            None => self.collected(me, at),
        }
    }

    fn collected(&self, me: usize, at: &mut Local) {
        at.j = 0;
        let after = std::mem::take(&mut at.k);
        self.look_at(me, 0, after, at);
    }

    /// Looks at the next of the set, from this one on, at this line; then what follows that line.
    fn look_at(&self, me: usize, from: usize, line: u8, at: &mut Local) {
        let itself = self.form == Form::Printed && line == WAIT_CHOOSING;
        let asked = |j: &usize| at.has(*j) && (*j != me || itself);
        match (from..self.processes).find(asked) {
            Some(j) => {
                at.j = j as u8;
                at.go(line);
            }
            None if line == MAXIMUM => {
                (at.j, at.set) = (0, 0);
                at.go(TAKE);
            }
            None => at.enter(),
        }
    }
}

const COLLECT: u8 = 2;
const MAXIMUM: u8 = 3;
const TAKE: u8 = 4;
const WAIT_CHOOSING: u8 = 6;

impl Program for Bakery {
    fn processes(&self) -> usize {
        self.processes
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        let kinds: &[&str] = match self.form {
            Form::Plain => &["number", "choosing"],
            Form::Adaptive | Form::Printed => &["number", "choosing", "active"],
        };
        for kind in kinds {
            for process in 0..self.processes {
                all.at(process, format!("{kind}[{process}]"), [0]);
            }
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let j = at.j as usize;
        match at.line {
            0 if self.form != Form::Plain => {
                memory.store(self.active(me), 1);
                at.go(1);
            }
            0 | 1 => {
                memory.store(self.choosing(me), 1);
                self.collect(me, MAXIMUM, at);
            }
            COLLECT => {
                if memory.load(self.active(j)) == 1 {
                    at.add(j);
                }
                match other(me, j + 1, self.processes) {
                    Some(j) => at.j = j as u8,
                    None => self.collected(me, at),
                }
            }
            // The local `v` is the greatest number seen, then one's own.
            MAXIMUM => {
                at.v = at.v.max(memory.load(self.number(j)));
                self.look_at(me, j + 1, MAXIMUM, at);
            }
            TAKE => {
                at.v += 1;
                memory.store(self.number(me), at.v);
                at.go(5);
            }
            5 => {
                memory.store(self.choosing(me), 0);
                self.collect(me, WAIT_CHOOSING, at);
            }
            WAIT_CHOOSING => {
                if memory.load(self.choosing(j)) == 0 {
                    at.go(7);
                }
            }
            7 => {
                let theirs = memory.load(self.number(j));
                if theirs == 0 || (theirs, j) > (at.v, me) {
                    self.look_at(me, j + 1, WAIT_CHOOSING, at);
                }
            }
            Local::EXIT => {
                memory.store(self.number(me), 0);
                match self.form {
                    Form::Plain => at.end(),
                    Form::Adaptive | Form::Printed => at.go(Local::EXIT + 1),
                }
            }
            _ => {
                memory.store(self.active(me), 0);
                at.end();
            }
        }
    }
}
