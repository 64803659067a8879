//! One member: its own slots, its requests and its answers.

use std::sync::Arc;

use super::directed::Known;
use super::{
    Average, Cycle, Delivery, Group, Letter, SlotSet, SlotsMessage, SlotsPlan, SlotsState,
    Standing, slots_to_request,
};
use crate::NodeId;
use crate::quorum::NodeSet;

/// No member has this number.
pub(super) const ONLOOKER: NodeId = NodeId(u32::MAX);

/// One member of a group that shares slots.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sharer {
    pub(super) id: NodeId,
    /// Owns all slots if it is alone when it joins.
    pub(super) founder: bool,
    pub(super) group: Group,
    /// What it has in common with its component.
    pub(super) state: SlotsState,
    pub(super) transaction: Transaction,
    /// The merge messages delivered so far.
    pub(super) heard: Vec<Arc<SlotsState>>,
    pub(super) free: SlotSet,
    pub(super) used: SlotSet,
    /// Free slots kept for users who lack more with the given label.
    pub(super) kept: Vec<(u32, u32)>,
    /// Donations that were multicast and not yet delivered; nobody uses these slots.
    pub(super) sent: Vec<Sent>,
    pub(super) asking: Asking,
    pub(super) requests: u32,
    /// Whom it has answered in this view.
    pub(super) answered: NodeSet,
    /// Members to whom it owes a null answer that waits for somebody else's answer first.
    pub(super) deferred: NodeSet,
    /// Checks its needs once more when it may ask again.
    pub(super) asks_again: bool,
    pub(super) free_low: u32,
    /// How many slots its users have come for since it sent its own request, if FREE_LOW follows demand.
    pub(super) demand: u32,
    /// How many free slots each member had when it was last heard of, and this one when it last said so. Empty
    /// unless donors are named.
    pub(super) known: Vec<Known>,
    /// How many uses began or ended here, if donors are named.
    pub(super) uses: u32,
    /// Whose wishes stand and have not been looked at yet, if donors are named.
    pub(super) new_wishes: NodeSet,
    /// How many free slots its users wait for.
    pub(super) wanted: u32,
    /// Has sent a withdrawal of its wish that is not delivered yet.
    pub(super) withdrawn: bool,
    /// A waiting user was served here since its wish was last the youngest.
    pub(super) had_turn: bool,
    /// Has let others go first, in a message that is not delivered yet.
    pub(super) passing: bool,
    /// Has said how many slots with a label are wanted, in a message that is not delivered yet.
    pub(super) announced: bool,
    /// The labels for which users were served since it last said what they lack.
    pub(super) passed: Vec<u32>,
    /// Whether wishes with labels come first the next time that others compete with them.
    pub(super) labels_next: bool,
    /// Slots that go to the primary from a member that is gone get at least this number.
    pub(super) floor: u32,
}

/// The state of a member's own request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Asking {
    Idle,
    /// Multicast, not yet delivered.
    Sent,
    /// Delivered; answers are due.
    Open,
}

/// What stops everybody from asking and donating.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transaction {
    None,
    /// A newcomer waits for its status.
    Join,
    /// Components that met have not yet told each other everything that they own.
    Merge,
}

/// Slots on their way to another member.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sent {
    pub(super) to: NodeId,
    pub(super) number: Option<u32>,
    pub(super) label: Option<u32>,
    pub(super) slots: Arc<[u32]>,
}

impl Sharer {
    /// A member that knows nothing yet, before it has joined.
    pub fn new(id: NodeId, plan: &SlotsPlan) -> Sharer {
        Sharer {
            id,
            founder: false,
            group: Group {
                view: 0,
                members: NodeSet::EMPTY,
            },
            state: SlotsState::unknown(id, plan),
            transaction: Transaction::None,
            heard: Vec::new(),
            free: SlotSet::new(plan.slots),
            used: SlotSet::new(plan.slots),
            kept: Vec::new(),
            sent: Vec::new(),
            asking: Asking::Idle,
            requests: 0,
            answered: NodeSet::EMPTY,
            deferred: NodeSet::EMPTY,
            asks_again: false,
            free_low: plan.free_low_of(id),
            demand: 0,
            known: match plan.directed {
                true => vec![Known::default(); plan.members],
                false => Vec::new(),
            },
            uses: 0,
            new_wishes: NodeSet::EMPTY,
            wanted: 0,
            withdrawn: false,
            had_turn: false,
            passing: false,
            announced: false,
            passed: Vec::new(),
            labels_next: true,
            floor: 0,
        }
    }

