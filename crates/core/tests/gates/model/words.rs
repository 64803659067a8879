//! What the model speaks of.

use testigo_core::Mode;

/// What a specimen does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// Lets one more in than the rule allows.
    AdmitsOneTooMany,
    /// Takes the same fence again after a release.
    RepeatsFences,
    /// Counts no overtaking.
    ForgetsOvertakes,
    /// Lets nobody in after a release.
    LosesWakeups,
    /// Takes only the first gate of a set.
    SplitsSets,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) session: usize,
    pub(crate) gate: usize,
    pub(crate) mode: Mode,
    pub(crate) fence: u64,
    pub(crate) until: Option<u64>,
    /// The first of its room.
    pub(crate) leads: bool,
    /// When its room came inside.
    pub(crate) room_since: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Leg {
    pub(crate) gate: usize,
    pub(crate) mode: Mode,
    pub(crate) class: u32,
    pub(crate) overtaken: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) session: usize,
    pub(crate) arrival: u64,
    pub(crate) legs: Vec<Leg>,
    pub(crate) set: bool,
    pub(crate) needs_ms: Option<u64>,
    pub(crate) deadline: u64,
    pub(crate) asynchronous: bool,
}

/// Something that the model says has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Entered { session: usize, fences: Vec<u64> },
    TimedOut { session: usize },
    Cancelled { session: usize },
    Lost { session: usize, gate: usize },
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Entered(Vec<u64>),
    Waits,
    NotNow,
    Deadlock,
    Held,
    Busy,
    NotHeld,
    Done,
}

impl Waiter {
    pub(crate) fn leg(&self, gate: usize) -> Option<&Leg> {
        self.legs.iter().find(|leg| leg.gate == gate)
    }
}
