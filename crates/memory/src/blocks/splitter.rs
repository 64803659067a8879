//! The splitter (Lamport; Moir and Anderson; Attiya and Fouren): at most one stops, not all go right, not all go
//! down.
//!
//! Source: thesis fig. 3.14. One-shot: nothing resets the door.

use crate::{Local, Memory, Program, RegisterId, Registers, Word};

/// It stopped here.
pub const STOPPED: u8 = 1;
/// It went to the right.
pub const TO_THE_RIGHT: u8 = 2;
/// It went down.
pub const WENT_DOWN: u8 = 3;

const LAST: RegisterId = 0;
const DOOR: RegisterId = 1;

/// The program.
#[derive(Clone, Copy, Debug)]
pub struct Splitter {
    /// How many processes there are.
    pub processes: usize,
}

impl Program for Splitter {
    fn processes(&self) -> usize {
        self.processes
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        all.shared("x", [0]);
        all.shared("y", [0]);
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        let id = me as Word + 1;
        match at.line {
            0 => {
                memory.store(LAST, id);
                at.go(1);
            }
            1 => match memory.load(DOOR) {
                0 => at.go(2),
                _ => self.leads(TO_THE_RIGHT, at),
            },
            2 => {
                memory.store(DOOR, 1);
                at.go(3);
            }
            3 => match memory.load(LAST) == id {
                true => self.leads(STOPPED, at),
                false => self.leads(WENT_DOWN, at),
            },
            _ => at.end(),
        }
    }
}

impl Splitter {
    fn leads(&self, to: u8, at: &mut Local) {
        at.kept = to;
        at.enter();
    }
}
