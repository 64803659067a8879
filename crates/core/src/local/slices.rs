//! What people see, one slice at a time: a caller with much to look through goes from place to place and lets others in
//! between. A gate or a session keeps its place as long as it exists, so it is met exactly once.

use std::ops::Range;

use super::view::{Edge, GateSummary, GateView, HolderView, WaiterView};
use super::{BlockedBy, Local};
use crate::error::Refusal;
use crate::gate::{Gate, GateKey, HoldKey, Mode};
use crate::name::Name;
use crate::replicated::no_gate;
use crate::session::SessionId;
use crate::wait::{Ticket, WaitKey};

/// Those inside a gate and those who wait there, at one moment. Each is looked up when it is shown.
#[derive(Debug)]
pub struct People {
    /// In order of entry, each with its serial.
    holders: Vec<(HoldKey, u64)>,
    /// The next one first.
    waiters: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    wait: WaitKey,
    ticket: Ticket,
    leg: u32,
    overtaken: u32,
    kept: bool,
}

impl People {
    /// How many are inside.
    pub fn inside(&self) -> usize {
        self.holders.len()
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiters.len()
    }
}

impl Local {
    /// How many places of gates there are to look through.
    pub fn gate_places(&self) -> usize {
        self.gates.places()
    }

    /// The gates in a range of places, filtered by name.
    pub fn gates_in<'a>(
        &'a self,
        places: Range<usize>,
        wanted: impl Fn(&Name) -> bool + 'a,
    ) -> impl Iterator<Item = GateSummary> + 'a {
        let gates = self.gates.iter_in(places).map(|(_, gate)| gate);
        gates.filter(move |gate| wanted(&gate.name)).map(summary)
    }

    /// All gates, by name, in one call.
    pub fn list(&self) -> Vec<GateSummary> {
        let mut list: Vec<_> = self.gates_in(0..self.gate_places(), |_| true).collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// How many places of sessions there are to look through.
    pub fn session_places(&self) -> usize {
        self.sessions.places()
    }

    /// The sessions in a range of places.
    pub fn sessions_in(&self, places: Range<usize>) -> impl Iterator<Item = SessionId> {
        self.sessions.iter_in(places).map(|(_, session)| session.id)
    }

    /// How many names a session's view lists.
    pub fn session_weight(&self, id: SessionId) -> usize {
        let session = self.session_ids.get(&id).map(|s| &self.sessions[*s]);
        session.map_or(0, |session| {
            session.holds.len() as usize + session.waits.len()
        })
    }

    /// One gate, with at most `people_max` of those inside and of those waiting.
    pub fn gate_with(&self, name: &str, people_max: usize) -> Result<GateView, Refusal> {
        Ok(self.gate_view(self.gate_key(name)?, people_max))
    }

    /// Who is inside a gate and who waits there.
    pub fn people(&self, name: &str) -> Result<People, Refusal> {
        let g = self.gate_key(name)?;
        let gate = &self.gates[g];
        let inside = gate.inside.inside(&self.holds);
        let mut occupancy = self.occupancy(self.now, g);
        let waiters = gate.queue.iter().map(|entry| {
            let wait = &self.waits[entry.wait];
            Waiting {
                wait: entry.wait,
                ticket: wait.ticket,
                leg: entry.leg,
                overtaken: entry.overtaken,
                kept: occupancy.admit(self.mode(entry), wait.needs_ms) && wait.set(),
            }
        });
        Ok(People {
            holders: inside.map(|(h, hold)| (h, hold.serial)).collect(),
            waiters: waiters.collect(),
        })
    }

    /// The holder at an index, unless it has left since.
    pub fn holder(&self, people: &People, at: usize) -> Option<HolderView> {
        let (h, serial) = people.holders.get(at)?;
        let hold = self.holds.find(*h).filter(|hold| hold.serial == *serial)?;
        Some(self.holder_view(&self.gates[hold.gate], *h, hold))
    }

    /// The waiter at an index, unless its wait has ended since.
    pub fn waiter(&self, people: &People, at: usize) -> Option<WaiterView> {
        let seen = people.waiters.get(at)?;
        let wait = self.waits.find(seen.wait);
        let wait = wait.filter(|wait| wait.ticket == seen.ticket)?;
        Some(self.waiter_view(wait, seen.leg, seen.overtaken, seen.kept))
    }

    /// Who waits for whom at one gate, at most `edges_max` edges: for each waiter whose turn has not come, the holders with
    /// which it conflicts and the waiter next ahead of it.
    pub fn edges_at(&self, name: &str, edges_max: usize) -> Vec<Edge> {
        let mut edges = Vec::new();
        let Ok(g) = self.gate_key(name) else {
            return edges;
        };
        let gate = &self.gates[g];
        let mut occupancy = self.occupancy(self.now, g);
        let mut ahead: Option<SessionId> = None;
        for entry in gate.queue.iter() {
            let wait = &self.waits[entry.wait];
            let (waiter, mode) = (self.sessions[wait.session].id, self.mode(entry));
            let ahead = ahead.replace(waiter);
            if occupancy.admit(mode, wait.needs_ms) {
                continue;
            }
            let edge = |blocker, by| Edge {
                waiter,
                gate: gate.name.clone(),
                blocker,
                by,
            };
            let inside = gate.inside.inside(&self.holds).map(|(_, hold)| hold);
            let holders = inside
                .filter(|hold| mode.conflicts(&hold.mode) || matches!(mode, Mode::Permits(_)))
                .map(|hold| edge(self.sessions[hold.session].id, BlockedBy::Holder));
            let ahead = ahead.map(|ahead| edge(ahead, BlockedBy::Waiter));
            let room = edges_max - edges.len();
            edges.extend(holders.chain(ahead).take(room));
            if edges.len() == edges_max {
                break;
            }
        }
        edges
    }

    pub(super) fn gate_key(&self, name: &str) -> Result<GateKey, Refusal> {
        self.names.get(name).copied().ok_or_else(|| no_gate(name))
    }
}

fn summary(gate: &Gate) -> GateSummary {
    GateSummary {
        name: gate.name.clone(),
        rule: gate.definition.rule,
        implicit: gate.implicit(),
        holders: gate.inside.len() as usize,
        waiters: gate.queue.len(),
    }
}
