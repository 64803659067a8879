//! How slots leave a member.

use std::sync::Arc;

use super::sharer::Sent;
use super::{
    Cycle, Letter, Sharer, SlotsMessage, SlotsPlan, exact_slots_to_donate, slots_to_donate,
};
use crate::NodeId;

/// Most slots in one message: whatever carries it has a limit. A larger wish stands until it is served.
const DONATION_MAX: u32 = 100_000;

impl Sharer {
    /// Gives a used slot back like [`Sharer::give`], but as a donation to this same member, so that it comes
    /// back free under its next number.
    pub fn renew(&mut self, slot: u32, out: &mut Vec<Letter>) -> bool {
        if !self.used.remove(slot) {
            return false;
        }
        self.donate_these(self.id, None, None, vec![slot], out);
        true
    }

    /// How many slots it gives for a request to everybody.
    pub(super) fn share(&self, cycle: &Cycle, plan: &SlotsPlan) -> u32 {
        if plan.flaws.deaf {
            return 0;
        }
        let (free, low) = (self.free.len(), self.keeps(plan));
        let members = self.state.initialised;
        let count = members.len() as u32;
        if !plan.exact_quota {
            return slots_to_donate(cycle.wanted, count, free, low);
        }
        // Like whoever must not hold back a null answer, donors are ranked in the ring of numbers.
        let ring = plan.members;
        let after = |member: usize| (member + ring - cycle.requester.index() - 1) % ring;
        let own = after(self.id.index());
        let place = members.iter().filter(|&member| after(member) < own).count() as u32;
        exact_slots_to_donate(cycle.wanted, count, place, free, low)
    }

    /// A slot is no longer its own, whether it was free, used or kept.
    pub(super) fn lose(&mut self, slot: u32) {
        self.free.remove(slot);
        self.used.remove(slot);
        self.kept.retain(|(kept, _)| *kept != slot);
    }

    /// Gives `count` of its free slots to another member, at most [`DONATION_MAX`]; the answer may be none.
    pub(super) fn donate(
        &mut self,
        to: NodeId,
        number: Option<u32>,
        count: u32,
        out: &mut Vec<Letter>,
    ) {
        let slots = self.free.take_first(count.min(DONATION_MAX));
        self.donate_these(to, number, None, slots, out);
    }

    /// Sends slots that are no longer free here.
    pub(super) fn donate_these(
        &mut self,
        to: NodeId,
        number: Option<u32>,
        label: Option<u32>,
        slots: Vec<u32>,
        out: &mut Vec<Letter>,
    ) {
        let slots: Arc<[u32]> = slots.into();
        if !slots.is_empty() {
            self.sent.push(Sent {
                to,
                number,
                label,
                slots: Arc::clone(&slots),
            });
        }
        let message = SlotsMessage::Donate {
            to,
            number,
            label,
            slots,
        };
        self.multicast(message, out);
    }

    /// Gives up donations that have not been delivered to it: its group was lost first, and the receiver may have been told of
    /// them.
    pub fn disown_sent(&mut self) {
        for sent in self.sent.drain(..) {
            for &slot in sent.slots.iter() {
                self.state.table.freeze(slot);
            }
        }
    }
}
