//! What a process of a group keeps on its disk: which pools there are, and a ceiling for the numbers of its slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::ownership::Index;
use crate::pool::PoolDefinition;
use crate::pool::shelf::{Shelf, Shelves};

/// When a slot's number comes within this distance of the ceiling on disk, the ceiling is raised.
const MARGIN: u32 = 16;
/// How far above that number the new ceiling is: one write serves as many donations of one slot.
const LEAP: u32 = 256;

/// What outlives the processes of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// How many times a pool was created or deleted. That needs all members, so the member with the higher count knows all that
    /// the others know.
    pub generation: u64,
    /// No slot has been used here under a higher number.
    pub ceiling: u32,
    /// All pools.
    pub pools: BTreeMap<Name, KeptPool>,
}

/// A pool of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptPool {
    /// The generation that created it.
    pub created: u64,
    /// What it is.
    pub definition: PoolDefinition,
}

impl Kept {
    /// Where the numbers of a view begin: above all that any member has used. A ceiling that was announced before its member took
    /// over slots of others that left may be too low by one for each.
    pub(super) fn floor(ceilings: impl Iterator<Item = u32>) -> u32 {
        ceilings.max().unwrap_or(0).saturating_add(MARGIN)
    }

    /// Raises the ceiling if slots may soon be used above it. Returns whether it did.
    pub(super) fn raise(&mut self, number: u32) -> bool {
        let raised = number.saturating_add(MARGIN) > self.ceiling && self.ceiling < u32::MAX;
        if raised {
            self.ceiling = number.saturating_add(LEAP);
        }
        raised
    }
}

/// What a desk reads about the pools of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupShelves {
    pub(super) kept: Kept,
    /// The view, once all members have said hello.
    pub(super) view: Option<u64>,
}

impl Shelves for GroupShelves {
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>> {
        let kept = self.kept.pools.get(pool)?;
        Some(Shelf {
            definition: &kept.definition,
            created: Index(kept.created),
            view: self.view,
            closing: false,
            record: None,
        })
    }
}
