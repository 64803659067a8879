//! Pools: identical, reusable slots. Each node owns a share and gives it out from memory; ownership moves through the log, by
//! SLOTS ([`testigo_protocol::slots`]), with one member per node.
//!
//! [`Pools`] holds what the log says: who owns which slot, and what has been asked for. A node's [`Desk`] holds what its
//! sessions have taken. No node lease ends a take: only the owner can give a slot away, so a node that is cut off goes on
//! with what it has.
//!
//! Without a log, a [`PoolGroup`] shares pools in a process group, and every part of a partition goes on by itself.

mod claims;
mod closing;
mod counter;
mod definition;
mod desk;
mod donation;
mod ended_elsewhere;
mod endings;
mod give;
mod group;
mod records;
mod shelf;
mod start;
mod unsaid;
mod view;
mod waits;

pub use closing::Closings;
pub use counter::Many;
pub use definition::{PoolDefinition, SlotNames, find_slots};
pub use desk::{Desk, DeskOut, PoolAnswer, PoolTake, SlotTaken};
pub use donation::Donation;
pub use ended_elsewhere::EndedElsewhere;
pub use give::{NamedSlot, Said, SlotClaim};
pub use group::{
    GROUP_DEFINITIONS_MAX, GROUP_SLOTS_MAX, GroupEvent, GroupOut, Kept, KeptPool, PoolGroup,
    Process,
};
pub(crate) use records::Delivered;
pub use records::{POOL_NODES_MAX, POOL_SLOTS_MAX, POOLS_MAX, PoolRecord, Pools, no_pool};
pub use shelf::{Shelf, Shelves};
pub use testigo_protocol::NodeId as SharerId;
pub use testigo_protocol::slots::{SlotSet, SlotsState};
pub use unsaid::Unsaid;
pub use view::{DeskView, PoolWaitView, SlotView};
