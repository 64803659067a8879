//! What the SLOTS paper compares its algorithm with: a free list that all members keep, changed by
//! messages in one order, as mutual exclusion would change it. Without faults, as in the paper.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SlotSet;
use crate::NodeId;

/// What all members of the contrast agree on beforehand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContrastPlan {
    /// NR_SLOTS.
    pub slots: u32,
    /// FREE_LOW: how many slots are asked for at once, and how many remain after a release (LOW_SLOTS).
    pub free_low: u32,
    /// FREE_HIGH: a member with this many free slots releases some. The paper does not say how many.
    pub free_high: u32,
}

/// A message to the whole group, its sender included.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum ContrastMessage {
    /// MSG_FORK: its sender gets the first `count` slots of the list, or as many as there are.
    Fork { count: u32 },
    /// MSG_EXIT: these slots are on the list again.
    Exit { slots: Arc<[u32]> },
}

/// One member, with its copy of the list.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Contrast {
    id: NodeId,
    /// The slots that nobody has, the same at all members.
    list: SlotSet,
    free: SlotSet,
    used: SlotSet,
    /// Whether its MSG_FORK is under way: one at a time.
    asking: bool,
}

impl Contrast {
    /// A member without slots: all are on the list.
    pub fn new(id: NodeId, plan: &ContrastPlan) -> Contrast {
        let mut list = SlotSet::new(plan.slots);
        (0..plan.slots).for_each(|slot| {
            list.insert(slot);
        });
        Contrast {
            id,
            list,
            free: SlotSet::new(plan.slots),
            used: SlotSet::new(plan.slots),
            asking: false,
        }
    }

    pub fn list(&self) -> &SlotSet {
        &self.list
    }

    pub fn free(&self) -> &SlotSet {
        &self.free
    }

    pub fn used(&self) -> &SlotSet {
        &self.used
    }

    /// Takes a free slot, at once or not at all.
    pub fn take(&mut self, plan: &ContrastPlan, out: &mut Vec<ContrastMessage>) -> Option<u32> {
        let slot = self.free.first();
        if let Some(slot) = slot {
            self.free.remove(slot);
            self.used.insert(slot);
        }
        self.ask_if_empty(plan, out);
        slot
    }

    /// Gives a used slot back; false if it was not in use here.
    pub fn give(&mut self, slot: u32, plan: &ContrastPlan, out: &mut Vec<ContrastMessage>) -> bool {
        let given = self.used.remove(slot);
        if given {
            self.free.insert(slot);
            self.release_many(plan, out);
        }
        given
    }

    /// Asks for slots if it has no free one and has not asked yet.
    pub fn ask_if_empty(&mut self, plan: &ContrastPlan, out: &mut Vec<ContrastMessage>) {
        if self.free.is_empty() && !self.asking {
            self.asking = true;
            let count = plan.free_low;
            out.push(ContrastMessage::Fork { count });
        }
    }

    /// Takes in what the group delivers.
    pub fn hear(
        &mut self,
        from: NodeId,
        message: &ContrastMessage,
        plan: &ContrastPlan,
        out: &mut Vec<ContrastMessage>,
    ) {
        match message {
            ContrastMessage::Fork { count } => {
                let slots = self.list.take_first(*count);
                if from == self.id {
                    self.asking = false;
                    slots.into_iter().for_each(|slot| {
                        self.free.insert(slot);
                    });
                    self.release_many(plan, out);
                }
            }
            ContrastMessage::Exit { slots } => slots.iter().for_each(|&slot| {
                self.list.insert(slot);
            }),
        }
    }

    fn release_many(&mut self, plan: &ContrastPlan, out: &mut Vec<ContrastMessage>) {
        let free = self.free.len();
        if free < plan.free_high || free <= plan.free_low {
            return;
        }
        // The lowest ones stay: they are used first.
        let mut slots = self.free.take_first(free);
        let released = slots.split_off(plan.free_low as usize);
        slots.into_iter().for_each(|slot| {
            self.free.insert(slot);
        });
        let slots = released.into();
        out.push(ContrastMessage::Exit { slots });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: ContrastPlan = ContrastPlan {
        slots: 12,
        free_low: 2,
        free_high: 4,
    };

    /// Multicasts everything in the order in which it was said, until nobody says anything more.
    fn multicast(members: &mut [Contrast], from: usize, mut said: Vec<ContrastMessage>) -> usize {
        let mut count = 0;
        let mut queue: Vec<_> = said.drain(..).map(|message| (from, message)).collect();
        while !queue.is_empty() {
            let (from, message) = queue.remove(0);
            count += 1;
            for (at, member) in members.iter_mut().enumerate() {
                let mut out = Vec::new();
                member.hear(NodeId(from as u32), &message, &PLAN, &mut out);
                queue.extend(out.into_iter().map(|message| (at, message)));
            }
        }
        count
    }

    #[test]
    fn slots_are_asked_for_at_none_and_released_at_many() {
        let mut members = [0, 1, 2].map(|id| Contrast::new(NodeId(id), &PLAN));
        let mut out = Vec::new();
        assert_eq!(members[1].take(&PLAN, &mut out), None);
        assert_eq!(members[1].take(&PLAN, &mut out), None);
        assert_eq!(out, [ContrastMessage::Fork { count: 2 }], "one at a time");
        assert_eq!(multicast(&mut members, 1, out), 1);
        assert_eq!(members[1].free().iter().collect::<Vec<_>>(), [0, 1]);
        assert!(members.iter().all(|member| member.list().len() == 10));

        let mut out = Vec::new();
        let taken = [0, 1].map(|slot| members[1].take(&PLAN, &mut out) == Some(slot));
        assert_eq!(taken, [true; 2]);
        assert_eq!(multicast(&mut members, 1, out), 1, "none is left: it asks");
        let mut out = Vec::new();
        assert!(members[1].give(1, &PLAN, &mut out) && out.is_empty());
        assert!(members[1].give(0, &PLAN, &mut out) && !members[1].give(0, &PLAN, &mut out));
        let slots = [2, 3].into();
        assert_eq!(out, [ContrastMessage::Exit { slots }]);
        assert_eq!(multicast(&mut members, 1, out), 1);
        assert_eq!(members[1].free().iter().collect::<Vec<_>>(), [0, 1]);
        assert!(members.iter().all(|member| member.list().len() == 10));
    }
}
