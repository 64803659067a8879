//! Every algorithm runs twice under one schedule, as a cluster and as members that exchange packets, and both must do
//! the same at every step. Damaged packets arrive all the while and must change nothing.

use super::*;
use crate::{
    Algorithm, Channels, Cluster, Machine, Next, PACKET_BYTES_MAX, PACKET_HEAD_BYTES, Phase, Setup,
    Shape, Slot, User, UserId, mutex, readers, rooms,
};

/// Chance from a seed: SplitMix64.
struct Lots(u64);

impl Lots {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }
}

struct Flight {
    from: NodeId,
    to: NodeId,
    slot: Slot,
    packet: Packet,
}

/// What may happen next.
#[derive(Clone, Copy, Debug)]
enum Turn<A> {
    Ask(UserId, A),
    Deliver(usize),
    Fire(usize),
}

/// Both faces of one algorithm, in step.
struct Twins<Q: Problem> {
    machine: Box<dyn Machine<Q>>,
    name: &'static str,
    channels: Channels,
    shape: Shape,
    cluster: Box<dyn Cluster<Q>>,
    members: Vec<Box<dyn Member<Q>>>,
    users: Vec<Q::User>,
    /// Who waits, in the order of asking.
    waiting: Vec<UserId>,
    under_way: Vec<Flight>,
    timers: Vec<(NodeId, Timer)>,
    sent: u64,
    sent_bytes: u64,
    told: u64,
    /// Whether a user was told what no well-formed node would say: a specimen may.
    ill_formed: bool,
    effects: Effects<Q>,
    outcome: Effects<Q, Packet>,
    lots: Lots,
}

