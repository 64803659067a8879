//! Components that meet: nothing changes until everybody has heard what each of them owns.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Letter, Owned, Sharer, SlotTable, SlotsPlan, SlotsState, Transaction};
use crate::NodeId;
use crate::quorum::NodeSet;

impl Sharer {
    pub(super) fn hear_merge(
        &mut self,
        state: &Arc<SlotsState>,
        plan: &SlotsPlan,
        out: &mut Vec<Letter>,
    ) {
        if self.transaction != Transaction::Merge {
            return;
        }
        self.heard.push(Arc::clone(state));
        let heard = self.heard.iter();
        let covered = heard.fold(NodeSet::EMPTY, |all, state| all.union(state.component));
        if self.group.members.is_within(covered) {
            self.commit(plan);
            self.free_frozen(plan);
            self.go_on(None, plan, out);
        }
    }

    fn commit(&mut self, plan: &SlotsPlan) {
        let heard = std::mem::take(&mut self.heard);
        let members = self.group.members;
        let disputes = heard.iter().flat_map(|state| state.disputed.clone());
        let mut disputed: BTreeSet<u32> = disputes.collect();
        let mut table = Vec::with_capacity(plan.slots as usize);
        for slot in 0..self.state.table.slots() {
            table.push(self.fuse(slot, &heard, &mut disputed, plan));
        }
        let union = |of: fn(&SlotsState) -> NodeSet| {
            let sets = heard.iter().map(|state| of(state));
            sets.fold(NodeSet::EMPTY, NodeSet::union)
        };
        let mut pending: Vec<NodeId> = Vec::new();
        for member in heard.iter().flat_map(|state| &state.pending) {
            if members.contains(member.index()) && !pending.contains(member) {
                pending.push(*member);
            }
        }
        self.state = SlotsState {
            table: SlotTable::from_lines(table),
            component: members,
            initialised: union(|state| state.initialised).intersection(members),
            absent: union(|state| state.absent).minus(members),
            primary: None,
            pending,
            cycles: heard
                .iter()
                .flat_map(|state| state.cycles.clone())
                .collect(),
            standing: heard
                .iter()
                .flat_map(|state| state.standing.clone())
                .collect(),
            labelled: heard
                .iter()
                .flat_map(|state| state.labelled.clone())
                .collect(),
            // A member that one component retired may have got slots from another since.
            provisioned: heard
                .iter()
                .filter(|state| !state.initialised.is_empty())
                .fold(NodeSet::EMPTY, |all, state| all.union(state.provisioned)),
            disputed: disputed.into_iter().collect(),
        };
        self.state.elect();
    }

    /// Who owns a slot after a merge: the one that claims it.
    fn fuse(
        &mut self,
        slot: u32,
        heard: &[Arc<SlotsState>],
        disputed: &mut BTreeSet<u32>,
        plan: &SlotsPlan,
    ) -> Owned {
        let lines = || heard.iter().filter_map(|state| state.table.get(slot));
        let mut claims = lines().filter(|owned| owned.owner.is_some());
        let frozen = Owned {
            owner: None,
            number: lines().map(|owned| owned.number).max().unwrap_or_default(),
        };
        match (claims.next(), claims.next()) {
            (Some(claim), None) if !disputed.contains(&slot) => claim,
            (None, _) if plan.flaws.unclaimed_as_recorded => {
                let recorded = self.state.table.get(slot).unwrap_or(frozen);
                let absent = |owner: &NodeId| !self.group.members.contains(owner.index());
                Owned {
                    owner: recorded.owner.filter(absent),
                    ..frozen
                }
            }
            (None, _) => frozen,
            (Some(_), _) => {
                // No winner is picked silently: nobody uses the slot from here on, and somebody is told.
                disputed.insert(slot);
                self.lose(slot);
                frozen
            }
        }
    }
}
