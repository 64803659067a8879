//! The paper's simulation: rounds in which every member acts once, and one node, SPREAD, that forwards
//! what is multicast to all members, in one order.

use std::collections::VecDeque;
use std::sync::Arc;

use testigo_protocol::NodeId;
use testigo_protocol::slots::{
    Central, Contrast, ContrastPlan, Delivery, Letter, Sharer, SlotSet, SlotsMessage, SlotsPlan,
};

use super::Effort;
use super::load::{Demand, LIFETIME_MAX, Load};
use super::measures::{Measures, RoundsReport};
use super::player::{Contrasting, Fixed, Managed, Player, Sharing, Taken};
use crate::slots::SlotsWorld;

/// The highest FREE_LOW when it follows demand: the sweeps end there, too.
const FREE_LOW_MAX: u32 = 16;

/// A run of the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    pub algorithm: Allocation,
    /// NR_NODES.
    pub members: usize,
    /// NR_SLOTS.
    pub slots: u32,
    pub free_low: u32,
    /// Of the contrast only.
    pub free_high: u32,
    /// Whether donors together give no more than was asked for; of `Strict` only.
    pub exact_quota: bool,
    /// Whether all members of `Strict` start with an equal part of the slots, instead of member 0 with all.
    pub even: bool,
    pub load: Load,
    /// How many messages SPREAD forwards in a round; `None` without a limit.
    pub spread_cap: Option<usize>,
    /// Whether a use that finds no slot waits instead of failing.
    pub waits: bool,
    /// Rounds before anything is measured.
    pub warm_up: u64,
    pub rounds: u64,
    pub seed: u64,
}

/// How slots are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// SLOTS, repaired, with these optimisations of the paper.
    Strict { optimisations: [bool; 3] },
    /// SLOTS, repaired, with all optimisations and a FREE_LOW that follows each member's demand.
    ByDemand,
    /// SLOTS, with requests that name their donors.
    Directed,
    /// A free list under mutual exclusion.
    Contrast,
    /// An equal share for every member, for ever.
    Static,
    /// A manager that is asked for every slot.
    Central,
}

impl Allocation {
    pub const STRICT: Allocation = Allocation::Strict {
        optimisations: [true; 3],
    };

    pub fn name(self) -> &'static str {
        match self {
            Allocation::Strict { .. } => "strict",
            Allocation::ByDemand => "by-demand",
            Allocation::Directed => "directed",
            Allocation::Contrast => "contrast",
            Allocation::Static => "static",
            Allocation::Central => "central",
        }
    }
}

impl Rounds {
    /// The published parameters, with the mean lifetime that its numbers imply.
    pub fn published(algorithm: Allocation, load: Load) -> Rounds {
        Rounds {
            algorithm,
            members: 32,
            slots: 768,
            free_low: 4,
            free_high: 8,
            exact_quota: false,
            even: false,
            load,
            spread_cap: None,
            waits: false,
            warm_up: Effort::WARM_UP,
            rounds: 10_000,
            seed: 1,
        }
    }

    /// Runs it: the same plan, the same report, byte for byte.
    pub fn run(&self) -> RoundsReport {
        self.run_logged(&mut None)
    }

    /// Runs it, and records what was forwarded and how many slots were in use after each round.
    pub fn transcript(&self) -> Vec<String> {
        let mut log = Some(Vec::new());
        self.run_logged(&mut log);
        log.unwrap_or_default()
    }

