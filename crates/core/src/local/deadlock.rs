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

use rustc_hash::{FxHashMap, FxHashSet};

use super::{CROWD, Local};
use crate::error::CycleLink;
use crate::gate::{GateKey, Mode, Occupancy, PresentRoom, QueuedLeg, Rule};
use crate::session::SessionKey;
use crate::wait::WaitKey;

/// Sessions that wait only for each other.
pub(super) struct Knot {
    /// Every gate on which the wait in question may depend.
    gates: Vec<GateKey>,
    stuck: FxHashSet<SessionKey>,
}

impl Local {
    /// The knot that a wait, just put into its queues, would be part of.
    pub(super) fn deadlock(&self, now: u64, w: WaitKey) -> Option<Knot> {
        let wait = &self.waits[w];
        if self.entangled == 0 || wait.asynchronous || self.drains(w) {
            return None;
        }
        let mut knot = Knot::around(self, w);
        knot.untie(self, now);
        knot.stuck.contains(&wait.session).then_some(knot)
    }
}

impl Local {
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
}

impl Knot {
    /// All stuck sessions on which a wait may depend, directly or indirectly.
    fn around(local: &Local, w: WaitKey) -> Knot {
        let mut stuck = FxHashSet::default();
        let mut seen = FxHashSet::default();
        let mut gates: Vec<GateKey> = Vec::new();
        let mut reach = |w: WaitKey, gates: &mut Vec<GateKey>| {
            let legs = local.waits[w].legs.iter().map(|leg| leg.gate);
            gates.extend(legs.filter(|g| seen.insert(*g)));
        };
        reach(w, &mut gates);
        let mut at = 0;
        while let Some(&g) = gates.get(at) {
            at += 1;
            let gate = &local.gates[g];
            let holders = gate
                .inside
                .inside(&local.holds)
                .map(|(_, hold)| hold.session);
            let waiters = gate
                .queue
                .iter()
                .map(|queued| local.waits[queued.wait].session);
            for s in holders.chain(waiters) {
                if local.sessions[s].blocked > 0 && stuck.insert(s) {
                    for w in local.blocking_waits(s) {
                        reach(w, &mut gates);
                    }
                }
            }
        }
        Knot { gates, stuck }
    }

    /// Lets in every waiter that can be let in, until no other can.
    fn untie(&mut self, local: &Local, now: u64) {
        loop {
            let before = self.stuck.len();
            for at in 0..self.gates.len() {
                self.untie_at(local, now, self.gates[at]);
            }
            if self.stuck.len() == before {
                return;
            }
        }
    }

    fn untie_at(&mut self, local: &Local, now: u64, g: GateKey) {
        let mut occupancy = self.occupancy(local, now, g);
        for queued in local.gates[g].queue.iter() {
            if occupancy.closed() {
                return;
            }
            if !self.waits(local, queued) {
                continue;
            }
            let wait = &local.waits[queued.wait];
            let mut with_it = occupancy.clone();
            if with_it.admit(local.mode(queued), wait.needs_ms) {
                let mut elsewhere = wait.legs.iter().filter(|leg| leg.gate != g);
                if elsewhere.all(|leg| self.turn_at(local, now, leg.gate, queued.wait)) {
                    // It enters and leaves again: those behind it find the gate as before.
                    self.stuck.remove(&wait.session);
                    continue;
                }
            }
            occupancy = with_it;
        }
    }

    /// Whether a waiter's turn would come at a gate that all but the stuck have left.
    fn turn_at(&self, local: &Local, now: u64, g: GateKey, w: WaitKey) -> bool {
        let mut occupancy = self.occupancy(local, now, g);
        let queue = local.gates[g].queue.iter();
        for queued in queue.filter(|queued| self.waits(local, queued)) {
            let needs_ms = local.waits[queued.wait].needs_ms;
            let admitted = occupancy.admit(local.mode(queued), needs_ms);
            if queued.wait == w {
                return admitted;
            }
            if occupancy.closed() {
                return false;
            }
        }
        false
    }

