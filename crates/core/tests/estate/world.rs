//! The world: nodes with their estates, a log that everybody agrees on, links between nodes, and what goes wrong.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::AddAssign;

use testigo_core::Rule as GateRule;
use testigo_core::estate::{Broken, Estate, Order, Out, Peer, Rule};
use testigo_core::{
    Change, Command, Definition, Index, Limits, Name, NodeId, Number, Origin, Replicated,
    SessionId, Shard, Stamp, Start, Travels,
};

use crate::campaigns::see_leader;
use crate::clients::Client;
use crate::links::{Letter, Links, Packet};
use crate::monitors::Monitors;
pub(crate) use crate::plan::Plan;
use crate::random::Random;
use crate::visits::Work;

pub(crate) const LEASE_MS: u64 = 3_000;
pub(crate) const TTL_MS: u64 = 5_000;
/// Of all gates that travel by algorithms.
pub(crate) const BURST: u32 = 2;
/// For so long things go wrong; then for so long nothing does.
pub(crate) const FAULTS_MS: u64 = 60_000;
pub(crate) const CALM_MS: u64 = 40_000;

/// What happened, to see that something did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) grants: u64,
    /// Several at once.
    pub(crate) sets: u64,
    pub(crate) crashes: u64,
    pub(crate) cuts: u64,
    pub(crate) moves: u64,
    pub(crate) resumed: u64,
    pub(crate) entries: u64,
    /// Leaders and candidates that have said something else of themselves.
    pub(crate) changed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.grants += other.grants;
        self.sets += other.sets;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.moves += other.moves;
        self.resumed += other.resumed;
        self.entries += other.entries;
        self.changed += other.changed;
    }
}

pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) start: Start,
    pub(crate) up: bool,
    /// A paused node does nothing, and its clock goes on.
    pub(crate) paused: bool,
    pub(crate) replicated: Replicated,
    pub(crate) estate: Estate,
    pub(crate) links: Links,
    /// What it has submitted and not seen applied, with its sequence numbers.
    pub(crate) submitted: VecDeque<(u64, Change)>,
    pub(crate) sequence: u64,
    pub(crate) sent_at: u64,
    pub(crate) connections: u64,
    /// Implicit sessions whose client has gone away.
    pub(crate) hung_up: Vec<SessionId>,
    pub(crate) rule: Rule,
    /// What the rule has ordered of the engine, and what the engine has to say, each in order.
    pub(crate) orders: VecDeque<Order>,
    pub(crate) said: VecDeque<Said>,
    /// Whom its engine does not answer.
    pub(crate) refused: BTreeSet<Peer>,
}

/// What a leader's engine tells of reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Said {
    Asked(Peer),
    Answered(Peer),
    Refused(Peer),
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    Packet(usize, Packet),
    /// A submission reaches the leader.
    Submit(usize, Start, u64, Change),
    /// The log comes to a node.
    CatchUp(usize),
    AskLease(usize, Start, u64),
    Leased(usize, Start, u64, Index),
    /// The engine of a node does what was ordered next, or its rule hears what the engine said next.
    Obey(usize, Start),
    Heed(usize, Start),
    Tick(usize),
    Client(usize),
    Worker(usize),
    Rule,
    Fault,
    Heal,
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) random: Random,
    pub(crate) now: u64,
    pub(crate) serial: u64,
    pub(crate) events: BTreeMap<(u64, u64), Event>,
    /// With the term of the leader that put it there.
    pub(crate) log: Vec<(Origin, u64, Change)>,
    pub(crate) nodes: Vec<Node>,
    /// Nothing gets from the first to the second.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    pub(crate) leader: Option<usize>,
    pub(crate) term: u64,
    pub(crate) vacant_since: u64,
    pub(crate) clients: Vec<Client>,
    pub(crate) monitors: Monitors,
    pub(crate) tally: Tally,
    pub(crate) broken: Option<Broken>,
    pub(crate) next_session: u64,
    pub(crate) calm: bool,
    /// When each gate was last granted.
    pub(crate) granted: BTreeMap<String, u64>,
    pub(crate) work: Work,
}

