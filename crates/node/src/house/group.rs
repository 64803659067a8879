//! Pools that a process group shares: receives what the group says, writes to disk what must be kept before anything that
//! follows from it is told, and answers those who created or deleted a pool.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;
#[cfg(feature = "corosync")]
use testigo_core::pool::GroupEvent;
use testigo_core::pool::{Kept, PoolDefinition, PoolGroup, Process};
use testigo_core::{Name, Refusal, Word};

use super::House;
use super::client::ClientId;
use crate::kept;
use crate::wire::{Reply, refuse};

/// Tags of creations and deletions are above those of the log.
const FIRST_TAG: u64 = 1 << 62;

/// Multicasts to a process group, in order.
pub(crate) trait Multicast: std::fmt::Debug + Send + Sync {
    /// Sends soon, from another thread.
    fn multicast(&self, messages: Vec<Vec<u8>>);
}

/// The way to a process group.
#[derive(Debug)]
pub(super) struct GroupWire {
    outbox: Arc<dyn Multicast>,
    file: PathBuf,
    /// Who waits for a creation or deletion, by its token.
    asked: FxHashMap<u64, ClientId>,
    /// Whether the node has stopped without a slot in use, so that others may have all of its slots at once.
    leaves: bool,
}

/// The file in which a member of a group keeps what outlives it.
fn group_file(data: &Path) -> PathBuf {
    data.join("corosync-pools.json")
}

impl House {
    /// From now on a process group of these nodes shares the pools.
    pub(crate) fn share_pools(
        &mut self,
        data: &Path,
        own: Process,
        nodes: &[u32],
        outbox: Arc<dyn Multicast>,
    ) -> io::Result<()> {
        if self.replicated().pools().iter().len() > 0 {
            let why = "the log of this data directory has pools; delete them before the node shares pools with --corosync";
            return Err(io::Error::other(why));
        }
        let file = group_file(data);
        let kept: Kept = kept::read(&file)?.unwrap_or_default();
        let group = PoolGroup::new(own, nodes.to_vec(), kept, &mut self.services.desk);
        self.services.group = Some(Box::new(group));
        self.wire_to_group = Some(GroupWire {
            outbox,
            file,
            asked: FxHashMap::default(),
            leaves: false,
        });
        Ok(())
    }

    /// The process group that shares the pools, if one does.
    pub(crate) fn group(&self) -> Option<&PoolGroup> {
        self.services.group.as_deref()
    }

    /// Receives what the group says.
    #[cfg(feature = "corosync")]
    pub(crate) fn hear_group(&mut self, events: Vec<GroupEvent>) {
        let now = self.now;
        if self.is_stopping() {
            return;
        }
        for event in events {
            if let Some(group) = &mut self.services.group {
                group.hear(now, event, &mut self.services.desk);
            }
            self.pass_on_slots();
        }
    }

    /// The node stops: from now on it neither donates slots nor receives any. A client that loses its connection here may not
    /// know yet that its slots no longer belong to it.
    pub(super) fn end_sharing(&mut self) {
        if let Some(wire) = &mut self.wire_to_group {
            wire.leaves = self.services.desk().is_unused();
        }
    }

    /// Whether the others are told that nothing of this node is in use any more.
    #[cfg(feature = "corosync")]
    pub(crate) fn leaves_group(&self) -> bool {
        let wire = self.wire_to_group.as_ref();
        wire.is_some_and(|wire| wire.leaves)
    }

    /// Does what the group's member wants done, starting with the disk.
    pub(super) fn pass_on_group(&mut self) {
        let (Some(group), Some(wire)) = (&mut self.services.group, &mut self.wire_to_group) else {
            return;
        };
        let out = group.take_out();
        if out.keep
            && let Err(error) = kept::keep(&wire.file, group.kept())
        {
            // The others were promised that this is on disk.
            panic!("{}: {error}", wire.file.display());
        }
        if !out.messages.is_empty() && !self.stopping {
            wire.outbox.multicast(out.messages);
        }
        for warning in out.warnings {
            log::warn!("{warning}");
        }
        let asked = &mut wire.asked;
        let answers = out.answers.into_iter();
        let answers: Vec<_> = answers
            .filter_map(|(token, done)| Some((asked.remove(&token)?, token, done)))
            .collect();
        for (id, token, done) in answers {
            let reply = match done {
                Ok(()) => Reply::Ok,
                Err(refusal) => refusal.into(),
            };
            self.connections
                .answer_under_way(id, FIRST_TAG + token, reply);
        }
    }

    /// Creates a pool in the group; false if it exists.
    pub(crate) fn create_in_group(
        &mut self,
        id: ClientId,
        pool: &Name,
        definition: &PoolDefinition,
    ) -> Result<bool, Refusal> {
        let Some(group) = &mut self.services.group else {
            return Err(no_group());
        };
        let token = group.create(pool, definition)?;
        if let Some(token) = token {
            self.wait_for_group(id, token);
        }
        Ok(token.is_some())
    }

    /// Deletes a pool of the group.
    pub(crate) fn delete_in_group(&mut self, id: ClientId, pool: &Name) -> Result<(), Refusal> {
        let group = self.services.group.as_mut();
        let token = group.ok_or_else(no_group)?.delete(pool)?;
        self.wait_for_group(id, token);
        Ok(())
    }

    fn wait_for_group(&mut self, id: ClientId, token: u64) {
        if let Some(wire) = &mut self.wire_to_group {
            wire.asked.insert(token, id);
        }
        self.connections.sent_to_the_log(id, FIRST_TAG + token);
        self.pass_on_group();
    }

    /// Refuses to create a pool in the log if a group has the pools.
    pub(crate) fn check_log_has_pools(&self) -> Result<(), Refusal> {
        let why = "Corosync has the pools of this node: POOL CREATE and POOL DELETE over RESP";
        match self.services.group {
            None => Ok(()),
            Some(_) => Err(refuse(Word::Unavailable, why)),
        }
    }
}

fn no_group() -> Refusal {
    refuse(Word::Unavailable, "no group shares the pools of this node")
}
