//! Pools that are being deleted. "No slot is in use here" holds only until the node gives out the next one. So all nodes that
//! share the pool vote in the log, and a node that has read of the vote gives out nothing of that pool until it has read how the
//! vote ended. The last vote deletes the pool. It stays if a slot is in use at any node, or if the members change meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Pools;
use super::desk::Desk;
use crate::error::{Refusal, Word};
use crate::name::Name;
use crate::ownership::{Index, NodeId, View};
use crate::replicated::{Change, Outcome, Replicated};

/// The pools that are being deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closings(BTreeMap<Name, Closing>);

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Closing {
    /// The entry with which the vote began. Each vote names it, so that one from an earlier round does not count.
    began: Index,
    /// Who has not voted yet.
    missing: BTreeSet<NodeId>,
}

impl Closings {
    /// The entry with which the vote on a pool began, if it is being deleted.
    pub fn began(&self, pool: &str) -> Option<Index> {
        self.0.get(pool).map(|closing| closing.began)
    }

    /// Like [`Closings::began`], if this node has not voted yet.
    fn awaits(&self, pool: &str, node: NodeId) -> Option<Index> {
        let closing = self.0.get(pool)?;
        closing.missing.contains(&node).then_some(closing.began)
    }

    /// Carries out a checked change. Pools that stay are added to `reopened`.
    pub(crate) fn apply(
        &mut self,
        (index, view): (Index, &View),
        from: NodeId,
        change: &Change,
        (pools, reopened): (&mut Pools, &mut Vec<Name>),
    ) -> Result<Outcome, Refusal> {
        let pool = match change {
            Change::ClosePool { pool } if self.0.contains_key(pool) => {
                return Ok(Outcome::Unchanged);
            }
            Change::ClosePool { pool } => {
                let missing = pools.present(pool, view);
                if !missing.is_empty() {
                    let began = index;
                    self.0.insert(pool.clone(), Closing { began, missing });
                    return Ok(Outcome::PoolClosing { pool: pool.clone() });
                }
                pool
            }
            Change::PoolVote {
                pool,
                began,
                unused,
            } => {
                let closing = self.0.get_mut(pool);
                let awaited = closing
                    .filter(|closing| closing.began == *began && closing.missing.contains(&from));
                let Some(closing) = awaited else {
                    let why = format!("this vote on pool {pool} is no longer expected");
                    return Err(Refusal::new(Word::Stale, why));
                };
                if !unused {
                    self.0.remove(pool);
                    reopened.push(pool.clone());
                    let pool = pool.clone();
                    return Ok(Outcome::PoolKept { pool, by: from });
                }
                closing.missing.remove(&from);
                if !closing.missing.is_empty() {
                    return Ok(Outcome::PoolHeard);
                }
                pool
            }
            Change::DeletePool { pool } => pool,
            _ => return Ok(Outcome::Unchanged),
        };
        self.0.remove(pool);
        Ok(Outcome::PoolDeleted {
            pool: pool.clone(),
            definition: Box::new(pools.delete(pool)?),
        })
    }

    /// The members have changed: all votes end, and the pools stay. Whoever asked for a deletion may ask again.
    pub(crate) fn end_all(&mut self, reopened: &mut Vec<Name>) {
        reopened.extend(std::mem::take(&mut self.0).into_keys());
    }
}

impl Desk {
    /// Votes, unless this node has: does anybody have a slot of the pool here, or may anybody? Nobody gets one until the vote has
    /// ended.
    pub(super) fn vote(&mut self, pool: &Name, replicated: &Replicated) {
        let (node, start) = self.own;
        if !replicated.view().has(node, start) {
            return;
        }
        let (Some(began), Some(counter)) = (
            replicated.closings().awaits(pool, node),
            self.pools.get(pool),
        ) else {
            return;
        };
        let unused = counter.begun && counter.used_count() == 0;
        self.served = true;
        self.out.changes.push(Change::PoolVote {
            pool: pool.clone(),
            began,
            unused,
        });
    }
}
