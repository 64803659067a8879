//! How slots come back to a desk, and whose claims it believes for slots that an earlier process gave out.
//!
//! A process knows what it gave out itself. What the previous process gave out, only its sessions know: those that were at home
//! here are awaited, and those that have moved have left their claims in the log. Such a slot is free when nobody is awaited and
//! nobody claims it; of several claims, the one with the newest fence has it. So an outdated or false claim may keep a slot from
//! others, but never brings anybody a slot that somebody else has.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::counter::{Use, has_no_longer};
use super::definition::Finder;
use super::desk::{COUNT_FULL, Desk};
use super::find_slots;
use super::records::{PoolRecord, no_pool};
use super::shelf::{Shelf, Shelves};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::limits::Limits;
use crate::name::Name;
use crate::replicated::{Change, Replicated};
use crate::session::SessionId;

/// A slot that somebody claims: its pool, its number, its fence.
pub type SlotClaim = (Name, u32, Fence);

/// A slot that somebody claims: its pool, its name, its fence.
pub type NamedSlot = (Name, String, Fence);

/// What a resuming session says, besides what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// The number that its client gave this resume (`SERIAL`).
    pub serial: Option<u64>,
    /// The slots that it has; `None` if it does not say.
    pub slots: Option<Vec<NamedSlot>>,
}

impl Desk {
    /// Gives slots back, all or none. Returns a change for the log if some of them were taken at another node.
    pub fn give(
        &mut self,
        now: u64,
        shelves: &dyn Shelves,
        session: SessionId,
        pool: &str,
        slots: &[&str],
    ) -> Result<Option<Change>, Refusal> {
        let shelf = shelves.shelf(pool).ok_or_else(|| no_pool(pool))?;
        let Some((name, counter)) = self.pools.get_key_value(pool) else {
            return Err(no_pool(pool));
        };
        if slots.len() > Limits::SLOTS_AT_ONCE {
            let (named, most) = (slots.len(), Limits::SLOTS_AT_ONCE);
            let why =
                format!("{named} slots; the limit slots_at_once is {most}: give them in parts");
            return Err(Refusal::new(Word::Limit, why));
        }
        let name = name.clone();
        let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
        let mut named = FxHashSet::default();
        let mut finder = Finder::new(&shelf.definition.slots);
        for text in slots {
            let not_held = |hint: &str| {
                let why = format!("this session has no slot {text} of pool {pool}{hint}");
                Refusal::new(Word::NotHeld, why)
            };
            let slot = finder.find(text);
            let slot = slot.ok_or_else(|| not_held(": there is none of that name"))?;
            if !named.insert(slot) {
                let why = format!("slot {text} of pool {pool} is named twice; name it once");
                return Err(Refusal::new(Word::BadArg, why));
            }
            let taken = counter.takes.get(&slot);
            let claim = shelf
                .record
                .and_then(|record| record.claim_of(slot, session));
            match (taken.is_some_and(|taken| taken.session == session), claim) {
                (true, _) => here.push(slot),
                // Taken at another node, before the session came here.
                (false, Some(fence)) => elsewhere.push((slot, fence)),
                (false, None) if session.is_implicit() => return Err(not_held("")),
                (false, None) => {
                    let hint = "; name one taken at another node in SESSION RESUME … SLOTS";
                    return Err(not_held(hint));
                }
            }
        }
        self.give_here(session, &name, here, shelf);
        self.serve(now, &name, shelf);
        Ok((!elsewhere.is_empty()).then_some(Change::GiveSlots {
            session,
            pool: name,
            slots: elsewhere,
            lost: false,
        }))
    }

    /// Slots that a session took here come back, and its claims to them end.
    fn give_here(&mut self, session: SessionId, pool: &Name, slots: Vec<u32>, shelf: Shelf<'_>) {
        let mut claimed = Vec::new();
        for slot in slots {
            let claim = shelf
                .record
                .and_then(|record| record.claim_of(slot, session));
            claimed.extend(claim.map(|fence| (slot, fence)));
            self.release_here(session, pool, slot, shelf.record);
        }
        self.give_claims(session, pool, &claimed);
    }

    /// A session drops these claims.
    fn give_claims(&mut self, session: SessionId, pool: &Name, claims: &[(u32, Fence)]) {
        let parts = claims.chunks(Limits::SLOTS_GIVEN);
        let gives = parts.map(|part| Change::GiveSlots {
            session,
            pool: pool.clone(),
            slots: part.to_vec(),
            lost: false,
        });
        self.out.changes.extend(gives);
    }

