//! The naive model: a slow, plain specification of gates. Who may enter is computed anew each time from two lists, those
//! inside and those who wait; nothing is kept that could be computed. It can be told to have a flaw, for the
//! monitors to find.

pub(crate) mod deadlock;
pub(crate) mod random;
mod words;

pub(crate) use words::{Flaw, Holder, Leg, Said, Told, Waiter};

use testigo_core::{
    Definition, Event, Fence, GateOrder, Mode, Name, Rule, SessionId, Ticket, Turn,
};

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) gates: Vec<Definition>,
    pub(crate) holders: Vec<Holder>,
    pub(crate) waiters: Vec<Waiter>,
    pub(crate) now: u64,
    pub(crate) told: Vec<Told>,
    /// The same and more, as monitors want to see it.
    pub(crate) events: Vec<Event>,
    pub(crate) flaw: Flaw,
    /// For each gate, the modes of all grants that carry its newest fence, and that fence.
    company: Vec<(Vec<Mode>, u64)>,
    /// For each gate, the last arrival that may not be overtaken.
    spent: Vec<u64>,
    /// For each gate, its last fence: each lies in a shard of its own.
    fence: Vec<u64>,
    arrivals: u64,
    /// Switched off while the future is thought through.
    counts_overtakes: bool,
}

impl Model {
    pub(crate) fn new(gates: Vec<Definition>, flaw: Flaw) -> Model {
        Model {
            company: vec![(Vec::new(), 0); gates.len()],
            spent: vec![0; gates.len()],
            fence: vec![0; gates.len()],
            gates,
            holders: Vec::new(),
            waiters: Vec::new(),
            now: 0,
            told: Vec::new(),
            events: Vec::new(),
            flaw,
            arrivals: 0,
            counts_overtakes: true,
        }
    }

    /// Asks to enter gates, each in a mode and class.
    pub(crate) fn request(&mut self, mut request: Waiter, wait_ms: u64) -> Said {
        for leg in &request.legs {
            if self.holds(request.session, leg.gate).is_some() {
                return Said::Held;
            }
            let mut mine = self.waiters.iter().filter(|w| w.session == request.session);
            if mine.any(|w| w.legs.iter().any(|other| other.gate == leg.gate)) {
                return Said::Busy;
            }
        }
        self.arrivals += 1;
        request.arrival = self.arrivals;
        request.deadline = self.now + wait_ms;
        let arrival = request.arrival;
        let gates: Vec<usize> = request.legs.iter().map(|leg| leg.gate).collect();
        self.waiters.push(request);
        for gate in gates {
            if self.gates[gate].overtakes == 0 {
                self.spent[gate] = arrival;
            }
        }
        let passes = |knot: Vec<u64>| self.may_pass(arrival, &knot);
        let by_order = self.may_enter(arrival);
        if by_order || self.knot(arrival).is_some_and(passes) {
            let gates = gates_of(self.waiter(arrival));
            let fences = self.enter(arrival, by_order);
            self.settle(&gates);
            return Said::Entered(fences);
        }
        let dead = self.knot(arrival).is_some();
        if dead || wait_ms == 0 {
            self.waiters.retain(|w| w.arrival != arrival);
            return if wait_ms == 0 {
                Said::NotNow
            } else {
                Said::Deadlock
            };
        }
        let waiter = self.waiter(arrival).clone();
        self.events
            .extend(waiter.legs.iter().map(|leg| Event::Waits {
                session: id(waiter.session),
                ticket: Ticket(arrival),
                gate: name(leg.gate),
                mode: leg.mode.clone(),
                class: leg.class,
                set: waiter.set,
            }));
        Said::Waits
    }

    pub(crate) fn unlock(&mut self, session: usize, gate: usize) -> Said {
        let Some(at) = self.holds(session, gate) else {
            return Said::NotHeld;
        };
        self.leave(at);
        self.settle(&[gate]);
        Said::Done
    }

