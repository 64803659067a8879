//! The books in a cluster: what happens to holders and waiters when a shard gets another owner, and sessions whose home is
//! elsewhere. An owner's local half has its own sessions and *guests*. Of a guest it knows only what the guest holds and
//! waits for here; whether it is silent for too long is up to its home.

use super::Local;
use super::enter::{Entrance, Known};
use crate::command::Claim;
use crate::error::Refusal;
use crate::event::{Event, Loss, Turn};
use crate::fence::Fence;
use crate::gate::{Ask, Definition, GateKey, HoldKey, Mode, Rule, Standing};
use crate::name::Name;
use crate::ownership::{Ownership, Shard};
use crate::replicated::Replicated;
use crate::session::{SessionId, SessionKey, State};
use crate::timer::Target;
use crate::wait::Ticket;

/// A hold that is recorded twice: in the books of the owner and in the table of the home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldCopy {
    /// Who is inside.
    pub session: SessionId,
    /// The gate.
    pub gate: Name,
    /// The mode.
    pub mode: Mode,
    /// The hold's fence.
    pub fence: Fence,
    /// When the hold ends by itself, if it does.
    pub until: Option<u64>,
    /// Whether this node, or a client with a receipt, says so.
    pub proven: bool,
    /// Whether it is part of an incomplete set, so that its client does not know of it.
    pub reserved: bool,
    /// Since when it is held, by the clock of this node.
    pub since: u64,
    /// Its reason.
    pub reason: Option<Box<str>>,
}

impl Local {
    /// Adds a session whose home is elsewhere, at its first request here.
    pub(crate) fn admit_guest(&mut self, id: SessionId) {
        if !self.session_ids.contains_key(&id) {
            self.add_session(self.now, id, u64::MAX, None, State::Connected);
        }
    }

    /// Ends a session here, and gives back what it had here.
    pub(crate) fn dismiss(&mut self, id: SessionId, out: &mut Vec<Event>) {
        if let Some(&s) = self.session_ids.get(&id) {
            self.end_session(self.now, s, out);
        }
    }

    /// All sessions here, whether or not they hold or wait.
    pub(crate) fn session_list(&self) -> Vec<SessionId> {
        self.session_ids.keys().copied().collect()
    }

    /// How many answers to IDs are remembered per session.
    pub(crate) fn ids_max(&self) -> usize {
        self.limits.ids_per_session
    }

    /// Makes a wait block its client from now on; refused if nobody could then end it.
    pub(crate) fn block_on(&mut self, id: SessionId, ticket: Ticket) -> Result<(), Refusal> {
        let s = self.session(id)?;
        self.block_again(self.now, s, ticket)
    }

    /// A wait began before these books knew of it.
    pub(crate) fn waits_since(&mut self, id: SessionId, ticket: Ticket, since: u64) {
        let Some(&s) = self.session_ids.get(&id) else {
            return;
        };
        let mut waits = self.sessions[s].waits.iter();
        if let Some(&w) = waits.find(|w| self.waits[**w].ticket == ticket) {
            let wait = &mut self.waits[w];
            wait.since = wait.since.min(since);
        }
    }

    /// Ends all waits of a session without telling anybody: they are asked for elsewhere now.
    pub(crate) fn forget_waits(&mut self, id: SessionId, out: &mut Vec<Event>) {
        let Some(&s) = self.session_ids.get(&id) else {
            return;
        };
        for w in self.sessions[s].waits.clone() {
            let wait = self.withdraw(w, &mut Vec::new());
            for leg in wait.legs.iter() {
                self.advance(self.now, leg.gate, out);
            }
        }
    }

    /// What a session holds here.
    pub(crate) fn holds_of(&self, id: SessionId) -> Vec<HoldCopy> {
        let Some(&s) = self.session_ids.get(&id) else {
            return Vec::new();
        };
        let holds = self.sessions[s].holds.of_session(&self.holds);
        holds.map(|(h, _)| self.copy(h)).collect()
    }

    fn copy(&self, h: HoldKey) -> HoldCopy {
        let hold = &self.holds[h];
        HoldCopy {
            session: self.sessions[hold.session].id,
            gate: self.gates[hold.gate].name.clone(),
            mode: hold.mode.clone(),
            fence: hold.fence,
            until: (hold.until < u64::MAX).then_some(hold.until),
            proven: hold.proven,
            reserved: hold.reserved,
            since: hold.since,
            reason: hold.reason.clone(),
        }
    }

    /// Sets whether a hold is part of an incomplete set.
    pub(crate) fn set_reserved(&mut self, id: SessionId, gate: &str, fence: Fence, reserved: bool) {
        let keys = (self.session_ids.get(&id), self.names.get(gate));
        if let (Some(&s), Some(&g)) = keys
            && let Some(h) = self.held(g, s)
            && self.holds[h].fence == fence
        {
            self.holds[h].reserved = reserved;
        }
    }

