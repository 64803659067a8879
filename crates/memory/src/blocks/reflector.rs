//! The reflector: of two that come in, one by each entrance, at most one leaves below.
//!
//! Source: thesis fig. 3.15. At most one process may use each entrance. One-shot.

use crate::{Local, Memory, Program, Registers};

/// It left by the lower exit of its side.
pub const DOWN: u8 = 1;
/// It left by the upper exit of its side.
pub const UP: u8 = 2;

/// The program; process r uses entrance r.
#[derive(Clone, Copy, Debug)]
pub struct Reflector;

impl Program for Reflector {
    fn processes(&self) -> usize {
        2
    }

    fn permits(&self) -> Option<usize> {
        None
    }

    fn registers(&self) -> Registers {
        let mut all = Registers::default();
        all.shared("r[0]", [0]);
        all.shared("r[1]", [0]);
        all
    }

    fn step(&self, me: usize, at: &mut Local, memory: &mut dyn Memory) {
        match at.line {
            0 => {
                memory.store(me, 1);
                at.go(1);
            }
            1 => {
                at.kept = match memory.load(1 - me) {
                    0 => DOWN,
                    _ => UP,
                };
                at.enter();
            }
            _ => at.end(),
        }
    }
}
