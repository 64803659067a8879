//! The registers of a program: what they are called, where they are, and what they hold at first.

use std::ops::Deref;

use crate::{RegisterId, Word};

/// One register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// As people read it: `flag[0]`.
    pub name: String,
    /// The actor in whose memory it is: an access by anybody else is remote. None: remote for everybody.
    pub home: Option<usize>,
    /// What it may hold at first. Several values where the algorithm leaves it open.
    pub first: Vec<Word>,
}

/// All registers of a program, by number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Registers(Vec<Register>);

impl Registers {
    /// Adds a register that nobody has at home; returns its number.
    pub fn shared(&mut self, name: impl Into<String>, first: impl Into<Vec<Word>>) -> RegisterId {
        self.add(name, None, first)
    }

    /// Adds a register in the memory of an actor; returns its number.
    pub fn at(
        &mut self,
        home: usize,
        name: impl Into<String>,
        first: impl Into<Vec<Word>>,
    ) -> RegisterId {
        self.add(name, Some(home), first)
    }

    fn add(
        &mut self,
        name: impl Into<String>,
        home: Option<usize>,
        first: impl Into<Vec<Word>>,
    ) -> RegisterId {
        let (name, first) = (name.into(), first.into());
        assert!(!first.is_empty(), "{name} holds something at first");
        self.0.push(Register { name, home, first });
        self.0.len() - 1
    }
}

impl Deref for Registers {
    type Target = [Register];

    fn deref(&self) -> &[Register] {
        &self.0
    }
}
