//! Wrong rules, one by one: what the checks must refute.

/// Which wrong rules are followed. Each is a defect of the printed algorithm, of an alternative that its authors
/// rejected, or one of ours that breaks a promise which no printed rule breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flaws {
    /// A1: the member that never holds back its null answer is the requester's successor, even if that one has
    /// a request of its own, or is gone.
    pub fixed_successor: bool,
    /// A2: a member that is alone when it starts owns all slots.
    pub lone_start: bool,
    /// A3: messages count in whatever view they are delivered.
    pub any_view: bool,
    /// A4: the slots of a member that joins anew go to the primary at once.
    pub restart_frees: bool,
    /// A6 and A14: a slot that nobody claims in a merge keeps the owner that each member has recorded, or has
    /// none if that owner is present.
    pub unclaimed_as_recorded: bool,
    /// A11: every newcomer is sent a status of its own.
    pub status_each: bool,
    /// A12: only a primary speaks in a merge, so newcomers without one do not.
    pub silent_newcomers: bool,
    /// A13: a member that is still short when its request has been answered asks again at once.
    pub asks_at_once: bool,
    /// The rejected optimistic rule: the slots of members out of reach are used again.
    pub reuses_unreachable: bool,
    /// Against π5: nobody gives anything to a request that is everybody's.
    pub deaf: bool,
    /// Against π10: a donor keeps no free slots for itself.
    pub keeps_nothing: bool,
}

impl Flaws {
    /// The repaired algorithm.
    pub const NONE: Flaws = Flaws {
        fixed_successor: false,
        lone_start: false,
        any_view: false,
        restart_frees: false,
        unclaimed_as_recorded: false,
        status_each: false,
        silent_newcomers: false,
        asks_at_once: false,
        reuses_unreachable: false,
        deaf: false,
        keeps_nothing: false,
    };

    /// The algorithm as printed.
    pub const PAPER: Flaws = Flaws {
        fixed_successor: true,
        lone_start: true,
        any_view: true,
        restart_frees: true,
        unclaimed_as_recorded: true,
        status_each: true,
        silent_newcomers: true,
        asks_at_once: true,
        ..Flaws::NONE
    };
}
