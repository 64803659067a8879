//! Cycles of waits, in what a walk has seen at several nodes.
//!
//! A session is *stuck* while its client is blocked in a call: it gives nothing back meanwhile. Every other session, and
//! every session of which nothing was seen, is assumed to give back all that it holds, sooner or later. Under that assumption
//! the waits are let in one after the other, by the rules by which gates admit, and a session that gets in is no longer
//! stuck. So a waiter behind permits, readers or a room is stuck only if no release that may still come lets it in, and one
//! behind an earlier waiter only if that one is stuck too. The sessions that remain cannot end their waits by themselves.
//!
//! Among those that remain, a *knot* is a smallest set that waits for nobody outside of it. The others only wait for a knot;
//! refusing one of them would help nobody.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::seen::{GateSeen, Insider, Queued, SessionSeen};
use crate::error::CycleLink;
use crate::fence::Fence;
use crate::gate::{Mode, Occupancy, PresentRoom, Rule};
use crate::name::Name;
use crate::ownership::{Index, Number};
use crate::session::SessionId;

/// What a walk has seen.
#[derive(Debug, Default)]
pub(super) struct Sight {
    pub(super) gates: BTreeMap<Name, GateSeen>,
    pub(super) sessions: BTreeMap<SessionId, Known>,
}

/// What its home says about a session.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) waits: BTreeMap<u64, Name>,
    pub(super) holds: BTreeSet<(Name, Fence)>,
    began: Index,
}

/// Sessions that wait only for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Knot {
    pub(super) members: BTreeSet<SessionId>,
    /// All their waits and holds. If they are seen twice, they lasted all the time in between.
    facts: BTreeSet<Fact>,
    /// The session whose wait is refused: the youngest whose end lets another one in.
    pub(super) victim: SessionId,
    /// The wait that is refused.
    pub(super) ask: u64,
    /// Who waits for whom, from the victim back to it.
    pub(super) cycle: Vec<CycleLink>,
}

/// A fact that lasts as long as the knot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fact {
    Holds(Name, Number, SessionId, Fence),
    /// The last number is the position among the knot's waits.
    Waits(Name, Number, SessionId, u64, usize),
}

type Stuck = BTreeSet<SessionId>;

impl Sight {
    /// Adds what a home says about a session; holds that it named before stay.
    pub(super) fn add(&mut self, seen: SessionSeen) {
        let waits = seen.waits.into_iter().collect();
        let known = self.sessions.entry(seen.session).or_insert(Known {
            waits,
            holds: BTreeSet::new(),
            began: seen.began,
        });
        known.holds.extend(seen.holds);
    }

    /// All knots.
    pub(super) fn knots(&self) -> Vec<Knot> {
        let stuck = self.untie(self.blocked());
        let ways: BTreeMap<SessionId, Stuck> = stuck
            .iter()
            .map(|session| (*session, self.reached(*session, &stuck)))
            .collect();
        let mut knots: Vec<Stuck> = Vec::new();
        for (session, reached) in &ways {
            let back = |other: &SessionId| ways[other].contains(session);
            let closed = reached.contains(session) && reached.iter().all(back);
            if closed && !knots.contains(reached) {
                knots.push(reached.clone());
            }
        }
        let knots = knots.into_iter();
        knots.filter_map(|members| self.knot(members)).collect()
    }

    /// Sessions whose client is blocked, as the owner of each gate confirms.
    fn blocked(&self) -> Stuck {
        let blocked = self.sessions.iter().filter(|(session, known)| {
            let waits_at = |(ask, gate): (&u64, &Name)| {
                let gate = self.gates.get(gate);
                gate.is_some_and(|gate| {
                    let mut queue = gate.queue.iter();
                    queue.any(|queued| (queued.session, queued.ask) == (**session, *ask))
                })
            };
            !known.waits.is_empty() && known.waits.iter().all(waits_at)
        });
        blocked.map(|(session, _)| *session).collect()
    }

    /// Lets in every session that can be let in, until no other can.
    fn untie(&self, mut stuck: Stuck) -> Stuck {
        loop {
            let before = stuck.len();
            for gate in self.gates.values() {
                self.untie_at(gate, &mut stuck);
            }
            if stuck.len() == before {
                return stuck;
            }
        }
    }

    fn untie_at(&self, gate: &GateSeen, stuck: &mut Stuck) {
        let mut freed = Stuck::new();
        let mut occupancy = self.occupancy(gate, stuck);
        for queued in self.queue(gate, stuck) {
            if occupancy.closed() {
                break;
            }
            let mut with_it = occupancy.clone();
            match with_it.admit(&queued.mode, queued.needs_ms) {
                // It enters and leaves again: those behind it find the gate as before.
                true => drop(freed.insert(queued.session)),
                false => occupancy = with_it,
            }
        }
        stuck.retain(|session| !freed.contains(session));
    }

