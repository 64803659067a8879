//! Views: who is in, who is the primary, and who owns what when somebody comes or goes.

use std::sync::Arc;

use super::{
    Asking, Average, Change, Group, Letter, Sharer, SlotTable, SlotsMessage, SlotsPlan, SlotsState,
    Transaction,
};
use crate::NodeId;
use crate::quorum::NodeSet;

impl SlotsState {
    /// The state of a member that knows nothing but its own number.
    pub(super) fn unknown(id: NodeId, plan: &SlotsPlan) -> SlotsState {
        SlotsState {
            table: SlotTable::empty(),
            component: NodeSet::single(id.index()),
            initialised: NodeSet::EMPTY,
            absent: NodeSet::EMPTY,
            primary: None,
            pending: vec![id],
            cycles: Vec::new(),
            standing: Vec::new(),
            labelled: Vec::new(),
            provisioned: plan.provisioned(),
            disputed: Vec::new(),
        }
    }

    /// The primary is the lowest member that knows the state.
    pub(super) fn elect(&mut self) {
        let lowest = self.initialised.iter().next();
        self.primary = lowest.map(|member| NodeId(member as u32));
    }
}

impl Sharer {
    pub(super) fn enter_view(
        &mut self,
        group: Group,
        change: Change,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        self.group = group;
        self.roll_back(plan);
        if !self.follows() {
            return self.enter_unknowing(change, plan, out);
        }
        match change {
            Change::Joined(member) if plan.logged => return self.let_in(member, plan),
            Change::Returned(member) => self.returned(member, plan),
            Change::Restarted(member) => self.state.table.renumber(member),
            Change::Raised(number) => self.state.table.raise(number),
            Change::Departed(member) if plan.logged => self.removed(member),
            Change::Joined(member) => self.joined(member, plan),
            Change::Departed(member) => self.departed(member),
            Change::Parted => self.parted(plan),
            Change::Merged => {}
        }
        self.forget_the_gone(plan);
        self.free_frozen(plan);
        let newcomer = match change {
            Change::Joined(member) => Some(member),
            _ => None,
        };
        self.go_on(newcomer, plan, out);
    }

    /// Takes back what was sent and not delivered: everybody will ignore it.
    fn roll_back(&mut self, plan: &SlotsPlan) {
        let members = self.group.members;
        let free = &mut self.free;
        self.sent.retain(|sent| {
            let kept = plan.flaws.any_view && members.contains(sent.to.index());
            if !kept {
                sent.slots.iter().for_each(|&slot| {
                    free.insert(slot);
                });
            }
            kept
        });
        self.heard.clear();
        self.deferred = NodeSet::EMPTY;
        if plan.flaws.any_view {
            return;
        }
        self.answered = NodeSet::EMPTY;
        self.withdrawn = false;
        self.passing = false;
        self.announced = false;
        if plan.directed {
            self.new_wishes = plan.provisioned();
        }
        if self.asking == Asking::Sent {
            self.asking = Asking::Idle;
            self.asks_again = true;
        }
    }

    fn enter_unknowing(&mut self, change: Change, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let alone = self.group.members == NodeSet::single(self.id.index());
        match change {
            Change::Joined(member) if member == self.id => {
                if alone && (self.founder || plan.flaws.lone_start) {
                    self.found(plan);
                }
            }
            _ if plan.flaws.silent_newcomers => {}
            _ => {
                let state = Arc::new(SlotsState::unknown(self.id, plan));
                self.multicast(SlotsMessage::MergeStatus { state }, out);
            }
        }
    }

    /// The first member owns all slots.
    fn found(&mut self, plan: &SlotsPlan) {
        self.founder = false;
        self.state.table = SlotTable::all_of(self.id, plan.slots);
        self.state.initialised = NodeSet::single(self.id.index());
        self.state.pending.clear();
        self.state.elect();
        (0..plan.slots).for_each(|slot| {
            self.free.insert(slot);
        });
    }

