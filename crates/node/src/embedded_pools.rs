//! Pools for the program that embeds the node.

use testigo_core::pool::{DeskView, PoolAnswer, PoolDefinition, PoolTake, SlotTaken};
use testigo_core::{Change, Name, Refusal};

use crate::embedded::{Session, Submitted, submit};
use crate::node::Node;

/// Cap on slots in use that are shown.
const SHOWN_MAX: usize = 1_000;

impl Node {
    /// Creates a pool. The answer comes when the log has it.
    pub fn create_pool(
        &self,
        pool: &str,
        definition: PoolDefinition,
    ) -> Result<Submitted, Refusal> {
        let pool = Name::new(pool)?;
        definition.check()?;
        self.shared.enter(|house| house.check_log_has_pools())?;
        let definition = Box::new(definition);
        self.submit(Change::CreatePool { pool, definition })
    }

    /// Deletes a pool that nobody uses. The answer comes when all nodes have voted in the log; `BUSY` if a slot is in use.
    pub fn delete_pool(&self, pool: &str) -> Result<Submitted, Refusal> {
        let pool = Name::new(pool)?;
        self.shared.enter(|house| house.check_log_has_pools())?;
        self.submit(Change::ClosePool { pool })
    }

    /// This node's part of a pool.
    pub fn pool(&self, pool: &str) -> Result<DeskView, Refusal> {
        self.shared.enter(|house| {
            let desk = house.services.desk();
            desk.view(house.services.shelves(), pool, SHOWN_MAX)
        })
    }
}

impl Session {
    /// Takes slots of a pool, blocking the thread while it waits. Empty if there were not enough, or the wait ended.
    pub fn take_slots(&self, take: PoolTake<'_>) -> Result<Vec<SlotTaken>, Refusal> {
        let taken = self.shared.enter(|house| {
            let taken = house.take_slots(self.id(), take)?;
            Ok(match taken {
                PoolAnswer::Taken(taken) => Ok(taken),
                PoolAnswer::Waiting(ticket) => Err(house.slots_later(ticket)),
            })
        })?;
        Ok(taken.unwrap_or_else(|completion| completion.wait()))
    }

    /// Gives slots back, all or none.
    pub fn give_slots(&self, pool: &str, slots: &[&str]) -> Result<(), Refusal> {
        let elsewhere = self.shared.enter(|house| {
            let change = house.give_slots(self.id(), pool, slots)?;
            change.map(|change| submit(house, change, None)).transpose()
        })?;
        match elsewhere {
            None => Ok(()),
            Some(submitted) => submitted.wait().map(drop),
        }
    }
}