    pub(crate) fn downgrade(&mut self, session: usize, gate: usize) -> Said {
        let Some(at) = self.holds(session, gate) else {
            return Said::NotHeld;
        };
        if self.holders[at].mode == Mode::Exclusive {
            self.fence[gate] += 1;
            self.holders[at].mode = Mode::Shared;
            self.holders[at].fence = self.fence[gate];
            self.company[gate] = (vec![Mode::Shared], self.fence[gate]);
            self.settle(&[gate]);
        }
        Said::Entered(vec![self.holders[self.holds(session, gate).unwrap()].fence])
    }

    /// Ends the first wait of a session.
    pub(crate) fn cancel(&mut self, session: usize) -> Said {
        let Some(at) = self.waiters.iter().position(|w| w.session == session) else {
            return Said::NotHeld;
        };
        let waiter = self.waiters.remove(at);
        self.told.push(Told::Cancelled { session });
        self.settle(&gates_of(&waiter));
        Said::Done
    }

    /// A session ends: its waits first, then its holds, then whoever can go on.
    pub(crate) fn end(&mut self, session: usize) {
        let mut gates = Vec::new();
        while let Some(at) = self.waiters.iter().position(|w| w.session == session) {
            gates.extend(gates_of(&self.waiters.remove(at)));
        }
        while let Some(at) = self.holders.iter().position(|h| h.session == session) {
            gates.push(self.holders[at].gate);
            self.leave(at);
        }
        let mut once = Vec::new();
        gates.retain(|gate| {
            let new = !once.contains(gate);
            once.push(*gate);
            new
        });
        self.settle(&gates);
    }

    /// Time passes until `now`: deadlines come in their order, holds before waits.
    pub(crate) fn tick(&mut self, now: u64) {
        self.now = now;
        loop {
            let hold = self.holders.iter().enumerate();
            let hold = hold.filter_map(|(at, h)| h.until.map(|until| (until, 0, at as u64)));
            let wait = self.waiters.iter().map(|w| (w.deadline, 1, w.arrival));
            let Some((at, kind, which)) = hold.chain(wait).min().filter(|due| due.0 <= now) else {
                return;
            };
            assert!(at <= now);
            if kind == 0 {
                let Holder { session, gate, .. } = self.holders[which as usize];
                self.leave(which as usize);
                self.told.push(Told::Lost { session, gate });
                self.settle(&[gate]);
            } else {
                let at = self
                    .waiters
                    .iter()
                    .position(|w| w.arrival == which)
                    .unwrap();
                let waiter = self.waiters.remove(at);
                self.told.push(Told::TimedOut {
                    session: waiter.session,
                });
                self.settle(&gates_of(&waiter));
            }
        }
    }

    /// Those who wait at a gate, the next one first.
    pub(crate) fn order(&self, gate: usize) -> Vec<&Waiter> {
        let mut order: Vec<&Waiter> = self
            .waiters
            .iter()
            .filter(|w| w.leg(gate).is_some())
            .collect();
        order.sort_by_key(|w| self.rank(w, gate));
        order
    }

    fn rank(&self, waiter: &Waiter, gate: usize) -> (u8, u32, u64) {
        let (leg, arrival) = (waiter.leg(gate).unwrap(), waiter.arrival);
        if arrival <= self.spent[gate] {
            return (0, 0, arrival);
        }
        let preferred = match self.gates[gate].order {
            GateOrder::Arrival => return (2, 0, arrival),
            GateOrder::Class => false,
            GateOrder::Rank => unreachable!("elections have a model of their own"),
            GateOrder::Readers => leg.mode == Mode::Shared,
            GateOrder::Writers => leg.mode == Mode::Exclusive,
        };
        (
            if preferred && !waiter.set { 1 } else { 2 },
            leg.class,
            arrival,
        )
    }

    /// Lets in at these gates, one gate after the other, whoever's turn it is.
    fn settle(&mut self, gates: &[usize]) {
        if self.flaw == Flaw::LosesWakeups {
            return;
        }
        for gate in gates {
            // A set may open a room's door at its other gates, so these come next.
            let mut touched = vec![*gate];
            let mut at = 0;
            while at < touched.len() {
                let gate = touched[at];
                at += 1;
                while let Some(next) = self.next(gate) {
                    let Waiter {
                        session, arrival, ..
                    } = next;
                    touched.extend(gates_of(&next).into_iter().filter(|other| *other != gate));
                    let fences = self.enter(arrival, true);
                    self.told.push(Told::Entered { session, fences });
                }
            }
        }
    }

