//! A little cluster: members of an algorithm on FIFO links, the nodes behind the users hosted by the first node, and a
//! recording at each node. Chance says what happens next.

use std::collections::{BTreeMap, VecDeque};

use testigo_protocol::{
    Algorithm, Effects, Machine, Member, Next, NodeId, PACKET_HEAD_BYTES, Packet, Phase, Problem,
    Record, RecordAllowance, RecordHead, Recording, Shape, Timer, User, UserId, mutex, readers,
    rooms,
};
use testigo_sim::Generator;

/// What is recorded otherwise than it happened, once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Alteration {
    /// A byte of a message, where it was sent.
    MessageSent,
    /// The same where it was taken.
    MessageOnBothSides,
    /// Two messages of a step to different nodes change places.
    OrderOfSends,
    StepLeftOut,
    TellLeftOut,
    TellAdded,
}

pub(crate) trait LiveRun {
    fn play(&mut self, steps: usize);
    fn hosts(&self) -> usize;
    fn record(&self, host: usize) -> Record;
    /// All records, when the run is over.
    fn records(&mut self) -> Vec<Record>;
    fn entered(&self) -> u64;
    /// What was sent, by link.
    fn sent(&self) -> Vec<(NodeId, NodeId, String)>;
    /// Gives a node so many bytes for its record; before the run.
    fn allow(&mut self, host: usize, bytes: usize);
    fn alter(&mut self, alteration: Alteration);
    fn is_altered(&self) -> bool;
}

