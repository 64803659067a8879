//! Pools that are being deleted. That nobody uses a node's slots is true until the node gives out the next one. So all nodes
//! that share the pool vote in the log, and whoever has read that the vote goes on gives nothing of that pool before
//! it has read how it ended. The pool is gone with the last vote, or it stays: with the first node at which a slot is in use, and
//! when others are in.

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
    /// The entry that it began with. Votes name it: an earlier one of the same pool may have been about another state.
    began: Index,
    /// Who has not voted.
    missing: BTreeSet<NodeId>,
}

impl Closings {
    /// The entry with which the vote on a pool began, if it is being deleted.
    pub fn began(&self, pool: &str) -> Option<Index> {
        self.0.get(pool).map(|closing| closing.began)
    }

    /// As [`Closings::began`], if this node has not voted.
    fn awaits(&self, pool: &str, node: NodeId) -> Option<Index> {
        let closing = self.0.get(pool)?;
        closing.missing.contains(&node).then_some(closing.began)
    }

    /// Carries out a change that was checked. Pools that stay are named in `reopened`.
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
                    let why = format!("nobody waits for this vote on pool {pool} any more");
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

    /// Others are in, or somebody has been removed: whoever began it may begin it again.
    pub(crate) fn end_all(&mut self, reopened: &mut Vec<Name>) {
        reopened.extend(std::mem::take(&mut self.0).into_keys());
    }
}

impl Desk {
    /// Says whether anybody has a slot of a pool here, or may have, if this node has not voted. Until the vote has ended nobody gets
    /// one.
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
        let unused = counter.begun && counter.takes.is_empty();
        self.served = true;
        self.out.changes.push(Change::PoolVote {
            pool: pool.clone(),
            began,
            unused,
        });
    }
}
