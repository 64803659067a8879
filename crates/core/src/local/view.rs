//! What people see: gates with holders and waiters in order, sessions, and who waits for whom. Views are copies; taking one
//! changes nothing.

use super::Local;
use crate::error::{Refusal, Word};
use crate::fence::Fence;
use crate::gate::{Definition, Gate, GateKey, Hold, HoldKey, Mode, Rule};
use crate::name::Name;
use crate::ownership::Shard;
use crate::session::{Session, SessionId, SessionKey, State};
use crate::wait::{Ticket, Wait};

/// A gate as `GATE LIST` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateSummary {
    /// Its name.
    pub name: Name,
    /// Who may be inside together.
    pub rule: Rule,
    /// Whether it exists only because it is in use.
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
    /// Whether it exists only because it is in use.
    pub implicit: bool,
    /// Those inside, in order of entry.
    pub holders: Vec<HolderView>,
    /// Those who wait, the next one first.
    pub waiters: Vec<WaiterView>,
    /// How many are inside, shown or not.
    pub inside: usize,
    /// How many wait, shown or not.
    pub waiting: usize,
    /// Some of the sessions from before a crash that may hold it: it grants nothing until all have resumed, closed or run
    /// out.
    pub awaits: Vec<SessionId>,
}

impl GateView {
    /// A gate that exists only because somebody asks for it.
    pub(crate) fn idle(name: Name, definition: Definition) -> GateView {
        GateView {
            name,
            definition,
            implicit: true,
            holders: Vec::new(),
            waiters: Vec::new(),
            inside: 0,
            waiting: 0,
            awaits: Vec::new(),
        }
    }
}

/// Somebody inside a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HolderView {
    /// The session.
    pub session: SessionId,
    /// The session's label.
    pub label: Option<String>,
    /// The mode.
    pub mode: Mode,
    /// The hold's fence.
    pub fence: Fence,
    /// Since when.
    pub since: u64,
    /// When the hold ends by itself.
    pub until: Option<u64>,
    /// Its reason.
    pub reason: Option<String>,
    /// Whether it was told that others wait.
    pub told: bool,
    /// Whether it is the leader of its room.
    pub leads: bool,
    /// Whether the node knows that it was granted; false if it was claimed without proof after a crash.
    pub proven: bool,
    /// Whether it is part of a set that waits for gates of other owners. The session is told once it has all of them.
    pub reserved: bool,
}

/// A hold, as its holder is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldView<'a> {
    /// The mode.
    pub mode: &'a Mode,
    /// The hold's fence.
    pub fence: Fence,
    /// When it ends by itself.
    pub until: Option<u64>,
    /// See [`HolderView::proven`].
    pub proven: bool,
    /// Since when it is held.
    pub since: u64,
}

/// Somebody waiting at a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterView {
    /// The session.
    pub session: SessionId,
    /// The session's label.
    pub label: Option<String>,
    /// The request's ticket.
    pub ticket: Ticket,
    /// How it wants to be inside.
    pub mode: Mode,
    /// Its class.
    pub class: u32,
    /// Since when.
    pub since: u64,
    /// When the wait ends.
    pub until: u64,
    /// Its reason.
    pub reason: Option<String>,
    /// How often it was overtaken here.
    pub overtaken: u32,
    /// All gates of its set; only this one if it is no set.
    pub set: Vec<Name>,
    /// Whether it could enter here and only waits elsewhere: its place is kept.
    pub kept: bool,
    /// How long it needs of a room's stay.
    pub needs_ms: Option<u64>,
}

