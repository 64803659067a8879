//! One node's copy of all registers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::NodeId;

/// What decides which of two values is newer: a number, and the writer where numbers are equal.
pub type Stamp = (u64, NodeId);

/// What a node is asked, in a round of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Question {
    /// What does the register hold, and since which stamp?
    Newest { register: u32 },
    /// Keep this, unless something newer is there.
    Keep {
        register: u32,
        stamp: Stamp,
        value: u64,
    },
}

/// What it answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Answer {
    Holds { stamp: Stamp, value: u64 },
    Kept,
}

/// The copies; a register that nobody has written holds its first value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Replica {
    first: Vec<u64>,
    written: BTreeMap<u32, (Stamp, u64)>,
}

impl Replica {
    /// Registers that hold these values at first.
    pub fn new(first: Vec<u64>) -> Replica {
        Replica {
            first,
            written: BTreeMap::new(),
        }
    }

    /// Answers a question; the same question twice has the effect of one.
    pub fn answer(&mut self, question: Question) -> Answer {
        match question {
            Question::Newest { register } => {
                let (stamp, value) = self.held(register);
                Answer::Holds { stamp, value }
            }
            Question::Keep {
                register,
                stamp,
                value,
            } => {
                if stamp > self.held(register).0 {
                    self.written.insert(register, (stamp, value));
                }
                Answer::Kept
            }
        }
    }

    fn held(&self, register: u32) -> (Stamp, u64) {
        let first = self.first.get(register as usize).copied().unwrap_or(0);
        let held = self.written.get(&register).copied();
        held.unwrap_or(((0, NodeId(0)), first))
    }
}
