//! What must hold whatever fails, as the clients see it.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::{Fence, OneOwner, Shard, Title};

/// Who believes to be inside, and the highest fence of every gate.
#[derive(Default)]
pub(crate) struct Monitors {
    inside: BTreeMap<String, BTreeMap<usize, Fence>>,
    /// Of writers, and of all.
    highest: BTreeMap<String, [Fence; 2]>,
    /// Who asks for which gate as a reader.
    pub(crate) readers: BTreeSet<(usize, String)>,
    pub(crate) owners: OneOwner,
}

impl Monitors {
    /// A client is told that it is inside: alone, or with other readers.
    pub(crate) fn enters(
        &mut self,
        now: u64,
        client: usize,
        gate: &str,
        fence: Fence,
    ) -> Result<(), String> {
        let reads = self.readers.contains(&(client, gate.into()));
        let highest = self.highest.entry(gate.into()).or_default();
        let below = highest[usize::from(!reads)];
        if fence <= below {
            return Err(format!(
                "at {now}: client {client} entered {gate} with fence {fence} after {below}"
            ));
        }
        highest[1] = highest[1].max(fence);
        if !reads {
            highest[0] = fence;
        }
        self.stays(now, client, gate, fence)
    }

    /// A client goes on believing that it is inside.
    pub(crate) fn stays(
        &mut self,
        now: u64,
        client: usize,
        gate: &str,
        fence: Fence,
    ) -> Result<(), String> {
        let inside = self.inside.entry(gate.into()).or_default();
        inside.insert(client, fence);
        let read = |client: &usize| self.readers.contains(&(*client, gate.into()));
        match inside.len() {
            1 => Ok(()),
            _ if inside.keys().all(read) => Ok(()),
            _ => Err(format!("at {now}: inside {gate} together: {inside:?}")),
        }
    }

    /// A client is outside, or believes so.
    pub(crate) fn leaves(&mut self, client: usize, gate: &str) {
        if let Some(inside) = self.inside.get_mut(gate) {
            inside.remove(&client);
        }
    }

    pub(crate) fn acts_on(&mut self, shard: Shard, title: Title) -> Result<(), String> {
        self.owners.saw(shard, title)
    }
}