    /// The stuck sessions inside a gate, as their homes confirm.
    fn inside<'a>(
        &'a self,
        gate: &'a GateSeen,
        stuck: &'a Stuck,
    ) -> impl Iterator<Item = &'a Insider> {
        gate.inside.iter().filter(|insider| {
            let known = self.sessions.get(&insider.session);
            let hold = (gate.gate.clone(), insider.fence);
            stuck.contains(&insider.session)
                && known.is_some_and(|known| known.holds.contains(&hold))
        })
    }

    /// The stuck sessions that wait at a gate, in order.
    fn queue<'a>(
        &'a self,
        gate: &'a GateSeen,
        stuck: &'a Stuck,
    ) -> impl Iterator<Item = &'a Queued> {
        gate.queue.iter().filter(|queued| {
            let known = self.sessions.get(&queued.session);
            stuck.contains(&queued.session)
                && known.is_some_and(|known| known.waits.contains_key(&queued.ask))
        })
    }

    fn occupancy<'a>(&'a self, gate: &'a GateSeen, stuck: &'a Stuck) -> Occupancy<'a> {
        let (mut count, mut units, mut exclusive, mut leads) = (0, 0, false, false);
        for insider in self.inside(gate, stuck) {
            count += 1;
            units += insider.mode.units();
            exclusive |= insider.mode.exclusive();
            leads |= insider.leads;
        }
        let room = gate.room.as_ref().filter(|_| count > 0);
        let room = room.map(|(name, left_ms)| PresentRoom {
            name,
            door_open: leads
                || !self
                    .queue(gate, stuck)
                    .any(|queued| of_other_room(queued, name)),
            left_ms: *left_ms,
        });
        Occupancy::inside(&gate.definition, count, units, exclusive, room)
    }

    /// Who is in the way of a stuck session: those inside if it could not join them, otherwise those ahead of it.
    fn blockers<'a>(&'a self, session: SessionId, stuck: &'a Stuck) -> Vec<(SessionId, CycleLink)> {
        let mut blockers = Vec::new();
        for (ask, name) in &self.sessions[&session].waits {
            let Some(gate) = self.gates.get(name) else {
                continue;
            };
            let own = |queued: &&Queued| (queued.session, queued.ask) == (session, *ask);
            let Some(wait) = gate.queue.iter().find(own) else {
                continue;
            };
            let link = |blocker_holds| CycleLink {
                session,
                gate: name.clone(),
                blocker_holds,
            };
            let fits = self.occupancy(gate, stuck).admit(&wait.mode, wait.needs_ms);
            let rooms = gate.definition.rule == Rule::Rooms;
            if !fits {
                let any_helps = rooms || matches!(gate.definition.rule, Rule::Permits(_));
                let inside = self.inside(gate, stuck);
                let ways = inside.filter(|insider| any_helps || wait.mode.conflicts(&insider.mode));
                blockers.extend(ways.map(|insider| (insider.session, link(true))));
            }
            if fits || rooms {
                let ahead = self.queue(gate, stuck).take_while(|queued| !own(queued));
                blockers.extend(ahead.map(|queued| (queued.session, link(false))));
            }
            // A waiter for another room keeps this room's door shut, wherever in the queue it is.
            if let (true, Mode::Room(room)) = (rooms, &wait.mode) {
                let behind = self.queue(gate, stuck).skip_while(|queued| !own(queued));
                let others = behind.filter(|queued| of_other_room(queued, room));
                blockers.extend(others.map(|queued| (queued.session, link(false))));
            }
        }
        blockers
    }

    /// Every session that a session waits for, directly or indirectly.
    fn reached(&self, session: SessionId, stuck: &Stuck) -> Stuck {
        let (mut reached, mut next) = (Stuck::new(), vec![session]);
        while let Some(at) = next.pop() {
            for (blocker, _) in self.blockers(at, stuck) {
                if reached.insert(blocker) {
                    next.push(blocker);
                }
            }
        }
        reached
    }

    fn knot(&self, members: Stuck) -> Option<Knot> {
        // Whatever all others do, these stay stuck.
        if self.untie(members.clone()) != members {
            return None;
        }
        let mut facts = BTreeSet::new();
        let mut inside = Stuck::new();
        for gate in self.gates.values() {
            let name = || gate.gate.clone();
            for insider in self.inside(gate, &members) {
                inside.insert(insider.session);
                let (session, fence) = (insider.session, insider.fence);
                facts.insert(Fact::Holds(name(), gate.number, session, fence));
            }
            for (at, queued) in self.queue(gate, &members).enumerate() {
                let (session, ask) = (queued.session, queued.ask);
                facts.insert(Fact::Waits(name(), gate.number, session, ask, at));
            }
        }
        let frees = |session: &&SessionId| {
            let mut others = members.clone();
            others.remove(session);
            self.untie(others.clone()) != others
        };
        // A session that is inside nothing has nothing to give back. If no single one lets another one in, several will be
        // refused in turn.
        let youngest = |session: &&SessionId| (self.sessions[session].began, **session);
        let helpful = inside.iter().filter(frees).max_by_key(youngest);
        let victim = *helpful.or_else(|| inside.iter().max_by_key(youngest))?;
        Some(Knot {
            ask: *self.sessions[&victim].waits.keys().next()?,
            cycle: self.cycle(victim, &members),
            facts,
            victim,
            members,
        })
    }

    /// The shortest way from a session back to itself.
    fn cycle(&self, session: SessionId, members: &Stuck) -> Vec<CycleLink> {
        let mut seen = Stuck::new();
        let mut ways = VecDeque::from([(session, Vec::new())]);
        while let Some((at, way)) = ways.pop_front() {
            for (blocker, link) in self.blockers(at, members) {
                let mut way: Vec<CycleLink> = way.clone();
                way.push(link);
                if blocker == session {
                    return way;
                }
                if seen.insert(blocker) {
                    ways.push_back((blocker, way));
                }
            }
        }
        Vec::new()
    }
}

fn of_other_room(queued: &Queued, room: &Name) -> bool {
    !matches!(&queued.mode, Mode::Room(other) if other == room)
}
