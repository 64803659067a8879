//! One pool at one node: its member, what is taken, and who waits.

use std::collections::{BTreeMap, VecDeque};

use rustc_hash::{FxHashMap, FxHashSet};
use testigo_protocol::slots::{Letter, Sharer, SlotSet, SlotsPlan};

use super::desk::{COUNT_BITS, SlotTaken};
use super::shelf::Shelf;
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::session::SessionId;
use crate::wait::Ticket;

/// What each session has: the pool's key, and the slot.
pub(super) type Holders = FxHashMap<SessionId, FxHashSet<(u64, u32)>>;

/// One pool at one node.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) key: u64,
    pub(super) plan: SlotsPlan,
    /// The node's member, once it has a place.
    pub(super) sharer: Option<Sharer>,
    /// Whether the log knows that this process has taken over from the one before: only then are the numbers of its
    /// slots above all that were given out.
    pub(super) begun: bool,
    pub(super) takes: FxHashMap<u32, Use>,
    /// How many takes each slot has had under its number, and that number.
    pub(super) counts: Vec<(u32, u32)>,
    pub(super) waits: VecDeque<PoolWait>,
    /// How many slots they wait for whom any slot serves.
    pub(super) demand: u64,
    /// How many slots with each label the others wait for, by the label's number.
    pub(super) labelled: BTreeMap<u32, u64>,
    /// Whether those whom any slot serves come before those who wait for labels, the next time.
    pub(super) any_first: bool,
    /// Slots that came here, and that went away.
    pub(super) donated: [u64; 2],
    /// Slots that sessions took here, and that came back from them.
    pub(super) used: [u64; 2],
}

/// A slot in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    /// Nobody knows who: the node was started again.
    pub(super) session: Option<SessionId>,
    pub(super) fence: Fence,
    pub(super) since: u64,
    /// A process before this one gave it out, if anybody did: nothing but a claim tells who has it.
    pub(super) said: bool,
    /// The log has the claim of the session.
    pub(super) logged: bool,
}

impl Use {
    pub(super) const UNKNOWN: Use = Use {
        session: None,
        fence: Fence(0),
        since: 0,
        said: true,
        logged: false,
    };

    /// Somebody claims it.
    pub(super) fn by_claim(session: SessionId, fence: Fence, logged: bool) -> Use {
        Use {
            session: Some(session),
            fence,
            logged,
            ..Use::UNKNOWN
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct PoolWait {
    pub(super) ticket: Ticket,
    pub(super) session: SessionId,
    pub(super) many: Many,
    /// The number of the label that its slots must have.
    pub(super) label: Option<u32>,
    pub(super) since: u64,
    pub(super) deadline: u64,
}

/// What is kept for those who wait for labels.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) slots: FxHashSet<u32>,
    /// For which label each is kept.
    for_labels: Vec<(u32, u32)>,
    /// How many for each label.
    labelled: BTreeMap<u32, u64>,
}

/// How many slots a take wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// All of them or none.
    Exactly(u32),
    /// Between one and so many.
    UpTo(u32),
}

impl Many {
    /// With fewer it gets none.
    pub fn least(self) -> u32 {
        match self {
            Many::Exactly(count) => count,
            Many::UpTo(_) => 1,
        }
    }

    /// It gets no more than so many.
    pub fn most(self) -> u32 {
        match self {
            Many::Exactly(count) | Many::UpTo(count) => count,
        }
    }
}

impl Counter {
    /// Whether some of its slots have labels.
    pub(super) fn has_labels(&self) -> bool {
        !self.plan.labels.is_empty()
    }

