//! Where an actor is in its program, and what it remembers.

use crate::Word;

/// The part of its life that a process is in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Region {
    /// Wants nothing.
    #[default]
    Remainder,
    /// Runs its entry.
    Trying,
    /// In its critical section.
    Inside,
    /// Runs its exit.
    Exiting,
    /// An actor behind the processes, such as a group: it serves for ever.
    Serving,
}

/// What only the actor itself sees: its line, and the local variables that the line needs. A program sets
/// what it no longer needs back to zero, so that states that no later step can tell apart are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Local {
    /// The part of its life.
    pub region: Region,
    /// The line of the program that is next.
    pub line: u8,
    /// The room that it asks for, from 0.
    pub room: u8,
    /// A level, or whatever else is counted slowly.
    pub k: u8,
    /// Whom it looks at.
    pub j: u8,
    /// What it carries from its entry to its exit.
    pub kept: u8,
    /// A value, such as its own ticket.
    pub v: Word,
    /// Another value.
    pub w: Word,
    /// A set of processes, a bit each.
    pub set: u64,
}

impl Local {
    /// No line: the user decides what happens next.
    const IDLE: u8 = u8::MAX;
    /// The first line of the exit.
    pub const EXIT: u8 = 100;
    /// Wants nothing.
    pub const REMAINDER: Local = Local {
        region: Region::Remainder,
        line: Local::IDLE,
        room: 0,
        k: 0,
        j: 0,
        kept: 0,
        v: 0,
        w: 0,
        set: 0,
    };
    /// An actor behind the processes, before its first step.
    pub const SERVING: Local = Local {
        region: Region::Serving,
        line: 0,
        ..Local::REMAINDER
    };

    /// A process that has just asked for a room.
    pub fn asking(room: u8) -> Local {
        Local {
            region: Region::Trying,
            line: 0,
            room,
            ..Local::REMAINDER
        }
    }

    /// Whether the program has nothing to do until the user asks or leaves.
    pub fn is_idle(&self) -> bool {
        self.line == Local::IDLE
    }

    /// Its user leaves.
    pub fn leave(&mut self) {
        debug_assert!(self.region == Region::Inside && self.is_idle());
        (self.region, self.line) = (Region::Exiting, Local::EXIT);
    }

    /// Goes on at another line.
    pub fn go(&mut self, line: u8) {
        self.line = line;
    }

    /// Enters, and forgets everything but the room and what is kept.
    pub fn enter(&mut self) {
        *self = Local {
            region: Region::Inside,
            room: self.room,
            kept: self.kept,
            ..Local::REMAINDER
        };
    }

    /// Enters, and has something to do there before its user may leave.
    pub fn enter_at(&mut self, line: u8) {
        self.enter();
        self.line = line;
    }

    /// Has done what it had to do inside: its user may leave.
    pub fn rest(&mut self) {
        self.enter();
    }

    /// The exit is over.
    pub fn end(&mut self) {
        *self = Local::REMAINDER;
    }

    /// Whether a process is in the set.
    pub fn has(&self, process: usize) -> bool {
        self.set >> process & 1 == 1
    }

    /// Puts a process into the set.
    pub fn add(&mut self, process: usize) {
        self.set |= 1 << process;
    }
}
