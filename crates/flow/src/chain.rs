//! A chain: one life of a job, from the process that creates it, through queues, to the process that deletes it.

use std::fmt;

use crate::Name;

/// `P (C P)+` as the thesis has it, or a way out of a reject queue, `C P (C P)*`: the node puts into that queue
/// itself. There is one process after every queue; there is one before the first queue unless `from_reject`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub processes: Vec<Name>,
    pub queues: Vec<Name>,
    /// Starts at a reject queue, so that its first process does not create.
    pub from_reject: bool,
}

impl Chain {
    /// The process before the queue with this number, if there is one.
    pub fn before(&self, queue: usize) -> Option<&Name> {
        match self.from_reject {
            true => self.processes.get(queue.checked_sub(1)?),
            false => self.processes.get(queue),
        }
    }

    /// The process after the queue with this number.
    pub fn after(&self, queue: usize) -> Option<&Name> {
        self.processes.get(queue + usize::from(!self.from_reject))
    }

    /// The processes and queues in turn.
    pub fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::with_capacity(self.processes.len() + self.queues.len());
        if !self.from_reject {
            steps.extend(self.processes.first().map(Step::Process));
        }
        for (at, queue) in self.queues.iter().enumerate() {
            steps.push(Step::Queue(queue));
            steps.extend(self.after(at).map(Step::Process));
        }
        steps
    }
}

/// One node of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    Process(&'a Name),
    Queue(&'a Name),
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Process(name) => write!(f, "{name}"),
            Step::Queue(name) => write!(f, "[{name}]"),
        }
    }
}
