//! Deadlock: a wait that nobody could end is refused at the moment it would close the knot.
//!
//! A session is *stuck* while one of its blocking waits is pending: it gives nothing back meanwhile. Every other session is
//! assumed to give back all that it holds, sooner or later. Under that assumption the waits are let in one after the other,
//! by the rules by which gates admit; a session that enters is no longer stuck. Those that remain cannot end their waits by
//! themselves: for exclusive waits that is a cycle, for permits and readers (where any of several may help) a knot.
//!
//! Decided: only what a session does by itself counts as an end. A wait limit, a hold limit and a TTL are failures, so a wait
//! that only they could end is refused, too: the caller hears of it at once, with the cycle by name, instead of losing time
//! or a hold. An asynchronous wait blocks nobody, so it is never refused. A session that lost its connection can act again
//! once it is resumed, so it is not stuck.
//!
//! The search is linear in the waits and holds on which the wait may depend: whoever is let in has only those gates looked at
//! again that it leaves. It is left out where the new wait keeps nobody waiting, because then it closes no cycle. Beyond the
//! limit `deadlock_steps` the wait is refused: a deadlock that nobody looks for would never be found.

use std::cell::Cell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CROWD, Local};
use crate::error::{CycleLink, Refusal, Word};
use crate::gate::{GateKey, HoldKey, Mode, Occupancy, PresentRoom, Rule};
use crate::session::SessionKey;
use crate::wait::WaitKey;
use crate::worklist::Worklist;

/// Sessions that wait only for each other.
#[derive(Default)]
pub(super) struct Knot {
    /// Every gate on which the wait in question may depend.
    parts: Vec<Part>,
    part_of: FxHashMap<GateKey, usize>,
    people: Vec<Person>,
    person_of: FxHashMap<SessionKey, usize>,
    steps: Cell<usize>,
    steps_max: usize,
}

/// The stuck sessions at one gate.
struct Part {
    gate: GateKey,
    inside: Vec<(usize, HoldKey)>,
    /// Of those inside who are still stuck.
    count: u32,
    units: u64,
    exclusive: u32,
    /// Those who wait, the next one first. Those before `gone` are not stuck any more; others who are not are dropped when
    /// they are met.
    queue: Vec<Stuck>,
    gone: usize,
}

/// A blocking wait in one queue.
#[derive(Clone, Copy)]
struct Stuck {
    person: usize,
    wait: WaitKey,
    leg: u32,
    /// The position in the gate's queue.
    at: usize,
}

struct Person {
    session: SessionKey,
    stuck: bool,
    /// The parts that it is inside.
    inside: Vec<(usize, HoldKey)>,
}

/// The search has reached its limit.
struct TooLong;

/// Who is in whose way: the part where they meet, and whether the other one is inside there.
#[derive(Clone, Copy)]
struct Hop {
    from: usize,
    to: usize,
    part: usize,
    holds: bool,
}

/// What the way through a knot has seen of a part, so that it looks at everybody there once.
#[derive(Default)]
struct Shown {
    /// Up to which position those who wait were shown.
    queue: usize,
    /// The first of those inside that are in the way of a reader, and of any other.
    inside: [Option<Option<usize>>; 2],
    turns: Option<FxHashSet<WaitKey>>,
}

impl Local {
    /// The knot that a wait, just put into its queues, would be part of. Refused with `LIMIT` if too many wait for each other
    /// to tell.
    pub(super) fn deadlock(&mut self, now: u64, w: WaitKey) -> Result<Option<Knot>, Refusal> {
        if self.entangled == 0 || self.waits[w].asynchronous || self.drains(w) {
            return Ok(None);
        }
        let (keeps_somebody, steps) = self.keeps_somebody(w);
        self.counters.deadlock_steps += steps;
        if !keeps_somebody {
            return Ok(None);
        }
        let mut knot = Knot {
            steps_max: self.limits.deadlock_steps,
            ..Knot::default()
        };
        let found = knot.search(self, now, w);
        self.counters.deadlock_steps += knot.steps.get() as u64;
        match found {
            Ok(stuck) => Ok(stuck.then_some(knot)),
            Err(TooLong) => Err(Refusal::new(
                Word::Limit,
                format!(
                    "the limit deadlock_steps of {} is reached: too many wait for each other to tell whether this wait \
                     could end; give something back, ask again later, or ask with ASYNC",
                    self.limits.deadlock_steps
                ),
            )),
        }
    }

    /// Whether a wait can obviously end: nobody inside its gates is stuck, and nobody in their queues also waits elsewhere.
    /// This common case needs no look at a long queue.
    fn drains(&self, w: WaitKey) -> bool {
        let wait = &self.waits[w];
        wait.legs.iter().all(|leg| {
            let gate = &self.gates[leg.gate];
            let mut inside = gate.inside.inside(&self.holds);
            gate.queue.sets() == usize::from(wait.set())
                && gate.inside.len() <= CROWD
                && inside.all(|(_, hold)| self.sessions[hold.session].blocked == 0)
        })
    }

