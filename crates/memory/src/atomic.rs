//! Registers of real atomics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Local, Memory, Program, Region, RegisterId, Word};

/// Registers that threads share.
///
/// Every access is `SeqCst`. Release and acquire are not enough: they let the load of another's flag go before
/// the store of one's own, and then Peterson's two processes, for one, both see that the other does not want in.
/// A `SeqCst` store and a `SeqCst` load of another register keep their order in the one order of all such
/// accesses, which is what the algorithms assume.
#[derive(Debug)]
pub struct AtomicMemory {
    registers: Box<[AtomicU64]>,
}

impl AtomicMemory {
    /// The registers of a program, with their first values.
    pub fn new(program: &dyn Program) -> AtomicMemory {
        let all = program.registers();
        let first = all.iter().map(|register| AtomicU64::new(register.first[0]));
        AtomicMemory {
            registers: first.collect(),
        }
    }

    /// Runs a process' entry; `relax` is called after every step, and may yield.
    pub fn enter(&self, program: &dyn Program, process: usize, room: u8, relax: fn()) -> Local {
        let mut local = Local::asking(room);
        self.run(program, process, &mut local, relax);
        debug_assert_eq!(local.region, Region::Inside);
        local
    }

    /// Runs the exit of a process that is inside.
    pub fn leave(&self, program: &dyn Program, process: usize, mut local: Local, relax: fn()) {
        local.leave();
        self.run(program, process, &mut local, relax);
    }

    /// One step of a process, or of an actor behind the processes.
    pub fn step(&self, program: &dyn Program, actor: usize, local: &mut Local) {
        let mut memory = self;
        program.step(actor, local, &mut memory);
    }

    fn run(&self, program: &dyn Program, process: usize, local: &mut Local, relax: fn()) {
        while !local.is_idle() {
            self.step(program, process, local);
            relax();
        }
    }
}

impl Memory for &AtomicMemory {
    fn load(&mut self, register: RegisterId) -> Word {
        self.registers[register].load(Ordering::SeqCst)
    }

    fn store(&mut self, register: RegisterId, value: Word) {
        self.registers[register].store(value, Ordering::SeqCst);
    }

    fn compare_exchange(&mut self, register: RegisterId, old: Word, new: Word) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        let register = &self.registers[register];
        register
            .compare_exchange(old, new, success, failure)
            .is_ok()
    }
}
