//! One pool at one node: its member of SLOTS, the slots taken, and the takes that wait.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_protocol::slots::{Letter, Sharer, SlotSet, SlotsPlan};

use super::desk::COUNT_BITS;
use super::shelf::Shelf;
use super::waits::{PoolWait, Waiting, Waits};
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::session::SessionId;
use crate::wait::Ticket;

/// What each session has: pool keys and slots. A session with nothing has no entry.
pub(super) type Holders = FxHashMap<SessionId, FxHashSet<(u64, u32)>>;

/// Removes a slot from a session.
pub(super) fn has_no_longer(holders: &mut Holders, session: SessionId, slot: (u64, u32)) {
    if let Entry::Occupied(mut held) = holders.entry(session) {
        held.get_mut().remove(&slot);
        if held.get().is_empty() {
            held.remove();
        }
    }
}

/// One pool at one node.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) key: u64,
    pub(super) plan: SlotsPlan,
    /// The node's member, once it shares the pool.
    pub(super) sharer: Option<Sharer>,
    /// Whether the log knows that this process has replaced the previous one. Only then are its slots' numbers above all that were
    /// given out.
    pub(super) begun: bool,
    pub(super) takes: FxHashMap<u32, Use>,
    /// Slots in use of which it is not known who has them, because the node was restarted. There may be very many.
    pub(super) unknown: SlotSet,
    /// For each slot, its number and how many times it was taken under that number.
    pub(super) counts: Vec<(u32, u32)>,
    pub(super) waits: Waits,
    /// The slots by how many labels they have (none, one, two…); empty if no slot has a label.
    pub(super) by_labels: Vec<SlotSet>,
    /// Whether takes without a label come before those with one the next time.
    pub(super) any_first: bool,
    /// How many slots were donated to this node, and by it.
    pub(super) donated: [u64; 2],
    /// How many slots sessions took here, and how many came back.
    pub(super) used: [u64; 2],
}

/// A slot in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) session: SessionId,
    pub(super) fence: Fence,
    pub(super) since: u64,
    /// An earlier process gave it out, if anybody did: only a claim tells who has it.
    pub(super) said: bool,
    /// Whether the session's claim is in the log.
    pub(super) logged: bool,
}

impl Use {
    /// A slot that a session claims.
    pub(super) fn by_claim(session: SessionId, fence: Fence, logged: bool) -> Use {
        Use {
            session,
            fence,
            since: 0,
            said: true,
            logged,
        }
    }
}

/// One pass over the takes that wait for labels.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// The first take of each line, in the order in which they are served: by the place of the label among the wishes that others
    /// were told of, then by who came first.
    lines: BTreeSet<(usize, Ticket)>,
    /// Slots kept for takes that lack more.
    pub(super) kept: SlotSet,
    /// The label for which each of these is kept.
    for_labels: Vec<(u32, u32)>,
}

/// How many slots a take wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// All of them or none.
    Exactly(u32),
    /// At least one, and up to this many.
    UpTo(u32),
}

impl Many {
    /// With fewer, it gets none at all.
    pub fn least(self) -> u32 {
        match self {
            Many::Exactly(count) => count,
            Many::UpTo(_) => 1,
        }
    }

    /// The most that it gets.
    pub fn most(self) -> u32 {
        match self {
            Many::Exactly(count) | Many::UpTo(count) => count,
        }
    }
}