    /// The log says that a session no longer has these slots. If it has taken one again since, it keeps it.
    pub(super) fn given(
        &mut self,
        session: SessionId,
        pool: &Name,
        slots: &[(u32, Fence)],
        shelf: Shelf<'_>,
    ) {
        for (slot, fence) in slots {
            if self.has_slot(session, pool, *slot, *fence) {
                self.release_here(session, pool, *slot, shelf.record);
            }
        }
        self.serve(0, pool, shelf);
    }

    /// A session no longer has a slot. The slot goes to the next session that claims it, is withheld until all sessions have been
    /// heard, or is free.
    pub(super) fn release_here(
        &mut self,
        session: SessionId,
        pool: &Name,
        slot: u32,
        record: Option<&PoolRecord>,
    ) {
        let wary = self.is_wary();
        let Some(counter) = self.pools.get_mut(pool) else {
            return;
        };
        let taken = counter.takes.get(&slot).copied();
        let Some(taken) = taken.filter(|taken| taken.session == session) else {
            return;
        };
        counter.takes.remove(&slot);
        counter.used[1] += 1;
        has_no_longer(&mut self.holders, session, (counter.key, slot));
        if taken.said || !counter.begun {
            let counts = |by, fence| by != session && counter.may_be_earlier(slot, fence);
            let next = record.and_then(|record| record.newest_claim(slot, counts));
            if let Some((next, fence)) = next {
                let held = self.holders.entry(next).or_default();
                return counter.hold(slot, Use::by_claim(next, fence, true), held);
            }
            if !counter.begun || wary {
                counter.unknown.insert(slot);
                return;
            }
        }
        let Some(sharer) = &mut counter.sharer else {
            return;
        };
        let (_, count) = counter.counts[slot as usize];
        if count >= COUNT_FULL {
            sharer.renew(slot, &mut self.letters);
        } else {
            sharer.give(slot, &counter.plan, &mut self.letters);
        }
    }

    /// A session's claims are in the log.
    pub(super) fn hear_claims(
        &mut self,
        session: SessionId,
        claims: &[SlotClaim],
        replicated: &Replicated,
    ) {
        for (pool, slot, fence) in claims {
            if let Some(record) = replicated.pools().get(pool) {
                self.hear_claim(record, session, (pool, *slot, *fence));
            }
        }
    }

    pub(super) fn hear_claim(
        &mut self,
        record: &PoolRecord,
        session: SessionId,
        (pool, slot, fence): (&Name, u32, Fence),
    ) {
        let here = record.owner(slot) == Some(self.own.0);
        if here && record.claim_of(slot, session) == Some(fence) {
            self.claimed(session, pool, (slot, fence), true);
        }
    }

    /// A session claims a slot of this node.
    pub(super) fn claimed(
        &mut self,
        session: SessionId,
        pool: &Name,
        (slot, fence): (u32, Fence),
        logged: bool,
    ) {
        let Some(counter) = self.pools.get_mut(pool) else {
            return;
        };
        if counter.sharer.is_none() {
            return;
        }
        // Nobody was ever given it with another fence.
        let earlier = counter.may_be_earlier(slot, fence);
        match counter.takes.get_mut(&slot) {
            None if earlier && counter.unknown.contains(slot) => {
                let held = self.holders.entry(session).or_default();
                counter.hold(slot, Use::by_claim(session, fence, logged), held);
            }
            Some(taken) if (taken.session, taken.fence) == (session, fence) => {
                taken.logged |= logged;
            }
            // A claim that is not in the log displaces no other: it would be forgotten.
            Some(taken) if earlier && logged && taken.said && taken.fence < fence => {
                let before = std::mem::replace(taken, Use::by_claim(session, fence, logged));
                let key = (counter.key, slot);
                has_no_longer(&mut self.holders, before.session, key);
                self.holders.entry(session).or_default().insert(key);
            }
            // Whichever of the two is right: the claim stays in the log, and nobody else gets the slot before both have ended.
            Some(taken) if earlier && taken.said => {}
            _ if logged => self.refuse(session, pool, (slot, fence)),
            _ => {}
        }
    }

    /// A claim in the log is wrong: the session is told that it does not have the slot.
    fn refuse(&mut self, session: SessionId, pool: &Name, claim: (u32, Fence)) {
        self.out.changes.push(Change::GiveSlots {
            session,
            pool: pool.clone(),
            slots: vec![claim],
            lost: true,
        });
    }