impl World {
    pub(crate) fn new(plan: Plan, seed: u64, broken: Option<Broken>) -> World {
        let random = Random::new(seed);
        let replicated = Replicated::new(Limits::default());
        let nodes = (0..plan.nodes).map(|at| {
            let id = NodeId(at as u64 + 1);
            let own = (id, Start(1));
            Node {
                id,
                start: Start(1),
                up: true,
                paused: false,
                replicated: replicated.clone(),
                estate: Estate::new(0, own, LEASE_MS, Limits::default(), seed, &replicated),
                links: Links::new(own),
                submitted: VecDeque::new(),
                sequence: 0,
                sent_at: 0,
                connections: 0,
                hung_up: Vec::new(),
                rule: Rule::new(own, LEASE_MS),
                orders: VecDeque::new(),
                said: VecDeque::new(),
                refused: BTreeSet::new(),
            }
        });
        let mut world = World {
            nodes: nodes.collect(),
            clients: Vec::new(),
            plan,
            random,
            now: 0,
            serial: 0,
            events: BTreeMap::new(),
            log: Vec::new(),
            cut: BTreeSet::new(),
            leader: Some(0),
            term: 1,
            vacant_since: 0,
            monitors: Monitors::default(),
            tally: Tally::default(),
            broken,
            next_session: 1,
            calm: false,
            granted: BTreeMap::new(),
            work: Work::default(),
        };
        for at in 0..world.plan.nodes {
            world.nodes[at].estate.broken = broken;
            world.nodes[at].rule.broken = broken;
            world.after(5, Event::Tick(at));
            world.after(7, Event::CatchUp(at));
        }
        for client in 0..world.plan.clients {
            let node = world.random.below(world.plan.nodes as u64) as usize;
            let opened = world.random.one_in(2);
            world.clients.push(Client::new(node, opened));
            // Gates that are created are there before anybody asks for them.
            let first = if world.plan.using.is_empty() {
                100
            } else {
                3_000
            };
            world.after(first + client as u64, Event::Client(client));
        }
        let members = (1..=world.plan.nodes as u64).map(|id| (NodeId(id), Start(1)));
        let view = Change::View {
            before: Index(0),
            members: members.collect(),
            generation: 0,
        };
        world.submit(0, view);
        for (at, using) in world.plan.using.clone().into_iter().enumerate() {
            let mut definition = Definition::new(GateRule::Shared);
            definition.travels = Travels {
                using,
                burst: BURST,
            };
            let create = Change::CreateGate {
                gate: Name::new(&world.plan.name(at)).expect("a name"),
                definition,
                number: Number::FIRST,
            };
            world.submit(0, create);
        }
        world.hire(replicated);
        world.nodes[0].rule.elected(0, 1);
        world.after(50, Event::Rule);
        world.after(4_000, Event::Fault);
        world
    }

    pub(crate) fn run(&mut self) -> Result<Tally, String> {
        while let Some(((at, _), event)) = self.events.pop_first() {
            if at > FAULTS_MS + CALM_MS {
                break;
            }
            self.now = at;
            if at >= FAULTS_MS && !self.calm {
                self.end_faults();
            }
            self.happen(event)?;
        }
        self.tally.entries = self.log.len() as u64;
        self.judge()?;
        Ok(self.tally.clone())
    }

