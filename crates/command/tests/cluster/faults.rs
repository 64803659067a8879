//! Faults at random from a seed. What happens in a round depends on the seed, the round and the number of nodes, and on
//! nothing else, so that a failing seed plays the same faults again; only who leads at that moment is asked.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

use crate::links::Link;
use crate::net::{CLIENTS, Drops, Net, Party};
use crate::nodes::Nodes;
use crate::stage::Stage;

/// How long a fault lasts: shorter than a node lease, or longer.
const LASTS_MS: (u64, u64) = (300, 5_500);
const CLOCK_JUMP_MS: u64 = 3_600_000;
const DELAY_MS: (u64, u64) = (20, 400);
const LOSS_PERCENT: (u64, u64) = (5, 40);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of each, at once; they start again when the fault is over.
    Kill(Vec<Party>),
    /// `kill -9`, and started again at once: nobody need have noticed.
    QuickRestart(Party),
    /// SIGSTOP, then SIGCONT.
    Pause(Party),
    /// A node can reach no other, nor be reached. Its clients may still reach it.
    Isolate(Party),
    /// As that, and its clients do not reach it either.
    Vanish(Party),
    CutPair(Party, Party),
    /// What the first sends does not reach the second.
    CutOneWay(Party, Party),
    /// What others send does not reach it.
    Deafen(Party),
    /// What it sends does not reach others.
    Mute(Party),
    /// Two halves; the first has these.
    Split(Vec<Party>),
    /// So many of a hundred packets between all nodes are lost.
    Loss(u8),
    /// Links that the harness passes on are so slow.
    Delay(u64),
    FillDisk(Party),
    JumpClock(Party, i64),
    /// Every node is stopped cleanly and started again, one after the other.
    RollingRestart,
    Stop(Party),
}

/// Who is meant: the same one in every replay, or whoever leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    Anybody,
    Leader,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// One or two that overlap.
    pub(crate) faults: Vec<Fault>,
    pub(crate) whom: Whom,
    pub(crate) lasts_ms: u64,
}

struct Dice {
    rng: Xoshiro256StarStar,
    nodes: u8,
}

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.rng.next_u64() % end
    }

    fn between(&mut self, (least, most): (u64, u64)) -> u64 {
        least + self.below(most - least + 1)
    }

    fn node(&mut self) -> Party {
        1 + self.below(u64::from(self.nodes)) as Party
    }

    fn pair(&mut self) -> (Party, Party) {
        let one = self.node();
        let step = 1 + self.below(u64::from(self.nodes) - 1) as Party;
        (one, (one - 1 + step) % self.nodes + 1)
    }

    /// Neighbours, at most so many.
    fn some(&mut self, most: u8) -> Vec<Party> {
        let count = 1 + self.below(u64::from(most));
        let first = self.node();
        let others = (0..count as Party).map(|step| (first - 1 + step) % self.nodes + 1);
        others.collect()
    }

    fn fault(&mut self) -> Fault {
        // Alone there is nobody to be cut off from.
        let kinds = if self.nodes == 1 { 7 } else { 17 };
        match self.below(kinds) {
            0 => Fault::Kill(vec![self.node()]),
            1 => Fault::QuickRestart(self.node()),
            2 => Fault::Pause(self.node()),
            3 => Fault::FillDisk(self.node()),
            4 => {
                let ms = self.below(2 * CLOCK_JUMP_MS) as i64 - CLOCK_JUMP_MS as i64;
                Fault::JumpClock(self.node(), ms)
            }
            5 => Fault::Stop(self.node()),
            6 => Fault::Vanish(self.node()),
            7 => Fault::Isolate(self.node()),
            8 => {
                let (one, other) = self.pair();
                Fault::CutPair(one, other)
            }
            9 => {
                let (one, other) = self.pair();
                Fault::CutOneWay(one, other)
            }
            10 => Fault::Deafen(self.node()),
            11 => Fault::Mute(self.node()),
            12 => Fault::Split(self.some(self.nodes - 1)),
            13 => Fault::Loss(self.between(LOSS_PERCENT) as u8),
            14 => Fault::Delay(self.between(DELAY_MS)),
            15 => Fault::RollingRestart,
            _ => Fault::Kill(self.some(self.nodes)),
        }
    }
}