    /// Another node owns these shards now: as far as this one is concerned, nobody is inside or waits there. Returns who was
    /// inside, and the waits that concern any of the shards, in the order in which they began.
    pub(crate) fn vacate(
        &mut self,
        gone: impl Fn(Shard) -> bool,
        out: &mut Vec<Event>,
    ) -> (Vec<HoldCopy>, Vec<(SessionId, Ticket)>) {
        let mut silent = Vec::new();
        let observed = std::mem::replace(&mut self.observed, false);
        let gates = self.gates.iter().filter(|(_, gate)| gone(gate.shard));
        let gates: Vec<GateKey> = gates.map(|(g, _)| g).collect();
        let (mut holds, mut waits) = (Vec::new(), Vec::new());
        for &g in &gates {
            let queue = self.gates[g].queue.iter().map(|entry| entry.wait);
            waits.extend(queue);
        }
        waits.sort_by_key(|w| self.waits[*w].ticket);
        waits.dedup();
        let mut touched: Vec<GateKey> = Vec::new();
        let waits = waits.into_iter().map(|w| {
            let wait = self.withdraw(w, &mut silent);
            touched.extend(wait.legs.iter().map(|leg| leg.gate));
            (self.sessions[wait.session].id, wait.ticket)
        });
        let waits: Vec<(SessionId, Ticket)> = waits.collect();
        for &g in &gates {
            let inside = self.gates[g].inside.inside(&self.holds);
            let inside: Vec<HoldKey> = inside.map(|(h, _)| h).collect();
            for h in inside {
                holds.push(self.copy(h));
                self.leave(h, &mut silent);
            }
        }
        self.observed = observed;
        for g in gates {
            self.retire(g);
        }
        touched.retain(|g| self.gates.find(*g).is_some_and(|gate| !gone(gate.shard)));
        for g in touched {
            if self.gates.find(g).is_some() {
                self.advance(self.now, g, out);
            }
        }
        (holds, waits)
    }

    /// Puts a session inside, as its home or its client says. Of two holds that conflict the one with the higher fence stays.
    /// Says whether the fences decide: where permits or a capacity are too few, they do not say which hold is over.
    pub(crate) fn install(&mut self, hold: &HoldCopy, out: &mut Vec<Event>) -> bool {
        self.admit_guest(hold.session);
        let s = self.session_ids[&hold.session];
        let g = match self.names.get(&hold.gate) {
            Some(&g) => g,
            None => {
                let definition = match hold.mode {
                    Mode::Exclusive => Definition::new(Rule::Mutex),
                    Mode::Shared => Definition::new(Rule::Shared),
                    Mode::Lead(_) => Definition::election(),
                    Mode::Permits(_) | Mode::Room(_) => return true,
                };
                let standing = Standing::Implicit { successor: None };
                self.create(hold.gate.clone(), definition, standing)
            }
        };
        let gate = &self.gates[g];
        let counts = !hold.mode.exclusive() && gate.definition.units_max() < u64::MAX;
        let known = self.held(g, s);
        let known = known.is_some_and(|h| self.holds[h].fence == hold.fence);
        let Some(losers) = self.driven_out_by(g, s, hold) else {
            self.retire(g);
            return known || !counts;
        };
        let fits = losers.is_empty();
        for h in losers {
            self.lose(h, Loss::Claim, out);
        }
        let entrance = Entrance {
            session: s,
            gate: g,
            mode: hold.mode.clone(),
            class: 0,
            reason: hold.reason.clone(),
            turn: Turn::Claimed {
                proven: hold.proven,
            },
            ticket: None,
            asked: None,
            together: 1,
            known: Known {
                since: Some(hold.since),
                until: hold.until,
            },
        };
        self.take(self.now, entrance, Some(hold.fence), out);
        if let Some(h) = self.held(g, s) {
            self.holds[h].reserved = hold.reserved;
        }
        fits || !counts
    }

    /// The holders that a proven hold drives out; `None` if it gives way itself.
    fn driven_out_by(&self, g: GateKey, s: SessionKey, hold: &HoldCopy) -> Option<Vec<HoldKey>> {
        let claim = Claim {
            gate: &hold.gate,
            fence: hold.fence,
            ask: Ask::Plain,
            proven: hold.proven,
            ..Claim::default()
        };
        self.driven_out(g, s, &hold.mode, &claim)
    }

    /// A session's home is now here: its silence is judged here.
    pub(crate) fn welcome(&mut self, id: SessionId, replicated: &Replicated) {
        let Some(record) = replicated.session(id) else {
            return;
        };
        self.admit_guest(id);
        let s = self.session_ids[&id];
        let session = &mut self.sessions[s];
        session.ttl_ms = record.ttl_ms;
        session.label = record.label.as_deref().map(Box::from);
        session.state = State::Connected;
        session.hear(self.now, self.absent_ms);
        let serial = session.serial;
        self.arm(
            self.now.saturating_add(record.ttl_ms),
            serial,
            Target::Session(s),
        );
    }

    /// A session's home is now elsewhere.
    pub(crate) fn see_off(&mut self, id: SessionId) {
        if let Some(&s) = self.session_ids.get(&id) {
            self.sessions[s].ttl_ms = u64::MAX;
        }
    }

    /// Continues the fences under the present titles.
    pub(crate) fn raise_fences(&mut self, ownership: &Ownership) {
        self.fences.raise(ownership);
    }
}
