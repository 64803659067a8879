//! A baseline for SLOTS: one member keeps the list of free slots, and every use of a slot asks it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::SlotSet;
use crate::NodeId;

/// A message from a member to the manager, or back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum CentralMessage {
    Ask,
    Grant { to: NodeId, slot: u32 },
    Refuse { to: NodeId },
    Release { slot: u32 },
}

/// One member; number 0 is the manager.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Central {
    id: NodeId,
    /// At the manager only: the slots that nobody has, and who waits for one.
    list: SlotSet,
    line: VecDeque<NodeId>,
    /// Whether the manager lets members wait instead of refusing them.
    lets_wait: bool,
    free: SlotSet,
    used: SlotSet,
    refused: u32,
}

impl Central {
    pub fn new(id: NodeId, slots: u32, lets_wait: bool) -> Central {
        let mut list = SlotSet::new(slots);
        if id == Central::MANAGER {
            (0..slots).for_each(|slot| {
                list.insert(slot);
            });
        }
        Central {
            id,
            list,
            line: VecDeque::new(),
            lets_wait,
            free: SlotSet::new(slots),
            used: SlotSet::new(slots),
            refused: 0,
        }
    }

    const MANAGER: NodeId = NodeId(0);

    pub fn used(&self) -> &SlotSet {
        &self.used
    }

    /// Asks for one slot; [`Central::take`] returns it once it is granted.
    pub fn ask(&mut self, out: &mut Vec<CentralMessage>) {
        out.push(CentralMessage::Ask);
    }

    /// Takes a slot that was granted.
    pub fn take(&mut self) -> Option<u32> {
        let slot = self.free.first()?;
        self.free.remove(slot);
        self.used.insert(slot);
        Some(slot)
    }

    /// How many of its requests were refused since the last call.
    pub fn refused(&mut self) -> u32 {
        std::mem::take(&mut self.refused)
    }

    /// Gives a used slot back; false if it was not in use here.
    pub fn give(&mut self, slot: u32, out: &mut Vec<CentralMessage>) -> bool {
        let given = self.used.remove(slot);
        if given {
            out.push(CentralMessage::Release { slot });
        }
        given
    }

    pub fn hear(&mut self, from: NodeId, message: CentralMessage, out: &mut Vec<CentralMessage>) {
        match message {
            CentralMessage::Grant { to, slot } if to == self.id => {
                self.free.insert(slot);
            }
            CentralMessage::Refuse { to } if to == self.id => self.refused += 1,
            CentralMessage::Ask if self.id == Central::MANAGER => {
                self.line.push_back(from);
                self.serve(out);
            }
            CentralMessage::Release { slot } if self.id == Central::MANAGER => {
                self.list.insert(slot);
                self.serve(out);
            }
            _ => {}
        }
    }

    fn serve(&mut self, out: &mut Vec<CentralMessage>) {
        while let Some(&to) = self.line.front() {
            match self.list.first() {
                Some(slot) => {
                    self.list.remove(slot);
                    out.push(CentralMessage::Grant { to, slot });
                }
                None if self.lets_wait => return,
                None => out.push(CentralMessage::Refuse { to }),
            }
            self.line.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_refuses_or_lets_wait() {
        for lets_wait in [false, true] {
            let mut manager = Central::new(NodeId(0), 1, lets_wait);
            let mut member = Central::new(NodeId(1), 1, lets_wait);
            let (mut out, to) = (Vec::new(), NodeId(1));
            manager.hear(to, CentralMessage::Ask, &mut out);
            manager.hear(to, CentralMessage::Ask, &mut out);
            let granted = CentralMessage::Grant { to, slot: 0 };
            let refused = CentralMessage::Refuse { to };
            match lets_wait {
                true => assert_eq!(out, [granted]),
                false => assert_eq!(out, [granted, refused]),
            }
            for message in out {
                member.hear(NodeId(0), message, &mut Vec::new());
            }
            assert_eq!(member.refused(), u32::from(!lets_wait));
            assert_eq!((member.take(), member.take()), (Some(0), None));
            let mut out = Vec::new();
            assert!(member.give(0, &mut out) && !member.give(0, &mut out));
            assert_eq!(out, [CentralMessage::Release { slot: 0 }]);
            let mut answered = Vec::new();
            manager.hear(to, out[0], &mut answered);
            assert_eq!(answered.len(), usize::from(lets_wait));
        }
    }
}
