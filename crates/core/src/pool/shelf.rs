//! What a desk reads of a pool, whichever engine keeps it.

use std::collections::BTreeSet;

use testigo_protocol::NodeId as SharerId;
use testigo_protocol::slots::Sharer;

use super::counter::Use;
use super::records::PoolRecord;
use super::{PoolDefinition, Pools};
use crate::ownership::{Index, NodeId};
use crate::replicated::Replicated;

/// One pool, as its engine has it written down.
#[derive(Clone, Copy, Debug)]
pub struct Shelf<'a> {
    /// What it is.
    pub definition: &'a PoolDefinition,
    /// What tells it from an earlier pool of its name.
    pub(super) created: Index,
    /// The view that its members' messages count in; none while they do not count.
    pub(super) view: Option<u64>,
    /// Its record, where the log keeps it.
    pub(super) record: Option<&'a PoolRecord>,
}

impl Shelf<'_> {
    /// The node of a member, where the log keeps the pool.
    pub(super) fn node(&self, member: SharerId) -> Option<NodeId> {
        self.record?.node(member)
    }

    /// The slots that a member does not own and sessions claim. It may get them with the removal of their owner, whose sessions live
    /// on elsewhere.
    pub(super) fn claimed_elsewhere(&self, member: &Sharer) -> Vec<(u32, Use)> {
        let Some(record) = self.record else {
            return Vec::new();
        };
        let slots: BTreeSet<u32> = record.claims().map(|(slot, ..)| slot).collect();
        let owns = |slot| member.free().contains(slot) || member.used().contains(slot);
        let claimed = slots.into_iter().filter_map(|slot| {
            let (session, fence) = record.newest_claim(slot, None)?;
            (!owns(slot)).then(|| (slot, Use::by_claim(session, fence, true)))
        });
        claimed.collect()
    }
}

/// All pools, by name.
pub trait Shelves {
    /// One of them.
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>>;

    /// What else the log says, where it keeps them.
    fn replicated(&self) -> Option<&Replicated> {
        None
    }
}

impl PoolRecord {
    pub(super) fn shelf(&self) -> Shelf<'_> {
        Shelf {
            definition: &self.definition,
            created: self.created,
            view: Some(self.group().view),
            record: Some(self),
        }
    }
}

impl Shelves for Pools {
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>> {
        self.get(pool).map(PoolRecord::shelf)
    }
}

impl Shelves for Replicated {
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>> {
        self.pools().shelf(pool)
    }

    fn replicated(&self) -> Option<&Replicated> {
        Some(self)
    }
}
