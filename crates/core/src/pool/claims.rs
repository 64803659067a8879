//! Claims: the slots that moving sessions say they have. The log keeps every claim until its session drops it or the slot's owner,
//! which knows who took the slot, says that it is wrong.

use std::collections::BTreeMap;

use testigo_protocol::slots::{Sharer, SlotSet};

use super::counter::{Counter, Use};
use super::desk::COUNT_BITS;
use super::records::PoolRecord;
use crate::fence::Fence;
use crate::session::SessionId;

/// How many sessions can claim one slot. All but one are wrong, and the slot's owner says so as soon as it hears of them.
pub(super) const CLAIMS_MAX: usize = 16;

impl PoolRecord {
    /// Who claims which slot.
    pub fn claims(&self) -> impl Iterator<Item = (u32, SessionId, Fence)> {
        let claims = self.claims.iter();
        let each = |(slot, of): (&u32, _)| {
            let slot = *slot;
            let of: &BTreeMap<SessionId, Fence> = of;
            of.iter()
                .map(move |(session, fence)| (slot, *session, *fence))
        };
        claims.flat_map(each)
    }

    /// The fence with which a session claims a slot.
    pub(super) fn claim_of(&self, slot: u32, session: SessionId) -> Option<Fence> {
        self.claims.get(&slot)?.get(&session).copied()
    }

    /// The claim to a slot with the newest fence, of those that may count.
    pub(super) fn newest_claim(
        &self,
        slot: u32,
        counts: impl Fn(SessionId, Fence) -> bool,
    ) -> Option<(SessionId, Fence)> {
        let claims = self.claims.get(&slot)?.iter();
        let claims = claims.map(|(session, fence)| (*session, *fence));
        let claims = claims.filter(|(session, fence)| counts(*session, *fence));
        claims.max_by_key(|(_, fence)| *fence)
    }

    /// Whether a slot may have been taken with this fence, and may still be.
    pub(super) fn could_have(&self, slot: u32, fence: Fence) -> bool {
        let owned = self.state().table.get(slot);
        owned.is_some_and(|owned| (self.first..=owned.number).contains(&number_of(fence)))
    }

    /// Slots that sessions claim and this member does not own. It may get them when their owner is removed, whose sessions live on
    /// elsewhere.
    pub(super) fn claimed_elsewhere(&self, member: &Sharer) -> Vec<(u32, Use)> {
        let owns = |slot| member.free().contains(slot) || member.used().contains(slot);
        self.claimed_if(|slot| !owns(slot), |_, _| true)
    }

    /// Those of the slots that sessions claim with a fence that counts.
    pub(super) fn claimed_among(
        &self,
        slots: &SlotSet,
        counts: impl Fn(u32, Fence) -> bool,
    ) -> Vec<(u32, Use)> {
        self.claimed_if(|slot| slots.contains(slot), counts)
    }

    fn claimed_if(
        &self,
        wanted: impl Fn(u32) -> bool,
        counts: impl Fn(u32, Fence) -> bool,
    ) -> Vec<(u32, Use)> {
        let slots = self.claims.keys().copied().filter(|slot| wanted(*slot));
        let claimed = slots.filter_map(|slot| {
            let (session, fence) = self.newest_claim(slot, |_, fence| counts(slot, fence))?;
            Some((slot, Use::by_claim(session, fence, true)))
        });
        claimed.collect()
    }

    /// However many sessions claim a slot, there is room for the one that its owner names: it names one at a time.
    pub(super) fn claim(&mut self, session: SessionId, (slot, fence): (u32, Fence), owner: bool) {
        if self.could_have(slot, fence) && (owner || !self.is_full(slot, session)) {
            let claims = self.claims.entry(slot).or_default();
            let claim = claims.entry(session).or_default();
            *claim = fence.max(*claim);
        }
    }

    /// Whether too many others claim a slot to leave room for this session's claim.
    pub(super) fn is_full(&self, slot: u32, session: SessionId) -> bool {
        let claims = self.claims.get(&slot);
        claims.is_some_and(|of| of.len() >= CLAIMS_MAX && !of.contains_key(&session))
    }

    pub(super) fn give(&mut self, session: SessionId, slot: u32, fence: Fence) {
        if let Some(claims) = self.claims.get_mut(&slot) {
            claims.retain(|owner, claim| (*owner, *claim) != (session, fence));
            if claims.is_empty() {
                self.claims.remove(&slot);
            }
        }
    }
}

impl Counter {
    /// Whether an earlier process of this node may have given a slot out with this fence. Once the log knows this process, its slots
    /// have numbers that no earlier one had; and the first take under a number counts one.
    pub(super) fn may_be_earlier(&self, slot: u32, fence: Fence) -> bool {
        let sharer = self.sharer.as_ref();
        let Some(owned) = sharer.and_then(|sharer| sharer.table().get(slot)) else {
            return false;
        };
        let number = number_of(fence);
        let counted = fence.0 != u64::from(number) << COUNT_BITS;
        counted && number <= owned.number && !(self.begun && number == owned.number)
    }
}

/// The slot's number when this fence was given out.
fn number_of(fence: Fence) -> u32 {
    u32::try_from(fence.0 >> COUNT_BITS).unwrap_or(u32::MAX)
}
