//! Walks: the home of sessions that hold something and have waited for a while checks whether they wait in a cycle. A walk
//! goes from owner to home to owner: who is in the way, does it still hold that fence, what does it wait for? It ends at a
//! shard that is not open, and at a node that does not know.
//!
//! A walk sees one node after the other, so what it saw may never have been true all at one time. Therefore a walk that has
//! found a [`Knot`] goes round once more. If all waits and fences are the same, they lasted all the time between the rounds:
//! the knot was real, and it stays until one of its sessions is refused. That is the knot's victim, and only the victim's
//! home acts, on its own wait; every other home that finds the knot leaves it alone.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::knots::{Knot, Sight};
use super::seen::{GateSeen, Insider, Look, Queued, Seen, SessionSeen};
use super::table::What;
use super::{Broken, Estate, Frame, Out, Peer};
use crate::error::Refusal;
use crate::fence::Fence;
use crate::name::Name;
use crate::ownership::Shard;
use crate::replicated::Replicated;
use crate::session::SessionId;

/// How long a session has waited before it walks, in milliseconds.
const PATIENCE_MS: u64 = 200;
/// Minimum time between two walks of a home: two per second.
const PACE_MS: u64 = 500;
/// A walk that takes longer is given up.
const WALK_MS_MAX: u64 = 5_000;
/// Cap on sessions of a home that begin one walk; the others are next. After a walk that has reached one of the caps below,
/// half as many begin the next one, down to a single session. So what others wait for hides no short cycle.
const ROOTS_MAX: usize = 64;
/// Cap on how often a walk follows what it has seen to further nodes, each time with at most one frame to every member.
const STEPS_MAX: usize = 64;
/// A cycle of so many sessions is found, each inside one gate and waiting for another: a walk from one of them takes two steps
/// per session.
pub const CYCLE_SESSIONS: usize = STEPS_MAX / 2;
/// Caps on the gates, and on the holders and waiters, that are looked at. Sessions beyond them are assumed to give way
/// eventually.
const GATES_MAX: usize = 64;
const PEOPLE_MAX: usize = 512;
/// Cap on holders, and on waiters, shown per gate. A session that was asked about is always shown.
const SHOWN_MAX: usize = 64;

/// A gate, with a session that waits there.
type AtGate = (Name, SessionId);
/// A session, with the hold that an owner says it has.
type OfSession = (SessionId, Option<(Name, Fence)>);

/// The walks of a home: one at a time.
#[derive(Debug, Default)]
pub(super) struct Walks {
    /// The number of the last look.
    number: u64,
    walk: Option<Walk>,
    begun: u64,
    /// The last session that began a walk, where there are too many.
    last: Option<SessionId>,
    /// How often the number of those that begin a walk was halved.
    halved: u32,
}

#[derive(Debug)]
struct Walk {
    /// The number of its last looks.
    number: u64,
    sight: Sight,
    gates: BTreeSet<Name>,
    sessions: BTreeSet<OfSession>,
    /// Members that have not answered.
    missing: BTreeSet<Peer>,
    /// The last of those that began it, if there are more.
    last: Option<SessionId>,
    steps: usize,
    /// Whether it has reached a cap.
    cut: bool,
    /// What was found, during the second round.
    found: Option<Vec<Knot>>,
}

impl Walks {
    /// When the next walk begins, if somebody has waited since then.
    pub(super) fn next(&self, blocked_since: Option<u64>) -> Option<u64> {
        let ripe = blocked_since? + PATIENCE_MS;
        let pause = match self.walk {
            Some(_) => WALK_MS_MAX,
            None => PACE_MS,
        };
        Some(ripe.max(self.begun + pause))
    }

    /// A member has left, or this node has: the present walk leads nowhere.
    pub(super) fn end(&mut self) {
        self.walk = None;
    }

    fn roots_max(&self) -> usize {
        (ROOTS_MAX >> self.halved).max(1)
    }

