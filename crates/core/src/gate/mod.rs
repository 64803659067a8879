//! A gate: one admission mechanism behind every kind of lock. Its parts, one file each: the definition, the mode of a
//! request, the rule that says who may join whom, the ordered queue, and the holds.

mod definition;
mod door;
mod hold;
mod mode;
mod occupancy;
mod queue;
mod travels;
mod written;

pub use definition::{Definition, GateOrder, Rule};
pub(crate) use door::{Door, Keeper, Kind};
pub(crate) use hold::{Chain, Hold, HoldKey, Links};
pub use mode::{Ask, Candidacy, Mode};
pub(crate) use occupancy::{Occupancy, PresentRoom};
pub(crate) use queue::{Queue, QueuedLeg, Rank};
pub use travels::{Travels, Using};

use crate::arena::Key;
use crate::fence::Fence;
use crate::name::Name;
use crate::ownership::Shard;

pub(crate) type GateKey = Key<Gate>;

/// A gate with those inside and those who wait.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) name: Name,
    /// The shard whose number and count its fences come from.
    pub(crate) shard: Shard,
    pub(crate) definition: Definition,
    pub(crate) standing: Standing,
    pub(crate) inside: Chain,
    /// Permits in use.
    pub(crate) units: u64,
    /// Whether the one inside is there exclusively.
    pub(crate) exclusive: bool,
    /// The room inside.
    pub(crate) round: Option<Box<Round>>,
    pub(crate) queue: Queue,
    /// How many holders were not yet told that others wait.
    pub(crate) untold: u32,
    pub(crate) company: Company,
    /// Says whether this node may let anybody in, where an algorithm moves ownership.
    pub(crate) keeper: Option<Box<Keeper>>,
}

/// Why a gate exists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// By its definition in the replicated half.
    Created,
    /// Because it is in use; it goes when idle. A definition that arrives meanwhile takes over the name then.
    Implicit { successor: Option<Box<Definition>> },
}

/// A room's time inside, from its first member's entry until the room is empty again.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) room: Name,
    /// The first member, while it stays.
    pub(crate) leader: Option<HoldKey>,
    pub(crate) since: u64,
}

/// The newest grants that share one fence, because all of them could be inside together.
#[derive(Debug, Default)]
pub(crate) struct Company {
    pub(crate) fence: Option<Fence>,
    /// Units granted under this fence, including those of holders that have left: a stale one must stay below the next fence.
    pub(crate) units: u64,
}

impl Gate {
    pub(crate) fn new(
        name: Name,
        shard: Shard,
        definition: Definition,
        standing: Standing,
    ) -> Gate {
        Gate {
            name,
            shard,
            definition,
            standing,
            inside: Chain::default(),
            units: 0,
            exclusive: false,
            round: None,
            queue: Queue::default(),
            untold: 0,
            company: Company::default(),
            keeper: None,
        }
    }

    pub(crate) fn implicit(&self) -> bool {
        matches!(self.standing, Standing::Implicit { .. })
    }

    pub(crate) fn idle(&self) -> bool {
        self.inside.len() == 0 && self.queue.is_empty()
    }

    /// Whether the gate's door lets anybody in.
    #[inline]
    pub(crate) fn lets_in(&self) -> bool {
        self.keeper.as_ref().is_none_or(|keeper| keeper.lets_in())
    }

    /// The fence that a grant in this mode may share with those inside, if any.
    pub(crate) fn shared_fence(&self, mode: &Mode) -> Option<Fence> {
        if self.inside.len() == 0 || self.exclusive {
            return None;
        }
        match mode {
            _ if self.company.units + mode.units() > self.definition.units_max() => None,
            mode if mode.exclusive() => None,
            _ => self.company.fence,
        }
    }

    /// When a hold that begins now ends by itself: at the hold limit, or at the end of the room's stay if that comes first.
    pub(crate) fn until(&self, now: u64) -> u64 {
        let lease = self
            .definition
            .lease_ms
            .map_or(u64::MAX, |lease| now.saturating_add(lease));
        let stay = match (&self.round, self.definition.stay_ms) {
            (Some(round), Some(stay)) => round.since.saturating_add(stay),
            _ => u64::MAX,
        };
        lease.min(stay)
    }
}
