//! Entering and leaving: the only code that makes and ends holds. Leaving a gate and letting the next ones in are one step,
//! so a gate is never free while somebody waits for it.

use super::{CROWD, DEPARTURES_MAX, Departure, Local};
use crate::command::{Grant, Settled};
use crate::event::{Event, Loss, Turn, Vacancy};
use crate::fence::Fence;
use crate::gate::{Company, GateKey, Hold, HoldKey, Kind, Links, Mode, Round, Rule, Standing};
use crate::session::SessionKey;
use crate::timer::Target;
use crate::wait::{Ticket, Wait, WaitKey};

/// A session about to enter one gate.
pub(super) struct Entrance {
    pub(super) session: SessionKey,
    pub(super) gate: GateKey,
    pub(super) mode: Mode,
    pub(super) class: u32,
    pub(super) reason: Option<Box<str>>,
    pub(super) turn: Turn,
    pub(super) ticket: Option<Ticket>,
    /// When it asked; `None` if it was inside before.
    pub(super) asked: Option<u64>,
    pub(super) together: u32,
    /// What is known of a hold that was granted elsewhere or before a crash.
    pub(super) known: Known,
}

/// Since when a session is inside, and when its hold ends by itself, where these books do not decide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) since: Option<u64>,
    pub(super) until: Option<u64>,
}

impl Local {
    /// Lets in everybody whose turn has come at a gate, tells the holders if others still wait, and removes the gate if it is
    /// implicit and now idle. A set that enters may open a room's door at another of its gates; that gate is next.
    pub(super) fn advance(&mut self, now: u64, g: GateKey, out: &mut Vec<Event>) {
        if self.gates[g].queue.is_empty() {
            self.retire(g);
            return;
        }
        let mut gates = vec![g];
        let mut at = 0;
        while let Some(&g) = gates.get(at) {
            at += 1;
            while !self.gates[g].queue.is_empty()
                && self.granting(self.gates[g].shard)
                && self.gates[g].lets_in()
            {
                let entering = self.entering(now, g);
                if entering.is_empty() {
                    break;
                }
                for wait in entering {
                    let (wait, settled) = self.enter(now, wait, None, out);
                    let others = wait.legs.iter().map(|leg| leg.gate);
                    gates.extend(others.filter(|other| *other != g));
                    self.settle(wait, settled, out);
                }
            }
            self.tell_holders(now, g, out);
        }
        self.retire(g);
    }

    /// Takes a waiter out of its queues and into its gates. `turn` is set if it does not enter by order or through the door.
    pub(super) fn enter(
        &mut self,
        now: u64,
        w: WaitKey,
        turn: Option<Turn>,
        out: &mut Vec<Event>,
    ) -> (Wait, Settled) {
        let wait = self.forget_wait(w);
        let together = wait.legs.len() as u32;
        let mut grants = Vec::new();
        let mut only = None;
        for leg in wait.legs.iter() {
            let turn = turn.unwrap_or_else(|| self.right_of(leg.gate));
            let gate = &mut self.gates[leg.gate];
            match turn {
                Turn::Order => gate.queue.enter(leg.rank, gate.definition.overtakes),
                _ => gate.queue.remove(leg.rank),
            };
            let entrance = Entrance {
                session: wait.session,
                gate: leg.gate,
                mode: leg.mode.clone(),
                class: leg.class,
                reason: wait.reason.clone(),
                turn,
                ticket: Some(wait.ticket),
                asked: Some(wait.since),
                together,
                known: Known::default(),
            };
            let grant = self.take(now, entrance, None, out);
            match wait.set() {
                true => grants.push(grant),
                false => only = Some(grant),
            }
        }
        let settled = match only {
            Some(grant) => Settled::Entered(grant),
            None => Settled::EnteredAll(grants.into()),
        };
        (wait, settled)
    }

    /// Puts a session inside a gate, with a new fence, that of its company, or the one that it claims.
    pub(super) fn take(
        &mut self,
        now: u64,
        entrance: Entrance,
        claimed: Option<Fence>,
        out: &mut Vec<Event>,
    ) -> Grant {
        let Entrance {
            session: s,
            gate: g,
            mode,
            class,
            reason,
            turn,
            ticket,
            asked,
            together,
            known,
        } = entrance;
        debug_assert!(
            self.held(g, s).is_none(),
            "a session entered a gate that it holds"
        );
        self.touch(s, self.gates[g].shard, out);
        let serial = self.next_serial();
        let gate = &mut self.gates[g];
        let crowded = gate.inside.len() >= CROWD;
        let units = mode.units();
        let fence = match (claimed, gate.shared_fence(&mode)) {
            (Some(claimed), _) => {
                gate.company = Company::default();
                claimed
            }
            (None, Some(shared)) => {
                gate.company.units += units;
                shared
            }
            (None, None) => {
                let (fence, low) = self.fences.next(gate.shard);
                if low {
                    out.push(Event::FencesLow { shard: gate.shard });
                }
                gate.company = Company {
                    fence: Some(fence),
                    units,
                };
                fence
            }
        };
        let leads = gate.round.is_none();
        if let (Mode::Room(room), true) = (&mode, leads) {
            gate.round = Some(Box::new(Round {
                room: room.clone(),
                leader: None,
                since: now,
            }));
        }
        let until = known.until.unwrap_or_else(|| gate.until(now));
        let exclusive = mode.exclusive();
        let elected = claimed.is_none() && matches!(mode, Mode::Lead(_));
        let kind = Kind::of(&mode, class);
        if self.observed {
            out.push(Event::Entered {
                session: self.sessions[s].id,
                gate: gate.name.clone(),
                mode: mode.clone(),
                class,
                fence,
                turn,
                ticket,
                together,
            });
        }
        let h = self.holds.insert(Hold {
            gate: g,
            session: s,
            mode,
            fence,
            since: known.since.map_or(now, |since| since.min(now)),
            asked,
            kind,
            until,
            serial,
            told: false,
            crowded,
            proven: turn != Turn::Claimed { proven: false },
            reserved: false,
            reason,
            in_gate: Links::default(),
            in_session: Links::default(),
        });
        gate.inside
            .push(&mut self.holds, h, |hold| &mut hold.in_gate);
        gate.units += units;
        self.unproven += usize::from(turn == Turn::Claimed { proven: false });
        gate.exclusive = exclusive;
        gate.untold += 1;
        if let (Some(round), true) = (&mut gate.round, leads) {
            round.leader = Some(h);
        }
        let session = &mut self.sessions[s];
        let was_entangled = session.entangled();
        session
            .holds
            .push(&mut self.holds, h, |hold| &mut hold.in_session);
        self.recount(s, was_entangled);
        if crowded {
            self.crowd.insert((g, s), h);
        }
        self.counters.grants += 1;
        if !matches!(turn, Turn::Claimed { .. }) {
            self.count_at_door(g);
        }
        if elected {
            self.counters.terms += 1;
            self.tell_elected(h, false, out);
        }
        if until == u64::MAX {
            return Grant {
                fence,
                lease_ms: None,
            };
        }
        self.arm(until, serial, Target::Hold(h));
        Grant {
            fence,
            lease_ms: Some(until.saturating_sub(now)),
        }
    }