    fn joined(&mut self, member: NodeId, plan: &SlotsPlan) {
        if self.state.absent.contains(member.index()) {
            // Its process is new and knows nothing. What it owned may by now belong to another member that is
            // out of reach, so nobody may use it.
            self.state.absent = self.state.absent.without(member.index());
            match plan.flaws.restart_frees {
                true => self.hand_to_primary(|_, owner| owner != Some(member)),
                false => self.state.table.freeze_all_of(member),
            }
        }
        // A retired member may own slots again.
        self.state.provisioned = self.state.provisioned.with(member.index());
        self.state.component = self.state.component.with(member.index());
        self.state.pending.retain(|&pending| pending != member);
        self.state.pending.push(member);
    }

    /// Lets in a newcomer that knows everything from the log: it asks for its share without a message.
    fn let_in(&mut self, member: NodeId, plan: &SlotsPlan) {
        self.returned(member, plan);
        let wanted = match plan.average {
            Average::AllSlots => plan.min_join,
            Average::Component => {
                let members = self.state.initialised.len() as u32;
                self.state.table.slots().div_ceil(members)
            }
        };
        self.open_cycle(member, (0, wanted, 0), None, plan);
    }

    /// A member will never come back: its slots are free, whether it was in reach or not.
    fn removed(&mut self, member: NodeId) {
        let state = &mut self.state;
        state.absent = state.absent.without(member.index());
        state.component = state.component.without(member.index());
        state.initialised = state.initialised.without(member.index());
        state.elect();
        match state.primary {
            Some(_) => self.hand_to_primary(|_, owner| owner != Some(member)),
            // Nobody is there to receive them.
            None => state.table.freeze_all_of(member),
        }
        if member == self.id {
            self.free.clear();
            self.used.clear();
            self.kept.clear();
        }
    }

    fn returned(&mut self, member: NodeId, plan: &SlotsPlan) {
        let state = &mut self.state;
        state.absent = state.absent.without(member.index());
        state.component = state.component.with(member.index());
        state.initialised = state.initialised.with(member.index());
        if state.primary.is_none() {
            state.elect();
            if plan.logged {
                // Slots of members that were removed while nobody else was there.
                self.hand_to_primary(|_, owner| owner.is_some());
            }
        }
        if member == self.id {
            self.asks_again = true;
        }
    }

    /// The slots of a member whose process has ended are free: nothing uses them any more.
    fn departed(&mut self, member: NodeId) {
        let state = &mut self.state;
        state.component = state.component.without(member.index());
        state.pending.retain(|&pending| pending != member);
        // The slots of another component's member are that component's affair.
        if state.initialised.contains(member.index()) {
            state.initialised = state.initialised.without(member.index());
            if state.primary == Some(member) {
                state.elect();
            }
            self.hand_to_primary(|_, owner| owner != Some(member));
        }
    }

    /// Members out of reach are assumed to be alive: their slots are not touched.
    fn parted(&mut self, plan: &SlotsPlan) {
        let members = self.group.members;
        let state = &mut self.state;
        let gone = state.component.minus(members);
        state.absent = state.absent.union(state.initialised.intersection(gone));
        state.component = state.component.minus(gone);
        state.initialised = state.initialised.minus(gone);
        state
            .pending
            .retain(|pending| members.contains(pending.index()));
        state.elect();
        if plan.flaws.reuses_unreachable {
            self.hand_to_primary(|_, owner| {
                owner.is_some_and(|owner| members.contains(owner.index()))
            });
        }
    }

    fn forget_the_gone(&mut self, plan: &SlotsPlan) {
        let here = self.state.initialised;
        self.state
            .standing
            .retain(|standing| here.contains(standing.requester.index()));
        self.state
            .labelled
            .retain(|wish| here.contains(wish.requester.index()));
        let cycles = &mut self.state.cycles;
        cycles.retain(|cycle| here.contains(cycle.requester.index()));
        for cycle in &mut *cycles {
            cycle.waits_for = cycle.waits_for.intersection(here);
        }
        // With a log, a member sees that it was out itself.
        if self.asking == Asking::Open && cycles.iter().all(|cycle| cycle.requester != self.id) {
            self.asking = Asking::Idle;
            self.asks_again = true;
        }
        let empty: Vec<NodeId> = cycles
            .iter()
            .filter(|cycle| cycle.waits_for.is_empty())
            .map(|cycle| cycle.requester)
            .collect();
        for requester in empty {
            self.close(requester, plan);
        }
    }

