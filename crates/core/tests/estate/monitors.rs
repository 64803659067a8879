//! What must hold whatever fails, as the clients see it.

use std::collections::BTreeMap;

use testigo_core::{Fence, OneOwner, Shard, Title};

/// Who believes to be inside, and the highest fence of every gate.
#[derive(Default)]
pub(crate) struct Monitors {
    inside: BTreeMap<String, BTreeMap<usize, Fence>>,
    highest: BTreeMap<String, Fence>,
    pub(crate) owners: OneOwner,
}

impl Monitors {
    /// A client is told that it is inside, alone.
    pub(crate) fn enters(
        &mut self,
        now: u64,
        client: usize,
        gate: &str,
        fence: Fence,
    ) -> Result<(), String> {
        let highest = self.highest.entry(gate.into()).or_default();
        if fence <= *highest {
            return Err(format!(
                "at {now}: client {client} entered {gate} with fence {fence} after {highest}"
            ));
        }
        *highest = fence;
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
        match inside.len() {
            1 => Ok(()),
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