    fn run_logged(&self, log: &mut Option<Vec<String>>) -> RoundsReport {
        let ids = NodeId::all(self.members);
        match self.algorithm {
            Allocation::Strict { optimisations } => {
                let mut plan = SlotsPlan::strict(self.members, self.slots, self.free_low);
                [
                    plan.implicit_request,
                    plan.crossed_requests,
                    plan.held_nulls,
                ] = optimisations;
                plan.exact_quota = self.exact_quota;
                self.share(&plan, log)
            }
            Allocation::ByDemand => {
                let mut plan = SlotsPlan::strict(self.members, self.slots, self.free_low);
                plan.free_low_max = Some(FREE_LOW_MAX);
                self.share(&plan, log)
            }
            Allocation::Directed => {
                let plan = SlotsPlan::directed(self.members, self.slots, self.free_low);
                self.share(&plan, log)
            }
            Allocation::Contrast => {
                let plan = ContrastPlan {
                    slots: self.slots,
                    free_low: self.free_low,
                    free_high: self.free_high,
                };
                let players = ids.map(|id| Contrasting {
                    member: Contrast::new(id, &plan),
                    plan,
                });
                self.play(players.collect(), log)
            }
            Allocation::Central => {
                let players = ids.map(|id| Managed(Central::new(id, self.slots, self.waits)));
                self.play(players.collect(), log)
            }
            Allocation::Static => {
                let members = self.members as u32;
                let players = ids.map(|id| {
                    let mut free = SlotSet::new(self.slots);
                    let mine = (0..self.slots).filter(|slot| slot % members == id.0);
                    mine.for_each(|slot| {
                        free.insert(slot);
                    });
                    let used = SlotSet::new(self.slots);
                    Fixed { free, used }
                });
                self.play(players.collect(), log)
            }
        }
    }

    /// Members of SLOTS, in a group that has started.
    fn share(&self, plan: &SlotsPlan, log: &mut Option<Vec<String>>) -> RoundsReport {
        let world = SlotsWorld::started(plan);
        let sharers = NodeId::all(self.members)
            .map(|id| world.sharer(id).expect("everybody has joined").clone());
        let mut sharers: Vec<Sharer> = sharers.collect();
        if self.even {
            share_out(&mut sharers, plan);
        }
        let players = sharers.into_iter().map(|sharer| Sharing { sharer, plan });
        self.play(players.collect(), log)
    }

    fn play<P: Player>(&self, players: Vec<P>, log: &mut Option<Vec<String>>) -> RoundsReport {
        let mut demand = Demand::new(&self.load, self.members, self.seed);
        let mut measures = Measures::new(self);
        let mut seats: Vec<Seat<P>> = players.into_iter().map(Seat::new).collect();
        let mut spread: VecDeque<P::Item> = VecDeque::new();
        let mut inbox: Vec<P::Item> = Vec::new();
        let mut out = Vec::new();
        for round in 0..self.warm_up + self.rounds {
            demand.begin(round);
            measures.begin(round, &demand);
            for (at, seat) in seats.iter_mut().enumerate() {
                for item in &inbox {
                    seat.player.hear(item, &mut out);
                }
                seat.act(round, at, &mut demand, &mut measures, self.waits, &mut out);
                let from = NodeId(at as u32);
                for word in out.drain(..) {
                    let item = P::sealed(from, word);
                    let (from, seen) = P::seen(&item);
                    measures.emitted(round, from, seen);
                    spread.push_back(item);
                }
            }
            inbox.clear();
            let forwarded = self.spread_cap.unwrap_or(usize::MAX).min(spread.len());
            inbox.extend(spread.drain(..forwarded));
            for item in &inbox {
                let (from, seen) = P::seen(item);
                measures.forwarded(round, from, seen);
                if let Some(log) = log {
                    log.push(format!("{round} {}", P::said(item)));
                }
            }
            for (at, seat) in seats.iter().enumerate() {
                measures.after(at, seat.player.used(), seat.player.owned());
            }
            if let Some(log) = log {
                let used = seats.iter().map(|seat| seat.player.used().to_string());
                log.push(format!(
                    "{round} used {}",
                    used.collect::<Vec<_>>().join(" ")
                ));
            }
        }
        measures.report()
    }
}

