//! What people see: gates with holders and waiters in order, sessions, and who waits for whom. Views are copies; taking one
//! changes nothing.

use super::Local;
use crate::error::Refusal;
use crate::fence::Fence;
use crate::gate::{Definition, GateKey, Mode, Rule};
use crate::name::Name;
use crate::replicated::no_gate;
use crate::session::{Session, SessionId, State};
use crate::wait::Ticket;

/// A gate as `GATE LIST` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateSummary {
    /// Its name.
    pub name: Name,
    /// Who may be inside together.
    pub rule: Rule,
    /// Whether it exists by its use alone.
    pub implicit: bool,
    /// How many are inside.
    pub holders: usize,
    /// How many wait.
    pub waiters: usize,
}

/// A gate as `GATE SHOW` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateView {
    /// Its name.
    pub name: Name,
    /// What it is.
    pub definition: Definition,
    /// Whether it exists by its use alone.
    pub implicit: bool,
    /// Those inside, in order of entry.
    pub holders: Vec<HolderView>,
    /// Those who wait, the next one first.
    pub waiters: Vec<WaiterView>,
}

/// Somebody inside a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// Who.
    pub session: SessionId,
    /// The session's label.
    pub label: Option<String>,
    /// How.
    pub mode: Mode,
    /// With which fence.
    pub fence: Fence,
    /// Since when.
    pub since: u64,
    /// When the hold ends by itself.
    pub until: Option<u64>,
    /// What for.
    pub reason: Option<String>,
    /// Whether it was told that others wait.
    pub told: bool,
    /// Whether it is the leader of its room.
    pub leads: bool,
    /// Whether the node knows that it was granted; not so for what was claimed without proof after a crash.
    pub proven: bool,
}

/// Somebody waiting at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// Who.
    pub session: SessionId,
    /// The session's label.
    pub label: Option<String>,
    /// Which request.
    pub ticket: Ticket,
    /// How it wants to be inside.
    pub mode: Mode,
    /// Its class.
    pub class: u32,
    /// Since when.
    pub since: u64,
    /// When the wait ends.
    pub until: u64,
    /// What for.
    pub reason: Option<String>,
    /// How often it was overtaken here.
    pub overtaken: u32,
    /// All gates of the set that it is part of; only this one for a plain request.
    pub set: Vec<Name>,
    /// Whether it could enter here and only waits elsewhere: its place is kept.
    pub kept: bool,
    /// What it needs of a room's stay.
    pub needs_ms: Option<u64>,
}

/// A session as `session list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its identity.
    pub session: SessionId,
    /// What people call it.
    pub label: Option<String>,
    /// The silence that it may keep; nothing for an implicit one.
    pub ttl_ms: Option<u64>,
    /// Since when the node knows it.
    pub since: u64,
    /// When it was last heard of.
    pub heard: u64,
    /// Whether its connection is open.
    pub connected: bool,
    /// Whether it must still resume after a crash.
    pub awaited: bool,
    /// Whether it ran out and its close is not yet logged.
    pub ran_out: bool,
    /// The gates that it is inside.
    pub holds: Vec<Name>,
    /// The gates that it waits for.
    pub waits: Vec<Name>,
}

/// One edge of the wait-for graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who waits.
    pub waiter: SessionId,
    /// At which gate.
    pub gate: Name,
    /// For whom.
    pub blocker: SessionId,
    /// In which way the other is in the way.
    pub by: BlockedBy,
}

/// How one session is in another's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockedBy {
    /// It is inside.
    Holder,
    /// It stands next ahead in the queue.
    Waiter,
}

impl Local {
    /// One gate, or `NOGATE`.
    pub fn gate(&self, name: &str) -> Result<GateView, Refusal> {
        let g = self.names.get(name).ok_or_else(|| no_gate(name))?;
        Ok(self.gate_view(*g))
    }

    /// How a session is inside a gate, if it is: mode, fence, and whether the node knows that it was granted.
    pub fn hold_of(&self, session: SessionId, gate: &str) -> Option<(&Mode, Fence, bool)> {
        let (s, g) = (self.session_ids.get(&session)?, self.names.get(gate)?);
        let hold = &self.holds[self.held(*g, *s)?];
        Some((&hold.mode, hold.fence, hold.proven))
    }

    /// All gates whose names fit a pattern, by name. `*` lists all.
    pub fn list(&self, pattern: &str) -> Vec<GateSummary> {
        let gates = self.gates.iter().map(|(_, gate)| gate);
        let mut list: Vec<_> = gates
            .filter(|gate| gate.name.fits(pattern))
            .map(|gate| GateSummary {
                name: gate.name.clone(),
                rule: gate.definition.rule,
                implicit: gate.implicit(),
                holders: gate.inside.len() as usize,
                waiters: gate.queue.len(),
            })
            .collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        list
    }