    fn next(&self, gate: usize) -> Option<Waiter> {
        let order = self.order(gate);
        let next = order.into_iter().find(|w| self.may_enter(w.arrival));
        next.cloned()
    }

    pub(crate) fn may_enter(&self, arrival: u64) -> bool {
        let waiter = self.waiter(arrival);
        let mut legs = waiter.legs.iter();
        legs.all(|leg| self.may_enter_at(leg.gate, arrival))
    }

    /// Everybody ahead who could enter here, but has to wait elsewhere, counts as inside.
    pub(crate) fn may_enter_at(&self, gate: usize, arrival: u64) -> bool {
        let mut inside: Vec<&Mode> = self.inside(gate).map(|h| &h.mode).collect();
        for waiter in self.order(gate) {
            let mode = &waiter.leg(gate).unwrap().mode;
            let joins = self.joins(gate, &inside, mode, waiter.needs_ms);
            if waiter.arrival == arrival {
                return joins;
            }
            // Those of another room do not close an open door; but only a room that is inside has one.
            let has_door =
                self.gates[gate].rule == Rule::Rooms && self.inside(gate).next().is_some();
            if joins {
                inside.push(mode);
            } else if !has_door {
                return false;
            }
        }
        unreachable!("the waiter stands in the queue")
    }

    /// Whether one may join those inside, some of whom are only counted as such.
    fn joins(&self, gate: usize, inside: &[&Mode], mode: &Mode, needs_ms: Option<u64>) -> bool {
        let definition = &self.gates[gate];
        let spare = u64::from(self.flaw == Flaw::AdmitsOneTooMany);
        match definition.rule {
            Rule::Mutex | Rule::Shared | Rule::Election => {
                let rivals = inside.iter().filter(|other| mode.conflicts(other)).count() as u64;
                rivals <= spare
            }
            Rule::Permits(k) => {
                let units: u64 = inside.iter().map(|mode| units_of(mode)).sum();
                units + units_of(mode) <= u64::from(k) + spare
            }
            Rule::Rooms => {
                if inside.is_empty() {
                    return true;
                }
                let same = inside.iter().all(|other| *other == mode);
                let most = definition.capacity.map_or(usize::MAX, |c| c as usize);
                (same || spare > 0)
                    && inside.len() < most
                    && self.door_is_open(gate)
                    && self.fits_stay(gate, needs_ms)
            }
        }
    }

    fn door_is_open(&self, gate: usize) -> bool {
        let Some(member) = self.inside(gate).next() else {
            return true;
        };
        let nobody_else = self
            .order(gate)
            .iter()
            .all(|w| w.leg(gate).unwrap().mode == member.mode);
        nobody_else || self.inside(gate).any(|h| h.leads)
    }

    fn fits_stay(&self, gate: usize, needs_ms: Option<u64>) -> bool {
        let (Some(stay), needs) = (self.gates[gate].stay_ms, needs_ms.unwrap_or(1)) else {
            return true;
        };
        let since = self.inside(gate).next().map_or(self.now, |h| h.room_since);
        self.now + needs <= since + stay
    }

    /// Lets a waiter in at all of its gates.
    fn enter(&mut self, arrival: u64, by_order: bool) -> Vec<u64> {
        let waiter = self.waiter(arrival).clone();
        let mut fences = Vec::new();
        for leg in &waiter.legs {
            let gate = leg.gate;
            let behind: Vec<u64> = self.order(gate).iter().map(|w| w.arrival).collect();
            let at = behind.iter().position(|other| *other == arrival).unwrap();
            let through_door =
                self.gates[gate].rule == Rule::Rooms && self.inside(gate).next().is_some();
            if by_order && !through_door {
                self.overtake(gate, arrival, &behind[at + 1..]);
            }
            let fence = self.take(waiter.session, gate, leg.mode.clone());
            fences.push(fence);
            self.events.push(Event::Entered {
                session: id(waiter.session),
                gate: name(gate),
                mode: leg.mode.clone(),
                class: leg.class,
                fence: Fence(fence),
                turn: match by_order {
                    true if through_door => Turn::Door,
                    true => Turn::Order,
                    false => Turn::Dependents,
                },
                ticket: Some(Ticket(arrival)),
                together: waiter.legs.len() as u32,
            });
            if self.flaw == Flaw::SplitsSets {
                break;
            }
        }
        self.waiters.retain(|w| w.arrival != arrival);
        fences
    }

