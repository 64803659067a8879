//! The group actor's part that knows of no mutex: who waits before the room, who is inside, who leads.
//!
//! Source: group exclusion §4, rules 1 to 5, with the door of §8.

use std::collections::BTreeSet;

use super::Door;
use crate::NodeId;

/// What a group's hall wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HallTask {
    /// Let this process in; it leads the round, or joins it.
    Admit {
        process: NodeId,
        leads: bool,
    },
    /// Compete for the section, or release it.
    Compete,
    Release,
}

/// A wrong hall, for specimens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// It lets its processes in while it still competes.
    Impatient,
    /// It lets nobody in once the round has begun.
    ShutDoor,
    /// It lets everybody in, whoever else waits.
    OpenDoor,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum State {
    Inactive,
    Competing,
    Inside,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Hall {
    state: State,
    leader: Option<NodeId>,
    inside: BTreeSet<NodeId>,
    /// Who waits, in order of asking.
    pending: Vec<NodeId>,
    /// The groups that are known to compete.
    rivals: BTreeSet<NodeId>,
}

impl Hall {
    pub(super) fn new() -> Hall {
        Hall {
            state: State::Inactive,
            leader: None,
            inside: BTreeSet::new(),
            pending: Vec::new(),
            rivals: BTreeSet::new(),
        }
    }

    /// A process selects the group.
    pub(super) fn select(
        &mut self,
        process: NodeId,
        door: Door,
        flaw: Option<Flaw>,
        tasks: &mut Vec<HallTask>,
    ) {
        let open = match flaw {
            Some(Flaw::ShutDoor) => false,
            Some(Flaw::OpenDoor) => true,
            _ => {
                self.leader.is_some()
                    || door == Door::OpenWhileUncontended && self.rivals.is_empty()
            }
        };
        match self.state {
            State::Inside if open => self.admit(process, tasks),
            State::Competing if flaw == Some(Flaw::Impatient) => self.admit(process, tasks),
            _ => self.pending.push(process),
        }
        self.compete(tasks);
    }

    /// The group has won the section: all who wait enter together.
    pub(super) fn won(&mut self, tasks: &mut Vec<HallTask>) {
        self.state = State::Inside;
        self.admit_all(tasks);
    }

    /// A process has left; the last one takes the group out with it.
    pub(super) fn done(&mut self, process: NodeId, tasks: &mut Vec<HallTask>) {
        self.inside.remove(&process);
        self.leader = self.leader.filter(|leader| *leader != process);
        if self.inside.is_empty() && self.state == State::Inside {
            self.state = State::Inactive;
            tasks.push(HallTask::Release);
            self.compete(tasks);
        }
    }

    /// Another group has begun, or ceased, to compete. A door that was shut for the last of them opens again.
    pub(super) fn rival(&mut self, group: NodeId, competes: bool, tasks: &mut Vec<HallTask>) {
        match competes {
            true => self.rivals.insert(group),
            false => self.rivals.remove(&group),
        };
        if self.state == State::Inside && self.rivals.is_empty() {
            self.admit_all(tasks);
        }
    }

    fn admit_all(&mut self, tasks: &mut Vec<HallTask>) {
        for process in std::mem::take(&mut self.pending) {
            self.admit(process, tasks);
        }
    }

    fn admit(&mut self, process: NodeId, tasks: &mut Vec<HallTask>) {
        let leads = self.leader == Some(process);
        self.inside.insert(process);
        tasks.push(HallTask::Admit { process, leads });
    }

    /// An inactive group that is wanted chooses its leader and competes.
    fn compete(&mut self, tasks: &mut Vec<HallTask>) {
        if self.state == State::Inactive && !self.pending.is_empty() {
            self.state = State::Competing;
            self.leader = self.pending.first().copied();
            tasks.push(HallTask::Compete);
        }
    }
}
