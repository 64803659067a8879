//! What a desk shows of a pool.

use testigo_protocol::slots::Sharer;

use super::counter::Use;
use super::desk::Desk;
use super::{Many, Shelves, records};
use crate::error::Refusal;
use crate::fence::Fence;
use crate::name::Name;
use crate::session::SessionId;
use crate::wait::Ticket;

/// A pool at one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeskView {
    /// How many slots the node owns, in all.
    pub owned: u32,
    /// How many of them are free.
    pub free: u32,
    /// How many are in use.
    pub used: u32,
    /// How many of those are withheld: who has them is unknown since the node was restarted, or the session ended while the node
    /// was cut off.
    pub withheld: u32,
    /// How many takes wait here.
    pub waiting: u32,
    /// How many slots were donated to this node.
    pub received: u64,
    /// How many this node has donated.
    pub given: u64,
    /// How many slots sessions have taken here since the node started.
    pub takes: u64,
    /// How many of them have come back.
    pub gives: u64,
    /// The slots in use, in order.
    pub slots: Vec<SlotView>,
    /// The takes that wait, the next one first.
    pub waits: Vec<PoolWaitView>,
}

/// A take that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolWaitView {
    /// Whose it is.
    pub session: SessionId,
    /// How many slots it wants.
    pub many: Many,
    /// The number of the label that they must have.
    pub label: Option<u32>,
    /// Since when it waits.
    pub since: u64,
}

/// A slot in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Which slot.
    pub slot: u32,
    /// Who has it, if that is known.
    pub session: Option<SessionId>,
    /// With which fence.
    pub fence: Fence,
    /// When it was taken.
    pub since: u64,
}

impl Desk {
    /// A pool at this node, with the first `rows_max` of its slots in use and of its waits.
    pub fn view(
        &self,
        shelves: &dyn Shelves,
        pool: &str,
        rows_max: usize,
    ) -> Result<DeskView, Refusal> {
        shelves.shelf(pool).ok_or_else(|| records::no_pool(pool))?;
        let Some(counter) = self.pools.get(pool) else {
            return Err(records::no_pool(pool));
        };
        // Only the ends of sessions leave slots withheld that somebody has.
        let withheld = match self.ended.is_empty() {
            true => 0,
            false => counter
                .takes
                .values()
                .filter(|taken| !self.is_used(taken))
                .count(),
        };
        let used = counter
            .sharer
            .iter()
            .flat_map(|sharer| sharer.used().iter());
        let known =
            |slot: &u32| counter.takes.contains_key(slot) || counter.unknown.contains(*slot);
        let slots = used.filter(known).take(rows_max).map(|slot| {
            let taken = counter.takes.get(&slot);
            SlotView {
                slot,
                session: taken.map(|taken| taken.session),
                fence: taken.map_or(Fence(0), |taken| taken.fence),
                since: taken.map_or(0, |taken| taken.since),
            }
        });
        let waits = counter.waits.iter().take(rows_max);
        let waits = waits.map(|wait| PoolWaitView {
            session: wait.session,
            many: wait.many,
            label: wait.label,
            since: wait.since,
        });
        let ([received, given], [takes, gives]) = (counter.donated, counter.used);
        let sharer = counter.sharer.as_ref();
        Ok(DeskView {
            owned: sharer.map_or(0, |sharer| sharer.owned()),
            free: sharer.map_or(0, |sharer| sharer.owned() - sharer.used().len()),
            used: counter.used_count(),
            withheld: withheld as u32 + counter.unknown.len(),
            waiting: counter.waits.len() as u32,
            received,
            given,
            takes,
            gives,
            slots: slots.collect(),
            waits: waits.collect(),
        })
    }

    /// The takes that wait here, with the pools that they wait for.
    pub fn waits(&self) -> impl Iterator<Item = (&Name, Ticket)> {
        let pools = self.pools.iter();
        pools.flat_map(|(name, counter)| counter.waits.iter().map(move |wait| (name, wait.ticket)))
    }

    /// The slots of a pool that are in use at this node, in no order; false for those that are withheld.
    pub fn uses(&self, pool: &str) -> impl Iterator<Item = (u32, bool)> {
        let takes = self.pools.get(pool).into_iter();
        takes.flat_map(move |counter| {
            let known = counter.takes.iter();
            let known = known.map(move |(slot, taken)| (*slot, self.is_used(taken)));
            known.chain(counter.unknown.iter().map(|slot| (slot, false)))
        })
    }

    /// The slots of a pool that only sessions of this node may have now: those that are free, in use, or kept for takes that
    /// lack more with a label.
    pub fn usable(&self, pool: &str) -> impl Iterator<Item = u32> {
        self.sharer(pool).into_iter().flat_map(Sharer::usable)
    }

    /// Whether a session has the slot, as far as this node knows, and not just a client that may not know yet that its session ended.
    fn is_used(&self, taken: &Use) -> bool {
        !self.ended.contains_key(&taken.session)
    }
}
