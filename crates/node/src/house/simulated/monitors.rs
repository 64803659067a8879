//! What must hold whatever fails, as seen by the clients.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::{OneOwner, bare_name};

/// Who believes that it is inside, and the highest fence of every gate.
#[derive(Default)]
pub(super) struct Monitors {
    inside: BTreeMap<String, BTreeMap<usize, u64>>,
    /// For writers, and for all.
    highest: BTreeMap<String, [u64; 2]>,
    /// Who entered last.
    last: BTreeMap<String, usize>,
    /// Who asks for which gate as a reader.
    pub(super) readers: BTreeSet<(usize, String)>,
    pub(super) owners: OneOwner,
}

impl Monitors {
    /// A client is told that it is inside: alone, or with other readers.
    pub(super) fn enters(&mut self, client: usize, gate: &str, fence: u64) -> Result<(), String> {
        let reads = self.reads(client, gate);
        let highest = self.highest.entry(gate.into()).or_default();
        let below = highest[usize::from(!reads)];
        // A leader that campaigns again is answered with its present term.
        let last = self.last.insert(gate.into(), client);
        let leads = bare_name(gate) != gate && (fence, Some(client)) == (below, last);
        if fence <= below && !leads {
            return Err(format!(
                "client {client} entered {gate} with fence {fence} after {below}"
            ));
        }
        highest[1] = highest[1].max(fence);
        if !reads {
            highest[0] = fence;
        }
        self.stays(client, gate, fence)
    }

    /// A client still believes that it is inside.
    pub(super) fn stays(&mut self, client: usize, gate: &str, fence: u64) -> Result<(), String> {
        let inside = self.inside.entry(gate.into()).or_default();
        inside.insert(client, fence);
        let readers = &self.readers;
        let read = |client: &usize| readers.contains(&(*client, gate.to_owned()));
        match inside.len() {
            1 => Ok(()),
            _ if inside.keys().all(read) => Ok(()),
            _ => Err(format!("inside {gate} together, by client: {inside:?}")),
        }
    }

    /// Whether a client asks for a gate as a reader.
    pub(super) fn reads(&self, client: usize, gate: &str) -> bool {
        self.readers.contains(&(client, gate.to_owned()))
    }

    /// A client is outside, or believes that it is.
    pub(super) fn leaves(&mut self, client: usize, gate: &str) {
        if let Some(inside) = self.inside.get_mut(gate) {
            inside.remove(&client);
        }
    }
}
