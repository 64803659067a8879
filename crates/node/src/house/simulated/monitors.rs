//! What must hold whatever fails, as the clients see it.

use std::collections::BTreeMap;

use testigo_core::OneOwner;

/// Who believes to be inside, and the highest fence of every gate.
#[derive(Default)]
pub(super) struct Monitors {
    inside: BTreeMap<String, BTreeMap<usize, u64>>,
    highest: BTreeMap<String, u64>,
    pub(super) owners: OneOwner,
}

impl Monitors {
    /// A client is told that it is inside, alone.
    pub(super) fn enters(&mut self, client: usize, gate: &str, fence: u64) -> Result<(), String> {
        let highest = self.highest.entry(gate.into()).or_default();
        if fence <= *highest {
            return Err(format!(
                "client {client} entered {gate} with fence {fence} after {highest}"
            ));
        }
        *highest = fence;
        self.stays(client, gate, fence)
    }

    /// A client goes on believing that it is inside.
    pub(super) fn stays(&mut self, client: usize, gate: &str, fence: u64) -> Result<(), String> {
        let inside = self.inside.entry(gate.into()).or_default();
        inside.insert(client, fence);
        match inside.len() {
            1 => Ok(()),
            _ => Err(format!("inside {gate} together, by client: {inside:?}")),
        }
    }

    /// A client is outside, or believes so.
    pub(super) fn leaves(&mut self, client: usize, gate: &str) {
        if let Some(inside) = self.inside.get_mut(gate) {
            inside.remove(&client);
        }
    }
}