impl<Q: Problem> Twins<Q> {
    fn new(algorithm: &Algorithm<Q>, setup: &Setup, seed: u64) -> Twins<Q> {
        let machine = (algorithm.machine)(setup).expect("a setup that it takes");
        let (shape, tag) = (machine.shape().clone(), algorithm.tag(setup));
        let member = |id| machine.member(id, tag).expect("a node of its shape");
        let mut twins = Twins {
            name: algorithm.profile.name,
            channels: algorithm.profile.channels,
            cluster: machine.cluster(),
            members: NodeId::all(shape.nodes()).map(member).collect(),
            users: UserId::all(shape.users).map(|u| machine.user(u)).collect(),
            waiting: Vec::new(),
            under_way: Vec::new(),
            timers: Vec::new(),
            sent: 0,
            sent_bytes: 0,
            told: 0,
            ill_formed: false,
            effects: Effects::default(),
            outcome: Effects::default(),
            lots: Lots(seed),
            shape,
            machine,
        };
        for node in NodeId::all(twins.shape.nodes()) {
            twins.cluster.start(node, &mut twins.effects);
            twins.members[node.index()].start(&mut twins.outcome);
            twins.absorb(node);
        }
        twins
    }

    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            let turns = self.turns();
            if turns.is_empty() || self.ill_formed {
                break;
            }
            let turn = turns[self.lots.below(turns.len())];
            self.take(turn);
        }
    }

    fn turns(&mut self) -> Vec<Turn<Q::Ask>> {
        let mut turns = Vec::new();
        for user in UserId::all(self.shape.users) {
            let state = &self.users[user.index()];
            let choice = self.lots.below(state.choices() as usize) as u32;
            if let Next::May(ask) | Next::Must(ask) = state.choose(choice) {
                turns.push(Turn::Ask(user, ask));
            }
        }
        for (i, flight) in self.under_way.iter().enumerate() {
            let link = |f: &&Flight| (f.from, f.to) == (flight.from, flight.to);
            let overtakes = self.under_way[..i].iter().any(|earlier| link(&earlier));
            if self.channels == Channels::AnyOrder || !overtakes {
                turns.push(Turn::Deliver(i));
            }
        }
        turns.extend((0..self.timers.len()).map(Turn::Fire));
        turns
    }

    fn take(&mut self, turn: Turn<Q::Ask>) {
        let node = match turn {
            Turn::Ask(user, ask) => {
                let node = self.shape.home(user);
                let before = self.users[user.index()].phase();
                self.users[user.index()].asked(ask);
                self.moved(user, before);
                self.cluster.ask(node, ask, &mut self.effects);
                self.members[node.index()].ask(ask, &mut self.outcome);
                node
            }
            Turn::Deliver(i) => {
                let Flight {
                    from,
                    to,
                    slot,
                    packet,
                } = self.under_way.remove(i);
                self.disturb(from, to, &packet);
                self.cluster.deliver(from, to, slot, &mut self.effects);
                let taken = self.members[to.index()].receive(from, &packet, &mut self.outcome);
                assert_eq!(taken, Ok(()), "{}", self.name);
                to
            }
            Turn::Fire(i) => {
                let (node, timer) = self.timers.remove(i);
                self.cluster.fire(node, timer, &mut self.effects);
                self.members[node.index()].fire(timer, &mut self.outcome);
                node
            }
        };
        self.absorb(node);
    }

    /// Gives a member what it must refuse; that nothing changed is seen by every later step.
    fn disturb(&mut self, from: NodeId, to: NodeId, packet: &[u8]) {
        let mut bad: Vec<(NodeId, Packet)> = Vec::new();
        for _ in 0..4 {
            let mut flipped = packet.to_vec();
            flipped[self.lots.below(packet.len())] ^= 1 << self.lots.below(8);
            bad.push((from, flipped));
        }
        bad.push((from, packet[..self.lots.below(packet.len())].to_vec()));
        bad.push((from, [packet, &[0]].concat()));
        bad.push((from, vec![packet[0]; PACKET_BYTES_MAX + 1]));
        let length = self.lots.below(40);
        let noise = (0..length).map(|_| self.lots.draw() as u8);
        bad.push((from, noise.collect()));
        bad.push((to, packet.to_vec()));
        bad.push((NodeId(self.shape.nodes() as u32), packet.to_vec()));
        for (from, packet) in bad {
            let taken = self.members[to.index()].receive(from, &packet, &mut self.outcome);
            assert!(taken.is_err(), "{}: {packet:?} from {from}", self.name);
            assert_eq!(self.outcome, Effects::default(), "{}", self.name);
        }
    }

    /// Takes in what a step did, which both must have done alike.
    fn absorb(&mut self, node: NodeId) {
        assert_eq!(self.outcome.tells, self.effects.tells, "{}", self.name);
        assert_eq!(self.outcome.timers, self.effects.timers, "{}", self.name);
        fn to<M>(sends: &[(NodeId, M)]) -> Vec<NodeId> {
            sends.iter().map(|(to, _)| *to).collect()
        }
        let (packets, slots) = (&mut self.outcome.sends, &mut self.effects.sends);
        assert_eq!(to(packets), to(slots), "{}", self.name);
        for ((to, packet), (_, slot)) in packets.drain(..).zip(slots.drain(..)) {
            let label = self.machine.label(&packet[PACKET_HEAD_BYTES..]);
            assert_eq!(label, Ok(self.cluster.label(slot)), "{}", self.name);
            self.sent += 1;
            self.sent_bytes += (packet.len() - PACKET_HEAD_BYTES) as u64;
            self.under_way.push(Flight {
                from: node,
                to,
                slot,
                packet,
            });
        }
        let timers = self.effects.timers.drain(..);
        self.timers.extend(timers.map(|(_, timer)| (node, timer)));
        for tell in std::mem::take(&mut self.effects.tells) {
            self.tell(node, tell);
        }
    }

    /// Of the users that share a node, the first in line that hears a word takes it.
    fn tell(&mut self, node: NodeId, tell: Q::Tell) {
        self.told += 1;
        let here = |user: &UserId| self.shape.home(*user) == node;
        let in_line = self.waiting.iter().copied().filter(here);
        let hearer = in_line
            .chain(self.shape.users_at(node))
            .find(|user| self.users[user.index()].hears(&tell));
        let Some(user) = hearer else {
            self.ill_formed = true;
            return;
        };
        let before = self.users[user.index()].phase();
        self.ill_formed |= self.users[user.index()].told(tell).is_err();
        self.moved(user, before);
    }

    fn moved(&mut self, user: UserId, before: Phase) {
        let after = self.users[user.index()].phase();
        if before != after && after == Phase::Waiting {
            self.waiting.push(user);
        } else if after != Phase::Waiting {
            self.waiting.retain(|&other| other != user);
        }
    }
}

