//! One node's part of a gate whose ownership travels by an algorithm. The algorithm's state machine is the laboratory's,
//! unchanged; what is here drives it: it asks to enter when local clients wait, says when the node's door opens and shuts, and
//! leaves once another node wants in and it has made `BURST` grants since it came in.
//!
//! An *instance* of the algorithm belongs to one number of the gate's shard. All nodes of a view are in it, numbered in the
//! view's order. A branch does no I/O and knows no clock: whoever has it carries its packets, in order, and tells it who is
//! at the gate.

mod forecast;
mod mutex;
mod parts;
mod readers;

pub use forecast::{Forecast, Visit, forecast};
pub(crate) use parts::RunName;
pub use parts::{Counts, Parcel, Plan};

use testigo_protocol::{PacketError, RecordAllowance, Recording};

use crate::gate::{Kind, Travels, Using};
use crate::local::Census;
use mutex::MutexPart;
use parts::Recorder;
use readers::ReadersPart;

/// A node's part of an instance.
#[derive(Debug)]
pub(crate) struct Branch {
    travels: Travels,
    /// Whether clients of this node may be asked for. Before that, whoever is inside already has to be in.
    go: bool,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Mutex(MutexPart),
    Readers(ReadersPart),
}

/// What a branch wants done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Doings {
    /// To be sent, in order.
    pub(crate) parcels: Vec<Parcel>,
    /// All others are to know that this node wants in: a token that rests should move.
    pub(crate) wish: bool,
    /// For the gate, in order.
    pub(crate) steps: Vec<DoorStep>,
}

/// What is to happen at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorStep {
    /// The node is in: whoever the gate's rule lets in may enter. So many since it came in, if another node is known to wait.
    Open(Option<u32>),
    /// The node is out.
    Shut,
    /// The first waiter of this kind enters.
    Admit(Kind),
    /// Another node waits.
    Wanted,
}

impl Branch {
    /// A node's part; nothing if the algorithm cannot run with so many nodes. Nothing happens before [`Branch::begin`].
    pub(crate) fn new(plan: &Plan, own: u32, owner: u32) -> Option<Branch> {
        let part = match plan.travels.using {
            Using::Log => return None,
            Using::BoxOffice => Part::Readers(ReadersPart::new(plan, own, owner)?),
            _ => Part::Mutex(MutexPart::new(plan, own, owner)?),
        };
        Some(Branch {
            travels: plan.travels,
            go: false,
            part,
        })
    }

    /// Says what time it is, in milliseconds: what is recorded carries it.
    pub(crate) fn set_now(&mut self, now: u64) {
        match &mut self.part {
            Part::Mutex(part) => part.parts().recorder.now = now,
            Part::Readers(part) => part.parts().recorder.now = now,
        }
    }

    /// Records every step; to be called before the instance begins.
    pub(crate) fn record(&mut self, plan: &Plan, run: RunName<'_>, allowance: &RecordAllowance) {
        match &mut self.part {
            Part::Mutex(part) => part.parts().record(plan, run, allowance),
            Part::Readers(part) => part.parts().record(plan, run, allowance),
        }
    }

    /// What is recorded so far.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        let recorder: &Recorder = match &self.part {
            Part::Mutex(part) => part.recorder(),
            Part::Readers(part) => part.recorder(),
        };
        recorder.recording.as_ref()
    }

    /// What was recorded; nothing is from now on.
    pub(crate) fn take_recording(&mut self) -> Option<Recording> {
        match &mut self.part {
            Part::Mutex(part) => part.parts().recorder.recording.take(),
            Part::Readers(part) => part.parts().recorder.recording.take(),
        }
    }

    /// The instance begins, with those at the gate who are inside already; only the owner has any.
    pub(crate) fn begin(&mut self, census: &Census, doings: &mut Doings) {
        match &mut self.part {
            Part::Mutex(part) => part.begin(doings),
            Part::Readers(part) => part.begin(census, doings),
        }
    }

    /// Everybody who was inside before is in: clients of this node may be asked for.
    pub(crate) fn go(&mut self) {
        self.go = true;
    }

    /// Whether clients of this node may be asked for.
    pub(crate) fn goes(&self) -> bool {
        self.go
    }

    /// Whether everybody is in who was inside when this began.
    pub(crate) fn has_all_in(&self, census: &Census) -> bool {
        match &self.part {
            Part::Mutex(part) => census.inside == 0 || part.is_in(),
            Part::Readers(part) => part.has_all_in(),
        }
    }

    /// Whether the node is in: it may let its own clients in.
    pub(crate) fn is_in(&self) -> bool {
        match &self.part {
            Part::Mutex(part) => part.is_in(),
            Part::Readers(part) => part.is_in(),
        }
    }

    /// How often the node has come in, and whether another node is known to wait, or it cannot be known; where one node at a
    /// time is in.
    pub(crate) fn turn(&self) -> Option<(u64, bool)> {
        match &self.part {
            Part::Mutex(part) => Some(part.turn()),
            Part::Readers(_) => None,
        }
    }

    /// Whether the node has asked to be let in, and is not.
    pub(crate) fn asks(&self) -> bool {
        match &self.part {
            Part::Mutex(part) => part.asks(),
            Part::Readers(part) => part.asks(),
        }
    }

    /// Takes a parcel of another node.
    pub(crate) fn receive(
        &mut self,
        parcel: &Parcel,
        doings: &mut Doings,
    ) -> Result<(), PacketError> {
        match &mut self.part {
            Part::Mutex(part) => part.receive(parcel, self.travels, doings),
            Part::Readers(part) => part.receive(parcel, doings),
        }
    }

    /// Another node wants in: a token that rests here goes on.
    pub(crate) fn wished(&mut self, doings: &mut Doings) {
        if let Part::Mutex(part) = &mut self.part {
            part.wished(self.travels, doings);
        }
    }

    /// Does what the state of the gate asks for. To be called again while that changes it.
    pub(crate) fn look(&mut self, census: &Census, doings: &mut Doings) {
        match &mut self.part {
            Part::Mutex(part) => part.look(census, self.go, self.travels, doings),
            Part::Readers(part) => part.look(census, self.go, doings),
        }
    }

    /// The node that a member is at.
    pub(crate) fn node_of(&self, member: u32) -> u32 {
        match &self.part {
            Part::Mutex(part) => part.node_of(member),
            Part::Readers(part) => part.node_of(member),
        }
    }

    /// What was counted since the instance began.
    pub(crate) fn counts(&self) -> Counts {
        match &self.part {
            Part::Mutex(part) => part.counts(),
            Part::Readers(part) => part.counts(),
        }
    }
}

#[cfg(test)]
mod tests;
