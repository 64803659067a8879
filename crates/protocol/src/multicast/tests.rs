//! The spec's worked examples and counts, on the machines that people run.

use super::*;
use crate::{
    Algorithm, Cluster, Effects, Machine, NodeId, Problem, Setup, Slot, Timer, User as _, UserId,
};

const P1: NodeId = NodeId(0);
const P2: NodeId = NodeId(1);
const P3: NodeId = NodeId(2);
const P4: NodeId = NodeId(3);
const ALL: Group = Group(0);

/// A run that is carried by hand: nothing arrives unless a test says so.
struct Play {
    cluster: Box<dyn Cluster<Multicast>>,
    users: Vec<User>,
    under_way: Vec<(NodeId, NodeId, String, Slot)>,
    timers: Vec<(NodeId, Timer)>,
}

impl Play {
    fn new(algorithm: &Algorithm<Multicast>, setup: &Setup) -> Play {
        let machine: Box<dyn Machine<Multicast>> = (algorithm.machine)(setup).expect("valid");
        Play {
            cluster: machine.cluster(),
            users: UserId::all(setup.users)
                .map(|user| machine.user(user))
                .collect(),
            under_way: Vec::new(),
            timers: Vec::new(),
        }
    }

    fn of(algorithm: &Algorithm<Multicast>, nodes: usize) -> Play {
        Play::new(algorithm, &Setup::new(nodes))
    }

    fn multicast_to(&mut self, node: NodeId, group: Group) {
        self.users[node.index()].asked(Ask::Multicast(group));
        let mut effects = Effects::default();
        self.cluster.ask(node, Ask::Multicast(group), &mut effects);
        self.absorb(node, effects);
    }

    fn multicast(&mut self, node: NodeId) {
        self.multicast_to(node, ALL);
    }

    fn absorb(&mut self, node: NodeId, effects: Effects<Multicast>) {
        for (to, slot) in effects.sends {
            let label = self.cluster.label(slot);
            self.under_way.push((node, to, label, slot));
        }
        for tell in effects.tells {
            self.users[node.index()].told(tell).expect("well-formed");
        }
        self.timers
            .extend(effects.timers.into_iter().map(|(_, timer)| (node, timer)));
        assert_eq!(Multicast::violation(&self.users), None);
    }

    /// The first message of a link whose label has these words.
    fn find(&self, from: NodeId, to: NodeId, words: &str) -> usize {
        let is_it = |(f, t, label, _): &(NodeId, NodeId, String, Slot)| {
            (*f, *t) == (from, to) && label.contains(words)
        };
        let found = self.under_way.iter().position(is_it);
        found.unwrap_or_else(|| panic!("no {words} from {from} to {to}: {:?}", self.under_way))
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, words: &str) {
        let place = self.find(from, to, words);
        let (from, to, _, slot) = self.under_way.remove(place);
        let mut effects = Effects::default();
        self.cluster.deliver(from, to, slot, &mut effects);
        self.absorb(to, effects);
    }

    /// The network brings a message once more than it was sent.
    fn duplicate(&mut self, from: NodeId, to: NodeId, words: &str) {
        let (from, to, label, slot) = self.under_way[self.find(from, to, words)].clone();
        let copy = self.cluster.copy(slot);
        self.under_way.push((from, to, label, copy));
    }

    fn lose(&mut self, from: NodeId, to: NodeId, words: &str) {
        let place = self.find(from, to, words);
        let (.., slot) = self.under_way.remove(place);
        self.cluster.forget(slot);
    }

    fn fire(&mut self, node: NodeId) {
        let place = self
            .timers
            .iter()
            .position(|(at, _)| *at == node)
            .expect("a timer");
        let (_, timer) = self.timers.remove(place);
        let mut effects = Effects::default();
        self.cluster.fire(node, timer, &mut effects);
        self.absorb(node, effects);
    }

    /// Delivers all that is under way, the newest first, so that nothing rests on the order of links.
    fn settle(&mut self) {
        while let Some((from, to, _, slot)) = self.under_way.pop() {
            let mut effects = Effects::default();
            self.cluster.deliver(from, to, slot, &mut effects);
            self.absorb(to, effects);
        }
    }

