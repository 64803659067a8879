//! The one engine of vote-by-quorum exclusion: every node is a requester and an arbiter that lends
//! its single vote. Maekawa, Sanders and the specimens are this engine with other rules and sets.
//!
//! Source: coordination and agreement §2.5.3–2.5.4, message exclusion §3.1–3.2. The repairs: an
//! arbiter tells `Failed` to every queued request that is not, or stops being, the best one
//! (`settle`); a requester remembers an `Inquire` and answers it when it learns that it cannot win.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Ask, Mutex, Tell};
use crate::quorum::Quorums;
use crate::{
    Input, LamportClock, Machine, Message, NodeId, Output, Protocol, Range, Setup, SetupError,
    Shape, Stamp, erase,
};

/// Sets and rules: what makes the engine one algorithm or another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Config {
    /// I_i: who is told when node i leaves, and so who tracks its vote.
    pub(super) inform: Vec<Vec<NodeId>>,
    /// R_i: whose votes node i needs.
    pub(super) request: Vec<Vec<NodeId>>,
    pub(super) rules: Rules,
}

/// What arbiters and requesters do about deadlocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rules {
    /// Votes can be recalled, and whoever is not best is told so.
    Repaired,
    /// As the thesis prints Sanders: `Failed` only by comparison with the vote's owner, and an
    /// `Inquire` that cannot be answered yet is dropped.
    ThesisPrint,
    /// As Maekawa published it: a request is told `Failed` when it arrives, or never.
    ToldOnArrival,
    /// Votes are never recalled.
    NoRecall,
}

/// The engine on quorums that serve as request and inform sets alike, as Maekawa's do.
pub(super) fn on_quorums(
    setup: &Setup,
    rules: Rules,
) -> Result<Box<dyn Machine<Mutex>>, SetupError> {
    let users = setup.at_least(2)?;
    let Quorums(sets) = Quorums::build(setup.quorum, users)?;
    Ok(erase::<Arbiter>(
        Shape::users(users),
        Config {
            inform: sets.clone(),
            request: sets,
            rules,
        },
    ))
}

/// A multiple of K−1, from the smallest quorum's best case to the largest one's worst. Messages to
/// oneself do not travel, hence the −1.
pub(super) fn per_member(setup: &Setup, best: u32, worst: u32) -> Range {
    let sizes = Quorums::build(setup.quorum, setup.users).map(|quorums| quorums.sizes());
    let (least, most) = sizes.unwrap_or((1, 1));
    Range::new(best * (least as u32 - 1), worst * (most as u32 - 1))
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Arbiter {
    id: NodeId,
    clock: LamportClock,
    // The requester.
    mine: Option<Stamp>,
    held: bool,
    votes: BTreeSet<NodeId>,
    /// Arbiters that said `Failed`, or that got their vote back and have not given it again.
    failed: BTreeSet<NodeId>,
    /// Arbiters that want their vote back and have had no answer.
    pending: BTreeSet<NodeId>,
    // The arbiter: whom the vote is lent to, and who waits for it, oldest first.
    lock: Option<Stamp>,
    inquired: bool,
    queue: Vec<Queued>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Queued {
    stamp: Stamp,
    told_failed: bool,
}

/// Every message names the request that it is about.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Vote {
    Request(Stamp),
    Grant(Stamp),
    Failed(Stamp),
    Inquire(Stamp),
    Yield(Stamp),
    Release(Stamp),
}

impl Vote {
    fn stamp(&self) -> Stamp {
        let mut copy = self.clone();
        *copy.stamp_mut()
    }

    fn stamp_mut(&mut self) -> &mut Stamp {
        let (Vote::Request(stamp)
        | Vote::Grant(stamp)
        | Vote::Failed(stamp)
        | Vote::Inquire(stamp)
        | Vote::Yield(stamp)
        | Vote::Release(stamp)) = self;
        stamp
    }
}

impl Message for Vote {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.stamp_mut().time);
    }
}

