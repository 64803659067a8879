//! Members whose state is kept by a log: an onlooker follows the log, and a member can begin with what the onlooker has recorded.

use super::sharer::ONLOOKER;
use super::{Asking, Group, Letter, Sharer, SlotSet, SlotsPlan, SlotsState};
use crate::NodeId;

impl Sharer {
    /// No node's member: it follows the log, so that a member can begin with what it has recorded.
    pub fn onlooker(state: SlotsState, group: Group, plan: &SlotsPlan) -> Sharer {
        Sharer::at(ONLOOKER, state, group, plan)
    }

    /// A member that begins with the recorded state, and with nothing in use.
    pub fn at(id: NodeId, state: SlotsState, group: Group, plan: &SlotsPlan) -> Sharer {
        let mut sharer = Sharer {
            group,
            state,
            ..Sharer::new(id, plan)
        };
        if id == ONLOOKER {
            sharer.free = SlotSet::new(0);
            sharer.used = SlotSet::new(0);
        }
        sharer.own_all();
        let mut cycles = sharer.state.cycles.iter();
        if cycles.any(|cycle| cycle.requester == id) {
            sharer.asking = Asking::Open;
        }
        sharer
    }

    /// Like [`Sharer::at`], for a member that has missed a part of the log: slots in use stay in use.
    pub fn rebase(&mut self, state: SlotsState, group: Group, plan: &SlotsPlan) {
        let before = std::mem::replace(self, Sharer::at(self.id, state, group, plan));
        (self.free_low, self.wanted) = (before.free_low, before.wanted);
        self.requests = before.requests;
        for slot in before.used.iter() {
            if self.free.remove(slot) {
                self.used.insert(slot);
            }
        }
        // A donation sent in this same view may still be delivered. If it was delivered, its slots have other numbers, even
        // if they have come back since.
        if before.group.view == group.view {
            for sent in before.sent {
                let table = (&before.state.table, &self.state.table);
                let waits = |slot: &u32| {
                    self.free.contains(*slot) && table.0.get(*slot) == table.1.get(*slot)
                };
                if sent.slots.iter().all(waits) {
                    for &slot in sent.slots.iter() {
                        self.free.remove(slot);
                    }
                    self.sent.push(sent);
                }
            }
            // An answer to one request does not answer the next.
            let request = |state: &SlotsState, of: usize| {
                let mut cycles = state.cycles.iter();
                let cycle = cycles.find(|cycle| cycle.requester.index() == of);
                cycle.map(|cycle| cycle.number)
            };
            let answered = before.answered.iter();
            let same = |of: &usize| request(&before.state, *of) == request(&self.state, *of);
            self.answered = answered.filter(same).collect();
        }
        // It cannot know whether a request of its own is still under way, so it asks again, which does no harm.
        self.asks_again = true;
    }

    /// Makes all slots free that are recorded as its own.
    pub(super) fn own_all(&mut self) {
        let own: Vec<u32> = self.state.table.of(self.id).collect();
        for slot in own {
            self.free.insert(slot);
        }
    }

    /// Marks a slot as used that this member counts as free; false if it does not.
    pub fn claim(&mut self, slot: u32) -> bool {
        self.free.remove(slot) && self.used.insert(slot)
    }

    /// Marks all free slots as used, and returns them.
    pub fn claim_all(&mut self) -> SlotSet {
        let claimed = self.free.clone();
        self.used.insert_all(&claimed);
        self.free.clear();
        claimed
    }

    /// Gives used slots back, all at once.
    pub fn give_all(&mut self, slots: &SlotSet, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        self.tick();
        let mut given = slots.clone();
        given.retain_all(&self.used);
        self.used.remove_all(&given);
        self.free.insert_all(&given);
        self.settle(plan, out);
        self.tell(out);
        self.ask_if_short(plan, out);
    }

    /// Sends the answers that it owes and the request that it needs, without waiting for a delivery.
    pub fn wake(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        self.settle(plan, out);
        self.asks_again = false;
        self.ask_if_short(plan, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Delivery, SlotTable, SlotsMessage};
    use super::*;
    use crate::quorum::NodeSet;

    const OWN: NodeId = NodeId(0);
    const OTHER: NodeId = NodeId(1);

    /// A member that owns all slots, and an onlooker of the same group.
    fn two(plan: &SlotsPlan) -> (Sharer, Sharer) {
        let both = NodeSet::first(2);
        let state = SlotsState {
            table: SlotTable::all_of(OWN, plan.slots),
            component: both,
            initialised: both,
            primary: Some(OWN),
            pending: Vec::new(),
            ..SlotsState::unknown(OWN, plan)
        };
        let group = Group {
            view: 7,
            members: both,
        };
        let onlooker = Sharer::onlooker(state.clone(), group, plan);
        (Sharer::at(OWN, state, group, plan), onlooker)
    }

    fn request(number: u32) -> SlotsMessage {
        SlotsMessage::Request {
            number,
            wanted: 1,
            urgent: 1,
            donors: None,
        }
    }

    fn said(from: NodeId, message: SlotsMessage) -> Delivery {
        let letter = Letter {
            view: 7,
            free: 0,
            message,
        };
        Delivery::Letter { from, letter }
    }

    #[test]
    fn what_was_donated_and_came_back_while_entries_were_skipped_is_free() {
        let plan = SlotsPlan::logged(2, 0);
        let (mut own, mut onlooker) = two(&plan);
        let mut out = Vec::new();
        let asks = said(OTHER, request(1));
        own.deliver(&asks, &plan, &mut out);
        onlooker.deliver(&asks, &plan, &mut Vec::new());
        let donation = out.pop().expect("it gives one");
        assert_eq!((own.owned(), own.sent.len()), (1, 1));
        // Still on its way: nobody may use it.
        let (state, group) = (onlooker.state().clone(), onlooker.group());
        let mut early = own.clone();
        early.rebase(state, group, &plan);
        assert_eq!((early.owned(), early.sent.len()), (1, 1));
        let SlotsMessage::Donate { slots, .. } = donation.message.clone() else {
            panic!("{donation:?}");
        };
        let back = SlotsMessage::Donate {
            to: OWN,
            number: None,
            label: None,
            slots,
        };
        for delivery in [said(OWN, donation.message), said(OTHER, back)] {
            onlooker.deliver(&delivery, &plan, &mut Vec::new());
        }
        own.rebase(onlooker.state().clone(), group, &plan);
        assert_eq!((own.owned(), own.sent.len()), (2, 0));
    }

    #[test]
    fn a_request_that_came_while_entries_were_skipped_is_answered() {
        let plan = SlotsPlan::logged(2, 0);
        let (mut own, mut onlooker) = two(&plan);
        let mut out = Vec::new();
        let asks = said(OTHER, request(1));
        own.deliver(&asks, &plan, &mut out);
        onlooker.deliver(&asks, &plan, &mut Vec::new());
        let donation = out.pop().expect("it gives one");
        for delivery in [said(OWN, donation.message), said(OTHER, request(2))] {
            onlooker.deliver(&delivery, &plan, &mut Vec::new());
        }
        own.rebase(onlooker.state().clone(), onlooker.group(), &plan);
        own.wake(&plan, &mut out);
        let answers = |letter: &Letter| {
            matches!(
                letter.message,
                SlotsMessage::Donate {
                    number: Some(2),
                    ..
                }
            )
        };
        assert!(out.iter().any(answers), "{out:?}");
    }
}