/// The slots by how many labels they have (none, one, two…); empty if no slot has a label.
pub(super) fn by_labels(plan: &SlotsPlan) -> Vec<SlotSet> {
    if plan.labels.is_empty() {
        return Vec::new();
    }
    let mut counts = vec![0; plan.slots as usize];
    for slot in plan.labels.iter().flat_map(SlotSet::iter) {
        counts[slot as usize] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut sets = vec![SlotSet::new(plan.slots); most + 1];
    for (slot, count) in counts.into_iter().enumerate() {
        sets[count].insert(slot as u32);
    }
    sets
}

impl Counter {
    /// Whether some of its slots have labels.
    pub(super) fn has_labels(&self) -> bool {
        !self.plan.labels.is_empty()
    }

    /// The number of a label, if enough slots have it.
    pub(super) fn label(
        &self,
        shelf: Shelf<'_>,
        pool: &str,
        label: &str,
        many: Many,
    ) -> Result<u32, Refusal> {
        /// How many labels a refusal names.
        const SHOWN: usize = 16;
        let bad = |why: String| Err(Refusal::new(Word::BadArg, why));
        let labels = shelf.definition.slots.labels();
        let Ok(at) = labels.binary_search_by(|known| (**known).cmp(label)) else {
            let known = match labels.is_empty() {
                true => "its slots have no labels".to_owned(),
                false => {
                    let more = if labels.len() > SHOWN { ", …" } else { "" };
                    let shown = labels.iter().take(SHOWN).map(|label| &**label);
                    format!("there are {}{more}", shown.collect::<Vec<_>>().join(", "))
                }
            };
            return bad(format!(
                "no slot of pool {pool} has the label {label}; {known}"
            ));
        };
        let count = self.plan.labels.get(at).map_or(0, SlotSet::len);
        match many.least() > count {
            true => bad(format!(
                "cannot take {} slots of pool {pool} with the label {label}: it has {count}",
                many.least()
            )),
            false => Ok(at as u32),
        }
    }

    /// Free slots that serve a take and are not kept for others, slots with the fewest labels first.
    fn serving<'a>(
        &'a self,
        label: Option<u32>,
        kept: &'a SlotSet,
    ) -> impl Iterator<Item = u32> + 'a {
        let free = self.sharer.iter().map(Sharer::free);
        free.flat_map(move |free| {
            let labelled = self.labelled(label, free);
            let by_labels = self.by_labels.iter();
            by_labels.flat_map(move |some| free.common([labelled, some], kept))
        })
    }

    /// Whether there are enough such slots for a take.
    fn serves(&self, wait: &PoolWait, kept: &SlotSet) -> bool {
        let enough = |sharer: &Sharer| {
            let labelled = self.labelled(wait.label, sharer.free());
            sharer.free().count_common([labelled], kept) >= wait.many.least()
        };
        self.sharer.as_ref().is_some_and(enough)
    }

    /// The slots with the label; without one, all free slots.
    fn labelled<'a>(&'a self, label: Option<u32>, free: &'a SlotSet) -> &'a SlotSet {
        label.map_or(free, |label| &self.plan.labels[label as usize])
    }

    /// Some of these slots have come to this node; they stay with the sessions that claim them.
    pub(super) fn hold_claimed(&mut self, claimed: Vec<(u32, Use)>, holders: &mut Holders) {
        for (slot, taken) in claimed {
            let used = |sharer: &Sharer| sharer.used().contains(slot);
            if self.sharer.as_ref().is_some_and(used) {
                let held = holders.entry(taken.session).or_default();
                self.hold(slot, taken, held);
            }
        }
    }

    /// From now on it is known who has a slot.
    pub(super) fn hold(&mut self, slot: u32, taken: Use, held: &mut FxHashSet<(u64, u32)>) {
        self.unknown.remove(slot);
        self.takes.insert(slot, taken);
        held.insert((self.key, slot));
    }

    /// How many slots are in use or withheld.
    pub(super) fn used_count(&self) -> u32 {
        self.takes.len() as u32 + self.unknown.len()
    }

    /// Gives a session the slots that it wants, if there are enough.
    pub(super) fn grant(
        &mut self,
        now: u64,
        session: SessionId,
        (many, label): (Many, Option<u32>),
        kept: &SlotSet,
        letters: &mut Vec<Letter>,
    ) -> Option<Vec<(u32, Fence)>> {
        let most = many.most() as usize;
        let chosen: Vec<u32> = match self.has_labels() {
            true => self.serving(label, kept).take(most).collect(),
            false => Vec::new(),
        };
        let has_labels = self.has_labels();
        let sharer = self.sharer.as_mut()?;
        let count = match has_labels {
            true => chosen.len() as u32,
            false => sharer.free().len().min(many.most()),
        };
        if count < many.least() {
            return None;
        }
        let mut chosen = chosen.into_iter();
        let mut taken = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let slot = match has_labels {
                true => sharer.take_this(chosen.next(), &self.plan, letters)?,
                false => sharer.take(&self.plan, letters)?,
            };
            let owned = sharer.table().get(slot)?;
            let (number, count) = &mut self.counts[slot as usize];
            if *number != owned.number {
                (*number, *count) = (owned.number, 0);
            }
            *count += 1;
            let fence = Fence((u64::from(owned.number) << COUNT_BITS) + u64::from(*count));
            self.takes.insert(
                slot,
                Use {
                    session,
                    fence,
                    since: now,
                    said: false,
                    logged: false,
                },
            );
            taken.push((slot, fence));
        }
        self.used[0] += taken.len() as u64;
        Some(taken)
    }

    /// Adds a take that waits.
    pub(super) fn wait(&mut self, wait: PoolWait, waiting: &mut Waiting) {
        waiting.insert(&wait, self.key);
        self.waits.insert(wait);
    }

    /// Removes a take that waited.
    pub(super) fn wait_over(&mut self, ticket: Ticket, waiting: &mut Waiting) -> Option<PoolWait> {
        let wait = self.waits.remove(ticket)?;
        waiting.remove(&wait);
        Some(wait)
    }

    /// Starts a pass over the takes that wait.
    pub(super) fn round(&self) -> Round {
        let mut round = Round::default();
        let Some(sharer) = &self.sharer else {
            return round;
        };
        // If nothing is free, nobody can be served and nothing kept, however many wait.
        if !self.has_labels() || sharer.free().is_empty() {
            return round;
        }
        round.kept = SlotSet::new(self.plan.slots);
        let mut wished: FxHashMap<u32, usize> = FxHashMap::default();
        for (at, label) in sharer.labels_wished().enumerate() {
            wished.entry(label).or_insert(at);
        }
        let lines = self.waits.labels().filter_map(|label| {
            let first = self.waits.first_of(Some(label))?;
            let wish = wished.get(&label).copied();
            Some((wish.unwrap_or(usize::MAX), first.ticket))
        });
        round.lines.extend(lines);
        round
    }

    /// The next take that can be served, and whether it must leave kept slots alone. Takes without a label and takes with one
    /// come first by turns; within either, the oldest does, and among labels the one that others were told of first. A take
    /// that lacks slots with its label keeps those that are free, so a take of several is not passed over for ever.
    ///
    /// During a pass slots only become fewer, and only takes without a label get kept slots. So a line whose first take lacks
    /// slots need not be looked at again.
    pub(super) fn next_served(&self, round: &mut Round) -> Option<(Ticket, bool)> {
        let any = self.waits.first_of(None);
        let first = any.filter(|any| self.any_first && self.serves(any, &SlotSet::default()));
        if let Some(any) = first {
            return Some((any.ticket, false));
        }
        while let Some((wish, ticket)) = round.lines.pop_first() {
            let wait = self.waits.get(ticket)?;
            if self.serves(wait, &round.kept) {
                let next = self.waits.next_of(wait);
                round.lines.extend(next.map(|next| (wish, next)));
                return Some((ticket, true));
            }
            let lacking: Vec<u32> = self.serving(wait.label, &round.kept).collect();
            for slot in lacking {
                round.kept.insert(slot);
                round
                    .for_labels
                    .extend(wait.label.map(|label| (slot, label)));
            }
        }
        let any = any.filter(|any| self.serves(any, &round.kept));
        any.map(|any| (any.ticket, true))
    }

    /// Tells the member what the takes lack that could not be served.
    pub(super) fn want_all(&mut self, round: Round, letters: &mut Vec<Letter>) {
        let mut kept: FxHashMap<u32, u64> = FxHashMap::default();
        if let Some(sharer) = &mut self.sharer {
            let mut for_labels = round.for_labels;
            for_labels.retain(|(slot, _)| sharer.free().contains(*slot));
            for (_, label) in &for_labels {
                *kept.entry(*label).or_default() += 1;
            }
            sharer.keep(for_labels.into_iter());
        }
        self.want(0, letters);
        if let Some(sharer) = &mut self.sharer {
            let lacking = self.waits.labels().map(|label| {
                let has = kept.get(&label).copied().unwrap_or(0);
                let lacks = self.waits.demand(Some(label)) - has;
                (label, lacks.min(u64::from(self.plan.slots)) as u32)
            });
            let lacking: Vec<(u32, u32)> = lacking.collect();
            sharer.want_labelled(&lacking, &self.plan, letters);
        }
    }

    /// Tells the member how many slots are waited for, plus `beside`.
    pub(super) fn want(&mut self, beside: u32, letters: &mut Vec<Letter>) {
        let wanted = self.waits.demand(None) + u64::from(beside);
        let wanted = wanted.min(u64::from(self.plan.slots)) as u32;
        if let Some(sharer) = &mut self.sharer
            && sharer.wanted() != wanted
        {
            sharer.want(wanted, &self.plan, letters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_given_everything_back_is_forgotten() {
        let (one, two) = (SessionId::opened(1), SessionId::opened(2));
        let mut holders = Holders::default();
        holders.insert(one, [(7, 1), (7, 2)].into_iter().collect());
        has_no_longer(&mut holders, two, (7, 1));
        has_no_longer(&mut holders, one, (7, 1));
        assert_eq!(holders[&one].len(), 1);
        has_no_longer(&mut holders, one, (7, 2));
        assert!(holders.is_empty());
    }
}
