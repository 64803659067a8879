//! Who owns which slot, as every member records it.

use serde::{Deserialize, Serialize};

use super::SlotSet;
use crate::NodeId;
use crate::quorum::NodeSet;

/// One slot's line in the table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Owned {
    /// `None` while the slot is frozen: it may be in use out of reach, so nobody here may use it.
    pub owner: Option<NodeId>,
    /// Rises at least with every change of owner, so that what a slot's users get under one owner differs
    /// from what they get under the next.
    pub number: u32,
}

/// The table of all slots, the same at all members of a component.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SlotTable(Vec<Owned>);

impl SlotTable {
    /// All slots belong to this member.
    pub fn all_of(owner: NodeId, slots: u32) -> SlotTable {
        let owned = Owned {
            owner: Some(owner),
            number: 1,
        };
        SlotTable(vec![owned; slots as usize])
    }

    pub fn empty() -> SlotTable {
        SlotTable(Vec::new())
    }

    pub fn from_lines(lines: Vec<Owned>) -> SlotTable {
        SlotTable(lines)
    }

    pub fn slots(&self) -> u32 {
        self.0.len() as u32
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, slot: u32) -> Option<Owned> {
        self.0.get(slot as usize).copied()
    }

    pub fn owner(&self, slot: u32) -> Option<NodeId> {
        self.get(slot).and_then(|owned| owned.owner)
    }

    pub fn lines(&self) -> impl Iterator<Item = (u32, Owned)> + '_ {
        (0..).zip(self.0.iter().copied())
    }

    /// The slots of one member.
    pub fn of(&self, owner: NodeId) -> impl Iterator<Item = u32> + '_ {
        self.lines()
            .filter(move |(_, owned)| owned.owner == Some(owner))
            .map(|(slot, _)| slot)
    }

    /// How many slots these members own.
    pub fn owned_by(&self, members: NodeSet) -> u32 {
        self.0
            .iter()
            .filter(|owned| {
                owned
                    .owner
                    .is_some_and(|owner| members.contains(owner.index()))
            })
            .count() as u32
    }

    /// Gives a slot another owner, under a higher number.
    pub(super) fn give(&mut self, slot: u32, owner: NodeId) {
        let owned = &mut self.0[slot as usize];
        *owned = Owned {
            owner: Some(owner),
            number: owned.number.saturating_add(1),
        };
    }

    /// Raises the numbers of a member's slots: its new process uses them.
    pub(super) fn renumber(&mut self, owner: NodeId) {
        for owned in &mut self.0 {
            if owned.owner == Some(owner) {
                owned.number = owned.number.saturating_add(1);
            }
        }
    }

    /// Raises all numbers to at least this one.
    pub fn raise(&mut self, number: u32) {
        for owned in &mut self.0 {
            owned.number = number.max(owned.number.saturating_add(1));
        }
    }

    pub(super) fn freeze(&mut self, slot: u32) {
        self.0[slot as usize].owner = None;
    }

    pub(super) fn freeze_all_of(&mut self, owner: NodeId) {
        for owned in &mut self.0 {
            if owned.owner == Some(owner) {
                owned.owner = None;
            }
        }
    }

    /// Hands every slot that `keep` does not keep to `taker`, with at least the number `floor`. `free` is given if this member is the
    /// taker: its new slots are added there.
    pub(super) fn reclaim(
        &mut self,
        keep: impl Fn(u32, Option<NodeId>) -> bool,
        taker: NodeId,
        floor: u32,
        mut free: Option<&mut SlotSet>,
    ) {
        for slot in 0..self.slots() {
            if keep(slot, self.0[slot as usize].owner) {
                continue;
            }
            self.give(slot, taker);
            let number = &mut self.0[slot as usize].number;
            *number = floor.max(*number);
            if let Some(free) = &mut free {
                free.insert(slot);
            }
        }
    }

    /// The table with only the owners among `members`; other slots have no owner in it.
    pub(super) fn claimed_by(&self, members: NodeSet) -> SlotTable {
        let claim = |owned: &Owned| Owned {
            owner: owned.owner.filter(|owner| members.contains(owner.index())),
            number: owned.number,
        };
        SlotTable(self.0.iter().map(claim).collect())
    }
}