    /// The member that owns all slots when it joins an empty group. There is only ever one.
    pub fn founder(id: NodeId, plan: &SlotsPlan) -> Sharer {
        Sharer {
            founder: true,
            ..Sharer::new(id, plan)
        }
    }

    /// Takes a free slot, at once or not at all.
    pub fn take(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) -> Option<u32> {
        self.take_this(self.free.first(), plan, out)
    }

    /// Takes this particular slot, if it is free.
    pub fn take_this(
        &mut self,
        slot: Option<u32>,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) -> Option<u32> {
        self.tick();
        self.count_demand(plan);
        let taken = slot.filter(|&slot| self.free.remove(slot) && self.used.insert(slot));
        self.ask_if_short(plan, out);
        self.tell(out);
        taken
    }

    /// Gives a used slot back; false if it was not in use here.
    pub fn give(&mut self, slot: u32, plan: &SlotsPlan, out: &mut Vec<Letter>) -> bool {
        self.tick();
        let given = self.used.remove(slot);
        if given {
            self.free.insert(slot);
            self.settle(plan, out);
            self.tell(out);
        }
        self.ask_if_short(plan, out);
        given
    }

    /// Sets how many free slots its users wait for: it asks for that many, whatever its FREE_LOW.
    pub fn want(&mut self, wanted: u32, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let before = std::mem::replace(&mut self.wanted, wanted);
        self.asks_again |= wanted > before && !self.may_ask();
        self.settle(plan, out);
        self.ask_if_short(plan, out);
    }

    /// An operator's word that a member will never come back with what it owned.
    pub fn retire(&mut self, member: NodeId, out: &mut Vec<Letter>) {
        self.multicast(SlotsMessage::Retire { member }, out);
    }

    /// Takes in what the group delivers.
    pub fn deliver(&mut self, delivery: &Delivery, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        self.deliver_in_use(delivery, &[], plan, out);
    }

    /// Like [`Sharer::deliver`]. Any of the slots `in_use` that become free here count as used: somebody took them from their
    /// previous owner.
    pub fn deliver_in_use(
        &mut self,
        delivery: &Delivery,
        in_use: &[u32],
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        match delivery {
            Delivery::View { group, change } => {
                self.enter_view(*group, *change, plan, out);
                for &slot in in_use {
                    if self.free.remove(slot) {
                        self.used.insert(slot);
                    }
                }
            }
            Delivery::Letter { from, letter } => {
                // All members see a new view at the same point, so all drop the same letters.
                if letter.view == self.group.view || plan.flaws.any_view {
                    self.learn(*from, letter);
                    self.hear(*from, &letter.message, plan, out);
                }
            }
        }
        self.settle(plan, out);
        // Where requests stand, a member has asked for everything that its users wait for.
        let waits = plan.standing_requests && self.wanted > self.free.len() + self.wish();
        if (self.asks_again || waits) && self.may_ask() {
            self.asks_again = false;
            self.ask_if_short(plan, out);
        }
    }

    fn hear(
        &mut self,
        from: NodeId,
        message: &SlotsMessage,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        if let SlotsMessage::Status { newcomers, state } = message {
            return self.admit(*newcomers, state, plan, out);
        }
        if !self.follows() {
            return;
        }
        match message {
            SlotsMessage::Request {
                number,
                wanted,
                urgent,
                donors,
            } => {
                self.open_cycle(from, (*number, *wanted, *urgent), *donors, plan);
                // Before older requests whose null answers were held back: a member with slots to spare
                // gives the newest requester one.
                let newest = self.state.cycles.len().checked_sub(1);
                let calm = self.transaction == Transaction::None;
                if let Some(at) = newest.filter(|at| calm && self.owes(*at, plan)) {
                    self.answer(at, plan, out);
                }
            }
            SlotsMessage::Donate {
                to,
                number,
                label,
                slots,
            } => self.donated(from, *to, (*number, *label), slots, plan),
            SlotsMessage::Wish {
                label,
                wanted,
                passed,
            } => self.hear_wish(from, *label, *wanted, *passed),
            SlotsMessage::Withdraw => {
                let standing = &mut self.state.standing;
                standing.retain(|standing| standing.requester != from);
            }
            SlotsMessage::Pass { wanted } => self.hear_pass(from, *wanted),
            SlotsMessage::MergeStatus { state } => self.hear_merge(state, plan, out),
            SlotsMessage::Retire { member } => self.retired(*member, plan),
            SlotsMessage::Status { .. } | SlotsMessage::Tell => {}
        }
    }

