//! Wishes for slots with a label, on behalf of users whom not every slot serves. They stand in a line of their own, so
//! nobody waits behind a wish for a rare slot. A member with slots to spare gives by turns to this line and to the
//! wishes for any slot, so neither starves the other.

use serde::{Deserialize, Serialize};

use super::sharer::Sent;
use super::{Letter, Sharer, SlotSet, SlotsMessage, SlotsPlan, Transaction};
use crate::NodeId;

/// Slots with a label that a member's users wait for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Labelled {
    pub requester: NodeId,
    /// The label, by its index among those of the plan.
    pub label: u32,
    pub wanted: u32,
}

impl Sharer {
    /// Keeps these free slots for users who lack more with the given label, instead of those that it kept before.
    pub fn keep(&mut self, slots: impl Iterator<Item = (u32, u32)>) {
        for (slot, _) in std::mem::take(&mut self.kept) {
            self.free.insert(slot);
        }
        self.kept = slots.filter(|(slot, _)| self.free.remove(*slot)).collect();
    }

    /// The labels that its users wish for, the oldest wish first.
    pub fn labels_wished(&self) -> impl Iterator<Item = u32> {
        let wishes = self.state.labelled.iter();
        let own = wishes.filter(|wish| wish.requester == self.id);
        own.map(|wish| wish.label)
    }

    /// Says how many slots with each label its users lack, in the order of the labels. Slots that its users could not use
    /// serve the wishes of others. To be called after every take, give and delivery: changes are multicast, one label after
    /// the other.
    pub fn want_labelled(
        &mut self,
        lacking: &[(u32, u32)],
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        if !self.is_initialised() || self.transaction != Transaction::None {
            return;
        }
        self.answer_labelled(true, plan, out);
        // Slots that came for a label that nobody waits for any more serve wishes for any slot.
        match plan.directed {
            true => self.serve_wishes(plan, out),
            false => self.answer_standing(plan, out),
        }
        if self.announced {
            return;
        }
        let heard = self.state.labelled.iter();
        let heard = heard.filter(|wish| wish.requester == self.id);
        let mut heard = heard.map(|wish| (wish.label, wish.wanted));
        let mut wishes = self.state.labelled.iter();
        let others = wishes.any(|wish| wish.requester != self.id);
        let new = lacking.iter().find(|(label, wanted)| {
            let mut heard = heard.clone();
            let known = heard.any(|wish| wish == (*label, *wanted));
            *wanted > 0 && (!known || (others && self.passed.contains(label)))
        });
        let over = heard.find(|(label, _)| {
            let mut lacking = lacking.iter();
            !lacking.any(|(lacks, wanted)| lacks == label && *wanted > 0)
        });
        let change = new.copied().or(over.map(|(label, _)| (label, 0)));
        if let Some((label, wanted)) = change {
            self.announced = true;
            let before = self.passed.len();
            self.passed.retain(|passed| *passed != label);
            let passed = self.passed.len() < before;
            let message = SlotsMessage::Wish {
                label,
                wanted,
                passed,
            };
            self.multicast(message, out);
        }
    }

    /// A user who waited for a label was served: the others who wait for it here line up behind other members' wishes.
    pub fn served_labelled(&mut self, label: u32) {
        if !self.passed.contains(&label) {
            self.passed.push(label);
        }
    }

    pub(super) fn hear_wish(&mut self, from: NodeId, label: u32, wanted: u32, passed: bool) {
        if from == self.id {
            self.announced = false;
        }
        let wishes = &mut self.state.labelled;
        if passed {
            wishes.retain(|wish| (wish.requester, wish.label) != (from, label));
        }
        let is_it = |wish: &&mut Labelled| (wish.requester, wish.label) == (from, label);
        match wishes.iter_mut().find(is_it) {
            Some(wish) => wish.wanted = wanted,
            None if self.state.initialised.contains(from.index()) => wishes.push(Labelled {
                requester: from,
                label,
                wanted,
            }),
            None => {}
        }
        wishes.retain(|wish| wish.wanted > 0);
    }

    /// A donation for a label serves that wish.
    pub(super) fn count_labelled(&mut self, to: NodeId, label: u32, count: u32) {
        let wishes = &mut self.state.labelled;
        for wish in &mut *wishes {
            if (wish.requester, wish.label) == (to, label) {
                wish.wanted = wish.wanted.saturating_sub(count);
            }
        }
        wishes.retain(|wish| wish.wanted > 0);
    }

    /// Whether it is the turn of wishes with labels, if both lines could use what is free here.
    pub(super) fn favours_labels(&mut self, plan: &SlotsPlan) -> bool {
        let others = self.wanted > 0 || !self.state.standing.is_empty();
        if !others || !self.has_for_labels(plan) {
            return true;
        }
        self.labels_next = !self.labels_next;
        !self.labels_next
    }

    fn has_for_labels(&self, plan: &SlotsPlan) -> bool {
        self.state.labelled.iter().any(|wish| {
            let labels = plan.labels.get(wish.label as usize);
            let serves = |slots: &SlotSet| self.free.meets(slots);
            wish.requester != self.id && labels.is_some_and(serves)
        })
    }

    /// Every free slot goes to the oldest wish that it serves, this member's own wishes included. With `kept_too`, so do
    /// slots kept for users whose wish is younger.
    pub(super) fn answer_labelled(
        &mut self,
        kept_too: bool,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        let mut wishes = self.state.labelled.iter();
        if !wishes.any(|wish| wish.requester != self.id) {
            return;
        }
        // The labels of its own wishes, and the slots that have one of them.
        let (mut own, mut serves_own) = (Vec::new(), SlotSet::new(plan.slots));
        for at in 0..self.state.labelled.len() {
            let Labelled {
                requester: to,
                label,
                wanted,
            } = self.state.labelled[at];
            let Some(labelled) = plan.labels.get(label as usize) else {
                continue;
            };
            if to == self.id {
                own.push(label);
                serves_own.insert_all(labelled);
                continue;
            }
            // A slot that has just come may serve an older wish of its own: leave it to its users.
            let free = self.free.common([labelled], &serves_own);
            let kept = self.kept.iter().filter(|_| kept_too);
            let kept = kept.filter(|(_, label)| !own.contains(label));
            let kept = kept.map(|(slot, _)| *slot);
            let serving = free.chain(kept.filter(|slot| labelled.contains(*slot)));
            let slots: Vec<u32> = serving.take(wanted as usize).collect();
            let under_way = |sent: &Sent| (sent.to, sent.label) == (to, Some(label));
            if !slots.is_empty() && !self.sent.iter().any(under_way) {
                for slot in &slots {
                    self.free.remove(*slot);
                    self.kept.retain(|(kept, _)| kept != slot);
                }
                self.donate_these(to, None, Some(label), slots, out);
            }
        }
    }
}
