//! One node's part of a gate whose ownership an algorithm moves. The algorithm's state machine is the laboratory's,
//! unchanged; this code drives it: it asks to enter when local clients wait, says when the node's door opens and shuts, and
//! leaves once another node wants in and this one has made `BURST` grants since it came in.
//!
//! An *instance* of the algorithm belongs to one number of the gate's shard. All nodes of a view are in it, numbered in the
//! view's order. A branch does no I/O and knows no clock: its caller carries its packets, in order, and tells it who is at
//! the gate.

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
    /// Whether it may ask for clients of this node. First, those already inside must be let in.
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
    /// Parcels to send, in order.
    pub(crate) parcels: Vec<Parcel>,
    /// Whether all others must hear that this node wants in, so that an idle token moves.
    pub(crate) wish: bool,
    /// Steps at the gate, in order.
    pub(crate) steps: Vec<DoorStep>,
}

/// What is to happen at the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorStep {
    /// The node is in: those whom the gate's rule admits may enter. If another node is known to wait, this many since the
    /// node came in.
    Open(Option<u32>),
    /// The node is out.
    Shut,
    /// The first waiter of this kind enters.
    Admit(Kind),
    /// Another node waits.
    Wanted,
}

impl Branch {
    /// A node's part; `None` if the algorithm cannot run with this many nodes. Nothing happens before [`Branch::begin`].
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

    /// Sets the time, in milliseconds, for recordings.
    pub(crate) fn set_now(&mut self, now: u64) {
        match &mut self.part {
            Part::Mutex(part) => part.parts().recorder.now = now,
            Part::Readers(part) => part.parts().recorder.now = now,
        }
    }

    /// Records every step; call it before the instance begins.
    pub(crate) fn record(&mut self, plan: &Plan, run: RunName<'_>, allowance: &RecordAllowance) {
        match &mut self.part {
            Part::Mutex(part) => part.parts().record(plan, run, allowance),
            Part::Readers(part) => part.parts().record(plan, run, allowance),
        }
    }

    /// The recording so far.
    pub(crate) fn recording(&self) -> Option<&Recording> {
        let recorder: &Recorder = match &self.part {
            Part::Mutex(part) => part.recorder(),
            Part::Readers(part) => part.recorder(),
        };
        recorder.recording.as_ref()
    }

    /// Ends the recording and returns it.
    pub(crate) fn take_recording(&mut self) -> Option<Recording> {
        match &mut self.part {
            Part::Mutex(part) => part.parts().recorder.recording.take(),
            Part::Readers(part) => part.parts().recorder.recording.take(),
        }
    }

    /// Begins the instance with those already inside the gate, whom only the owner has.
    pub(crate) fn begin(&mut self, census: &Census, doings: &mut Doings) {
        match &mut self.part {
            Part::Mutex(part) => part.begin(doings),
            Part::Readers(part) => part.begin(census, doings),
        }
    }

    /// Those who were inside before are in: it may ask for clients of this node.
    pub(crate) fn go(&mut self) {
        self.go = true;
    }

    /// Whether it may ask for clients of this node.
    pub(crate) fn goes(&self) -> bool {
        self.go
    }

    /// Whether all who were inside at the beginning are in.
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

    /// How often the node has come in, and whether another node is known to wait or this cannot be known. `None` if several
    /// nodes may be in at once.
    pub(crate) fn turn(&self) -> Option<(u64, bool)> {
        match &self.part {
            Part::Mutex(part) => Some(part.turn()),
            Part::Readers(_) => None,
        }
    }

    /// Whether the node has asked to be let in, and is not in yet.
    pub(crate) fn asks(&self) -> bool {
        match &self.part {
            Part::Mutex(part) => part.asks(),
            Part::Readers(part) => part.asks(),
        }
    }

    /// Receives a parcel from another node.
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

    /// Another node wants in: a token that is idle here moves on.
    pub(crate) fn wished(&mut self, doings: &mut Doings) {
        if let Part::Mutex(part) = &mut self.part {
            part.wished(self.travels, doings);
        }
    }

    /// Does what the state of the gate requires. Call it again until it changes nothing.
    pub(crate) fn look(&mut self, census: &Census, doings: &mut Doings) {
        match &mut self.part {
            Part::Mutex(part) => part.look(census, self.go, self.travels, doings),
            Part::Readers(part) => part.look(census, self.go, doings),
        }
    }

    /// The node that hosts a member.
    pub(crate) fn node_of(&self, member: u32) -> u32 {
        match &self.part {
            Part::Mutex(part) => part.node_of(member),
            Part::Readers(part) => part.node_of(member),
        }
    }

    /// Counts since the instance began.
    pub(crate) fn counts(&self) -> Counts {
        match &self.part {
            Part::Mutex(part) => part.counts(),
            Part::Readers(part) => part.counts(),
        }
    }
}

#[cfg(test)]
mod tests;