/// The setups in which an algorithm is tried: the telling one, and a larger one where it can have that.
fn setups<Q: Problem>(algorithm: &Algorithm<Q>) -> Vec<Setup> {
    let telling = Setup {
        delay_bound: 10,
        ..algorithm.profile.telling_setup()
    };
    let larger = Setup {
        users: 7,
        ..telling.clone()
    };
    // With one node there is nothing to send.
    let takes = |setup: &Setup| {
        let machine = (algorithm.machine)(setup);
        machine.is_ok_and(|machine| machine.shape().nodes() > 1)
    };
    [telling, larger].into_iter().filter(takes).collect()
}

trait Trial {
    fn of<Q: Problem>(&mut self, algorithm: &Algorithm<Q>);
}

fn try_all(trial: &mut impl Trial) {
    fn each<Q: Problem>(lists: &[&[&Algorithm<Q>]], trial: &mut impl Trial) {
        for algorithm in lists.iter().copied().flatten() {
            trial.of::<Q>(algorithm);
        }
    }
    each(&[mutex::ALGORITHMS, mutex::specimens::ALGORITHMS], trial);
    each(
        &[readers::ALGORITHMS, readers::specimens::ALGORITHMS],
        trial,
    );
    each(
        &[rooms::ALGORITHMS, rooms::OVER, rooms::specimens::ALGORITHMS],
        trial,
    );
}

/// Every algorithm, as members over bytes and as a cluster, does the same.
#[test]
fn members_do_what_a_cluster_does_step_by_step() {
    struct Alike(usize);
    impl Trial for Alike {
        fn of<Q: Problem>(&mut self, algorithm: &Algorithm<Q>) {
            let name = algorithm.profile.name;
            let (mut told, mut sent) = (0, 0);
            for setup in setups(algorithm) {
                for seed in 0..4 {
                    let mut twins = Twins::new(algorithm, &setup, seed);
                    twins.run(400);
                    let traffic = twins.cluster.traffic();
                    assert_eq!(twins.sent, traffic.messages, "{name}, seed {seed}");
                    assert_eq!(twins.sent_bytes, traffic.bytes, "{name}, seed {seed}");
                    (told, sent) = (told + twins.told, sent + twins.sent);
                }
            }
            assert!(told > 0 && sent > 0, "{name} did nothing");
            self.0 += 1;
        }
    }
    let mut tried = Alike(0);
    try_all(&mut tried);
    assert!(tried.0 > 40, "only {} algorithms", tried.0);
}