impl Plan {
    pub(crate) fn of(seed: u64, round: u64, nodes: u8) -> Plan {
        let mut rng = Xoshiro256StarStar::seed_from_u64(seed ^ round.rotate_left(32));
        rng.next_u64();
        let mut dice = Dice { rng, nodes };
        let mut faults = vec![dice.fault()];
        if dice.below(4) == 0 {
            faults.push(dice.fault());
        }
        let whom = match dice.below(3) {
            0 => Whom::Leader,
            _ => Whom::Anybody,
        };
        Plan {
            faults,
            whom,
            lasts_ms: dice.between(LASTS_MS),
        }
    }

    /// With the leader in the place of the node that was drawn first.
    pub(crate) fn against(mut self, leader: Option<Party>) -> Plan {
        if let (Whom::Leader, Some(leader)) = (self.whom, leader) {
            match self.faults.first_mut() {
                Some(
                    Fault::QuickRestart(node)
                    | Fault::Pause(node)
                    | Fault::Isolate(node)
                    | Fault::Vanish(node)
                    | Fault::Deafen(node)
                    | Fault::Mute(node)
                    | Fault::FillDisk(node)
                    | Fault::Stop(node),
                ) => *node = leader,
                Some(Fault::Kill(nodes)) if nodes.len() == 1 => *nodes = vec![leader],
                _ => {}
            }
        }
        self
    }
}

/// Carries faults out, and ends them.
pub(crate) struct Breaker<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) net: &'a Net,
    pub(crate) links: &'a [Link],
    pub(crate) nodes: Nodes<'a>,
}

impl Breaker<'_> {
    pub(crate) fn begin(&mut self, plan: &Plan) -> Result<(), String> {
        let count = self.nodes.count();
        let mut drops = Vec::new();
        for fault in &plan.faults {
            match fault {
                Fault::Kill(nodes) => nodes.iter().for_each(|node| self.nodes.kill(*node)),
                Fault::QuickRestart(node) => {
                    self.nodes.kill(*node);
                    self.nodes.start(*node)?;
                }
                Fault::Pause(node) => self.nodes.pause(*node),
                Fault::FillDisk(node) => self.nodes.fill_disk(*node)?,
                Fault::JumpClock(node, ms) => self.nodes.set_clock(*node, *ms)?,
                Fault::Stop(node) => self.stop(*node)?,
                Fault::RollingRestart => {
                    for node in 1..=count {
                        self.stop(node)?;
                        self.nodes.start(node)?;
                        // Not all of them at once: the next one waits until this one had time to come back.
                        self.stage.goes_on_after(plan.lasts_ms / 2);
                    }
                }
                Fault::Delay(ms) => self.links.iter().for_each(|link| link.delay(*ms)),
                cut => drops.extend(cut.drops(count)),
            }
        }
        self.net.drop_packets(&drops)
    }

    /// Everything works again, and every node runs.
    pub(crate) fn heal(&mut self) -> Result<(), String> {
        self.net.drop_packets(&[])?;
        self.links.iter().for_each(|link| link.delay(0));
        for node in 1..=self.nodes.count() {
            self.nodes.resume(node);
            self.nodes.empty_disk(node);
        }
        self.nodes.start_all()
    }

    /// A node may fail for want of room meanwhile, and not otherwise.
    fn stop(&mut self, node: Party) -> Result<(), String> {
        match self.nodes.stop(node) {
            None | Some(0 | 3) => Ok(()),
            Some(code) => Err(format!(
                "node {node} was stopped and ended with code {code}"
            )),
        }
    }
}