    /// The stuck sessions inside a gate.
    fn occupancy<'a>(&self, local: &'a Local, now: u64, g: GateKey) -> Occupancy<'a> {
        let gate = &local.gates[g];
        let (mut count, mut units, mut exclusive, mut leads) = (0, 0, false, false);
        for (h, hold) in gate.inside.inside(&local.holds) {
            if self.stuck.contains(&hold.session) {
                count += 1;
                units += hold.mode.units();
                exclusive |= hold.mode.exclusive();
                leads |= gate
                    .round
                    .as_ref()
                    .is_some_and(|round| round.leader == Some(h));
            }
        }
        let round = gate.round.as_ref().filter(|_| count > 0);
        let room = round.map(|round| PresentRoom {
            name: &round.room,
            door_open: leads || {
                let mut others = gate.queue.iter().filter(|queued| self.waits(local, queued));
                others.all(|queued| matches!(local.mode(queued), Mode::Room(r) if *r == round.room))
            },
            left_ms: gate
                .definition
                .stay_ms
                .map(|stay| round.since.saturating_add(stay).saturating_sub(now)),
        });
        Occupancy::inside(&gate.definition, count, units, exclusive, room)
    }

    /// Whether a waiter stays where it is. Others enter, are cancelled, or belong to sessions that can act.
    fn waits(&self, local: &Local, queued: &QueuedLeg) -> bool {
        let wait = &local.waits[queued.wait];
        !wait.asynchronous && self.stuck.contains(&wait.session)
    }

    /// Whether only waiters of this knot keep the wait out, and they cannot enter any sooner because it waits. Then letting
    /// it pass delays nobody and ends the knot. Only sets can be in the way like this: they wait in a queue whose gate may be
    /// free.
    pub(super) fn only_dependents_ahead(&self, local: &Local, now: u64, w: WaitKey) -> bool {
        let wait = &local.waits[w];
        wait.legs.iter().all(|leg| {
            let mut ahead = local.gates[leg.gate]
                .queue
                .iter()
                .take_while(|e| e.wait != w);
            ahead.all(|queued| self.waits(local, queued))
                && local.fits(now, leg.gate, &leg.mode, wait.needs_ms)
        })
    }

    /// The shortest way from a stuck session back to itself. If the session only keeps a room's door shut for others and so
    /// knots them, a cycle of that knot.
    pub(super) fn cycle(&self, local: &Local, now: u64, s: SessionKey) -> Vec<CycleLink> {
        let mut came: FxHashMap<SessionKey, (SessionKey, CycleLink)> = FxHashMap::default();
        let mut reached = vec![s];
        let mut at = 0;
        while let Some(&from) = reached.get(at) {
            at += 1;
            for (to, link) in self.blockers(local, now, from) {
                if to == s {
                    let mut links = vec![link];
                    let mut back = from;
                    while back != s {
                        let (before, link) = came.remove(&back).expect("the way leads back");
                        links.push(link);
                        back = before;
                    }
                    links.reverse();
                    return links;
                }
                came.entry(to).or_insert_with(|| {
                    reached.push(to);
                    (from, link)
                });
            }
        }
        self.cycle_beyond(local, now, s)
    }

    /// Follows the first blocker of each session until one comes up again.
    fn cycle_beyond(&self, local: &Local, now: u64, s: SessionKey) -> Vec<CycleLink> {
        let (mut way, mut links) = (vec![s], Vec::new());
        while let Some((to, link)) = self
            .blockers(local, now, way[way.len() - 1])
            .into_iter()
            .next()
        {
            links.push(link);
            if let Some(at) = way.iter().position(|seen| *seen == to) {
                return links.split_off(at);
            }
            way.push(to);
        }
        links
    }

    fn blockers(&self, local: &Local, now: u64, s: SessionKey) -> Vec<(SessionKey, CycleLink)> {
        let mut blockers = Vec::new();
        for w in local.blocking_waits(s) {
            for leg in local.waits[w].legs.iter() {
                if self.turn_at(local, now, leg.gate, w) {
                    continue;
                }
                let gate = &local.gates[leg.gate];
                let any_helps = matches!(gate.definition.rule, Rule::Permits(_) | Rule::Rooms);
                let link = |blocker_holds| CycleLink {
                    session: local.sessions[s].id,
                    gate: gate.name.clone(),
                    blocker_holds,
                };
                for (_, hold) in gate.inside.inside(&local.holds) {
                    let blocks = any_helps || leg.mode.conflicts(&hold.mode);
                    if blocks && self.stuck.contains(&hold.session) {
                        blockers.push((hold.session, link(true)));
                    }
                }
                for queued in gate.queue.iter().take_while(|queued| queued.wait != w) {
                    if self.waits(local, queued) {
                        blockers.push((local.waits[queued.wait].session, link(false)));
                    }
                }
            }
        }
        blockers
    }
}

impl Local {
    fn blocking_waits(&self, s: SessionKey) -> impl Iterator<Item = WaitKey> {
        let waits = self.sessions[s].waits.iter().copied();
        waits.filter(|w| !self.waits[*w].asynchronous)
    }
}
