//! What all members of a group agree on beforehand.

use std::sync::Arc;

use super::{Flaws, SlotSet};
use crate::NodeId;
use crate::quorum::NodeSet;

/// Most slots of a pool.
pub const SLOTS_MAX: u32 = 1 << 20;

/// The parameters of the algorithm, the same at all members and never changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotsPlan {
    /// NR_NODES: members are numbered below it.
    pub members: usize,
    /// NR_SLOTS.
    pub slots: u32,
    /// FREE_LOW: a member with fewer free slots asks for more, and no donor goes below it.
    pub free_low: u32,
    /// Each member's FREE_LOW by its number, if they differ.
    pub own_free_low: Arc<[u32]>,
    /// If set, each member's FREE_LOW follows the demand of its users, up to this value.
    pub free_low_max: Option<u32>,
    /// How many slots a newcomer asks for without a message.
    pub min_join: u32,
    /// Optimisation 1: the status that a newcomer is sent counts as its first request.
    pub implicit_request: bool,
    /// Optimisation 2: members that ask at the same time do not answer each other.
    pub crossed_requests: bool,
    /// Optimisation 3: a member with nothing to give waits for somebody else's answer first.
    pub held_nulls: bool,
    /// An experiment: the donors of a request together give no more than it asked for, instead of each rounding its part up.
    /// A request for few then asks few of them, and may bring nothing though another member has slots to spare (π5).
    pub exact_quota: bool,
    /// Which average a request asks to reach.
    pub average: Average,
    /// What a request did not bring stands: members that have slots to spare later donate them.
    pub standing_requests: bool,
    /// A log that all members apply keeps the state: newcomers know it, and members out of reach can change
    /// nothing, so there are neither statuses nor merges.
    pub logged: bool,
    /// Requests name the donors that they ask; a request that brought nothing stands.
    pub directed: bool,
    /// The slots with each label, if any slot has one.
    pub labels: Arc<[SlotSet]>,
    /// The wrong rules of the paper that are followed as printed.
    pub flaws: Flaws,
}

/// Which slots the average of a request counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Average {
    /// All slots, as published, though some may be out of reach.
    AllSlots,
    /// Those owned by members of this component.
    Component,
}

impl SlotsPlan {
    /// The repaired algorithm with all optimisations.
    pub fn strict(members: usize, slots: u32, free_low: u32) -> SlotsPlan {
        SlotsPlan {
            members,
            slots,
            free_low,
            own_free_low: Arc::default(),
            free_low_max: None,
            min_join: free_low,
            implicit_request: true,
            crossed_requests: true,
            held_nulls: true,
            exact_quota: false,
            average: Average::AllSlots,
            standing_requests: false,
            logged: false,
            directed: false,
            labels: Arc::default(),
            flaws: Flaws::NONE,
        }
    }

    /// The repaired algorithm, with requests that name their donors.
    pub fn directed(members: usize, slots: u32, free_low: u32) -> SlotsPlan {
        SlotsPlan {
            directed: true,
            ..SlotsPlan::strict(members, slots, free_low)
        }
    }

    /// The algorithm as printed, with its defects.
    pub fn paper(members: usize, slots: u32, free_low: u32) -> SlotsPlan {
        SlotsPlan {
            flaws: Flaws::PAPER,
            ..SlotsPlan::strict(members, slots, free_low)
        }
    }

    /// The algorithm over a log: requests stand until they are served.
    pub fn logged(slots: u32, free_low: u32) -> SlotsPlan {
        SlotsPlan {
            average: Average::Component,
            standing_requests: true,
            logged: true,
            ..SlotsPlan::strict(NodeSet::NODES_MAX, slots, free_low)
        }
    }

    /// A member's FREE_LOW at the beginning.
    pub fn free_low_of(&self, member: NodeId) -> u32 {
        let own = self.own_free_low.get(member.index());
        own.copied().unwrap_or(self.free_low)
    }

    /// Every member that may ever own a slot.
    pub fn provisioned(&self) -> NodeSet {
        NodeSet::first(self.members)
    }
}