    /// At most so many gates whose names are wanted, those in use before idle ones, and how many are wanted in all.
    pub fn gates(&self, wanted: &dyn Fn(&Name) -> bool, most: usize) -> (Vec<GateView>, usize) {
        let fitting = || self.gates.iter().filter(|(_, gate)| wanted(&gate.name));
        let mut shown: Vec<GateKey> = Vec::new();
        for used in [true, false] {
            let such = fitting()
                .filter(|(_, gate)| used == (gate.inside.len() > 0 || !gate.queue.is_empty()));
            let room = most - shown.len();
            shown.extend(such.take(room).map(|(key, _)| key));
        }
        let views = shown.into_iter().map(|key| self.gate_view(key)).collect();
        (views, fitting().count())
    }

    /// How many gates, sessions, holds and waits there are.
    pub fn sizes(&self) -> [usize; 4] {
        [
            self.gates.len(),
            self.sessions.len(),
            self.holds.len(),
            self.waits.len(),
        ]
    }

    /// All sessions, by identity.
    pub fn sessions(&self) -> Vec<SessionView> {
        let sessions = self.sessions.iter().map(|(_, session)| session);
        let mut views: Vec<_> = sessions.map(|session| self.view_of(session)).collect();
        views.sort_by_key(|view| view.session);
        views
    }

    /// One session, if the node knows it.
    pub fn session_view(&self, id: SessionId) -> Option<SessionView> {
        let s = self.session_ids.get(&id)?;
        Some(self.view_of(&self.sessions[*s]))
    }

    fn view_of(&self, session: &Session) -> SessionView {
        SessionView {
            session: session.id,
            label: session.label.as_deref().map(str::to_owned),
            ttl_ms: (!session.id.is_implicit()).then_some(session.ttl_ms),
            since: session.since,
            heard: session.heard(),
            connected: session.state == State::Connected,
            awaited: session.awaited,
            ran_out: session.state == State::RunOut,
            holds: session
                .holds
                .of_session(&self.holds)
                .map(|(_, hold)| self.gates[hold.gate].name.clone())
                .collect(),
            waits: session
                .waits
                .iter()
                .flat_map(|w| self.waits[*w].legs.iter())
                .map(|leg| self.gates[leg.gate].name.clone())
                .collect(),
        }
    }

    /// Who waits for whom, at most `edges_max` edges: for each waiter whose turn has not come at a gate, the holders that it
    /// conflicts with and the waiter next ahead of it.
    pub fn wait_for(&self, edges_max: usize) -> Vec<Edge> {
        let mut gates: Vec<_> = self.gates.iter().collect();
        gates.retain(|(_, gate)| !gate.queue.is_empty());
        gates.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        let mut edges = Vec::new();
        for (g, gate) in gates {
            let mut occupancy = self.occupancy(self.now, g);
            let mut ahead: Option<SessionId> = None;
            for entry in gate.queue.iter() {
                let wait = &self.waits[entry.wait];
                let (waiter, mode) = (self.sessions[wait.session].id, self.mode(entry));
                let ahead = ahead.replace(waiter);
                if occupancy.admit(mode, wait.needs_ms) {
                    continue;
                }
                let mut edge = |blocker, by| {
                    if edges.len() < edges_max {
                        edges.push(Edge {
                            waiter,
                            gate: gate.name.clone(),
                            blocker,
                            by,
                        });
                    }
                };
                for (_, hold) in gate.inside.inside(&self.holds) {
                    if mode.conflicts(&hold.mode) || matches!(mode, Mode::Permits(_)) {
                        edge(self.sessions[hold.session].id, BlockedBy::Holder);
                    }
                }
                if let Some(ahead) = ahead {
                    edge(ahead, BlockedBy::Waiter);
                }
            }
        }
        edges
    }

    fn gate_view(&self, g: GateKey) -> GateView {
        let gate = &self.gates[g];
        let label = |s| {
            let label: &Option<Box<str>> = &self.sessions[s].label;
            label.as_deref().map(str::to_owned)
        };
        let leader = gate.round.as_ref().and_then(|round| round.leader);
        let holders = gate.inside.inside(&self.holds).map(|(h, hold)| HolderView {
            session: self.sessions[hold.session].id,
            label: label(hold.session),
            mode: hold.mode.clone(),
            fence: hold.fence,
            since: hold.since,
            until: (hold.until < u64::MAX).then_some(hold.until),
            reason: hold.reason.as_deref().map(str::to_owned),
            told: hold.told,
            leads: leader == Some(h),
            proven: hold.proven,
        });
        let mut occupancy = self.occupancy(self.now, g);
        let waiters = gate.queue.iter().map(|entry| {
            let wait = &self.waits[entry.wait];
            let leg = &wait.legs[entry.leg as usize];
            WaiterView {
                session: self.sessions[wait.session].id,
                label: label(wait.session),
                ticket: wait.ticket,
                mode: leg.mode.clone(),
                class: leg.class,
                since: wait.since,
                until: wait.deadline,
                reason: wait.reason.as_deref().map(str::to_owned),
                overtaken: entry.overtaken,
                set: wait
                    .legs
                    .iter()
                    .map(|leg| self.gates[leg.gate].name.clone())
                    .collect(),
                kept: occupancy.admit(&leg.mode, wait.needs_ms) && wait.set(),
                needs_ms: wait.needs_ms,
            }
        });
        GateView {
            name: gate.name.clone(),
            definition: gate.definition.clone(),
            implicit: gate.implicit(),
            holders: holders.collect(),
            waiters: waiters.collect(),
        }
    }
}