    fn delivered(&self, node: NodeId) -> String {
        let casts = self.users[node.index()].delivered();
        casts
            .map(|cast| cast.to_string())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn kinds(&self) -> Vec<(String, u64)> {
        let mut kinds = self.cluster.traffic().kinds;
        kinds.sort();
        kinds
    }
}

fn kinds<const N: usize>(kinds: [(&str, u64); N]) -> Vec<(String, u64)> {
    kinds.map(|(kind, count)| (kind.to_owned(), count)).into()
}

/// §4.2: |g| sends and |g| acknowledgements, without those to oneself; all acknowledgements go to the sender.
#[test]
fn basic_multicast_is_answered_by_everybody() {
    for n in 2..=8_u64 {
        let mut play = Play::of(&basic::ALGORITHM, n as usize);
        play.multicast(P1);
        play.settle();
        assert_eq!(play.kinds(), kinds([("Ack", n - 1), ("Message", n - 1)]));
        assert_eq!(Multicast::unserved(&play.users), None);
    }
}

/// §4.3: each message is sent |g| times to each member.
#[test]
fn reliable_multicast_costs_the_group_squared() {
    for n in 2..=8_u64 {
        let mut play = Play::of(&reliable::ALGORITHM, n as usize);
        play.multicast(P2);
        play.settle();
        assert_eq!(play.kinds(), kinds([("Message", n * (n - 1))]));
        assert_eq!(Multicast::unserved(&play.users), None);
    }
}

/// §4.4, case 1: p multicasts with the number 3, r has nothing of p; it asks for 1 and 2 and delivers 3 at once, or holds it.
#[test]
fn a_gap_is_asked_for_and_the_message_delivered_or_held() {
    for delivery in Delivery::ALL {
        let setup = Setup {
            delivery,
            ..Setup::new(3)
        };
        let mut play = Play::new(&nack::ALGORITHM, &setup);
        for number in 1..=2 {
            play.multicast(P1);
            play.deliver(P1, P2, &format!("p0.{number}"));
            play.lose(P1, P3, &format!("p0.{number}"));
        }
        play.multicast(P1);
        play.deliver(P1, P2, "p0.3 [3, 0, 0]");
        assert_eq!(play.delivered(P2), "p0.1 p0.2 p0.3");
        play.deliver(P1, P3, "p0.3 [3, 0, 0]");
        assert_eq!(
            play.delivered(P3),
            if delivery == Delivery::Immediate {
                "p0.3"
            } else {
                ""
            }
        );
        play.deliver(P3, P1, "Nack(p0 [1, 2])");
        play.deliver(P1, P3, "Retransmit(p0.1)");
        play.deliver(P1, P3, "Retransmit(p0.2)");
        assert_eq!(
            play.delivered(P3),
            match delivery {
                Delivery::Immediate => "p0.3 p0.1 p0.2",
                Delivery::Hold => "p0.1 p0.2 p0.3",
            }
        );
    }
}

/// §4.4, case 2: r misses a message of q, and hears of it through an acknowledgement in a message of p, which is in order.
#[test]
fn a_gap_shows_in_the_acknowledgements_of_others() {
    let mut play = Play::of(&nack::ALGORITHM, 3);
    play.multicast(P2);
    play.deliver(P2, P1, "p1.1");
    play.lose(P2, P3, "p1.1");
    play.multicast(P1);
    play.deliver(P1, P3, "p0.1 [1, 1, 0]");
    assert_eq!(play.delivered(P3), "p0.1");
    play.deliver(P3, P1, "Nack(p1 [1])");
    play.deliver(P1, P3, "Retransmit(p1.1)");
    assert_eq!(play.delivered(P3), "p0.1 p1.1");
}

/// §4.4: the loss of the last message is noticed after a silence, and then nobody has more to say.
#[test]
fn an_empty_message_tells_of_the_last_one() {
    let mut play = Play::of(&nack::ALGORITHM, 2);
    play.multicast(P1);
    play.lose(P1, P2, "p0.1");
    assert!(Multicast::unserved(&play.users).is_some());
    play.fire(P1);
    play.settle();
    assert_eq!(play.delivered(P2), "p0.1");
    while let Some((node, _)) = play.timers.first() {
        play.fire(*node);
        play.settle();
    }
    assert_eq!(Multicast::unserved(&play.users), None);
    let empty = play.kinds().into_iter().find(|(kind, _)| kind == "Empty");
    assert_eq!(
        empty.map(|(_, count)| count),
        Some(3),
        "two that ask, one that answers"
    );
}

/// §4.6: numbers of one sender are delivered 1, 2, 3, whatever the order of arrival.
#[test]
fn fifo_holds_back_what_comes_early() {
    let mut play = Play::of(&fifo::ALGORITHM, 2);
    for _ in 0..3 {
        play.multicast(P1);
    }
    for number in [3, 1, 2] {
        play.deliver(P1, P2, &format!("p0.{number}"));
    }
    assert_eq!(play.delivered(P2), "p0.1 p0.2 p0.3");
    assert_eq!(play.kinds(), kinds([("Message", 3)]));
}

/// §4.6: what has a number that was delivered is discarded; a duplicate may come at once or late.
#[test]
fn fifo_discards_a_duplicate() {
    let mut play = Play::of(&fifo::ALGORITHM, 2);
    for number in 1..=2 {
        play.multicast(P1);
        play.duplicate(P1, P2, &format!("p0.{number}"));
    }
    for number in [1, 1, 2, 2] {
        play.deliver(P1, P2, &format!("p0.{number}"));
    }
    assert_eq!(play.delivered(P2), "p0.1 p0.2");
}

/// A member of both groups delivers in the sender's order even where two messages went to two groups.
#[test]
fn fifo_holds_over_groups() {
    let setup = Setup {
        groups: Some(3),
        ..Setup::new(4)
    };
    let mut play = Play::new(&fifo::ALGORITHM, &setup);
    play.multicast_to(P1, Group(1));
    play.multicast_to(P1, Group(2));
    play.deliver(P1, P4, "p0.2@2");
    assert_eq!(play.delivered(P4), "");
    play.deliver(P1, P4, "p0.1@1");
    assert_eq!(play.delivered(P4), "p0.1@1 p0.2@2");
    // The second node is not in the first group: it waits for nothing there.
    play.deliver(P1, P2, "p0.2@2");
    assert_eq!(play.delivered(P2), "p0.2@2");
}

/// §4.7: P3 receives m2, m3, m1; deliveries m1 (1,0,0), m2 (1,1,0), m3 (2,1,0).
#[test]
fn causal_holds_back_what_came_of_something_missing() {
    for over in [Over::Basic, Over::Reliable] {
        let setup = Setup {
            over,
            ..Setup::new(3)
        };
        let mut play = Play::new(&causal::ALGORITHM, &setup);
        play.multicast(P1);
        play.deliver(P1, P2, "p0.1 [1, 0, 0]");
        play.multicast(P2);
        play.multicast(P1);
        play.deliver(P2, P3, "p1.1 [1, 1, 0]");
        play.deliver(P1, P3, "p0.2 [2, 0, 0]");
        assert_eq!(play.delivered(P3), "");
        play.deliver(P1, P3, "p0.1 [1, 0, 0]");
        assert_eq!(play.delivered(P3), "p0.1 p1.1 p0.2");
        play.settle();
        let sends = if over == Over::Basic { 3 * 2 } else { 3 * 6 };
        assert_eq!(play.kinds(), kinds([("Message", sends)]));
        assert_eq!(Multicast::unserved(&play.users), None);
    }
}

/// A chain through groups that the last member is not in: P2 is in groups 0 and 2, P3 in 0 and 1, P1 in 1 and 2.
#[test]
fn causal_order_goes_round_through_other_groups() {
    let setup = Setup {
        groups: Some(3),
        ..Setup::new(3)
    };
    let mut play = Play::new(&causal::ALGORITHM, &setup);
    play.multicast_to(P2, Group(0));
    play.multicast_to(P2, Group(2));
    play.deliver(P2, P1, "p1.2@2");
    play.multicast_to(P1, Group(1));
    play.deliver(P1, P3, "p0.1@1");
    assert_eq!(
        play.delivered(P3),
        "",
        "p1.1 happened before, and P1 has never seen it"
    );
    play.deliver(P2, P3, "p1.1");
    assert_eq!(play.delivered(P3), "p1.1 p0.1@1");
}

/// §4.8: 3(|g|−1) messages.
#[test]
fn isis_sends_three_rounds() {
    for n in 2..=8_u64 {
        let mut play = Play::of(&isis::ALGORITHM, n as usize);
        play.multicast(P2);
        play.settle();
        let round = n - 1;
        assert_eq!(
            play.kinds(),
            kinds([("Agree", round), ("Message", round), ("Propose", round)])
        );
        assert_eq!(Multicast::unserved(&play.users), None);
    }
}

/// §4.8: two messages that arrive in two orders get the same number, and are delivered in one order.
#[test]
fn isis_breaks_ties_by_sender() {
    let mut play = Play::of(&isis::ALGORITHM, 2);
    play.multicast(P1);
    play.multicast(P2);
    play.deliver(P1, P2, "p0.1");
    play.deliver(P2, P1, "p1.1");
    play.deliver(P2, P1, "Propose(1, 2)");
    play.deliver(P1, P2, "Propose(1, 2)");
    play.settle();
    assert_eq!(play.delivered(P1), "p0.1 p1.1");
    assert_eq!(play.delivered(P2), "p0.1 p1.1");
}

/// §4.8, the example: four processes, with m2 first at P2 and P4, which must reorder; a message without its number at the
/// head blocks the one behind it. Here all counters start at 0.
#[test]
fn isis_reorders_and_waits_for_the_head() {
    let mut play = Play::of(&isis::ALGORITHM, 4);
    play.multicast(P1);
    play.multicast(P2);
    play.deliver(P2, P1, "p1.1");
    play.deliver(P1, P2, "p0.1");
    for (node, order) in [(P3, [P1, P2]), (P4, [P2, P1])] {
        for from in order {
            play.deliver(from, node, "Message");
        }
    }
    for node in [P1, P3, P4] {
        play.deliver(node, P2, "Propose");
    }
    play.deliver(P2, P4, "Agree(Message(#1=2))");
    assert_eq!(
        play.delivered(P4),
        "",
        "p0.1 has 2, but only for now, and goes first by its sender"
    );
    for node in [P2, P3, P4] {
        play.deliver(node, P1, "Propose");
    }
    play.deliver(P1, P4, "Agree(Message(#1=2))");
    assert_eq!(play.delivered(P4), "p0.1 p1.1");
    play.settle();
    for node in [P1, P2, P3] {
        assert_eq!(play.delivered(node), "p0.1 p1.1");
    }
}

/// The message and the sequencer's word, each to all others; two more where the sequencer is outside of the group.
#[test]
fn a_sequencer_needs_two_rounds() {
    for n in 2..=8_u64 {
        for sender in [P1, P2] {
            let mut play = Play::of(&sequencer::ALGORITHM, n as usize);
            play.multicast(sender);
            play.settle();
            assert_eq!(play.kinds(), kinds([("Message", n - 1), ("Order", n - 1)]));
            assert_eq!(Multicast::unserved(&play.users), None);
        }
    }
    let setup = Setup {
        groups: Some(4),
        ..Setup::new(4)
    };
    let mut play = Play::new(&sequencer::ALGORITHM, &setup);
    play.multicast_to(P2, Group(0));
    play.settle();
    assert_eq!(
        play.kinds(),
        kinds([("Ask", 1), ("Message", 2), ("Order", 3)])
    );
    assert_eq!(Multicast::unserved(&play.users), None);
}

/// Every order stands on every layer, with one group and with several that overlap, and delivers to all.
#[test]
fn layers_stand_on_each_other() {
    for algorithm in ALGORITHMS {
        for over in Over::ALL {
            for groups in [1, 2, 4] {
                let setup = Setup {
                    over,
                    groups: Some(groups),
                    ..Setup::new(4)
                };
                if algorithm.profile.name == "sequencer" && over == Over::Nack && groups > 1 {
                    assert!((algorithm.machine)(&setup).is_err(), "not its members");
                    continue;
                }
                let mut play = Play::new(algorithm, &setup);
                for group in (0..groups as u32).map(Group) {
                    let sender = if group == Group(3) { P1 } else { P4 };
                    play.multicast_to(sender, group);
                }
                play.settle();
                let name = algorithm.profile.name;
                assert_eq!(
                    Multicast::unserved(&play.users),
                    None,
                    "{name} over {over}, {groups} groups"
                );
            }
        }
    }
}