    /// Whether anybody's turn may depend on a new wait: it stands behind the wait, or waits for what the wait's session holds.
    /// Otherwise the wait closes no cycle. Also says how many gates it took to tell.
    fn keeps_somebody(&self, w: WaitKey) -> (bool, u64) {
        let wait = &self.waits[w];
        let mut steps = 0;
        // Whoever waits for another room keeps a door shut, even as the last one.
        let ahead = wait.legs.iter().any(|leg| {
            steps += 1;
            let gate = &self.gates[leg.gate];
            let last = gate.queue.queued(gate.queue.len() - 1);
            gate.definition.rule == Rule::Rooms || last.is_none_or(|last| last.wait != w)
        });
        let mut holds = self.sessions[wait.session].holds.of_session(&self.holds);
        let wanted = ahead
            || holds.any(|(_, hold)| {
                steps += 1;
                !self.gates[hold.gate].queue.is_empty()
            });
        (wanted, steps)
    }

    fn blocking_waits(&self, s: SessionKey) -> impl Iterator<Item = WaitKey> {
        let waits = self.sessions[s].waits.iter().copied();
        waits.filter(|w| !self.waits[*w].asynchronous)
    }
}

impl Knot {
    /// Finds who is stuck; says whether the wait's session is.
    fn search(&mut self, local: &Local, now: u64, w: WaitKey) -> Result<bool, TooLong> {
        self.gather(local, w)?;
        let asker = self.person_of[&local.waits[w].session];
        self.untie(local, now, asker)?;
        let people = &self.people;
        for part in &mut self.parts {
            part.inside.retain(|(person, _)| people[*person].stuck);
            part.queue.retain(|queued| people[queued.person].stuck);
            part.gone = 0;
        }
        Ok(people[asker].stuck)
    }

    fn step(&self) {
        self.steps.set(self.steps.get() + 1);
    }

    fn within_limit(&self) -> Result<(), TooLong> {
        match self.steps.get() <= self.steps_max {
            true => Ok(()),
            false => Err(TooLong),
        }
    }

    /// All stuck sessions on which a wait may depend, directly or indirectly.
    fn gather(&mut self, local: &Local, w: WaitKey) -> Result<(), TooLong> {
        self.reach(local, w);
        let mut at = 0;
        while let Some(g) = self.parts.get(at).map(|part| part.gate) {
            let gate = &local.gates[g];
            for (h, hold) in gate.inside.inside(&local.holds) {
                self.step();
                self.within_limit()?;
                if local.sessions[hold.session].blocked > 0 {
                    let person = self.person(local, hold.session);
                    self.people[person].inside.push((at, h));
                    let part = &mut self.parts[at];
                    part.inside.push((person, h));
                    part.count += 1;
                    part.units += hold.mode.units();
                    part.exclusive += u32::from(hold.mode.exclusive());
                }
            }
            for (position, queued) in gate.queue.iter().enumerate() {
                self.step();
                self.within_limit()?;
                let wait = &local.waits[queued.wait];
                // An asynchronous waiter enters, is cancelled, or belongs to a session that can act.
                if !wait.asynchronous {
                    let person = self.person(local, wait.session);
                    self.parts[at].queue.push(Stuck {
                        person,
                        wait: queued.wait,
                        leg: queued.leg,
                        at: position,
                    });
                }
            }
            at += 1;
        }
        Ok(())
    }

    fn reach(&mut self, local: &Local, w: WaitKey) {
        for leg in local.waits[w].legs.iter() {
            self.step();
            self.part_of.entry(leg.gate).or_insert_with(|| {
                self.parts.push(Part {
                    gate: leg.gate,
                    inside: Vec::new(),
                    count: 0,
                    units: 0,
                    exclusive: 0,
                    queue: Vec::new(),
                    gone: 0,
                });
                self.parts.len() - 1
            });
        }
    }

    fn person(&mut self, local: &Local, session: SessionKey) -> usize {
        if let Some(person) = self.person_of.get(&session) {
            return *person;
        }
        let person = self.people.len();
        self.person_of.insert(session, person);
        self.people.push(Person {
            session,
            stuck: true,
            inside: Vec::new(),
        });
        for w in local.blocking_waits(session) {
            self.reach(local, w);
        }
        person
    }

