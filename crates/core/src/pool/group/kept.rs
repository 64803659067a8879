//! What a process of a group keeps on its disk: which pools there are, and how high the numbers of its slots may be.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::name::Name;
use crate::ownership::Index;
use crate::pool::PoolDefinition;
use crate::pool::shelf::{Shelf, Shelves};

/// A slot's number is below the ceiling that is on disk by so many at least, before the ceiling is raised.
const MARGIN: u32 = 16;
/// A ceiling is raised by so many: one write for as many donations of one slot.
const LEAP: u32 = 256;

/// What outlives the processes of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Kept {
    /// How often a pool was created or deleted. That needs all members, so whoever has counted more knows all that the
    /// others know.
    pub generation: u64,
    /// No slot has been used here under a number above this one.
    pub ceiling: u32,
    /// All pools.
    pub pools: BTreeMap<Name, KeptPool>,
}

/// A pool of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptPool {
    /// The generation that it came with.
    pub created: u64,
    /// What it is.
    pub definition: PoolDefinition,
}

impl Kept {
    /// Where the numbers of a view begin: above all that any of its members has used. A ceiling that was said before its
    /// member took over from one that left may be too low by one for each.
    pub(super) fn floor(ceilings: impl Iterator<Item = u32>) -> u32 {
        ceilings.max().unwrap_or(0).saturating_add(MARGIN)
    }

    /// Raises the ceiling if slots may soon be used above it; whether it was.
    pub(super) fn raise(&mut self, number: u32) -> bool {
        let raised = number.saturating_add(MARGIN) > self.ceiling && self.ceiling < u32::MAX;
        if raised {
            self.ceiling = number.saturating_add(LEAP);
        }
        raised
    }
}

/// What a desk reads of the pools of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct GroupShelves {
    pub(super) kept: Kept,
    /// The view, once all members have said what they are like.
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