    /// Takes a session out of a gate. The caller lets the next ones in.
    pub(super) fn leave(&mut self, h: HoldKey, out: &mut Vec<Event>) -> Hold {
        let (g, s) = (self.holds[h].gate, self.holds[h].session);
        let gate = &mut self.gates[g];
        gate.inside
            .remove(&mut self.holds, h, |hold| &mut hold.in_gate);
        let session = &mut self.sessions[s];
        let was_entangled = session.entangled();
        session
            .holds
            .remove(&mut self.holds, h, |hold| &mut hold.in_session);
        let hold = self.holds.remove(h);
        self.unproven -= usize::from(!hold.proven);
        gate.units -= hold.mode.units();
        gate.untold -= u32::from(!hold.told);
        gate.exclusive = false;
        if gate.inside.len() == 0 {
            gate.round = None;
            gate.company = Company::default();
        } else if let Some(round) = &mut gate.round
            && round.leader == Some(h)
        {
            round.leader = None;
        }
        let created = gate.standing == Standing::Created;
        if let (Some(departures), Some(asked)) =
            (&mut self.departures, hold.asked.filter(|_| created))
            && departures.len() < DEPARTURES_MAX
        {
            departures.push(Departure {
                gate: gate.name.clone(),
                session: session.id,
                kind: hold.kind,
                asked,
                entered: hold.since,
                left: self.now,
            });
        }
        if self.observed {
            out.push(Event::Left {
                session: session.id,
                gate: gate.name.clone(),
                fence: hold.fence,
            });
        }
        self.recount(s, was_entangled);
        if hold.crowded {
            self.crowd.remove(&(g, s));
        }
        self.stir(g);
        hold
    }

    /// Ends a hold that its session did not give back. The caller lets the next ones in.
    pub(super) fn lose(&mut self, h: HoldKey, loss: Loss, out: &mut Vec<Event>) -> GateKey {
        self.vacated(h, Vacancy::Lost, out);
        let hold = self.leave(h, out);
        self.counters.losses += 1;
        out.push(Event::Lost {
            session: self.sessions[hold.session].id,
            gate: self.gates[hold.gate].name.clone(),
            fence: hold.fence,
            loss,
        });
        hold.gate
    }

    /// Updates the count of entangled sessions after a session has changed.
    pub(super) fn recount(&mut self, s: SessionKey, was_entangled: bool) {
        match (was_entangled, self.sessions[s].entangled()) {
            (false, true) => self.entangled += 1,
            (true, false) => self.entangled -= 1,
            _ => {}
        }
    }

    /// Tells the holders of a gate, once each, that somebody waits for it.
    pub(super) fn tell_holders(&mut self, now: u64, g: GateKey, out: &mut Vec<Event>) {
        let gate = &self.gates[g];
        // A leader gives way to nobody, so it need not know who campaigns.
        if gate.definition.rule == Rule::Election {
            return;
        }
        if gate.untold == 0 || gate.queue.is_empty() || !self.somebody_is_blocked(now, g) {
            return;
        }
        let untold: Vec<HoldKey> = gate
            .inside
            .inside(&self.holds)
            .filter(|(_, hold)| !hold.told)
            .map(|(h, _)| h)
            .collect();
        for h in untold {
            let hold = &mut self.holds[h];
            hold.told = true;
            out.push(Event::Wanted {
                session: self.sessions[hold.session].id,
                gate: self.gates[g].name.clone(),
                fence: hold.fence,
            });
        }
        self.gates[g].untold = 0;
    }

    /// Removes an idle implicit gate, or lets the definition that waits for the name take over.
    pub(super) fn retire(&mut self, g: GateKey) {
        let gate = &mut self.gates[g];
        if !gate.idle() {
            return;
        }
        let Standing::Implicit { successor } = &mut gate.standing else {
            return;
        };
        match successor.take() {
            Some(definition) => {
                gate.definition = *definition;
                gate.standing = Standing::Created;
            }
            None => {
                let gate = self.gates.remove(g);
                self.elections -= usize::from(gate.definition.rule == Rule::Election);
                self.names.remove(&gate.name);
                self.awaited.unpark(gate.shard, g);
            }
        }
    }
}