    /// After the calm, every gate must have been granted again, to somebody at every node.
    pub(crate) fn judge(&self) -> Result<(), String> {
        let late = FAULTS_MS + CALM_MS / 2;
        for gate in (0..self.plan.gates).map(|at| self.plan.name(at)) {
            if self.granted.get(&gate).is_none_or(|at| *at < late) {
                let title = self.nodes[0].replicated.ownership().title(Shard::of(&gate));
                let shut: Vec<String> = self.nodes.iter().map(|node| node.estate.shut()).collect();
                return Err(format!(
                    "{gate} was last granted at {:?}; {title:?}; {shut:#?} {:?}",
                    self.granted.get(&gate),
                    self.clients
                ));
            }
        }
        for (at, client) in self.clients.iter().enumerate() {
            if client.granted < FAULTS_MS && !client.retired {
                return Err(format!(
                    "client {at} was not served after the faults: {client:?}"
                ));
            }
        }
        self.judge_work()?;
        for node in &self.nodes {
            if !node.estate.acts(self.now) {
                return Err(format!("node {} did not come back", node.id));
            }
        }
        Ok(())
    }

    pub(crate) fn after(&mut self, ms: u64, event: Event) {
        self.serial += 1;
        self.events.insert((self.now + ms, self.serial), event);
    }

    pub(crate) fn latency(&mut self) -> u64 {
        match self.random.one_in(20) {
            true => self.random.between(50, 800),
            false => self.random.between(1, 20),
        }
    }

    pub(crate) fn works(&self, at: usize) -> bool {
        self.nodes[at].up && !self.nodes[at].paused
    }

    pub(crate) fn reaches(&self, from: usize, to: usize) -> bool {
        self.works(to) && !self.cut.contains(&(from, to))
    }

    pub(crate) fn talks(&self, one: usize, other: usize) -> bool {
        one == other || self.reaches(one, other) && self.reaches(other, one)
    }

    pub(crate) fn has_majority(&self, at: usize) -> bool {
        let talks = (0..self.nodes.len()).filter(|other| self.talks(at, *other));
        self.works(at) && talks.count() * 2 > self.nodes.len()
    }

