//! What a desk reads about a pool, whichever engine keeps it.

use testigo_protocol::NodeId as SharerId;

use super::PoolDefinition;
use super::records::PoolRecord;
use crate::ownership::{Index, NodeId};
use crate::replicated::Replicated;

/// One pool, as its engine records it.
#[derive(Clone, Copy, Debug)]
pub struct Shelf<'a> {
    /// What it is.
    pub definition: &'a PoolDefinition,
    /// What distinguishes it from an earlier pool of the same name.
    pub(super) created: Index,
    /// The view in which its members' messages count; `None` while none counts.
    pub(super) view: Option<u64>,
    /// It is being deleted: nobody is given a slot until the vote has ended.
    pub closing: bool,
    /// Its record, if the log keeps it.
    pub(super) record: Option<&'a PoolRecord>,
}

impl Shelf<'_> {
    /// The node of a member, if the log keeps the pool.
    pub(super) fn node(&self, member: SharerId) -> Option<NodeId> {
        self.record?.node(member)
    }
}

/// All pools, by name.
pub trait Shelves {
    /// One of them.
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>>;

    /// What else the log says, if it keeps them.
    fn replicated(&self) -> Option<&Replicated> {
        None
    }
}

impl PoolRecord {
    pub(super) fn shelf(&self, name: &str, replicated: &Replicated) -> Shelf<'_> {
        Shelf {
            closing: replicated.closings().began(name).is_some(),
            definition: &self.definition,
            created: self.created,
            view: Some(self.group().view),
            record: Some(self),
        }
    }
}

impl Shelves for Replicated {
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>> {
        let record = self.pools().get(pool)?;
        Some(record.shelf(pool, self))
    }

    fn replicated(&self) -> Option<&Replicated> {
        Some(self)
    }
}
