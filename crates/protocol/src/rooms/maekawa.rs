//! The thesis' rooms by messages: every group asks the locks of its quorum, and is the arbiter of one lock
//! itself, which it lends to the oldest request and asks back from a younger one.
//!
//! Source: group exclusion §7, repaired: the arbiter remembers who holds its lock, and answers nobody else
//! (`specimens::maekawa_printed`). A lock that is asked back outside the section is always handed back, so
//! Maekawa's `Failed` is not needed. Besides, a lock brings the arbiter's counter: a group that seldom
//! competes would otherwise pass the others again and again (`specimens::maekawa_unmerged`).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Rooms;
use super::over::{Plan, rooms_over};
use crate::mutex::{Ask, Mutex, Tell};
use crate::quorum::Quorums;
use crate::{
    Algorithm, Claim, Cost, Input, LamportClock, Machine, Message, NodeId, Output, Profile,
    Protocol, Range, Setup, SetupError, Shape, Stamp, Telling,
};

/// A plane of seven.
pub(super) const GROUPS_DEFAULT: usize = 7;

pub(crate) const ALGORITHM: Algorithm<Rooms> = Algorithm {
    profile: Profile {
        name: "rooms-maekawa",
        title: "Rooms over Maekawa quorums",
        source: "group exclusion §7",
        claims: &[
            Claim::Safety,
            Claim::DeadlockFreedom,
            Claim::LockoutFreedom,
            Claim::Bypass,
        ],
        costs: &[
            Cost::messages(
                "3 + 3(K−1)/l to 3 + 6(K−1)/l, for l of N together",
                |setup| {
                    let others = f64::from(others(setup));
                    Range::new(3.0 + 3.0 * others / setup.users as f64, 3.0 + 6.0 * others)
                },
            ),
            Cost::messages_behind("3(K−1) to 5(K−1), and K−1 demands", |setup| {
                Range::new(3 * others(setup), 6 * others(setup))
            }),
        ],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        telling_groups: Some(2),
        ..Profile::PLAIN
    },
    machine: |setup| with_locks(setup, true),
};

/// K−1: the other members of the largest quorum.
pub(super) fn others(setup: &Setup) -> u32 {
    let groups = setup.groups.unwrap_or(GROUPS_DEFAULT);
    let sets = Quorums::build(setup.quorum, groups);
    let sizes = sets.map(|Quorums(sets)| sets.iter().map(Vec::len).max());
    sizes.ok().flatten().map_or(0, |size| size as u32 - 1)
}

pub(super) fn with_locks(
    setup: &Setup,
    merges: bool,
) -> Result<Box<dyn Machine<Rooms>>, SetupError> {
    let mut plan = Plan::new(setup, GROUPS_DEFAULT)?;
    // Every other group: once by a request that is granted already, once by one that looks older.
    plan.rounds_max = Some(2 * (plan.groups as u32 - 1));
    let Quorums(sets) = Quorums::build(setup.quorum, plan.groups)?;
    let shape = Shape::users(plan.groups);
    Ok(rooms_over::<Locks>(
        &shape,
        Arc::new(Config { sets, merges }),
        plan,
    ))
}

#[derive(Debug)]
pub(super) struct Config {
    sets: Vec<Vec<NodeId>>,
    /// Whether a lock brings the arbiter's counter.
    merges: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Locks {
    id: NodeId,
    /// `priori`.
    counter: LamportClock,
    /// The group's own request, whether it is granted, and `conj`: the locks that it has.
    mine: Option<Stamp>,
    inside: bool,
    locks: BTreeSet<NodeId>,
    /// The arbiter: `LG`, the requests that wait for or have its lock, who has it, and whether it was asked
    /// back.
    requests: BTreeSet<Stamp>,
    holder: Option<Stamp>,
    asked: bool,
}

/// The thesis' messages between groups, in their order: `Req_`, `Rec_`, `Rel_`, `Rep_Rel_` and `Lib_Grupo`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(super) enum Lock {
    Request(Stamp),
    Grant(u64),
    AskBack,
    HandBack,
    Release,
}

impl Message for Lock {
    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        match self {
            Lock::Request(stamp) => visit(&mut stamp.time),
            Lock::Grant(counter) => visit(counter),
            Lock::AskBack | Lock::HandBack | Lock::Release => {}
        }
    }
}

impl Protocol for Locks {
    type Problem = Mutex;
    type Message = Lock;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        Locks {
            id,
            counter: LamportClock::default(),
            mine: None,
            inside: false,
            locks: BTreeSet::new(),
            requests: BTreeSet::new(),
            holder: None,
            asked: false,
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        let quorum = &config.sets[self.id.index()];
        match input {
            Input::Ask(Ask::Enter) => {
                let time = self.counter.tick();
                let mine = Stamp {
                    time,
                    node: self.id,
                };
                self.mine = Some(mine);
                out.send_all(quorum.iter().copied(), &Lock::Request(mine));
            }
            Input::Ask(Ask::Leave) => {
                (self.mine, self.inside) = (None, false);
                self.locks.clear();
                out.send_all(quorum.iter().copied(), &Lock::Release);
            }
            Input::Message { from, message } => match message {
                Lock::Request(stamp) => self.on_request(stamp, out),
                Lock::Grant(counter) => {
                    if config.merges {
                        self.counter.0 = self.counter.0.max(counter);
                    }
                    if self.mine.is_some() && !self.inside {
                        self.locks.insert(from);
                    }
                    if self.mine.is_some() && self.locks.len() == quorum.len() && !self.inside {
                        self.inside = true;
                        out.tell(Tell::Entered);
                    }
                }
                Lock::AskBack if self.inside => out.tell(Tell::Wanted),
                Lock::AskBack => {
                    if self.locks.remove(&from) {
                        out.send(from, Lock::HandBack);
                    }
                }
                Lock::HandBack if self.is_held_by(from) => self.grant_best(out),
                Lock::HandBack => {}
                Lock::Release => {
                    self.requests.retain(|stamp| stamp.node != from);
                    if self.is_held_by(from) {
                        self.holder = None;
                        self.grant_best(out);
                    }
                }
            },
            Input::Start | Input::Timer(_) => {}
        }
    }

