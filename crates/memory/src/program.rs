//! What every thread runs.

use std::fmt;

use crate::{Local, Memory, Registers};

/// A step machine over shared registers. Processes are numbered from 0; behind them may be other actors, such
/// as groups, which serve for ever.
pub trait Program: fmt::Debug + Send + Sync {
    /// How many processes have a user.
    fn processes(&self) -> usize;

    /// The names of the actors behind the processes.
    fn others(&self) -> Vec<String> {
        Vec::new()
    }

    /// How many rooms there are to ask for.
    fn rooms(&self) -> usize {
        1
    }

    /// How many may be inside together, whatever room they are in; none: any number in one room.
    fn permits(&self) -> Option<usize> {
        Some(1)
    }

    /// The registers, always in the same order.
    fn registers(&self) -> Registers;

    /// Takes one step of an actor that is not idle: one access to one register, and whatever it does by itself.
    fn step(&self, actor: usize, local: &mut Local, memory: &mut dyn Memory);

    /// Whether an actor's next step has to wait for time to pass, as a delay does. Only a program that assumes
    /// a bound on the speed of others says so: the bound is then what ends the wait.
    fn is_delayed(&self, _actor: usize, _locals: &[Local]) -> bool {
        false
    }
}

/// A set of processes is a word of bits.
pub const PROCESSES_MAX: usize = 64;

/// For how many a program is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How many processes there are.
    pub processes: usize,
    /// How many rooms they ask for, where there are rooms.
    pub rooms: usize,
    /// How many may be inside together, where there are permits.
    pub permits: usize,
}

impl Plan {
    /// So many processes, two rooms, two permits.
    pub fn new(processes: usize) -> Plan {
        Plan {
            processes,
            rooms: 2,
            permits: 2,
        }
    }

    /// The number of processes, if it is one that a program can have.
    pub fn processes(&self, least: usize, most: usize) -> Result<usize, PlanError> {
        match self.processes {
            processes if (least..=most).contains(&processes) => Ok(processes),
            processes => {
                let noun = if processes == 1 {
                    "process"
                } else {
                    "processes"
                };
                let has = match least == most {
                    true => format!("exactly {least}"),
                    false => format!("from {least} to {most}"),
                };
                Err(PlanError(format!("{processes} {noun}: it has {has}")))
            }
        }
    }
}

/// Why a program cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for PlanError {}

/// The first process from `from` on that is not `me`.
pub(crate) fn other(me: usize, from: usize, processes: usize) -> Option<usize> {
    let next = from + usize::from(from == me);
    (next < processes).then_some(next)
}
