//! Donations that a desk has seen.

use super::desk::Desk;
use crate::name::Name;
use crate::ownership::NodeId;

/// How many of the latest donations are kept.
pub(super) const DONATIONS_MAX: usize = 256;

/// Slots that one node has given to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Donation {
    /// When this node heard of it.
    pub at: u64,
    /// Of which pool.
    pub pool: Name,
    /// The donor.
    pub from: NodeId,
    /// The receiver.
    pub to: NodeId,
    /// How many slots.
    pub slots: u32,
}

impl Desk {
    /// The latest donations between any two nodes since this node started, newest first.
    pub fn donations(&self) -> impl Iterator<Item = &Donation> {
        self.donations.iter()
    }
}