    /// A session has moved to another node: tells the log what it has here, as if it had claimed that.
    pub(super) fn claim_for(&mut self, session: SessionId, replicated: &Replicated) {
        let home = replicated.session(session).map(|record| record.home.node);
        if home.is_none_or(|home| home == self.own.0) {
            return;
        }
        let held = self.holders.get(&session).into_iter().flatten();
        let mut held: Vec<(u64, u32)> = held.copied().collect();
        held.sort_unstable();
        let claim = |(key, slot): (u64, u32)| {
            let name = self.names.get(&key)?;
            let taken = self.pools.get(name)?.takes.get(&slot)?;
            (!taken.logged).then(|| (name.clone(), slot, taken.fence))
        };
        let claims: Vec<SlotClaim> = held.into_iter().filter_map(claim).collect();
        let since = replicated.unsaid().since(session, self.own.0);
        let all = since.is_some_and(|since| since >= self.born);
        let mut parts: Vec<Vec<SlotClaim>> = claims
            .chunks(Limits::SLOTS_CLAIMED)
            .map(<[SlotClaim]>::to_vec)
            .collect();
        if all && parts.is_empty() {
            parts.push(Vec::new());
        }
        let last = parts.len();
        for (part, claims) in parts.into_iter().enumerate() {
            self.out.changes.push(Change::ClaimSlots {
                session,
                claims,
                all: all && part + 1 == last,
            });
        }
    }

    /// A session has these slots and no others: whatever else it took here comes back.
    pub fn keep_only(&mut self, session: SessionId, claims: &[SlotClaim], shelves: &dyn Shelves) {
        let key = |pool: &Name| self.pools.get(pool).map(|counter| counter.key);
        let kept = claims.iter();
        let kept: FxHashSet<(u64, u32, Fence)> = kept
            .filter_map(|(pool, slot, fence)| Some((key(pool)?, *slot, *fence)))
            .collect();
        let mut given: BTreeMap<Name, Vec<u32>> = BTreeMap::new();
        for (key, slot) in self.holders.get(&session).into_iter().flatten() {
            let Some(name) = self.names.get(key) else {
                continue;
            };
            let fence = self.pools[name].takes[slot].fence;
            if !kept.contains(&(*key, *slot, fence)) {
                given.entry(name.clone()).or_default().push(*slot);
            }
        }
        for (name, mut slots) in given {
            let Some(shelf) = shelves.shelf(&name) else {
                continue;
            };
            slots.sort_unstable();
            for slot in slots {
                self.release_here(session, &name, slot, shelf.record);
            }
            self.serve(0, &name, shelf);
        }
    }

    /// Which of the named slots a session does not have, as far as the log knows.
    pub fn lost_of(
        &self,
        session: SessionId,
        named: Vec<NamedSlot>,
        replicated: &Replicated,
    ) -> Vec<NamedSlot> {
        let pools = replicated.pools();
        let numbers = find_slots(&named, |pool| Some(&pools.get(pool)?.definition.slots));
        let lost = named
            .into_iter()
            .zip(numbers)
            .filter(|((pool, _, fence), slot)| {
                let claim = slot.and_then(|slot| pools.get(pool)?.claim_of(slot, session));
                claim != Some(*fence)
            });
        lost.map(|(named, _)| named).collect()
    }

    /// The slots of this node that a session has.
    pub fn held_by(&self, session: SessionId, shelves: &dyn Shelves) -> Vec<NamedSlot> {
        let held = self.holders.get(&session).into_iter().flatten();
        let held = held.filter_map(|(key, slot)| {
            let name = self.names.get(key)?;
            let taken = self.pools.get(name)?.takes.get(slot)?;
            let slot = shelves.shelf(name)?.definition.slots.name(*slot);
            Some((name.clone(), slot, taken.fence))
        });
        let mut held: Vec<NamedSlot> = held.collect();
        held.sort_unstable();
        held
    }

    /// Whether a session has this slot of this node, with this fence.
    pub fn has_slot(&self, session: SessionId, pool: &str, slot: u32, fence: Fence) -> bool {
        let counter = self.pools.get(pool);
        let taken = counter.and_then(|counter| counter.takes.get(&slot));
        taken.is_some_and(|taken| (taken.session, taken.fence) == (session, fence))
    }
}