    /// A walk has seen all that it will see. If that was not everything, the same sessions walk again, fewer at a time.
    fn has_seen(&mut self, last: Option<SessionId>, cut: bool) {
        let alone = self.roots_max() == 1;
        self.halved = match cut {
            true if alone => self.halved,
            true => self.halved + 1,
            false => self.halved.saturating_sub(1),
        };
        if !cut || alone {
            self.last = last;
        }
    }
}

impl Walk {
    fn of(number: u64) -> Walk {
        Walk {
            number,
            sight: Sight::default(),
            gates: BTreeSet::new(),
            sessions: BTreeSet::new(),
            missing: BTreeSet::new(),
            last: None,
            steps: 0,
            cut: false,
            found: None,
        }
    }

    /// The gates and sessions that it has heard of and not looked at.
    fn beyond(&mut self) -> (Vec<AtGate>, Vec<OfSession>) {
        let (mut gates, mut sessions) = (BTreeMap::new(), BTreeSet::new());
        for (session, known) in &self.sight.sessions {
            let new = known
                .waits
                .values()
                .filter(|gate| !self.gates.contains(*gate));
            gates.extend(new.map(|gate| (gate.clone(), *session)));
        }
        for gate in self.sight.gates.values() {
            let inside = gate.inside.iter();
            sessions.extend(inside.map(|insider| {
                let hold = (gate.gate.clone(), insider.fence);
                (insider.session, Some(hold))
            }));
            sessions.extend(gate.queue.iter().map(|queued| (queued.session, None)));
        }
        sessions.retain(|of| !self.sessions.contains(of));
        let gates_room = GATES_MAX.saturating_sub(self.gates.len());
        let people_room = PEOPLE_MAX.saturating_sub(self.sessions.len());
        self.cut |= gates.len() > gates_room || sessions.len() > people_room;
        let gates = gates.into_iter().take(gates_room).collect();
        (gates, sessions.into_iter().take(people_room).collect())
    }
}

impl Estate {
    /// Begins a walk if it is time and somebody has waited long enough.
    pub(super) fn walk_if_due(&mut self, replicated: &Replicated, out: &mut Out) {
        let due = self.walks.next(self.table.blocked_since());
        if due.is_none_or(|at| at > self.now) {
            return;
        }
        self.walks.begun = self.now;
        let late = self.walks.walk.take();
        if let Some(late) = late.filter(|late| late.found.is_none()) {
            self.walks.has_seen(late.last, true);
        }
        let mut roots = self.table.blocked_until(self.now - PATIENCE_MS);
        roots.retain(|session| self.holds_anything(*session));
        let roots_max = self.walks.roots_max();
        let mut own_last = None;
        if roots.len() > roots_max {
            let last = self.walks.last;
            let next = roots
                .iter()
                .filter(|root| last.is_none_or(|last| **root > last));
            let next: Vec<SessionId> = next.copied().collect();
            let chosen: Vec<SessionId> = next.into_iter().chain(roots).take(roots_max).collect();
            own_last = chosen.last().copied();
            roots = chosen.into_iter().collect();
        }
        if roots.is_empty() {
            return;
        }
        let mut walk = Walk::of(self.next_look());
        walk.last = own_last;
        let roots: Vec<OfSession> = roots.into_iter().map(|session| (session, None)).collect();
        self.look(replicated, &mut walk, Vec::new(), roots);
        self.go_round(replicated, walk, out);
    }

    fn next_look(&mut self) -> u64 {
        self.walks.number += 1;
        self.walks.number
    }

    fn holds_anything(&self, session: SessionId) -> bool {
        self.table.holds_of(session).next().is_some() || self.local.holds_anything(session)
    }