    /// Frees frozen slots once every member that may own a slot is here and has said what it owns: then nobody
    /// out of reach can use them.
    pub(super) fn free_frozen(&mut self, plan: &SlotsPlan) {
        let state = &self.state;
        let all_here = state.provisioned.is_within(self.group.members)
            && self.group.members.is_within(state.component);
        if all_here && !plan.flaws.unclaimed_as_recorded && !plan.logged {
            let (initialised, disputed) = (state.initialised, state.disputed.clone());
            self.hand_to_primary(|slot, owner| {
                owner.is_some_and(|owner| initialised.contains(owner.index()))
                    || disputed.contains(&slot)
            });
        }
    }

    /// Hands every slot that `keep` does not keep to the primary, as a free one.
    fn hand_to_primary(&mut self, keep: impl Fn(u32, Option<NodeId>) -> bool) {
        let Some(primary) = self.state.primary else {
            return;
        };
        let free = (primary == self.id).then_some(&mut self.free);
        self.state.table.reclaim(keep, primary, self.floor, free);
    }

    pub(super) fn retired(&mut self, member: NodeId, plan: &SlotsPlan) {
        let known = self.state.component.contains(member.index());
        // A status or merge under way would lack this: the operator must say it again.
        if self.transaction == Transaction::None && !known {
            self.state.provisioned = self.state.provisioned.without(member.index());
            self.state.absent = self.state.absent.without(member.index());
            self.state.table.freeze_all_of(member);
            self.free_frozen(plan);
        }
    }

    /// Starts what this view needs before slots move again; the primary speaks first.
    pub(super) fn go_on(
        &mut self,
        newcomer: Option<NodeId>,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        if plan.logged {
            return;
        }
        let primary = self.state.primary == Some(self.id);
        if !self.group.members.is_within(self.state.component) {
            self.transaction = Transaction::Merge;
            if primary {
                let state = Arc::new(SlotsState {
                    table: self.state.table.claimed_by(self.state.component),
                    ..self.state.clone()
                });
                self.multicast(SlotsMessage::MergeStatus { state }, out);
            }
        } else if !self.state.pending.is_empty() {
            self.transaction = Transaction::Join;
            if primary {
                self.put_status(newcomer, plan, out);
            }
        } else {
            self.transaction = Transaction::None;
        }
    }

    fn put_status(&mut self, newcomer: Option<NodeId>, plan: &SlotsPlan, out: &mut Vec<Letter>) {
        let state = Arc::new(self.state.clone());
        let pending = self.state.pending.iter();
        let all = pending.fold(NodeSet::EMPTY, |all, member| all.with(member.index()));
        let sets: Vec<NodeSet> = match (plan.flaws.status_each, newcomer) {
            (false, _) => vec![all],
            (true, Some(newcomer)) => vec![NodeSet::single(newcomer.index())],
            (true, None) => all.iter().map(NodeSet::single).collect(),
        };
        for newcomers in sets {
            let state = Arc::clone(&state);
            self.multicast(SlotsMessage::Status { newcomers, state }, out);
        }
    }

    /// Newcomers now know what everybody knows, and their first requests begin.
    pub(super) fn admit(
        &mut self,
        newcomers: NodeSet,
        state: &SlotsState,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        let newcomers = newcomers.intersection(self.group.members);
        let new = newcomers.contains(self.id.index()) && !self.is_initialised();
        if new {
            self.state = state.clone();
        }
        if !new && !self.is_initialised() {
            return;
        }
        let known = self.state.initialised;
        self.state
            .pending
            .retain(|pending| !newcomers.contains(pending.index()));
        self.state.initialised = known.union(newcomers);
        if self.state.pending.is_empty() {
            self.transaction = Transaction::None;
        }
        if plan.implicit_request && plan.min_join > 0 {
            for member in newcomers.minus(known).iter() {
                self.open_cycle(NodeId(member as u32), (0, plan.min_join, 0), None, plan);
            }
        } else if new && plan.min_join > 0 {
            self.request(plan.min_join, 0, None, out);
        }
    }
}