/// The packets of one algorithm are refused by all others, and by itself in another setup.
#[test]
fn packets_of_another_algorithm_are_refused() {
    struct Sample(Vec<(&'static str, Packet)>);
    impl Trial for Sample {
        fn of<Q: Problem>(&mut self, algorithm: &Algorithm<Q>) {
            for setup in setups(algorithm) {
                let first = (0..20).find_map(|seed| {
                    let mut twins = Twins::new(algorithm, &setup, seed);
                    let mut steps = 0..50;
                    while twins.under_way.is_empty() && steps.next().is_some() {
                        twins.run(1);
                    }
                    twins.under_way.pop()
                });
                let packet = first.expect(algorithm.profile.name).packet;
                self.0.push((algorithm.profile.name, packet));
            }
        }
    }
    struct Refuse(Sample);
    impl Trial for Refuse {
        fn of<Q: Problem>(&mut self, algorithm: &Algorithm<Q>) {
            for setup in setups(algorithm) {
                let mut twins = Twins::new(algorithm, &setup, 1);
                let mut own = 0;
                for (name, packet) in &self.0.0 {
                    let taken = twins.members[0].receive(NodeId(1), packet, &mut twins.outcome);
                    match taken {
                        Err(PacketError::OtherTag { .. }) => {}
                        _ if *name == twins.name => own += 1,
                        _ => panic!("{} took a packet of {name}: {taken:?}", twins.name),
                    }
                }
                assert_eq!(own, 1, "{} in its own setup only", twins.name);
            }
        }
    }
    let mut samples = Sample(Vec::new());
    try_all(&mut samples);
    try_all(&mut Refuse(samples));
}

/// A peer whose packets are whole but whose messages are made up is refused or believed; it ends nobody.
#[test]
fn a_made_up_message_is_no_panic() {
    #[derive(Default, Debug)]
    struct Liar {
        believed: u64,
        unreadable: u64,
        impossible: u64,
    }
    impl Trial for Liar {
        fn of<Q: Problem>(&mut self, algorithm: &Algorithm<Q>) {
            let setup = setups(algorithm).remove(0);
            let tag = algorithm.tag(&setup);
            for seed in 0..40 {
                let mut twins = Twins::new(algorithm, &setup, seed);
                let honest = twins.lots.below(30);
                twins.run(honest);
                for _ in 0..30 {
                    let lie = lie(&mut twins);
                    let to = twins.lots.below(twins.members.len());
                    let from = NodeId(twins.lots.below(twins.members.len()) as u32);
                    let packet = packet::close(tag, lie);
                    match twins.members[to].receive(from, &packet, &mut twins.outcome) {
                        // From here on its state may be anything.
                        Ok(()) => {
                            self.believed += 1;
                            break;
                        }
                        Err(PacketError::Unreadable { .. }) => self.unreadable += 1,
                        Err(PacketError::Impossible { .. }) => self.impossible += 1,
                        Err(PacketError::Stranger { .. }) => assert_eq!(from.index(), to),
                        Err(other) => panic!("{}: {other}", twins.name),
                    }
                }
            }
        }
    }
    /// A real message with bytes changed, or noise; with room for a head.
    fn lie<Q: Problem>(twins: &mut Twins<Q>) -> Packet {
        let lots = &mut twins.lots;
        let mut lie = match twins.under_way.first() {
            Some(flight) if lots.below(2) == 0 => flight.packet.clone(),
            _ => vec![0; PACKET_HEAD_BYTES + 1 + lots.below(12)],
        };
        for byte in &mut lie[PACKET_HEAD_BYTES..] {
            if lots.below(2) == 0 {
                *byte = lots.draw() as u8 >> lots.below(8);
            }
        }
        lie
    }
    let mut liar = Liar::default();
    try_all(&mut liar);
    let Liar {
        believed,
        unreadable,
        impossible,
    } = liar;
    assert!(believed > 0 && unreadable > 0 && impossible > 0, "{liar:?}");
}

#[test]
fn there_are_as_many_members_as_nodes_and_not_too_many() {
    let member = |users, id| -> Result<NodeId, SetupError> {
        let (setup, central) = (Setup::new(users), mutex::ALGORITHMS[0]);
        let machine: Box<dyn Machine<mutex::Mutex>> = (central.machine)(&setup)?;
        let member = machine.member(NodeId(id), central.tag(&setup))?;
        Ok(member.id())
    };
    // The server is one more.
    assert_eq!(member(3, 3), Ok(NodeId(3)));
    let none = member(3, 4).expect_err("no such node");
    assert_eq!(none.0, "there is no member 4: 4 are numbered from 0");
    assert!(member(MEMBERS_MAX - 1, 0).is_ok());
    let many = member(MEMBERS_MAX, 0).expect_err("one too many");
    assert_eq!(many.0, "257 members are too many: at most 256");
}