/// Gives every member an equal part of the slots, by donations that all of them take in.
fn share_out(sharers: &mut [Sharer], plan: &SlotsPlan) {
    let members = sharers.len();
    let pairs = (0..members).flat_map(|from| (0..members).map(move |to| (from, to)));
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        let free = sharers[from].free().iter();
        let slots: Arc<[u32]> = free.filter(|&slot| slot as usize % members == to).collect();
        let message = SlotsMessage::Donate {
            to: NodeId(to as u32),
            number: None,
            label: None,
            slots,
        };
        let letter = Letter {
            view: sharers[from].group().view,
            free: 0,
            message,
        };
        let from = NodeId(from as u32);
        let delivery = Delivery::Letter { from, letter };
        let mut out = Vec::new();
        for sharer in sharers.iter_mut() {
            sharer.deliver(&delivery, plan, &mut out);
        }
        assert!(
            out.is_empty(),
            "nobody lacks anything before the first round"
        );
    }
}

/// A member and the uses at it.
struct Seat<P> {
    player: P,
    /// A ring of uses, by the round in which they end: no use lasts longer than the ring.
    ends: Vec<Vec<u32>>,
    /// Uses that wait for a slot: when they came, and how long they will last.
    waiting: VecDeque<(u64, u32)>,
    lifetimes: Vec<u32>,
}

impl<P: Player> Seat<P> {
    fn new(player: P) -> Seat<P> {
        Seat {
            player,
            ends: vec![Vec::new(); LIFETIME_MAX as usize + 1],
            waiting: VecDeque::new(),
            lifetimes: Vec::new(),
        }
    }

    /// A member's turn after the inbox: uses end, uses begin, and the member checks its needs.
    fn act(
        &mut self,
        round: u64,
        at: usize,
        demand: &mut Demand<'_>,
        measures: &mut Measures,
        waits: bool,
        out: &mut Vec<P::Word>,
    ) {
        for _ in 0..self.player.refused() {
            self.waiting.pop_front();
            measures.failed();
        }
        let place = (round % self.ends.len() as u64) as usize;
        let mut ended = std::mem::take(&mut self.ends[place]);
        for slot in ended.drain(..) {
            self.player.give(slot, out);
        }
        self.ends[place] = ended;
        self.serve_waiting(round, measures, out);
        let mut lifetimes = std::mem::take(&mut self.lifetimes);
        demand.arrivals(round, at, &mut lifetimes);
        for &lifetime in &lifetimes {
            match self.player.take(out) {
                Taken::Slot(slot) => self.start(slot, round, round, lifetime, measures),
                Taken::None if waits => self.waiting.push_back((round, lifetime)),
                Taken::None => measures.failed(),
                Taken::Asked => self.waiting.push_back((round, lifetime)),
            }
        }
        self.lifetimes = lifetimes;
        self.player.turn_over(self.waiting.len() as u32, out);
    }

    fn serve_waiting(&mut self, round: u64, measures: &mut Measures, out: &mut Vec<P::Word>) {
        while !self.waiting.is_empty()
            && let Some(slot) = self.player.take_waiting(out)
            && let Some((came, lifetime)) = self.waiting.pop_front()
        {
            self.start(slot, came, round, lifetime, measures);
        }
    }

    fn start(&mut self, slot: u32, came: u64, round: u64, lifetime: u32, measures: &mut Measures) {
        let end = (round + u64::from(lifetime)) % self.ends.len() as u64;
        self.ends[end as usize].push(slot);
        measures.started(lifetime, round - came);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_start_gives_every_member_the_same_number_of_slots() {
        let plan = SlotsPlan::strict(5, 63, 4);
        let world = SlotsWorld::started(&plan);
        let all = NodeId::all(5).map(|id| world.sharer(id).expect("it runs").clone());
        let mut sharers: Vec<Sharer> = all.collect();
        let owned =
            |sharers: &[Sharer]| -> Vec<u32> { sharers.iter().map(Sharer::owned).collect() };
        assert!(owned(&sharers)[0] > 40, "the founder had all");
        share_out(&mut sharers, &plan);
        assert_eq!(owned(&sharers), [13, 13, 13, 12, 12]);
        for sharer in &sharers {
            assert_eq!(sharer.table(), sharers[0].table());
        }
    }
}