    /// Lets in every waiter that can be let in, until no other can, or until the asker was let in.
    fn untie(&mut self, local: &Local, now: u64, asker: usize) -> Result<(), TooLong> {
        // In most cases those who were found last wait for nobody who was found before them.
        let mut worklist = Worklist::backwards(self.parts.len());
        let mut freed = Vec::new();
        while let Some(at) = worklist.take() {
            self.untie_at(local, now, at, &mut freed)?;
            for person in freed.drain(..) {
                for (left, h) in std::mem::take(&mut self.people[person].inside) {
                    self.step();
                    let mode = &local.holds[h].mode;
                    let part = &mut self.parts[left];
                    part.count -= 1;
                    part.units -= mode.units();
                    part.exclusive -= u32::from(mode.exclusive());
                    worklist.put(left);
                }
                for w in local.blocking_waits(self.people[person].session) {
                    for leg in local.waits[w].legs.iter() {
                        self.step();
                        worklist.put(self.part_of[&leg.gate]);
                    }
                }
            }
            if !self.people[asker].stuck {
                return Ok(());
            }
        }
        Ok(())
    }

    fn untie_at(
        &mut self,
        local: &Local,
        now: u64,
        at: usize,
        freed: &mut Vec<usize>,
    ) -> Result<(), TooLong> {
        let gate = self.parts[at].gate;
        let gone = self.parts[at].gone;
        let (mut next, mut kept) = (gone, gone);
        let mut occupancy = self.occupancy(local, now, at);
        while let Some(queued) = self.parts[at].queue.get(next).copied() {
            if occupancy.closed() {
                break;
            }
            self.step();
            self.within_limit()?;
            next += 1;
            if !self.people[queued.person].stuck {
                continue;
            }
            let wait = &local.waits[queued.wait];
            let mut with_it = occupancy.clone();
            if with_it.admit(&wait.legs[queued.leg as usize].mode, wait.needs_ms) {
                let mut elsewhere = wait.legs.iter().filter(|leg| leg.gate != gate);
                if elsewhere.all(|leg| self.turn_at(local, now, leg.gate, queued.wait)) {
                    // It enters and leaves again: those behind it find the gate as before.
                    self.people[queued.person].stuck = false;
                    freed.push(queued.person);
                    continue;
                }
            }
            occupancy = with_it;
            self.parts[at].queue[kept] = queued;
            kept += 1;
        }
        let part = &mut self.parts[at];
        match kept == gone {
            true => part.gone = next,
            false => drop(part.queue.drain(kept..next)),
        }
        Ok(())
    }

    /// The waiters at a part that stay where they are.
    fn queue<'a>(&'a self, part: &'a Part) -> impl Iterator<Item = &'a Stuck> {
        part.queue[part.gone..].iter().filter(|queued| {
            self.step();
            self.people[queued.person].stuck
        })
    }

    /// Whether a waiter's turn would come at a gate that all but the stuck have left.
    fn turn_at(&self, local: &Local, now: u64, g: GateKey, w: WaitKey) -> bool {
        let at = self.part_of[&g];
        let mut occupancy = self.occupancy(local, now, at);
        for queued in self.queue(&self.parts[at]) {
            let admitted = queued.admitted(local, &mut occupancy);
            if queued.wait == w {
                return admitted;
            }
            if occupancy.closed() {
                return false;
            }
        }
        false
    }

    /// All whose turn would come there.
    fn turns(&self, local: &Local, now: u64, at: usize) -> FxHashSet<WaitKey> {
        let mut occupancy = self.occupancy(local, now, at);
        let mut turns = FxHashSet::default();
        for queued in self.queue(&self.parts[at]) {
            if queued.admitted(local, &mut occupancy) {
                turns.insert(queued.wait);
            }
            if occupancy.closed() {
                break;
            }
        }
        turns
    }

