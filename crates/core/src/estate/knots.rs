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

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::seen::{GateSeen, Insider, Queued, SessionSeen};
use crate::error::CycleLink;
use crate::fence::Fence;
use crate::gate::{Mode, Occupancy, PresentRoom, Rule};
use crate::name::Name;
use crate::ownership::{Index, Number};
use crate::session::SessionId;
use crate::worklist::Worklist;

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
        let people: Vec<SessionId> = stuck.iter().copied().collect();
        let ways: Vec<Vec<usize>> = people
            .iter()
            .map(|session| {
                let blockers = self.blockers(*session, &stuck).into_iter();
                let places = blockers.map(|(blocker, _)| people.binary_search(&blocker));
                places.flatten().collect()
            })
            .collect();
        let knots = closed_circles(&ways).into_iter();
        let knots = knots.map(|places| places.into_iter().map(|at| people[at]).collect());
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
        let gates: Vec<&GateSeen> = self.gates.values().collect();
        let mut worklist = Worklist::backwards(gates.len());
        while let Some(at) = worklist.take() {
            // Whoever gets in leaves its gates, where others may get in then.
            for session in self.untie_at(gates[at], &mut stuck) {
                let known = &self.sessions[&session];
                let held = known.holds.iter().map(|(gate, _)| gate);
                for left in known.waits.values().chain(held) {
                    let at = gates.binary_search_by_key(&left, |gate| &gate.gate);
                    at.into_iter().for_each(|at| worklist.put(at));
                }
            }
        }
        stuck
    }

    fn untie_at(&self, gate: &GateSeen, stuck: &mut Stuck) -> Stuck {
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
        freed
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
        let mut youngest: Vec<&SessionId> = inside.iter().collect();
        youngest.sort_by_key(|session| Reverse((self.sessions[session].began, **session)));
        let mut candidates = youngest.iter().copied();
        let victim = *candidates.find(frees).or(youngest.first().copied())?;
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
        let mut came: BTreeMap<SessionId, CycleLink> = BTreeMap::new();
        let mut reached = vec![session];
        let mut at = 0;
        while let Some(&from) = reached.get(at) {
            at += 1;
            for (blocker, link) in self.blockers(from, members) {
                if blocker == session {
                    let back = |link: &CycleLink| came.get(&link.session).cloned();
                    let mut way: Vec<CycleLink> = std::iter::successors(Some(link), back).collect();
                    way.reverse();
                    return way;
                }
                came.entry(blocker).or_insert_with(|| {
                    reached.push(blocker);
                    link
                });
            }
        }
        Vec::new()
    }
}

/// The smallest sets out of which no way leads, by their least member, after Tarjan: one pass over all ways.
fn closed_circles(ways: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut number: Vec<Option<usize>> = vec![None; ways.len()];
    let mut lowest = vec![0; ways.len()];
    let mut leads_out = vec![false; ways.len()];
    // Those that have a number and no set yet.
    let (mut open, mut is_open) = (Vec::new(), vec![false; ways.len()]);
    let mut numbers = 0..;
    let mut closed = Vec::new();
    for begin in 0..ways.len() {
        let mut path = vec![(begin, 0)];
        while let Some((at, next)) = path.pop() {
            let own = *number[at].get_or_insert_with(|| {
                (lowest[at], is_open[at]) = (numbers.start, true);
                open.push(at);
                numbers.next().unwrap_or(usize::MAX)
            });
            if let Some(&to) = ways[at].get(next) {
                path.push((at, next + 1));
                match number[to] {
                    None => path.push((to, 0)),
                    Some(other) if is_open[to] => lowest[at] = lowest[at].min(other),
                    Some(_) => leads_out[at] = true,
                }
                continue;
            }
            let is_whole = lowest[at] == own && is_open[at];
            if is_whole {
                let first = open.iter().rposition(|other| *other == at).unwrap_or(0);
                let mut members = open.split_off(first);
                members.iter().for_each(|member| is_open[*member] = false);
                let is_closed = !members.iter().any(|member| leads_out[*member]);
                if is_closed && members.iter().any(|member| !ways[*member].is_empty()) {
                    members.sort_unstable();
                    closed.push(members);
                }
            }
            if let Some((before, _)) = path.last() {
                match is_open[at] {
                    true => lowest[*before] = lowest[*before].min(lowest[at]),
                    false => leads_out[*before] = true,
                }
            }
        }
    }
    closed.sort();
    closed
}

fn of_other_room(queued: &Queued, room: &Name) -> bool {
    !matches!(&queued.mode, Mode::Room(other) if other == room)
}