    pub(crate) fn happen(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Packet(to, packet) => {
                if self.works(to) {
                    let links = &mut self.nodes[to].links;
                    let from = packet.from;
                    for letter in links.take(packet) {
                        match letter {
                            Letter::Estate(frame) => {
                                let mut out = Out::default();
                                let Node {
                                    estate, replicated, ..
                                } = &mut self.nodes[to];
                                estate.receive(self.now, replicated, from, frame, &mut out);
                                self.carry_out(to, out)?;
                            }
                            letter => self.hear_letter(to, from, letter)?,
                        }
                    }
                    self.carry_out(to, Out::default())?;
                }
            }
            Event::Submit(node, start, sequence, change) => {
                if !self.leader.is_some_and(|leader| self.has_majority(leader)) {
                    return Ok(());
                }
                let origin = Origin {
                    node: self.nodes[node].id,
                    start,
                    sequence,
                };
                self.canonical(origin, self.term, &change)?;
                self.log.push((origin, self.term, change));
            }
            Event::CatchUp(at) => {
                let wait = self.latency();
                self.after(wait, Event::CatchUp(at));
                self.catch_up(at)?;
            }
            Event::AskLease(node, start, ask) => {
                let leader = self.leader.filter(|leader| self.has_majority(*leader));
                let Some(leader) = leader.filter(|leader| self.talks(*leader, node)) else {
                    return Ok(());
                };
                let peer = (self.nodes[node].id, start);
                self.say(leader, Said::Asked(peer));
                if !self.nodes[leader].refused.contains(&peer) {
                    self.say(leader, Said::Answered(peer));
                    let (wait, index) = (self.latency(), Index(self.log.len() as u64));
                    self.after(wait, Event::Leased(node, start, ask, index));
                }
            }
            Event::Obey(at, start) => self.obey(at, start),
            Event::Heed(at, start) => self.heed(at, start),
            Event::Leased(node, start, ask, index) => {
                if self.works(node) && self.nodes[node].start == start {
                    let node = &mut self.nodes[node];
                    node.estate.lease().answer(ask, index);
                    let applied = node.replicated.index();
                    let view = node.replicated.view();
                    let member = view.has(node.id, node.start);
                    node.estate.lease().applied(applied, member);
                }
            }
            Event::Tick(at) => {
                self.after(10, Event::Tick(at));
                self.tick(at)?;
            }
            Event::Client(client) => self.act(client)?,
            Event::Worker(worker) => self.work(worker)?,
            Event::Rule => {
                self.after(100, Event::Rule);
                self.rule();
            }
            Event::Fault => {
                if self.now < FAULTS_MS {
                    let wait = self.random.between(500, 6_000);
                    self.after(wait, Event::Fault);
                    self.fault()?;
                }
            }
            Event::Heal => self.cut.clear(),
        }
        Ok(())
    }

    pub(crate) fn tick(&mut self, at: usize) -> Result<(), String> {
        if !self.works(at) {
            return Ok(());
        }
        let mut out = Out::default();
        let node = &mut self.nodes[at];
        let (id, start) = (node.id, node.start);
        if let Some(ask) = node.estate.lease().due(self.now) {
            let wait = self.latency();
            if self.leader.is_some_and(|leader| self.talks(at, leader)) {
                self.after(wait, Event::AskLease(at, start, ask));
            }
        }
        let node = &mut self.nodes[at];
        for session in std::mem::take(&mut node.hung_up) {
            let (now, replicated) = (self.now, &node.replicated);
            let ended = node
                .estate
                .ask(now, replicated, session, &Command::Disconnect, &mut out);
            ended.map_err(|refusal| refusal.sentence)?;
        }
        node.estate.tick(self.now, &node.replicated, &mut out);
        if node.estate.acts(self.now) {
            for gate in 0..self.plan.gates {
                let name = self.plan.name(gate);
                let shard = Shard::of(&name);
                if let Some(title) = node.replicated.ownership().title(shard)
                    && (title.owner, title.start) == (id, start)
                    && node.estate.is_open(shard)
                {
                    self.monitors.acts_on(shard, title)?;
                    see_leader(node, &self.clients, &name)?;
                }
            }
        }
        self.carry_out(at, out)?;
        self.tend_visits(at)?;
        self.resubmit(at);
        // Hands a shard over now and then. In the end elections stay where they are: a new owner knows only what the homes know, so
        // nobody would lead without knowing it for long.
        if self.random.one_in(150) && !(self.calm && self.plan.elections) {
            let all = self.plan.gates + self.plan.queues;
            let which = self.random.below(all as u64) as usize;
            let shard = match which.checked_sub(self.plan.gates) {
                Some(queue) => crate::workers::queue_shard(queue),
                None => Shard::of(&self.plan.name(which)),
            };
            let taker = self.random.below(self.nodes.len() as u64) as usize;
            let taker: Peer = (self.nodes[taker].id, self.nodes[taker].start);
            let node = &self.nodes[at];
            let shards = [shard];
            if let Some(change) = node.estate.hand_over(&node.replicated, &shards, taker) {
                self.tally.moves += 1;
                self.submit(at, change);
            }
        }
        Ok(())
    }

    /// What an estate wants done.
    pub(crate) fn carry_out(&mut self, at: usize, out: Out) -> Result<(), String> {
        for gate in (0..self.plan.using.len()).map(|gate| self.plan.name(gate)) {
            if let Some(turn) = self.nodes[at].estate.branch(&gate).turn {
                self.monitors.steps(at, &gate, turn);
            }
        }
        for change in out.changes {
            self.submit(at, change);
        }
        let node = &mut self.nodes[at];
        for (to, frame) in node.estate.take_frames() {
            node.links.send(to, Letter::Estate(frame));
        }
        for packet in self.nodes[at].links.packets(self.now) {
            let to = packet.to.0.0 as usize - 1;
            if self.random.one_in(30) || self.cut.contains(&(at, to)) {
                continue;
            }
            let wait = self.latency();
            if self.random.one_in(30) {
                let again = self.latency();
                self.after(again, Event::Packet(to, packet.clone()));
            }
            self.after(wait, Event::Packet(to, packet));
        }
        for tell in out.tells {
            if !self.hear_of_work(at, &tell)? {
                self.hear(at, tell)?;
            }
        }
        Ok(())
    }

    pub(crate) fn submit(&mut self, at: usize, change: Change) {
        let node = &mut self.nodes[at];
        let again = |(_, other): &(u64, Change)| *other == change;
        if node.submitted.iter().any(again) {
            return;
        }
        node.sequence += 1;
        node.submitted.push_back((node.sequence, change));
        node.sent_at = 0;
        self.resubmit(at);
    }

    /// Everything that is not applied is submitted again, in order: the log takes only what is next.
    pub(crate) fn resubmit(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.submitted.is_empty() || node.sent_at != 0 && self.now < node.sent_at + 400 {
            return;
        }
        node.sent_at = self.now.max(1);
        let (start, all) = (node.start, node.submitted.clone());
        if self.leader.is_some_and(|leader| self.talks(at, leader)) {
            let wait = self.latency();
            for (sequence, change) in all {
                self.after(wait, Event::Submit(at, start, sequence, change));
            }
        }
    }

    pub(crate) fn catch_up(&mut self, at: usize) -> Result<(), String> {
        let hears = self.leader.is_some_and(|leader| self.talks(leader, at));
        if !self.works(at) || !hears {
            return Ok(());
        }
        let applied = self.nodes[at].replicated.index().0 as usize;
        let most = applied + self.random.between(1, 20) as usize;
        for at_index in applied..most.min(self.log.len()) {
            let (origin, term, change) = self.log[at_index].clone();
            let node = &mut self.nodes[at];
            let stamp = Stamp {
                at: 0,
                origin: Some(origin),
                term,
            };
            let before = node.taken();
            let mut out = Out::default();
            let doctored = self.doctored(&self.nodes[at].replicated, &change);
            let node = &mut self.nodes[at];
            let applied = node.replicated.apply(stamp, &doctored);
            if let Ok(applied) = &applied {
                // A link ends, with its frames, when either start leaves the view.
                let view = node.replicated.view();
                let members = view
                    .members
                    .iter()
                    .map(|member| (member.node, member.start));
                node.links.follow(members);
                node.estate
                    .follow(self.now, &node.replicated, applied, &mut out);
            }
            let node = &mut self.nodes[at];
            let taken = node.taken();
            node.submitted.retain(|(sequence, _)| *sequence > taken);
            let own = (origin.node, origin.start) == (node.id, node.start);
            self.carry_out(at, out)?;
            if own && taken > before {
                let result = applied.map(testigo_core::Applied::into_outcome);
                self.log_answers(at, origin.sequence, &result)?;
            }
            let node = &self.nodes[at];
            let view = node.replicated.view();
            let known = view
                .members
                .iter()
                .any(|member| member.node == node.id && member.start > node.start);
            let viewed = matches!(change, Change::View { .. } | Change::ViewInTerm { .. });
            if viewed {
                self.visits_follow(at)?;
            }
            let node = &self.nodes[at];
            let view = node.replicated.view();
            let out_of_it =
                viewed && !view.has(node.id, node.start) && (known || node.submitted_joined());
            if out_of_it {
                self.restart(at);
            }
        }
        Ok(())
    }
}

impl Node {
    /// How many of its submissions the log has taken.
    fn taken(&self) -> u64 {
        let members = self.replicated.view().members.iter();
        let own = (self.id, self.start);
        let mut own = members.filter(|member| (member.node, member.start) == own);
        own.next().map_or(0, |member| member.sequence)
    }

    /// Whether this start has ever been a member: only then does a view without it leave it out.
    pub(crate) fn submitted_joined(&self) -> bool {
        self.estate.was_member()
    }
}