    pub(super) fn open_cycle(
        &mut self,
        requester: NodeId,
        (number, wanted, urgent): (u32, u32, u32),
        donors: Option<NodeSet>,
        plan: &SlotsPlan,
    ) {
        let state = &mut self.state;
        let known = state.initialised.contains(requester.index());
        if !known
            || state
                .cycles
                .iter()
                .any(|cycle| cycle.requester == requester)
        {
            return;
        }
        let mut waits_for = state.initialised.without(requester.index());
        let mut empty = Vec::new();
        if plan.crossed_requests {
            for other in &mut state.cycles {
                waits_for = waits_for.without(other.requester.index());
                other.waits_for = other.waits_for.without(requester.index());
                if other.waits_for.is_empty() {
                    empty.push(other.requester);
                }
            }
        }
        if let Some(donors) = donors {
            waits_for = waits_for.intersection(donors);
        }
        if plan.directed {
            let standing = &mut self.state.standing;
            standing.retain(|standing| standing.requester != requester);
        }
        self.answered = self.answered.without(requester.index());
        if requester == self.id {
            self.asking = Asking::Open;
        }
        self.state.cycles.push(Cycle {
            requester,
            number,
            wanted,
            urgent,
            waits_for,
            named: donors.is_some(),
            answered: NodeSet::EMPTY,
            brought: 0,
        });
        if waits_for.is_empty() {
            empty.push(requester);
        }
        for requester in empty {
            self.close(requester, plan);
        }
    }

    pub(super) fn close(&mut self, requester: NodeId, plan: &SlotsPlan) {
        let cycles = &mut self.state.cycles;
        let Some(at) = cycles.iter().position(|cycle| cycle.requester == requester) else {
            return;
        };
        let cycle = cycles.remove(at);
        if plan.directed {
            // All members would serve the rest of a request at once, so only a request that brought nothing stands.
            if cycle.brought == 0 {
                self.new_wishes = self.new_wishes.with(requester.index());
                let wanted = cycle.wanted;
                self.state.standing.push(Standing { requester, wanted });
            }
        } else if plan.standing_requests && cycle.urgent > cycle.brought {
            let wanted = cycle.urgent - cycle.brought;
            // A member that asks again lines up again.
            match self.state.standing.last_mut() {
                Some(last) if last.requester == requester => last.wanted += wanted,
                _ => self.state.standing.push(Standing { requester, wanted }),
            }
        }
        self.deferred = self.deferred.without(requester.index());
        if requester == self.id {
            self.asking = Asking::Idle;
            self.asks_again |= plan.flaws.asks_at_once;
            self.follow_demand(plan);
        }
    }

    fn donated(
        &mut self,
        donor: NodeId,
        to: NodeId,
        (number, label): (Option<u32>, Option<u32>),
        slots: &Arc<[u32]>,
        plan: &SlotsPlan,
    ) {
        if !self.state.initialised.contains(to.index()) {
            return;
        }
        for &slot in slots.iter() {
            self.state.table.give(slot, to);
            if donor == self.id {
                // If the donor's process was replaced since, the new one may still count the slot as its own.
                self.lose(slot);
            }
            match label {
                _ if to != self.id => {}
                None => drop(self.free.insert(slot)),
                // Kept until its own users have been considered.
                Some(label) => self.kept.push((slot, label)),
            }
        }
        if donor == self.id {
            self.sent
                .retain(|sent| (sent.to, sent.number, &sent.slots) != (to, number, slots));
        }
        let count = slots.len() as u32;
        if let Some(label) = label {
            return self.count_labelled(to, label, count);
        }
        let owes = number.is_none() && !plan.directed;
        self.state.count_standing(donor, to, owes, count);
        let cycles = &mut self.state.cycles;
        let answers = |cycle: &&mut Cycle| cycle.requester == to && Some(cycle.number) == number;
        if let Some(cycle) = cycles.iter_mut().find(answers) {
            cycle.waits_for = cycle.waits_for.without(donor.index());
            cycle.answered = cycle.answered.with(donor.index());
            cycle.brought += slots.len() as u32;
            if cycle.waits_for.is_empty() {
                self.close(to, plan);
            }
        }
    }