    fn overtake(&mut self, gate: usize, arrival: u64, behind: &[u64]) {
        if !self.counts_overtakes || self.flaw == Flaw::ForgetsOvertakes {
            return;
        }
        let most = self.gates[gate].overtakes;
        for waiter in &mut self.waiters {
            if behind.contains(&waiter.arrival) && waiter.arrival < arrival {
                let leg = waiter.legs.iter_mut().find(|leg| leg.gate == gate).unwrap();
                leg.overtaken += 1;
                if leg.overtaken >= most {
                    self.spent[gate] = self.spent[gate].max(waiter.arrival);
                }
            }
        }
    }

    fn take(&mut self, session: usize, gate: usize, mode: Mode) -> u64 {
        let definition = &self.gates[gate];
        let room_since = self.inside(gate).next().map_or(self.now, |h| h.room_since);
        let empty = self.inside(gate).next().is_none();
        // A fence is shared as long as all who ever had it could be inside together.
        let (company, newest) = &self.company[gate];
        let alike = company.iter().all(|other| !mode.conflicts(other));
        let fit = match definition.rule {
            Rule::Permits(k) => {
                company.iter().map(units_of).sum::<u64>() + units_of(&mode) <= u64::from(k)
            }
            _ => definition
                .capacity
                .is_none_or(|most| company.len() < most as usize),
        };
        let shared = !empty && !company.is_empty() && alike && fit && mode != Mode::Exclusive;
        let fence = if shared || self.flaw == Flaw::RepeatsFences && *newest > 0 {
            *newest
        } else {
            self.fence[gate] += 1;
            self.fence[gate]
        };
        if shared {
            self.company[gate].0.push(mode.clone());
        } else {
            self.company[gate] = (vec![mode.clone()], fence);
        }
        let lease = definition.lease_ms.map(|lease| self.now + lease);
        let stay = definition.stay_ms.map(|stay| room_since + stay);
        self.holders.push(Holder {
            session,
            gate,
            leads: empty && definition.rule == Rule::Rooms,
            mode,
            fence,
            until: [lease, stay].into_iter().flatten().min(),
            room_since,
        });
        fence
    }

    fn leave(&mut self, at: usize) {
        let Holder {
            session,
            gate,
            fence,
            ..
        } = self.holders.remove(at);
        self.events.push(Event::Left {
            session: id(session),
            gate: name(gate),
            fence: Fence(fence),
        });
        if self.inside(gate).next().is_none() {
            self.company[gate].0.clear();
        }
    }

    pub(crate) fn inside(&self, gate: usize) -> impl Iterator<Item = &Holder> {
        self.holders.iter().filter(move |h| h.gate == gate)
    }

    pub(crate) fn waiter(&self, arrival: u64) -> &Waiter {
        self.waiters.iter().find(|w| w.arrival == arrival).unwrap()
    }

    pub(crate) fn blocked(&self, session: usize) -> bool {
        let mut mine = self.waiters.iter().filter(|w| w.session == session);
        mine.any(|w| !w.asynchronous)
    }

    fn holds(&self, session: usize, gate: usize) -> Option<usize> {
        self.holders
            .iter()
            .position(|h| (h.session, h.gate) == (session, gate))
    }
}

pub(crate) fn id(session: usize) -> SessionId {
    SessionId::implicit(session as u64)
}

pub(crate) fn name(gate: usize) -> Name {
    Name::new(&format!("g{gate}")).unwrap()
}

fn gates_of(waiter: &Waiter) -> Vec<usize> {
    waiter.legs.iter().map(|leg| leg.gate).collect()
}

fn units_of(mode: &Mode) -> u64 {
    match mode {
        Mode::Permits(h) => u64::from(*h),
        _ => 1,
    }
}