    /// The stuck sessions inside a gate.
    fn occupancy<'a>(&self, local: &'a Local, now: u64, at: usize) -> Occupancy<'a> {
        let part = &self.parts[at];
        let gate = &local.gates[part.gate];
        let round = gate.round.as_ref().filter(|_| part.count > 0);
        let room = round.map(|round| {
            let leader = round.leader.map(|h| local.holds[h].session);
            let leader = leader.and_then(|session| self.person_of.get(&session));
            let of_room =
                |queued: &Stuck| matches!(queued.mode(local), Mode::Room(r) if *r == round.room);
            PresentRoom {
                name: &round.room,
                door_open: leader.is_some_and(|leader| self.people[*leader].stuck)
                    || self.queue(part).all(of_room),
                left_ms: gate
                    .definition
                    .stay_ms
                    .map(|stay| round.since.saturating_add(stay).saturating_sub(now)),
            }
        });
        let exclusive = part.exclusive > 0;
        Occupancy::inside(&gate.definition, part.count, part.units, exclusive, room)
    }

    /// Whether only waiters of this knot keep the wait out, and they cannot enter any sooner because it waits. Then letting
    /// it pass delays nobody and ends the knot. Only sets can be in the way like this: they wait in a queue whose gate may be
    /// free.
    pub(super) fn only_dependents_ahead(&self, local: &Local, now: u64, w: WaitKey) -> bool {
        let wait = &local.waits[w];
        wait.legs.iter().all(|leg| {
            let queue = &self.parts[self.part_of[&leg.gate]].queue;
            let own = queue.iter().enumerate().find(|(_, e)| e.wait == w);
            own.is_some_and(|(ahead, e)| ahead == e.at)
                && local.fits(now, leg.gate, &leg.mode, wait.needs_ms)
        })
    }

    /// The shortest way from a stuck session back to itself. If the session only keeps a room's door shut for others and so
    /// knots them, a cycle of that knot.
    pub(super) fn cycle(&self, local: &Local, now: u64, s: SessionKey) -> Vec<CycleLink> {
        let asker = self.person_of[&s];
        let mut shown: Vec<Shown> = self.parts.iter().map(|_| Shown::default()).collect();
        let mut came: Vec<Option<Hop>> = vec![None; self.people.len()];
        let mut firsts = came.clone();
        let mut reached = vec![asker];
        let mut at = 0;
        while let Some(&from) = reached.get(at) {
            at += 1;
            let mut closes = None;
            self.blockers(local, now, from, &mut shown, |hop| {
                firsts[from].get_or_insert(hop);
                if hop.to == asker {
                    closes.get_or_insert(hop);
                } else if came[hop.to].is_none() {
                    came[hop.to] = Some(hop);
                    reached.push(hop.to);
                }
            });
            if let Some(last) = closes {
                let back = std::iter::successors(Some(last), |hop| came[hop.from]);
                let mut links: Vec<CycleLink> = back.map(|hop| self.link(local, hop)).collect();
                links.reverse();
                return links;
            }
        }
        // Follows the first blocker of each session until one comes up again.
        let mut way: Vec<Hop> = Vec::new();
        let mut position: Vec<Option<usize>> = vec![None; self.people.len()];
        let mut next = firsts[asker];
        while let Some(hop) = next {
            position[hop.from] = Some(way.len());
            way.push(hop);
            if let Some(begin) = position[hop.to] {
                way.drain(..begin);
                break;
            }
            next = firsts[hop.to];
        }
        way.into_iter().map(|hop| self.link(local, hop)).collect()
    }

    fn link(&self, local: &Local, hop: Hop) -> CycleLink {
        CycleLink {
            session: local.sessions[self.people[hop.from].session].id,
            gate: local.gates[self.parts[hop.part].gate].name.clone(),
            blocker_holds: hop.holds,
        }
    }

    /// Shows who is in a session's way: the first one, and all that were not shown before to anybody.
    fn blockers(
        &self,
        local: &Local,
        now: u64,
        from: usize,
        shown: &mut [Shown],
        mut show: impl FnMut(Hop),
    ) {
        for w in local.blocking_waits(self.people[from].session) {
            for leg in local.waits[w].legs.iter() {
                let at = self.part_of[&leg.gate];
                let (part, shown) = (&self.parts[at], &mut shown[at]);
                let turns = shown
                    .turns
                    .get_or_insert_with(|| self.turns(local, now, at));
                if turns.contains(&w) {
                    continue;
                }
                let position = local.gates[part.gate].queue.position(leg.rank);
                let own = part.queue.partition_point(|queued| queued.at < position);
                let mut hop = |to, holds| {
                    show(Hop {
                        from,
                        to,
                        part: at,
                        holds,
                    });
                };
                let gate = &local.gates[part.gate];
                let any_helps = matches!(gate.definition.rule, Rule::Permits(_) | Rule::Rooms);
                let first = &mut shown.inside[usize::from(leg.mode == Mode::Shared)];
                match first {
                    Some(first) => drop(first.map(|first| hop(first, true))),
                    None => {
                        let blocks =
                            |h: HoldKey| any_helps || leg.mode.conflicts(&local.holds[h].mode);
                        let inside = part.inside.iter().filter(|(_, h)| blocks(*h));
                        inside.clone().for_each(|(inside, _)| hop(*inside, true));
                        *first = Some(inside.clone().next().map(|(inside, _)| *inside));
                    }
                }
                match shown.queue < own {
                    true => part.queue[shown.queue..own]
                        .iter()
                        .for_each(|e| hop(e.person, false)),
                    false => part.queue[..own.min(1)]
                        .iter()
                        .for_each(|e| hop(e.person, false)),
                }
                shown.queue = shown.queue.max(own);
            }
        }
    }
}

impl Stuck {
    fn mode<'a>(&self, local: &'a Local) -> &'a Mode {
        &local.waits[self.wait].legs[self.leg as usize].mode
    }

    fn admitted<'a>(&self, local: &'a Local, occupancy: &mut Occupancy<'a>) -> bool {
        occupancy.admit(self.mode(local), local.waits[self.wait].needs_ms)
    }
}
