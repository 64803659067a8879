//! Who owns which slot, as every member records it.

use std::sync::Arc;

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

/// The table of all slots, the same at all members of a component. Copies share its blocks until they change, so a copy takes no
/// time, however many slots there are.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<Owned>", into = "Vec<Owned>")]
pub struct SlotTable(Vec<Arc<Vec<Owned>>>);

/// Lines in each block but the last.
const BLOCK_LINES: usize = 4_096;

impl From<Vec<Owned>> for SlotTable {
    fn from(lines: Vec<Owned>) -> SlotTable {
        let blocks = lines.chunks(BLOCK_LINES);
        SlotTable(blocks.map(|block| Arc::new(block.to_vec())).collect())
    }
}

impl From<SlotTable> for Vec<Owned> {
    fn from(table: SlotTable) -> Vec<Owned> {
        table.all().copied().collect()
    }
}

impl SlotTable {
    /// All slots belong to this member.
    pub fn all_of(owner: NodeId, slots: u32) -> SlotTable {
        let owned = Owned {
            owner: Some(owner),
            number: 1,
        };
        SlotTable::from(vec![owned; slots as usize])
    }

    pub fn empty() -> SlotTable {
        SlotTable(Vec::new())
    }

    pub fn from_lines(lines: Vec<Owned>) -> SlotTable {
        SlotTable::from(lines)
    }

    pub fn slots(&self) -> u32 {
        let full = self.0.len().saturating_sub(1) * BLOCK_LINES;
        (full + self.0.last().map_or(0, |block| block.len())) as u32
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, slot: u32) -> Option<Owned> {
        let block = self.0.get(slot as usize / BLOCK_LINES)?;
        block.get(slot as usize % BLOCK_LINES).copied()
    }

    pub fn owner(&self, slot: u32) -> Option<NodeId> {
        self.get(slot).and_then(|owned| owned.owner)
    }

    pub fn lines(&self) -> impl Iterator<Item = (u32, Owned)> + '_ {
        (0..).zip(self.all().copied())
    }

    fn all(&self) -> impl Iterator<Item = &Owned> {
        self.0.iter().flat_map(|block| block.iter())
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Owned> {
        let blocks = self.0.iter_mut();
        blocks.flat_map(|block| Arc::make_mut(block).iter_mut())
    }

    fn line_mut(&mut self, slot: u32) -> &mut Owned {
        let block = &mut self.0[slot as usize / BLOCK_LINES];
        &mut Arc::make_mut(block)[slot as usize % BLOCK_LINES]
    }

    /// The slots of one member.
    pub fn of(&self, owner: NodeId) -> impl Iterator<Item = u32> + '_ {
        self.lines()
            .filter(move |(_, owned)| owned.owner == Some(owner))
            .map(|(slot, _)| slot)
    }

    /// How many slots these members own.
    pub fn owned_by(&self, members: NodeSet) -> u32 {
        self.all()
            .filter(|owned| {
                owned
                    .owner
                    .is_some_and(|owner| members.contains(owner.index()))
            })
            .count() as u32
    }

    /// Gives a slot another owner, under a higher number.
    pub(super) fn give(&mut self, slot: u32, owner: NodeId) {
        let owned = self.line_mut(slot);
        *owned = Owned {
            owner: Some(owner),
            number: owned.number.saturating_add(1),
        };
    }

    /// Raises the numbers of a member's slots: its new process uses them.
    pub(super) fn renumber(&mut self, owner: NodeId) {
        for owned in self.all_mut() {
            if owned.owner == Some(owner) {
                owned.number = owned.number.saturating_add(1);
            }
        }
    }

    /// Raises all numbers to at least this one.
    pub fn raise(&mut self, number: u32) {
        for owned in self.all_mut() {
            owned.number = number.max(owned.number.saturating_add(1));
        }
    }

    pub(super) fn freeze(&mut self, slot: u32) {
        self.line_mut(slot).owner = None;
    }

    pub(super) fn freeze_all_of(&mut self, owner: NodeId) {
        for owned in self.all_mut() {
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
            if keep(slot, self.owner(slot)) {
                continue;
            }
            self.give(slot, taker);
            let number = &mut self.line_mut(slot).number;
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
        SlotTable::from(self.all().map(claim).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_shares_what_has_not_changed() {
        let slots = 2 * BLOCK_LINES as u32 + 7;
        let table = SlotTable::all_of(NodeId(1), slots);
        let mut copy = table.clone();
        copy.give(slots - 1, NodeId(2));
        let shared = |at: usize| Arc::ptr_eq(&table.0[at], &copy.0[at]);
        assert_eq!([0, 1, 2].map(shared), [true, true, false]);
        assert_eq!((table.slots(), copy.slots()), (slots, slots));
        assert_eq!(table.owner(slots - 1), Some(NodeId(1)));
        assert_eq!(copy.owner(slots - 1), Some(NodeId(2)));
        assert_eq!((copy.get(slots), SlotTable::empty().slots()), (None, 0));
        assert_eq!(SlotTable::from(Vec::from(copy.clone())), copy);
    }
}
