//! Pools in the state: what each node has of them, which members are out of reach with how many slots, and the latest
//! donations.

use std::ops::Bound;

use serde::Serialize;
use testigo_core::pool::{Donation, SlotNames};
use testigo_core::{Matcher, Name};

use super::state::ROWS_MAX;
use crate::house::{House, Slice};
use crate::users::User;

#[derive(Serialize)]
pub(super) struct Pool {
    name: String,
    slots: u32,
    named: bool,
    free_low: u32,
    /// What this node has of it.
    nodes: Vec<Part>,
    out_of_reach: Vec<Absent>,
}

#[derive(Serialize)]
struct Part {
    node: u64,
    owned: u32,
    free: u32,
    used: u32,
    withheld: u32,
    waiting: u32,
    received: u64,
    given: u64,
}

#[derive(Serialize)]
struct Absent {
    node: u64,
    slots: u32,
}

#[derive(Serialize)]
pub(super) struct Donated {
    at: u64,
    pool: String,
    from: u64,
    to: u64,
    slots: u32,
}

/// The pools that a user may see and whose names match, up to a cap.
#[derive(Default)]
pub(super) struct PoolsMaker {
    pub(super) rows: Vec<Pool>,
    pub(super) more: usize,
    /// The last one that was looked at.
    at: Option<Name>,
}

/// How many used slots are counted in the time of a row.
const SLOTS_PER_ROW: usize = 100;

impl PoolsMaker {
    /// Continues; true when all are there.
    pub(super) fn slice(
        &mut self,
        house: &House,
        slice: &mut Slice,
        pattern: &Matcher,
        user: &User,
    ) -> bool {
        while slice.has_room() {
            let after = match &self.at {
                Some(name) => Bound::Excluded(name),
                None => Bound::Unbounded,
            };
            let Some((name, _)) = house.pool_after(after) else {
                return true;
            };
            slice.spend(pattern.weight());
            if user.sees(name, pattern) {
                match self.rows.len() < ROWS_MAX {
                    true => self.rows.extend(Pool::of(house, name, slice)),
                    false => self.more += 1,
                }
            }
            self.at = Some(name.clone());
        }
        false
    }
}

impl Pool {
    fn of(house: &House, name: &Name, slice: &mut Slice) -> Option<Pool> {
        let shown = house.shown_pool(name).ok()?;
        let desk = house.services.desk();
        let view = desk.view(house.services.shelves(), name, 0).ok()?;
        let slots = shown.definition.slots.count();
        let absent: Vec<Absent> = shown
            .out_of_reach()
            .into_iter()
            .map(|(node, slots)| Absent {
                node: node.0,
                slots,
            })
            .collect();
        slice.spend((view.used as usize + absent.len() * slots as usize) / SLOTS_PER_ROW);
        let part = Part {
            node: shown.own.0,
            owned: view.owned,
            free: view.free,
            used: view.used,
            withheld: view.withheld,
            waiting: view.waiting,
            received: view.received,
            given: view.given,
        };
        Some(Pool {
            name: name.as_str().to_owned(),
            slots,
            named: !matches!(shown.definition.slots, SlotNames::Numbered(_)),
            free_low: shown.definition.free_low,
            nodes: vec![part],
            out_of_reach: absent,
        })
    }
}

/// The latest donations of the pools that a user may see, newest first.
pub(super) fn donations(house: &House, pattern: &Matcher, user: &User) -> Vec<Donated> {
    let seen = |donation: &&Donation| user.sees(&donation.pool, pattern);
    let latest = house.services.desk().donations().filter(seen);
    let latest = latest.map(|donation| Donated {
        at: donation.at,
        pool: donation.pool.as_str().to_owned(),
        from: donation.from.0,
        to: donation.to.0,
        slots: donation.slots,
    });
    latest.collect()
}