    /// The number of a label, if so many slots have it.
    pub(super) fn label(
        &self,
        shelf: Shelf<'_>,
        pool: &str,
        label: &str,
        many: Many,
    ) -> Result<u32, Refusal> {
        /// Labels that a refusal names.
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
                "{} slots of pool {pool} with the label {label}: {count} have it",
                many.least()
            )),
            false => Ok(at as u32),
        }
    }

    /// Free slots that serve a take and are not kept for others, those with the fewest labels first.
    fn serving(&self, label: Option<u32>, kept: &FxHashSet<u32>) -> Vec<u32> {
        let labels = &self.plan.labels;
        let serves = |slot: &u32| {
            let has = |label: u32| {
                labels
                    .get(label as usize)
                    .is_some_and(|set| set.contains(*slot))
            };
            label.is_none_or(has) && !kept.contains(slot)
        };
        let free = self.sharer.iter().flat_map(|sharer| sharer.free().iter());
        let mut free: Vec<u32> = free.filter(serves).collect();
        free.sort_by_cached_key(|slot| {
            let labels = labels.iter().filter(|set| set.contains(*slot));
            (labels.count(), *slot)
        });
        free
    }

    /// Some of these slots have come here, and stay with those who claim them.
    pub(super) fn hold_claimed(&mut self, claimed: Vec<(u32, Use)>, holders: &mut Holders) {
        for (slot, taken) in claimed {
            let used = |sharer: &Sharer| sharer.used().contains(slot);
            if self.sharer.as_ref().is_some_and(used)
                && let Some(session) = taken.session
            {
                self.takes.insert(slot, taken);
                holders.entry(session).or_default().insert((self.key, slot));
            }
        }
    }

    /// Takes as many slots as are wanted, if there are enough.
    pub(super) fn grant(
        &mut self,
        now: u64,
        session: SessionId,
        (many, label): (Many, Option<u32>),
        kept: &FxHashSet<u32>,
        letters: &mut Vec<Letter>,
    ) -> Option<Vec<(u32, Fence)>> {
        let mut chosen = match self.has_labels() {
            true => self.serving(label, kept).into_iter(),
            false => Vec::new().into_iter(),
        };
        let has_labels = self.has_labels();
        let sharer = self.sharer.as_mut()?;
        let free = match has_labels {
            true => chosen.len() as u32,
            false => sharer.free().len(),
        };
        if free < many.least() {
            return None;
        }
        let count = many.most().min(free);
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
            let session = Some(session);
            let since = now;
            self.takes.insert(
                slot,
                Use {
                    session,
                    fence,
                    since,
                    said: false,
                    logged: false,
                },
            );
            taken.push((slot, fence));
        }
        self.used[0] += taken.len() as u64;
        Some(taken)
    }

    /// Takes these waits out; what they are answered.
    pub(super) fn drop_waits(
        &mut self,
        ends: impl Fn(&PoolWait) -> bool,
    ) -> Vec<(Ticket, Vec<SlotTaken>)> {
        let mut waits = std::mem::take(&mut self.waits);
        let mut ended = Vec::new();
        waits.retain(|wait| {
            let over = ends(wait);
            if over {
                self.wait_over(wait);
                ended.push((wait.ticket, Vec::new()));
            }
            !over
        });
        self.waits = waits;
        ended
    }

    /// Somebody waits.
    pub(super) fn wait(&mut self, wait: PoolWait) {
        let least = u64::from(wait.many.least());
        match wait.label {
            None => self.demand += least,
            Some(label) => *self.labelled.entry(label).or_default() += least,
        }
        self.waits.push_back(wait);
    }

    /// One that was taken out waits no longer.
    pub(super) fn wait_over(&mut self, wait: &PoolWait) {
        let least = u64::from(wait.many.least());
        match wait.label {
            None => self.demand -= least,
            Some(label) => {
                let demand = self.labelled.entry(label).or_default();
                *demand -= least;
                if *demand == 0 {
                    self.labelled.remove(&label);
                }
            }
        }
    }

    /// The next one who can be served. By turns, those whom any slot serves and those who wait for labels come first; of
    /// either the oldest does, and of labels the one that others were told of first. Who lacks slots with a label keeps
    /// those that there are, so nobody who needs several is passed by others for ever.
    pub(super) fn next_served(&self, kept: &mut Kept) -> Option<usize> {
        *kept = Kept::default();
        let mut first: BTreeMap<u32, usize> = BTreeMap::new();
        let mut labels = Vec::new();
        for (at, wait) in self.waits.iter().enumerate() {
            if let Some(label) = wait.label {
                first.entry(label).or_insert_with(|| {
                    labels.push(label);
                    at
                });
            }
        }
        let wished = self.sharer.iter().flat_map(Sharer::labels_wished);
        let mut order: Vec<u32> = wished.filter(|label| first.contains_key(label)).collect();
        let mut seen = FxHashSet::default();
        order.retain(|label| seen.insert(*label));
        labels.retain(|label| !seen.contains(label));
        order.append(&mut labels);
        let any = self.waits.iter().position(|wait| wait.label.is_none());
        let served = |at: usize, kept: &mut Kept| {
            let wait = &self.waits[at];
            let serving = self.serving(wait.label, &kept.slots);
            let enough = serving.len() as u32 >= wait.many.least();
            if let Some(label) = wait.label.filter(|_| !enough) {
                kept.labelled.insert(label, serving.len() as u64);
                kept.for_labels
                    .extend(serving.iter().map(|slot| (*slot, label)));
                kept.slots.extend(serving);
            }
            enough
        };
        if let Some(at) = any.filter(|at| self.any_first && served(*at, kept)) {
            return Some(at);
        }
        let mut others = order.iter().map(|label| first[label]).chain(any);
        others.find(|at| served(*at, kept))
    }

    /// Lets the member know who could not be served.
    pub(super) fn want_all(&mut self, kept: &Kept, letters: &mut Vec<Letter>) {
        if let Some(sharer) = &mut self.sharer {
            sharer.keep(kept.for_labels.iter().copied());
        }
        self.want(0, letters);
        if let Some(sharer) = &mut self.sharer {
            let lacking = self.labelled.iter().map(|(label, wanted)| {
                let has = kept.labelled.get(label).copied().unwrap_or(0);
                (
                    *label,
                    (wanted - has).min(u64::from(self.plan.slots)) as u32,
                )
            });
            let lacking: Vec<(u32, u32)> = lacking.collect();
            sharer.want_labelled(&lacking, &self.plan, letters);
        }
    }

    /// Lets the member know how many slots are waited for, and these beside.
    pub(super) fn want(&mut self, beside: u32, letters: &mut Vec<Letter>) {
        let wanted = self.demand + u64::from(beside);
        let wanted = wanted.min(u64::from(self.plan.slots)) as u32;
        if let Some(sharer) = &mut self.sharer
            && sharer.wanted() != wanted
        {
            sharer.want(wanted, &self.plan, letters);
        }
    }
}