/// A session as `session list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionView {
    /// Its identity.
    pub session: SessionId,
    /// What people call it.
    pub label: Option<String>,
    /// How long it may be silent; `None` for an implicit session.
    pub ttl_ms: Option<u64>,
    /// Since when the node has known it.
    pub since: u64,
    /// When it was last heard of.
    pub heard: u64,
    /// Whether its connection is open.
    pub connected: bool,
    /// Whether it must still resume after a crash.
    pub awaited: bool,
    /// Whether it has run out and its close is not logged yet.
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
    /// The gate.
    pub gate: Name,
    /// For whom.
    pub blocker: SessionId,
    /// How the other is in the way.
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
    /// All requests that wait for gates: the session, the ticket and the gates.
    pub fn waits(&self) -> impl Iterator<Item = (SessionId, Ticket, Vec<&str>)> {
        self.waits.iter().map(|(_, wait)| {
            let gates = wait.legs.iter().map(|leg| &*self.gates[leg.gate].name);
            (self.sessions[wait.session].id, wait.ticket, gates.collect())
        })
    }

    /// One gate, or `NOGATE`.
    pub fn gate(&self, name: &str) -> Result<GateView, Refusal> {
        self.gate_with(name, usize::MAX)
    }

    /// An election with at most `people_max` candidates; `None` if nobody leads and nobody campaigns. `UNAVAILABLE` while a
    /// leader from before a crash may not have been heard of.
    pub fn election(&self, name: &Name, people_max: usize) -> Result<Option<GateView>, Refusal> {
        let view = self.names.get(name);
        let view = view.map(|g| self.gate_view(*g, people_max.max(1)));
        let leads = view.as_ref().is_some_and(|view| !view.holders.is_empty());
        let shard = Shard::of(name);
        if !leads && self.awaited.shuts(shard) {
            let why = self.why_shut(name, shard);
            return Err(Refusal::new(Word::Unavailable, why));
        }
        Ok(view)
    }

    /// How a session is inside a gate, if it is.
    pub fn hold_of(&self, session: SessionId, gate: &str) -> Option<HoldView<'_>> {
        let (s, g) = (self.session_ids.get(&session)?, self.names.get(gate)?);
        let hold = &self.holds[self.held(*g, *s)?];
        Some(HoldView {
            mode: &hold.mode,
            fence: hold.fence,
            until: Some(hold.until).filter(|until| *until != u64::MAX),
            proven: hold.proven,
            since: hold.since,
        })
    }

    /// How many elections there are.
    pub fn elections(&self) -> usize {
        self.elections
    }

    /// How many gates (without elections), sessions, holds and waits there are.
    pub fn sizes(&self) -> [usize; 4] {
        [
            self.gates.len() - self.elections,
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

    pub(super) fn gate_view(&self, g: GateKey, people_max: usize) -> GateView {
        let gate = &self.gates[g];
        let inside = gate.inside.inside(&self.holds).take(people_max);
        let mut occupancy = self.occupancy(self.now, g);
        let waiters = gate.queue.iter().take(people_max).map(|entry| {
            let wait = &self.waits[entry.wait];
            let kept = occupancy.admit(self.mode(entry), wait.needs_ms) && wait.set();
            self.waiter_view(wait, entry.leg, entry.overtaken, kept)
        });
        GateView {
            name: gate.name.clone(),
            definition: gate.definition.clone(),
            implicit: gate.implicit(),
            waiters: waiters.collect(),
            holders: inside
                .map(|(h, hold)| self.holder_view(gate, h, hold))
                .collect(),
            inside: gate.inside.len() as usize,
            waiting: gate.queue.len(),
            awaits: self.awaited_in(gate.shard),
        }
    }

    pub(super) fn holder_view(&self, gate: &Gate, h: HoldKey, hold: &Hold) -> HolderView {
        let leader = gate.round.as_ref().and_then(|round| round.leader);
        HolderView {
            session: self.sessions[hold.session].id,
            label: self.label(hold.session),
            mode: hold.mode.clone(),
            fence: hold.fence,
            since: hold.since,
            until: (hold.until < u64::MAX).then_some(hold.until),
            reason: hold.reason.as_deref().map(str::to_owned),
            told: hold.told,
            leads: leader == Some(h),
            proven: hold.proven,
            reserved: hold.reserved,
        }
    }

    pub(super) fn waiter_view(
        &self,
        wait: &Wait,
        leg: u32,
        overtaken: u32,
        kept: bool,
    ) -> WaiterView {
        let leg = &wait.legs[leg as usize];
        let set = wait.legs.iter();
        WaiterView {
            session: self.sessions[wait.session].id,
            label: self.label(wait.session),
            ticket: wait.ticket,
            mode: leg.mode.clone(),
            class: leg.class,
            since: wait.since,
            until: wait.deadline,
            reason: wait.reason.as_deref().map(str::to_owned),
            overtaken,
            set: set.map(|leg| self.gates[leg.gate].name.clone()).collect(),
            kept,
            needs_ms: wait.needs_ms,
        }
    }

    fn label(&self, s: SessionKey) -> Option<String> {
        self.sessions[s].label.as_deref().map(str::to_owned)
    }
}