    /// Goes on with a walk until it has to wait for others, or has ended.
    fn go_round(&mut self, replicated: &Replicated, mut walk: Walk, out: &mut Out) {
        loop {
            if !walk.missing.is_empty() {
                self.walks.walk = Some(walk);
                return;
            }
            // The second round looks only at what was found.
            if walk.found.is_none() {
                let (gates, sessions) = walk.beyond();
                let on = !(gates.is_empty() && sessions.is_empty());
                if on && walk.steps < STEPS_MAX {
                    walk.steps += 1;
                    self.look(replicated, &mut walk, gates, sessions);
                    continue;
                }
                self.walks.has_seen(walk.last, walk.cut || on);
            }
            let knots = walk.sight.knots();
            let real = match walk.found.take() {
                Some(found) => knots
                    .into_iter()
                    .filter(|knot| found.contains(knot))
                    .collect(),
                None if self.breaks(Broken::OneRound) => knots,
                None if knots.is_empty() => return,
                None => {
                    walk = self.second_round(replicated, &walk, knots);
                    continue;
                }
            };
            return self.refuse_victims(replicated, real, out);
        }
    }

    /// Looks once more at everything in a knot.
    fn second_round(&mut self, replicated: &Replicated, first: &Walk, knots: Vec<Knot>) -> Walk {
        let members: BTreeSet<SessionId> =
            knots.iter().flat_map(|knot| knot.members.clone()).collect();
        let mut gates = BTreeMap::new();
        let mut sessions: Vec<OfSession> = Vec::new();
        for member in &members {
            let known = &first.sight.sessions[member];
            gates.extend(known.waits.values().map(|gate| (gate.clone(), *member)));
            sessions.push((*member, None));
            sessions.extend(known.holds.iter().map(|hold| (*member, Some(hold.clone()))));
        }
        let mut walk = Walk::of(self.next_look());
        walk.found = Some(knots);
        self.look(replicated, &mut walk, gates.into_iter().collect(), sessions);
        walk
    }

    /// Looks at gates and sessions: at once where they are here, otherwise by asking.
    fn look(
        &mut self,
        replicated: &Replicated,
        walk: &mut Walk,
        gates: Vec<AtGate>,
        sessions: Vec<OfSession>,
    ) {
        let mut looks: BTreeMap<Peer, Look> = BTreeMap::new();
        let empty = Look {
            number: walk.number,
            gates: Vec::new(),
            sessions: Vec::new(),
        };
        for (gate, session) in gates {
            walk.gates.insert(gate.clone());
            // Where a gate is spread, each node knows a part of its holders and waiters.
            let keepers = match self.is_spread(replicated, &gate) {
                true => self.members.clone(),
                false => self.owner_of(replicated, &gate).into_iter().collect(),
            };
            for keeper in keepers {
                let look = looks.entry(keeper).or_insert_with(|| empty.clone());
                look.gates.push((gate.clone(), session));
            }
        }
        for (session, hold) in sessions {
            walk.sessions.insert((session, hold.clone()));
            if let Some(home) = self.home(replicated, session) {
                let look = looks.entry(home).or_insert_with(|| empty.clone());
                look.sessions.push((session, hold));
            }
        }
        for (peer, look) in looks {
            if peer == self.own {
                let seen = self.see(replicated, &look);
                walk.take(seen);
            } else if self.members.contains(&peer) {
                walk.missing.insert(peer);
                self.send(peer, Frame::Look(look));
            }
        }
    }

    /// Shows another home what it looks for.
    pub(super) fn looked_at(&mut self, replicated: &Replicated, by: Peer, look: &Look) {
        let seen = self.see(replicated, look);
        self.send(by, Frame::Seen(seen));
    }

    /// A member has answered a look.
    pub(super) fn saw(&mut self, replicated: &Replicated, from: Peer, seen: Seen, out: &mut Out) {
        let of_walk = |walk: &Walk| walk.number == seen.number && walk.missing.contains(&from);
        if !self.walks.walk.as_ref().is_some_and(of_walk) {
            return;
        }
        if let Some(mut walk) = self.walks.walk.take() {
            walk.missing.remove(&from);
            walk.take(seen);
            self.go_round(replicated, walk, out);
        }
    }