impl Protocol for Arbiter {
    type Problem = Mutex;
    type Message = Vote;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Arbiter {
            id,
            clock: LamportClock::default(),
            mine: None,
            held: false,
            votes: BTreeSet::new(),
            failed: BTreeSet::new(),
            pending: BTreeSet::new(),
            lock: None,
            inquired: false,
            queue: Vec::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Ask(Ask::Enter) => {
                let mine = Stamp {
                    time: self.clock.tick(),
                    node: self.id,
                };
                self.mine = Some(mine);
                out.send_all(
                    config.request[self.id.index()].iter().copied(),
                    &Vote::Request(mine),
                );
            }
            Input::Ask(Ask::Leave) => self.leave(config, out),
            Input::Message { from, message } => match message {
                Vote::Request(stamp) => self.on_request(stamp, config, out),
                Vote::Release(stamp) | Vote::Yield(stamp) if self.lock == Some(stamp) => {
                    self.lock = None;
                    if matches!(message, Vote::Yield(_)) {
                        self.enqueue(Queued {
                            stamp,
                            told_failed: true,
                        });
                    }
                    self.grant_next(config, out);
                }
                Vote::Release(_) | Vote::Yield(_) => {}
                // What follows concerns the requester, unless it is about an earlier request.
                stale if self.mine != Some(stale.stamp()) => {}
                Vote::Grant(_) => {
                    self.votes.insert(from);
                    self.failed.remove(&from);
                    self.enter_or_recall(config, out);
                }
                Vote::Failed(_) => {
                    if !self.held && !self.votes.contains(&from) {
                        self.failed.insert(from);
                        self.enter_or_recall(config, out);
                    }
                }
                Vote::Inquire(_) if self.held => out.tell(Tell::Wanted),
                Vote::Inquire(_) => {
                    self.pending.insert(from);
                    self.enter_or_recall(config, out);
                }
            },
            Input::Start | Input::Timer(_) => {}
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.clock.0);
        let queued = self.queue.iter_mut().map(|queued| &mut queued.stamp);
        for stamp in self.mine.iter_mut().chain(&mut self.lock).chain(queued) {
            visit(&mut stamp.time);
        }
    }
}

/// The requester.
impl Arbiter {
    fn enter_or_recall(&mut self, config: &Config, out: &mut Output<Self>) {
        let Some(mine) = self.mine else { return };
        let needed = &config.request[self.id.index()];
        if !self.held && self.votes.len() == needed.len() {
            self.held = true;
            out.tell(Tell::Entered);
            if !self.pending.is_empty() {
                out.tell(Tell::Wanted);
            }
            self.pending.clear();
            return;
        }
        if !self.failed.is_empty() {
            // It cannot win now: votes that are wanted back go back.
            for arbiter in std::mem::take(&mut self.pending) {
                if self.votes.remove(&arbiter) {
                    self.failed.insert(arbiter);
                    out.send(arbiter, Vote::Yield(mine));
                }
            }
        } else if config.rules == Rules::ThesisPrint {
            self.pending.clear();
        }
    }

    fn leave(&mut self, config: &Config, out: &mut Output<Self>) {
        let mine = self.mine.take().expect("only a user inside leaves");
        self.held = false;
        self.votes.clear();
        self.failed.clear();
        self.pending.clear();
        out.send_all(
            config.inform[self.id.index()].iter().copied(),
            &Vote::Release(mine),
        );
    }
}

/// The arbiter.
impl Arbiter {
    fn on_request(&mut self, stamp: Stamp, config: &Config, out: &mut Output<Self>) {
        if stamp.node != self.id {
            self.clock.observe(stamp.time);
        }
        self.enqueue(Queued {
            stamp,
            told_failed: false,
        });
        let Some(lock) = self.lock else {
            self.grant_next(config, out);
            return;
        };
        match config.rules {
            Rules::Repaired => {
                if stamp < lock && self.queue[0].stamp == stamp {
                    self.inquire(lock, out);
                }
                self.settle(out);
            }
            Rules::ToldOnArrival if lock < stamp || self.queue[0].stamp < stamp => {
                self.fail(|queued| queued == stamp, out);
            }
            Rules::ToldOnArrival => self.inquire(lock, out),
            Rules::ThesisPrint if lock < stamp => self.fail(|queued| queued == stamp, out),
            Rules::ThesisPrint => {
                self.inquire(lock, out);
                self.fail(|queued| queued > stamp, out);
            }
            Rules::NoRecall => {}
        }
    }

    fn enqueue(&mut self, queued: Queued) {
        let place = self.queue.partition_point(|other| *other < queued);
        self.queue.insert(place, queued);
    }

    /// Lends the vote to the oldest; a vote for somebody who will not say when it leaves is lent
    /// and forgotten (the case of Ricart and Agrawala within Sanders' sets).
    fn grant_next(&mut self, config: &Config, out: &mut Output<Self>) {
        self.inquired = false;
        while self.lock.is_none() && !self.queue.is_empty() {
            let Queued { stamp, .. } = self.queue.remove(0);
            out.send(stamp.node, Vote::Grant(stamp));
            if config.inform[stamp.node.index()].contains(&self.id) {
                self.lock = Some(stamp);
            }
        }
        if config.rules == Rules::Repaired {
            self.settle(out);
        }
    }