    fn clocks(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        visit(&mut self.counter.0);
        for stamp in self.mine.iter_mut().chain(&mut self.holder) {
            visit(&mut stamp.time);
        }
        let shown = self.requests.iter().map(|&(mut stamp)| {
            visit(&mut stamp.time);
            stamp
        });
        self.requests = shown.collect();
    }
}

/// The arbiter.
impl Locks {
    fn is_held_by(&self, group: NodeId) -> bool {
        self.holder.is_some_and(|holder| holder.node == group)
    }

    fn on_request(&mut self, stamp: Stamp, out: &mut Output<Self>) {
        self.counter.0 = self.counter.0.max(stamp.time);
        self.requests.insert(stamp);
        match self.holder {
            None => self.grant_best(out),
            Some(holder) if stamp < holder && !self.asked => {
                self.asked = true;
                out.send(holder.node, Lock::AskBack);
            }
            Some(_) => {}
        }
    }

    /// Lends the lock to the oldest; whoever hands it back stays in the list.
    fn grant_best(&mut self, out: &mut Output<Self>) {
        self.asked = false;
        self.holder = self.requests.first().copied();
        if let Some(best) = self.holder {
            out.send(best.node, Lock::Grant(self.counter.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::rooms::{Ask, Tell};
    use crate::{Cluster, Effects, Slot};

    /// All nodes, and messages in the order of sending.
    struct House {
        cluster: Box<dyn Cluster<Rooms>>,
        under_way: VecDeque<(NodeId, NodeId, Slot)>,
        entered: Vec<NodeId>,
    }

    impl House {
        fn new(processes: usize, groups: usize) -> House {
            let setup = Setup {
                groups: Some(groups),
                ..Setup::new(processes)
            };
            House {
                cluster: with_locks(&setup, true).expect("valid").cluster(),
                under_way: VecDeque::new(),
                entered: Vec::new(),
            }
        }

        fn ask(&mut self, process: u32, ask: Ask) {
            let mut effects = Effects::default();
            self.cluster.ask(NodeId(process), ask, &mut effects);
            self.absorb(NodeId(process), effects);
        }

        fn settle(&mut self) {
            while let Some((from, to, slot)) = self.under_way.pop_front() {
                let mut effects = Effects::default();
                self.cluster.deliver(from, to, slot, &mut effects);
                self.absorb(to, effects);
            }
        }

        fn absorb(&mut self, node: NodeId, effects: Effects<Rooms>) {
            let sends = effects.sends.into_iter();
            self.under_way
                .extend(sends.map(|(to, slot)| (node, to, slot)));
            let told = effects.tells.into_iter();
            self.entered.extend(told.map(|Tell::Entered { .. }| node));
        }
    }

    /// 3l + 3(K−1) for l processes of one room, with nobody else about.
    #[test]
    fn a_round_costs_three_a_process_and_three_for_each_other_lock() {
        for (groups, k) in [(3, 2), (7, 3), (13, 4), (21, 5)] {
            for l in [1, 3, 10] {
                let mut house = House::new(l, groups);
                (0..l as u32).for_each(|process| house.ask(process, Ask::Enter(1)));
                house.settle();
                assert_eq!(house.entered.len(), l);
                (0..l as u32).for_each(|process| house.ask(process, Ask::Leave));
                house.settle();
                let messages = house.cluster.traffic().messages;
                assert_eq!(messages, 3 * l as u64 + 3 * (k - 1), "l = {l}, K = {k}");
            }
        }
    }

    /// Figure 5.31, numbered from 0: P0, P2 and P3 are in G1, led by the last of them to leave first; P1
    /// wants G0 and waits for all of them, and whoever comes to G1 after its leader waits too.
    #[test]
    fn another_room_waits_until_the_last_has_left() {
        let mut house = House::new(5, 7);
        for process in [3, 0, 2] {
            house.ask(process, Ask::Enter(1));
            house.settle();
        }
        assert_eq!(
            house.entered,
            [3, 0, 2].map(NodeId),
            "P3 leads, the others join"
        );
        house.ask(1, Ask::Enter(0));
        house.settle();
        house.ask(3, Ask::Leave);
        house.settle();
        house.ask(4, Ask::Enter(1));
        house.settle();
        assert_eq!(house.entered.len(), 3, "the leader is gone: P4 is stored");
        for process in [0, 2] {
            house.ask(process, Ask::Leave);
            house.settle();
        }
        assert_eq!(house.entered[3], NodeId(1), "G0 before G1 again");
        house.ask(1, Ask::Leave);
        house.settle();
        assert_eq!(house.entered[4], NodeId(4));
    }
}
