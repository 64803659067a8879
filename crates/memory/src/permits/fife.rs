//! First in, first enabled: at most k inside, in spite of k−1 threads that stop anywhere (Afek, Dolev, Gafni, Merritt
//! and Shavit, 1994).
//!
//! Source: thesis §3.4.1, fig. 3.17, with its indices repaired. A label is a number and the process' own id, and is
//! one more than all that were seen; the bounded labels of the title are not built. Labels are never reset: a stale
//! one is smaller, and only makes others wait.

use crate::program::other;
use crate::{
    Local, Lone, Memory, PROCESSES_MAX, PlanError, Program, RegisterId, Registers, ThreadAlgorithm,
    ThreadProfile,
};

pub(super) static FIFE: ThreadAlgorithm = ThreadAlgorithm {
    profile: ThreadProfile {
        name: "fife",
        title: "First in, first enabled: k-exclusion",
        problem: "threads-permits",
        source: "shared memory §8.1, thesis §3.4.1",
        grows: true,
        lone: Some(Lone {
            formula: "3N+3",
            is_derived: true,
            range: |plan| [3 * plan.processes + 3; 2],
        }),
        registers: Some(Lone {
            formula: "2N",
            is_derived: false,
            range: |plan| [2 * plan.processes; 2],
        }),
        ..ThreadProfile::PLAIN
    },
    program: |plan| {
        let processes = plan.processes(1, PROCESSES_MAX)?;
        match plan.permits {
            0 => Err(PlanError("0 permits: nobody could enter".into())),
            permits => Ok(Box::new(Fife { processes, permits })),
        }
    },
};

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct Fife {
    /// How many processes there are.
    pub processes: usize,
    /// How many may be inside.
    pub permits: usize,
}

const LABEL: u8 = 1;
const SEE: u8 = 3;
const WAIT: u8 = 4;
const SCAN: u8 = 5;

impl Fife {
    /// Whether a process that is trying has left its doorway, the part that takes a bounded number of steps.
    pub fn is_past_doorway(local: &Local) -> bool {
        matches!(local.line, WAIT | SCAN)
    }

    fn wants(&self, process: usize) -> RegisterId {
        process
    }

    fn label(&self, process: usize) -> RegisterId {
        self.processes + process
    }

    /// Reads the next label on the way to a new one; `then` is the line that writes it.
    fn labels(&self, memory: &mut dyn Memory, at: &mut Local, then: u8) {
        at.v = at.v.max(memory.load(self.label(at.j as usize)));
        at.j += 1;
        if at.j as usize == self.processes {
            at.j = 0;
            at.go(then);
        }
    }

    /// Looks at the next process of a set, from this one on, at this line; then at what follows.
    fn look_at(&self, from: usize, line: u8, at: &mut Local) {
        let set = if line == WAIT { at.set } else { at.w };
        let next = (from..self.processes).find(|j| set >> j & 1 == 1);
        match (next, line) {
            (Some(j), _) => {
                at.j = j as u8;
                at.go(line);
            }
            // The local `w` has those that still want in, `k` counts those before it.
            (None, WAIT) => self.look_at(0, SCAN, at),
            (None, _) if (at.k as usize) < self.permits => at.enter(),
            (None, _) => {
                (at.w, at.k) = (0, 0);
                self.look_at(0, WAIT, at);
            }
        }
    }
}

impl Program for Fife {
    fn processes(&self) -> usize {
        self.processes
    }

    fn permits(&self) -> Option<usize> {
        Some(self.permits)
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        for kind in ["x", "label"] {
            for process in 0..self.processes {
                all.at(process, format!("{kind}[{process}]"), [0]);
            }
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let j = at.j as usize;
        match at.line {
            0 => {
                memory.store(self.wants(me), 1);
                at.go(LABEL);
            }
            LABEL => self.labels(memory, at, 2),
            2 => {
                at.v += 1;
                memory.store(self.label(me), at.v);
                match other(me, 0, self.processes) {
                    Some(j) => {
                        at.j = j as u8;
                        at.go(SEE);
                    }
                    None => at.enter(),
                }
            }
            SEE => {
                if memory.load(self.wants(j)) == 1 {
                    at.add(j);
                }
                match other(me, j + 1, self.processes) {
                    Some(j) => at.j = j as u8,
                    None => self.look_at(0, WAIT, at),
                }
            }
            WAIT => {
                if memory.load(self.wants(j)) == 1 {
                    at.w |= 1 << j;
                }
                self.look_at(j + 1, WAIT, at);
            }
            SCAN => {
                let theirs = memory.load(self.label(j));
                at.k += u8::from((theirs, j) < (at.v, me));
                self.look_at(j + 1, SCAN, at);
            }
            Local::EXIT => {
                memory.store(self.wants(me), 0);
                at.go(Local::EXIT + 1);
            }
            101 => self.labels(memory, at, Local::EXIT + 2),
            _ => {
                memory.store(self.label(me), at.v + 1);
                at.end();
            }
        }
    }
}
