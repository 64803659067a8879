//! Registers for the laboratory: plain words, and what the last step did to them.

use crate::{Memory, Register, RegisterId, Word};

/// One access to a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Was read, and held this.
    Read(RegisterId, Word),
    /// Was written.
    Write(RegisterId, Word),
    /// Was written where it held the first value; says whether it did.
    Exchange(RegisterId, Word, Word, bool),
}

impl Access {
    /// The register that was accessed.
    pub fn register(self) -> RegisterId {
        match self {
            Access::Read(register, _)
            | Access::Write(register, _)
            | Access::Exchange(register, ..) => register,
        }
    }

    /// In words, by the names of the registers.
    pub fn label(self, registers: &[Register]) -> String {
        let name = &registers[self.register()].name;
        match self {
            Access::Read(_, value) => format!("read {name} = {value}"),
            Access::Write(_, value) => format!("write {name} = {value}"),
            Access::Exchange(_, old, new, true) => format!("exchange {name} = {old} by {new}"),
            Access::Exchange(_, old, new, false) => {
                format!("exchange {name} = {old} by {new} in vain")
            }
        }
    }
}

/// Registers whose caller chooses every step and learns which accesses it made.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CountedMemory {
    /// What the registers hold.
    pub words: Vec<Word>,
    /// The accesses since this was last emptied.
    pub accesses: Vec<Access>,
}

impl CountedMemory {
    /// Registers that hold their first values.
    pub fn new(registers: &[Register]) -> CountedMemory {
        CountedMemory {
            words: registers.iter().map(|register| register.first[0]).collect(),
            accesses: Vec::new(),
        }
    }
}

impl Memory for CountedMemory {
    fn load(&mut self, register: RegisterId) -> Word {
        let value = self.words[register];
        self.accesses.push(Access::Read(register, value));
        value
    }

    fn store(&mut self, register: RegisterId, value: Word) {
        self.words[register] = value;
        self.accesses.push(Access::Write(register, value));
    }

    fn compare_exchange(&mut self, register: RegisterId, old: Word, new: Word) -> bool {
        let done = self.words[register] == old;
        if done {
            self.words[register] = new;
        }
        let access = Access::Exchange(register, old, new, done);
        self.accesses.push(access);
        done
    }
}