impl Fault {
    fn drops(&self, nodes: u8) -> Vec<Drops> {
        let all = || 1..=nodes;
        let rule = |from, to, percent| Drops { from, to, percent };
        let both = |one: Party, others: Vec<Party>| {
            let pairs = others.into_iter().filter(move |other| *other != one);
            pairs.flat_map(move |other| [rule(one, other, 100), rule(other, one, 100)])
        };
        match self {
            Fault::Isolate(node) => both(*node, all().collect()).collect(),
            Fault::Vanish(node) => both(*node, all().chain([CLIENTS]).collect()).collect(),
            Fault::CutPair(one, other) => both(*one, vec![*other]).collect(),
            Fault::CutOneWay(from, to) => vec![rule(*from, *to, 100)],
            Fault::Deafen(node) => {
                let others = all().filter(|other| other != node);
                others.map(|other| rule(other, *node, 100)).collect()
            }
            Fault::Mute(node) => {
                let others = all().filter(|other| other != node);
                others.map(|other| rule(*node, other, 100)).collect()
            }
            Fault::Split(side) => {
                let far: Vec<Party> = all().filter(|node| !side.contains(node)).collect();
                let cuts = side.iter().flat_map(|node| both(*node, far.clone()));
                cuts.collect()
            }
            Fault::Loss(percent) => {
                let pairs = all().flat_map(|one| all().map(move |other| (one, other)));
                let pairs = pairs.filter(|(one, other)| one != other);
                pairs
                    .map(|(one, other)| rule(one, other, *percent))
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::discriminant;

    use super::*;

    #[test]
    fn a_seed_plays_the_same_faults_again_and_all_kinds_come() {
        let plans = |seed| (0..300).map(move |round| Plan::of(seed, round, 3));
        assert!(plans(7).eq(plans(7)));
        assert!(!plans(7).eq(plans(8)));
        let kinds: Vec<_> = plans(7).flat_map(|plan| plan.faults).collect();
        let mut seen = Vec::new();
        for kind in kinds.iter().map(discriminant) {
            if !seen.contains(&kind) {
                seen.push(kind);
            }
        }
        assert_eq!(seen.len(), 16);
        let pairs = kinds.iter().filter_map(|fault| match fault {
            Fault::CutOneWay(one, other) => Some((*one, *other)),
            _ => None,
        });
        let pairs: BTreeSet<_> = pairs.collect();
        assert_eq!(pairs.len(), 6, "every direction: {pairs:?}");
        assert!(pairs.iter().all(|(one, other)| one != other));
    }

    #[test]
    fn cuts_drop_what_they_say() {
        let drop = |from, to| Drops {
            from,
            to,
            percent: 100,
        };
        let found = Fault::Split(vec![2]).drops(3);
        assert_eq!(found, [drop(2, 1), drop(1, 2), drop(2, 3), drop(3, 2)]);
        assert_eq!(Fault::Deafen(1).drops(3), [drop(2, 1), drop(3, 1)]);
        assert_eq!(Fault::CutOneWay(1, 3).drops(3), [drop(1, 3)]);
        assert_eq!(Fault::Loss(9).drops(3).len(), 6);
        assert_eq!(Fault::Isolate(3).drops(3).len(), 4);
        assert_eq!(Fault::Vanish(3).drops(3).len(), 6);
    }

    #[test]
    fn the_leader_is_hit_where_the_plan_says_so() {
        let plan = |whom| Plan {
            faults: vec![Fault::Pause(1), Fault::Mute(2)],
            whom,
            lasts_ms: 1,
        };
        let hit = plan(Whom::Leader).against(Some(3));
        assert_eq!(hit.faults, [Fault::Pause(3), Fault::Mute(2)]);
        let spared = plan(Whom::Anybody).against(Some(3));
        assert_eq!(spared.faults, plan(Whom::Anybody).faults);
    }
}
