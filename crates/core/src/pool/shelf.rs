//! What a desk reads of a pool, whichever engine keeps it.

use testigo_protocol::NodeId as SharerId;

use super::PoolDefinition;
use super::records::PoolRecord;
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
    /// It is being deleted: nobody is given a slot before that has ended.
    pub closing: bool,
    /// Its record, where the log keeps it.
    pub(super) record: Option<&'a PoolRecord>,
}

impl Shelf<'_> {
    /// The node of a member, where the log keeps the pool.
    pub(super) fn node(&self, member: SharerId) -> Option<NodeId> {
        self.record?.node(member)
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
