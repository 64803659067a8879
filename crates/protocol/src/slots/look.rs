//! What can be seen of a member.

use super::sharer::ONLOOKER;
use super::{Asking, Group, Sharer, SlotSet, SlotTable, SlotsState, Transaction};
use crate::NodeId;

impl Sharer {
    pub fn id(&self) -> NodeId {
        self.id
    }

    pub fn group(&self) -> Group {
        self.group
    }

    pub fn state(&self) -> &SlotsState {
        &self.state
    }

    pub fn table(&self) -> &SlotTable {
        &self.state.table
    }

    /// Whether it knows who owns what.
    pub fn is_initialised(&self) -> bool {
        self.state.initialised.contains(self.id.index())
    }

    /// Whether deliveries change its state.
    pub(super) fn follows(&self) -> bool {
        self.is_initialised() || self.id == ONLOOKER || !self.state.table.is_empty()
    }

    pub fn transaction(&self) -> Transaction {
        self.transaction
    }

    pub fn asking(&self) -> Asking {
        self.asking
    }

    pub fn free(&self) -> &SlotSet {
        &self.free
    }

    pub fn used(&self) -> &SlotSet {
        &self.used
    }

    /// Whether slots that it donated to this member have not been delivered yet.
    pub fn donates_to(&self, member: NodeId) -> bool {
        self.sent.iter().any(|sent| sent.to == member)
    }

    /// How many slots it owns and has not donated.
    pub fn owned(&self) -> u32 {
        self.free.len() + self.used.len() + self.kept.len() as u32
    }

    /// The slots that only its own users may use: those that are free, in use, or kept for users who lack more with a label.
    pub fn usable(&self) -> impl Iterator<Item = u32> {
        let kept = self.kept.iter().map(|(slot, _)| *slot);
        self.free.iter().chain(self.used.iter()).chain(kept)
    }

    /// Slots that two components claimed: they are frozen, and somebody must be told.
    pub fn alarms(&self) -> &[u32] {
        &self.state.disputed
    }

    /// How many free slots it keeps for itself.
    pub fn free_low(&self) -> u32 {
        self.free_low
    }

    /// How many free slots its users wait for.
    pub fn wanted(&self) -> u32 {
        self.wanted
    }

    /// Slots that go to the primary from a member that is gone get at least this number: above all that anybody has used,
    /// since those who know are gone. It must be the same at all members of a view.
    pub fn set_floor(&mut self, floor: u32) {
        self.floor = floor;
    }
}