/// Calls with every algorithm that is no specimen, and how to start a run of it by a seed.
pub(crate) fn each_algorithm(mut with: impl FnMut(&'static str, &dyn Fn(u64) -> Box<dyn LiveRun>)) {
    fn each<Q: Problem>(
        algorithms: &[&'static Algorithm<Q>],
        with: &mut impl FnMut(&'static str, &dyn Fn(u64) -> Box<dyn LiveRun>),
    ) {
        for &algorithm in algorithms {
            with(algorithm.profile.name, &|seed| {
                Box::new(Running::new(algorithm, seed))
            });
        }
    }
    each(mutex::ALGORITHMS, &mut with);
    each(readers::ALGORITHMS, &mut with);
    each(rooms::ALGORITHMS, &mut with);
}

enum Turn<A> {
    Start(usize),
    Ask(UserId, A),
    Deliver(NodeId, NodeId),
    Fire(usize),
}

enum Input<A> {
    Start,
    Ask(A),
    Packet(NodeId, Packet),
    Fire(Timer),
}

struct Running<Q: Problem> {
    machine: Box<dyn Machine<Q>>,
    shape: Shape,
    head: RecordHead,
    members: Vec<Box<dyn Member<Q>>>,
    recordings: Vec<Recording>,
    started: Vec<bool>,
    links: BTreeMap<(NodeId, NodeId), VecDeque<Packet>>,
    timers: Vec<(NodeId, Timer)>,
    users: Vec<Q::User>,
    line: Vec<UserId>,
    now: u64,
    entered: u64,
    sent: Vec<(NodeId, NodeId, String)>,
    alteration: Option<Alteration>,
    /// The packet that is recorded otherwise at its other end.
    altered_packet: Option<(NodeId, NodeId, Packet)>,
    altered: bool,
    steps: usize,
    lots: Generator,
}

impl<Q: Problem> Running<Q> {
    fn new(algorithm: &Algorithm<Q>, seed: u64) -> Running<Q> {
        let mut setup = algorithm.profile.telling_setup();
        setup.users = setup.users.max(3);
        setup.delay_bound = 10;
        let machine = (algorithm.machine)(&setup).expect("a setup that it takes");
        let (shape, tag) = (machine.shape().clone(), algorithm.tag(&setup));
        let hosts = shape.nodes() - shape.extra.len();
        let names = NodeId::all(shape.nodes()).map(|node| match node.index() < hosts {
            true => format!("n{node}"),
            false => shape.name(node),
        });
        let name = algorithm.profile.name;
        let head = RecordHead::new("site", name, &setup, (4, 2), names.collect());
        let recording = |_| Recording::new(head.clone(), 1_000, &RecordAllowance::default());
        Running {
            members: NodeId::all(shape.nodes())
                .map(|id| machine.member(id, tag).expect("a node of its shape"))
                .collect(),
            recordings: (0..hosts).map(recording).collect(),
            started: vec![false; hosts],
            links: BTreeMap::new(),
            timers: Vec::new(),
            users: UserId::all(shape.users).map(|u| machine.user(u)).collect(),
            line: Vec::new(),
            now: 1_000,
            entered: 0,
            sent: Vec::new(),
            alteration: None,
            altered_packet: None,
            altered: false,
            steps: 0,
            lots: Generator::new(seed),
            head,
            shape,
            machine,
        }
    }

    /// The node that a member is at: those behind the users are at the first.
    fn host(&self, member: NodeId) -> usize {
        match member.index() < self.recordings.len() {
            true => member.index(),
            false => 0,
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.lots.between(0, bound as u64 - 1) as usize
    }

    fn turns(&mut self) -> Vec<Turn<Q::Ask>> {
        let mut turns = Vec::new();
        for host in 0..self.started.len() {
            if !self.started[host] {
                turns.push(Turn::Start(host));
            }
        }
        for user in UserId::all(self.shape.users) {
            let choices = self.users[user.index()].choices() as usize;
            let choice = self.below(choices) as u32;
            let next = self.users[user.index()].choose(choice);
            let up = self.started[self.host(self.shape.home(user))];
            if let Next::May(ask) | Next::Must(ask) = next
                && up
            {
                turns.push(Turn::Ask(user, ask));
            }
        }
        for (&(from, to), packets) in &self.links {
            // Twice as likely as the others, so that messages get through.
            if !packets.is_empty() && self.started[self.host(to)] {
                turns.push(Turn::Deliver(from, to));
                turns.push(Turn::Deliver(from, to));
            }
        }
        turns.extend((0..self.timers.len()).map(Turn::Fire));
        turns
    }

    fn take(&mut self, turn: Turn<Q::Ask>) {
        match turn {
            Turn::Start(host) => {
                self.started[host] = true;
                let here = |id: &NodeId| self.host(*id) == host;
                let all = NodeId::all(self.members.len());
                for id in all.filter(here).collect::<Vec<_>>() {
                    self.step(id, Input::Start);
                }
            }
            Turn::Ask(user, ask) => {
                self.users[user.index()].asked(ask);
                match self.users[user.index()].phase() {
                    Phase::Waiting => self.line.push(user),
                    _ => self.line.retain(|&other| other != user),
                }
                self.step(self.shape.home(user), Input::Ask(ask));
            }
            Turn::Deliver(from, to) => {
                let packets = self.links.get_mut(&(from, to));
                let packet = packets.and_then(VecDeque::pop_front).expect("under way");
                self.step(to, Input::Packet(from, packet));
            }
            Turn::Fire(place) => {
                let (id, timer) = self.timers.remove(place);
                self.step(id, Input::Fire(timer));
            }
        }
    }

    fn step(&mut self, id: NodeId, input: Input<Q::Ask>) {
        let mut effects = Effects::default();
        let member = &mut self.members[id.index()];
        match &input {
            Input::Start => member.start(&mut effects),
            Input::Ask(ask) => member.ask(*ask, &mut effects),
            Input::Packet(from, packet) => {
                let taken = member.receive(*from, packet, &mut effects);
                taken.expect("a packet of another member");
            }
            Input::Fire(timer) => member.fire(*timer, &mut effects),
        }
        self.write(id, &input, &effects);
        for (to, packet) in effects.sends {
            let label = self.machine.label(&packet[PACKET_HEAD_BYTES..]);
            self.sent.push((id, to, label.expect("its own packet")));
            self.links.entry((id, to)).or_default().push_back(packet);
        }
        let timers = effects.timers.into_iter();
        self.timers.extend(timers.map(|(_, timer)| (id, timer)));
        for tell in effects.tells {
            let here = |user: &UserId| self.shape.home(*user) == id;
            let in_line = self.line.iter().copied().filter(here);
            let mut hearers = in_line.chain(self.shape.users_at(id));
            let hears = |user: &UserId| self.users[user.index()].hears(&tell);
            let user = hearers.find(hears).expect("somebody asked");
            let before = self.users[user.index()].phase();
            self.users[user.index()].told(tell).expect("well-formed");
            if self.users[user.index()].phase() != before {
                self.entered += 1;
                self.line.retain(|&other| other != user);
            }
        }
    }

    /// Records a step, at a time of its node's own clock, which may be ahead or behind.
    fn write(&mut self, id: NodeId, input: &Input<Q::Ask>, effects: &Effects<Q, Packet>) {
        let host = self.host(id);
        let now = self.now + [0, 40, 7][host % 3];
        let (mut effects, mut taken) = (effects.clone(), None);
        if let Input::Packet(from, packet) = input {
            let other_end =
                |(a, b, p): &&(NodeId, NodeId, Packet)| (a, b, p) == (from, &id, packet);
            let altered = self.altered_packet.as_ref().filter(other_end).is_some();
            taken = Some(match altered {
                true => flipped(packet),
                false => packet.clone(),
            });
            if altered {
                self.altered_packet = None;
            }
        }
        self.steps += 1;
        if self.steps > 60 && !self.altered && self.altered(id, &mut effects) {
            self.altered = true;
            if self.alteration == Some(Alteration::StepLeftOut) {
                return;
            }
        }
        let recording = &mut self.recordings[host];
        match (input, taken) {
            (Input::Packet(from, _), Some(packet)) => {
                recording.received(now, id, *from, &packet, &effects);
            }
            (Input::Ask(ask), _) => recording.asked(now, id, *ask, &effects),
            (Input::Fire(timer), _) => recording.fired(now, id, *timer, &effects),
            (Input::Start | Input::Packet(..), _) => recording.started(now, id, &effects),
        }
    }

    /// Alters a step, if it is one that can be.
    fn altered(&mut self, id: NodeId, effects: &mut Effects<Q, Packet>) -> bool {
        let Some(alteration) = self.alteration else {
            return false;
        };
        match alteration {
            Alteration::MessageSent | Alteration::MessageOnBothSides => {
                let Some((to, packet)) = effects.sends.first_mut() else {
                    return false;
                };
                let before = std::mem::replace(packet, flipped(packet));
                // What is still under way on this link must not be taken for it.
                let link = self.links.get(&(id, *to));
                let alike = link.is_some_and(|link| link.contains(&before));
                if alteration == Alteration::MessageOnBothSides && !alike {
                    self.altered_packet = Some((id, *to, before));
                }
                true
            }
            Alteration::OrderOfSends => {
                let two = effects.sends.len() > 1 && effects.sends[0].0 != effects.sends[1].0;
                if two {
                    effects.sends.swap(0, 1);
                }
                two
            }
            Alteration::StepLeftOut => !effects.sends.is_empty(),
            Alteration::TellLeftOut => effects.tells.pop().is_some(),
            Alteration::TellAdded => {
                let told = effects.tells.first().copied();
                effects.tells.extend(told);
                told.is_some()
            }
        }
    }
}

/// A packet with another message.
fn flipped(packet: &Packet) -> Packet {
    let mut other = packet.clone();
    if let Some(byte) = other.last_mut() {
        *byte ^= 1;
    }
    other
}

impl<Q: Problem> LiveRun for Running<Q> {
    fn play(&mut self, steps: usize) {
        for _ in 0..steps {
            self.now += self.lots.between(0, 3);
            let mut turns = self.turns();
            if turns.is_empty() {
                return;
            }
            let place = self.below(turns.len());
            let turn = turns.swap_remove(place);
            self.take(turn);
        }
    }

    fn hosts(&self) -> usize {
        self.recordings.len()
    }

    fn record(&self, host: usize) -> Record {
        self.recordings[host].record()
    }

    fn records(&mut self) -> Vec<Record> {
        for recording in &mut self.recordings {
            recording.ended();
        }
        self.recordings.iter().map(Recording::record).collect()
    }

    fn entered(&self) -> u64 {
        self.entered
    }

    fn sent(&self) -> Vec<(NodeId, NodeId, String)> {
        let mut sent = self.sent.clone();
        sent.sort_by_key(|(from, to, _)| (*from, *to));
        sent
    }

    fn allow(&mut self, host: usize, bytes: usize) {
        let allowance = RecordAllowance::of(bytes);
        self.recordings[host] = Recording::new(self.head.clone(), 1_000, &allowance);
    }

    fn alter(&mut self, alteration: Alteration) {
        self.alteration = Some(alteration);
    }

    fn is_altered(&self) -> bool {
        self.altered
    }
}