    fn see(&self, replicated: &Replicated, look: &Look) -> Seen {
        let gates = look.gates.iter().take(GATES_MAX);
        let sessions = look.sessions.iter().take(PEOPLE_MAX);
        Seen {
            number: look.number,
            gates: gates
                .filter_map(|(gate, session)| self.see_gate(replicated, gate, *session))
                .collect(),
            sessions: sessions
                .filter_map(|(session, hold)| self.see_session(replicated, *session, hold.as_ref()))
                .collect(),
        }
    }

    fn see_gate(&self, replicated: &Replicated, gate: &Name, of: SessionId) -> Option<GateSeen> {
        if !self.enters_here(replicated, gate) && !self.has_begun(gate) {
            return None;
        }
        let standing = self.local.standing(gate, of, SHOWN_MAX)?;
        let inside = standing.inside.into_iter();
        let queue = standing.queue.into_iter();
        Some(GateSeen {
            gate: gate.clone(),
            number: replicated.ownership().number(Shard::of(gate)),
            definition: standing.definition,
            room: standing.room,
            inside: inside
                .map(|(session, fence, mode, leads)| Insider {
                    session,
                    fence,
                    mode,
                    leads,
                })
                .collect(),
            queue: queue
                .filter_map(|(session, ticket, mode, needs_ms)| {
                    let guest = self.guests.get(&ticket).map(|guest| guest.ask);
                    let ask = guest.or_else(|| self.table.of_ticket(ticket))?;
                    Some(Queued {
                        session,
                        ask,
                        mode,
                        needs_ms,
                    })
                })
                .collect(),
        })
    }

    fn see_session(
        &self,
        replicated: &Replicated,
        session: SessionId,
        hold: Option<&(Name, Fence)>,
    ) -> Option<SessionSeen> {
        let began = self.table.began(session)?;
        let asks = self.table.asks_of(session);
        let waits = asks.filter_map(|ask| {
            let asked = self.table.ask(ask)?;
            let waits = asked.blocking && matches!(asked.what, What::Enter(_));
            waits.then(|| (ask, asked.gate.clone()))
        });
        let holds = hold.filter(|(gate, fence)| {
            let held = match self.keeper_of(replicated, session, gate) == Ok(self.own) {
                true => self.local.hold_of(session, gate).map(|hold| hold.fence),
                false => self.table.hold(session, gate).map(|hold| hold.fence),
            };
            held == Some(*fence) || self.breaks(Broken::OwnersBooks)
        });
        Some(SessionSeen {
            session,
            waits: waits.collect(),
            holds: holds.cloned(),
            began,
        })
    }

    /// The knots are real: refuses their victims that have this home.
    fn refuse_victims(&mut self, replicated: &Replicated, knots: Vec<Knot>, out: &mut Out) {
        for knot in knots {
            let (session, ask) = match self.breaks(Broken::EveryFinder) {
                true => {
                    let own = |session: &&SessionId| self.table.hosts(**session);
                    let Some(session) = knot.members.iter().find(own) else {
                        continue;
                    };
                    let asks = self.table.asks_of(*session).next();
                    (*session, asks.unwrap_or(0))
                }
                false => (knot.victim, knot.ask),
            };
            let waits = self.table.ask(ask);
            if waits.is_none_or(|asked| asked.session != session || !asked.blocking) {
                continue;
            }
            self.local.count_deadlock();
            self.call_off(replicated, ask);
            let mut cycle = knot.cycle;
            if let Some(own) = cycle.iter().position(|link| link.session == session) {
                cycle.rotate_left(own);
            }
            let refusal = Refusal::deadlock(cycle);
            self.finish(replicated, ask, Err(refusal), out);
        }
    }
}

impl Walk {
    fn take(&mut self, seen: Seen) {
        for gate in seen.gates {
            match self.sight.gates.entry(gate.gate.clone()) {
                Entry::Vacant(place) => drop(place.insert(gate)),
                // Another part of the sessions at a spread gate.
                Entry::Occupied(mut known) => {
                    let known = known.get_mut();
                    known.inside.extend(gate.inside);
                    known.queue.extend(gate.queue);
                    known.room = known.room.take().or(gate.room);
                }
            }
        }
        for session in seen.sessions {
            self.sight.add(session);
        }
    }
}