    fn inquire(&mut self, lock: Stamp, out: &mut Output<Self>) {
        if !self.inquired {
            self.inquired = true;
            out.send(lock.node, Vote::Inquire(lock));
        }
    }

    /// Tells every queued request that is not the best of all that it has failed for now.
    fn settle(&mut self, out: &mut Output<Self>) {
        let best = self
            .queue
            .first()
            .map(|queued| queued.stamp)
            .into_iter()
            .chain(self.lock)
            .min();
        self.fail(|queued| Some(queued) != best, out);
    }

    fn fail(&mut self, which: impl Fn(Stamp) -> bool, out: &mut Output<Self>) {
        for queued in &mut self.queue {
            if !queued.told_failed && which(queued.stamp) {
                queued.told_failed = true;
                out.send(queued.stamp.node, Vote::Failed(queued.stamp));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Effects, Slot};

    fn sets(sets: [&[u32]; 4]) -> Vec<Vec<NodeId>> {
        sets.iter()
            .map(|set| set.iter().map(|&node| NodeId(node)).collect())
            .collect()
    }

    /// Delivers in an order that a small generator draws, link by link in order of sending; every
    /// node enters `entries` times. Returns how many messages it took.
    fn play(config: Config, entries: usize, mut seed: u64) -> usize {
        let mut cluster = erase::<Arbiter>(Shape::users(4), config).cluster();
        let mut links: Vec<Vec<Slot>> = vec![Vec::new(); 16];
        let mut effects = Effects::default();
        let (mut left, mut inside, mut messages) = ([entries; 4], None, 0);
        let mut absorb = |node: usize, effects: &Effects<Mutex>, links: &mut Vec<Vec<Slot>>| {
            messages += effects.sends.len();
            for (to, slot) in &effects.sends {
                links[node * 4 + to.index()].push(*slot);
            }
            effects.tells.contains(&Tell::Entered)
        };
        for node in NodeId::all(4) {
            cluster.ask(node, Ask::Enter, &mut effects);
            if absorb(node.index(), &effects, &mut links) {
                assert_eq!(inside.replace(node), None);
            }
        }
        while left.iter().any(|&entries| entries > 0) {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let busy: Vec<usize> = (0..16).filter(|&link| !links[link].is_empty()).collect();
            let choice =
                (seed >> 33) as usize % (busy.len() + usize::from(inside.is_some())).max(1);
            if let Some(&link) = busy.get(choice) {
                let (from, to) = (NodeId(link as u32 / 4), NodeId(link as u32 % 4));
                let slot = links[link].remove(0);
                cluster.deliver(from, to, slot, &mut effects);
                if absorb(to.index(), &effects, &mut links) {
                    assert_eq!(inside.replace(to), None, "two inside");
                }
            } else {
                let node = inside
                    .take()
                    .expect("somebody is inside, or a message is under way");
                cluster.ask(node, Ask::Leave, &mut effects);
                absorb(node.index(), &effects, &mut links);
                left[node.index()] -= 1;
                if left[node.index()] > 0 {
                    cluster.ask(node, Ask::Enter, &mut effects);
                    if absorb(node.index(), &effects, &mut links) {
                        assert_eq!(inside.replace(node), None);
                    }
                }
            }
        }
        messages
    }

    /// Message exclusion §3.2: one algorithm, three information structures.
    #[test]
    fn sanders_sets_make_a_central_server_ricart_agrawala_or_maekawa() {
        let everybody: &[u32] = &[0, 1, 2, 3];
        let quorums = sets([&[0, 1, 2], &[0, 1, 3], &[0, 2, 3], &[1, 2, 3]]);
        let structures = [
            ("central", sets([&[1]; 4]), sets([&[1]; 4])),
            (
                "ricart-agrawala",
                sets([&[0], &[1], &[2], &[3]]),
                sets([everybody; 4]),
            ),
            ("maekawa", quorums.clone(), quorums),
        ];
        for (name, inform, request) in structures {
            for seed in 0..500 {
                let config = Config {
                    inform: inform.clone(),
                    request: request.clone(),
                    rules: Rules::Repaired,
                };
                let messages = play(config, 3, seed);
                assert!(messages > 0, "{name}");
            }
        }
    }
}
