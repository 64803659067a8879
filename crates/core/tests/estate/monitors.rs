//! What must hold whatever fails, as the clients see it.

use std::collections::{BTreeMap, BTreeSet};

use testigo_core::estate::TurnView;
use testigo_core::{Fence, Number, OneOwner, Shard, Title};

/// Who believes to be inside, and the highest fence of every gate.
#[derive(Default)]
pub(crate) struct Monitors {
    inside: BTreeMap<String, BTreeMap<usize, Fence>>,
    /// Of writers, and of all.
    highest: BTreeMap<String, [Fence; 2]>,
    /// Who asks for which gate as a reader.
    pub(crate) readers: BTreeSet<(usize, String)>,
    pub(crate) owners: OneOwner,
    /// Of each node at a gate that travels by an algorithm.
    turns: BTreeMap<(usize, String), Turn>,
}

/// A turn of a node.
#[derive(Default)]
struct Turn {
    name: (Number, u64),
    grants: u32,
    /// Whether another node was known to wait, after the last step and before it.
    wanted: bool,
    wanted_before: bool,
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

    /// A node has done a step, and is in this turn since, or was last.
    pub(crate) fn steps(&mut self, node: usize, gate: &str, view: TurnView) {
        let turn = self.turns.entry((node, gate.into())).or_default();
        if turn.name != view.turn {
            *turn = Turn {
                name: view.turn,
                ..Turn::default()
            };
        }
        turn.wanted_before = std::mem::replace(&mut turn.wanted, view.wanted);
    }

    /// A node has let a client in, in its last step: if it knew before that another node waits, its turn has no more grants than
    /// a burst.
    pub(crate) fn granted(
        &mut self,
        now: u64,
        node: usize,
        gate: &str,
        burst: u32,
    ) -> Result<(), String> {
        let Some(turn) = self.turns.get_mut(&(node, gate.into())) else {
            return Ok(());
        };
        turn.grants += 1;
        match turn.wanted_before && turn.grants > burst {
            true => Err(format!(
                "at {now}: node {node} granted {gate} {} times in a turn while another waits, burst {burst}",
                turn.grants
            )),
            false => Ok(()),
        }
    }

    pub(crate) fn acts_on(&mut self, shard: Shard, title: Title) -> Result<(), String> {
        self.owners.saw(shard, title)
    }
}
