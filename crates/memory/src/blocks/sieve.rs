//! The basic sieve (Attiya and Fouren): those who come together get one view of who they are, or nothing, and only
//! one copy of the sieve is in use.
//!
//! Source: thesis §3.3.7, which gives the interface; the bodies are reconstructed. The view comes from a snapshot of
//! who has announced itself, which is one step here. A candidate is inside, in the room of its copy; whoever gets
//! nothing leaves at once. The number of the current copy must only grow: with a plain write a slow process takes
//! it back to a copy that was used, and the sieve is blocked for good.

use crate::{Local, Memory, Program, RegisterId, Registers, Word};

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct Sieve {
    /// How many processes there are.
    pub processes: usize,
    /// How many copies may be used: no more than there are accesses.
    pub copies: usize,
    /// Whether the number of the copy is written plainly, which is wrong.
    pub plain: bool,
}

/// The number of the current copy, from 1.
const COUNT: RegisterId = 0;

/// Line numbers of the collects, in the entry and in the exit.
const COLLECT: u8 = 7;
const COLLECT_AGAIN: u8 = 101;

impl Sieve {
    fn of_copy(&self, copy: u8) -> RegisterId {
        1 + (copy as usize - 1) * (2 + 3 * self.processes)
    }

    fn all_done(&self, copy: u8) -> RegisterId {
        self.of_copy(copy)
    }

    fn inside(&self, copy: u8) -> RegisterId {
        self.of_copy(copy) + 1
    }

    fn announced(&self, copy: u8, process: usize) -> RegisterId {
        self.of_copy(copy) + 2 + process
    }

    /// The register in which a process has its view of a copy.
    pub fn view(&self, copy: u8, process: usize) -> RegisterId {
        self.of_copy(copy) + 2 + self.processes + process
    }

    fn done(&self, copy: u8, process: usize) -> RegisterId {
        self.of_copy(copy) + 2 + 2 * self.processes + process
    }

    /// Whether everybody who could be inside a copy has left it.
    pub fn is_done(&self, words: &[Word], copy: u8) -> bool {
        words[self.all_done(copy)] == 1
    }

    /// Reads the views of a copy one by one; the smallest is in the local `v`, who has one in the set. Says
    /// whether that was the last.
    fn collect(&self, copy: u8, at: &mut Local, memory: &mut dyn Memory) -> bool {
        let process = at.j as usize;
        let view = memory.load(self.view(copy, process));
        if view != 0 {
            at.add(process);
            let smaller = at.v == 0 || view.count_ones() < at.v.count_ones();
            at.v = if smaller { view } else { at.v };
        }
        at.j += 1;
        let last = at.j as usize == self.processes;
        if last {
            at.j = 0;
            // The candidates are known once each of them has its view.
            at.v = if at.v & !at.set == 0 { at.v } else { 0 };
            at.set = 0;
        }
        last
    }
}

impl Program for Sieve {
    fn processes(&self) -> usize {
        self.processes
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        all.shared("count", [1]);
        for copy in 1..=self.copies {
            all.shared(format!("alldone[{copy}]"), [0]);
            all.shared(format!("inside[{copy}]"), [0]);
            for kind in ["announced", "view", "done"] {
                for process in 0..self.processes {
                    all.shared(format!("{kind}[{copy}][{process}]"), [0]);
                }
            }
        }
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        // The copy is in `kept`; a candidate is in the room of that number.
        let copy = at.kept;
        match at.line {
            0 => {
                at.kept = memory.load(COUNT) as u8;
                at.go(if at.kept == 1 { 2 } else { 1 });
            }
            1 => match memory.load(self.all_done(copy - 1)) {
                0 => at.end(),
                _ => at.go(2),
            },
            2 => match memory.load(self.inside(copy)) {
                0 => at.go(3),
                _ => at.end(),
            },
            3 => {
                memory.store(self.inside(copy), 1);
                at.go(4);
            }
            4 => {
                memory.store(self.announced(copy, me), 1);
                at.go(5);
            }
            5 => {
                for process in 0..self.processes {
                    at.v |= memory.load(self.announced(copy, process)) << process;
                }
                at.go(6);
            }
            6 => {
                memory.store(self.view(copy, me), at.v);
                at.v = 0;
                at.go(COLLECT);
            }
            COLLECT => {
                if self.collect(copy, at, memory) {
                    let candidate = at.v >> me & 1 == 1;
                    at.room = copy;
                    at.enter();
                    if !candidate {
                        at.leave();
                    }
                }
            }
            Local::EXIT => {
                memory.store(self.done(copy, me), 1);
                at.go(COLLECT_AGAIN);
            }
            COLLECT_AGAIN => {
                if self.collect(copy, at, memory) {
                    at.go(102);
                    if at.v == 0 {
                        at.end();
                    }
                }
            }
            102 => {
                let process = at.v.trailing_zeros() as usize;
                match memory.load(self.done(copy, process)) {
                    0 => at.end(),
                    _ => {
                        at.v &= at.v - 1;
                        at.go(if at.v == 0 { 103 } else { 102 });
                    }
                }
            }
            103 => {
                memory.store(self.all_done(copy), 1);
                at.go(104);
            }
            104 if self.plain => {
                memory.store(COUNT, Word::from(copy) + 1);
                at.end();
            }
            _ => {
                memory.compare_exchange(COUNT, Word::from(copy), Word::from(copy) + 1);
                at.end();
            }
        }
    }
}