    /// Sends the answers that it owes and may send now.
    pub(super) fn settle(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        if !self.is_initialised() || self.transaction != Transaction::None {
            return;
        }
        if self.favours_labels(plan) {
            self.answer_labelled(false, plan, out);
        }
        for at in 0..self.state.cycles.len() {
            if self.owes(at, plan) {
                self.answer(at, plan, out);
            }
        }
        match plan.directed {
            true => self.serve_wishes(plan, out),
            false => {
                self.answer_standing(plan, out);
                self.withdraw_wish(out);
                self.pass_turn(out);
            }
        }
    }

    /// Whether its answer to a request is due. Its own request, delivered or not, counts as its answer.
    fn owes(&self, at: usize, plan: &SlotsPlan) -> bool {
        if plan.crossed_requests && self.asking != Asking::Idle {
            return false;
        }
        let cycle = &self.state.cycles[at];
        let answered = self.answered.contains(cycle.requester.index());
        cycle.waits_for.contains(self.id.index()) && !answered
    }

    fn answer(&mut self, at: usize, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let cycle = &self.state.cycles[at];
        let to = cycle.requester;
        let first = cycle.answered.is_empty() && !self.is_designated(cycle, plan);
        if first && self.deferred.contains(to.index()) {
            return;
        }
        let count = match self.asking {
            Asking::Idle if cycle.named => self.directed_share(cycle, plan),
            Asking::Idle => self.share(cycle, plan),
            Asking::Sent | Asking::Open => 0,
        };
        if count == 0 && plan.held_nulls && first {
            self.deferred = self.deferred.with(to.index());
            return;
        }
        let number = cycle.number;
        self.answered = self.answered.with(to.index());
        self.deferred = self.deferred.without(to.index());
        self.donate(to, Some(number), count, out);
    }

    fn is_designated(&self, cycle: &Cycle, plan: &SlotsPlan) -> bool {
        match plan.flaws.fixed_successor {
            true => cycle.requester.next(plan.members) == self.id,
            false => cycle.designated() == Some(self.id),
        }
    }

    pub(super) fn may_ask(&self) -> bool {
        self.is_initialised()
            && self.transaction == Transaction::None
            && self.asking == Asking::Idle
            && self.state.initialised.len() >= 2
    }

    /// How many free slots it wants to have.
    pub(super) fn low(&self) -> u32 {
        self.free_low.max(self.wanted)
    }

    /// As many free slots as no donation may take.
    pub(super) fn keeps(&self, plan: &SlotsPlan) -> u32 {
        match plan.flaws.keeps_nothing {
            true => 0,
            false => self.low(),
        }
    }

    /// Whether it gives to standing wishes: not while it has a request of its own.
    pub(super) fn may_answer(&self, plan: &SlotsPlan) -> bool {
        self.asking == Asking::Idle || !plan.crossed_requests
    }

    pub(super) fn ask_if_short(&mut self, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let wish = match self.is_worse_off(plan) {
            true => 0,
            false => self.wish() + self.owed(plan),
        };
        if !self.may_ask() || self.free.len() + wish >= self.low() || self.makes_do(plan) {
            return;
        }
        let slots = match plan.average {
            Average::AllSlots => plan.slots,
            Average::Component => self.state.table.owned_by(self.state.initialised),
        };
        let members = self.state.initialised.len() as u32;
        let free = self.free.len();
        let urgent = self.wanted.saturating_sub(free + wish);
        let wanted = match plan.directed {
            true => self.directed_wish(),
            false => slots_to_request(slots, members, self.owned(), free, self.low()),
        };
        let wanted = wanted.max(urgent);
        let donors = plan.directed.then(|| self.donors(wanted));
        self.request(wanted, urgent, donors, out);
    }

    pub(super) fn request(
        &mut self,
        wanted: u32,
        urgent: u32,
        donors: Option<NodeSet>,
        out: &mut Vec<Letter>,
    ) {
        self.asking = Asking::Sent;
        self.demand = 0;
        self.deferred = NodeSet::EMPTY;
        self.requests += 1;
        let number = self.requests;
        let message = SlotsMessage::Request {
            number,
            wanted,
            urgent,
            donors,
        };
        self.multicast(message, out);
    }

    pub(super) fn multicast(&self, message: SlotsMessage, out: &mut Vec<Letter>) {
        out.push(Letter {
            view: self.group.view,
            free: match self.known.is_empty() {
                true => 0,
                false => self.free.len(),
            },
            message,
        });
    }
}
