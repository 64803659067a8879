//! Simulation: virtual time, links and faults drive a stage, by the lots that one seed draws.

use std::collections::VecDeque;

use testigo_protocol::{Machine, Next, NodeId, Phase, Problem, Timer, User, UserId};
use testigo_sim::{Agenda, Fate, Fault, Generator, Links, Loss, Memory, Time};

use crate::arrivals::Arrivals;
use crate::stage::{Flight, Stage};
use crate::standstill::Standstill;
use crate::trace::Event;
use crate::world::{Progress, World};

#[derive(Clone, Copy, Debug)]
enum Planned {
    Deliver(Flight),
    /// A user's next request has come.
    Arrival(UserId),
    /// A request that came while its user was busy, or not ready to ask.
    Again(UserId),
    /// A user leaves; only if it is still inside the same entry.
    Leave(UserId, u32),
    Fire(NodeId, Timer, u32),
    Down(NodeId, Memory),
    Up(NodeId),
    Cut(usize),
    Heal(usize),
}

/// Plays a run from its start to its end.
pub(crate) fn simulate<Q: Problem>(
    machine: &dyn Machine<Q>,
    world: &World,
    stage: &mut Stage<Q>,
    idle_traffic: bool,
    progress: fn(Progress),
) -> Time {
    let (nodes, users) = (machine.shape().nodes(), machine.shape().users);
    let mut links = Links::new(nodes, world.order, world.latency);
    links.slow = world
        .slow
        .iter()
        .map(|(from, to, latency)| ((*from, *to), *latency))
        .collect();
    links.loss = world.loss;
    links.partitions = world.partitions.clone();
    links.faults = world.faults.clone();
    let mut run = Simulation {
        stage,
        world,
        links,
        agenda: Agenda::default(),
        network: Generator::for_purpose(world.seed, 1),
        users: Generator::for_purpose(world.seed, 2),
        down: vec![None; nodes],
        incarnation: vec![0; nodes],
        kept: vec![VecDeque::new(); nodes],
        backlog: vec![0; users],
        entry: vec![0; users],
        inside: vec![false; users],
        requests_left: world.entries,
        unready: vec![false; users],
        open: 0,
        under_way: 0,
        planned: 0,
        idle_traffic,
    };
    run.play(progress)
}

struct Simulation<'a, Q: Problem> {
    stage: &'a mut Stage<Q>,
    world: &'a World,
    links: Links,
    agenda: Agenda<Planned>,
    /// What the network draws and what users draw do not disturb each other: algorithms that are
    /// compared meet the same users.
    network: Generator,
    users: Generator,
    down: Vec<Option<Memory>>,
    /// Counts crashes, so that a timer set before one does not fire after it.
    incarnation: Vec<u32>,
    /// What reached a paused node.
    kept: Vec<VecDeque<Planned>>,
    /// Requests that wait for their user to be idle.
    backlog: Vec<u64>,
    /// Counts a user's entries, so that a planned exit ends the right one.
    entry: Vec<u32>,
    inside: Vec<bool>,
    /// Users that had nothing to ask when their request came.
    unready: Vec<bool>,
    /// Requests that nobody has been given yet.
    requests_left: u64,
    /// Requests that are planned, waiting or inside.
    open: u64,
    under_way: u64,
    /// What is planned besides messages and timers.
    planned: u64,
    idle_traffic: bool,
}

/// How often it is looked whether a run gets anywhere, and how often it tells how far it is.
const EVENTS_PER_LOOK: u64 = 1 << 10;
const EVENTS_PER_REPORT: u64 = 1 << 20;

impl<Q: Problem> Simulation<'_, Q> {
    fn play(&mut self, progress: fn(Progress)) -> Time {
        let shape = self.stage.shape.clone();
        self.plan_faults();
        for node in NodeId::all(shape.nodes()) {
            self.stage.start(Time::ZERO, node);
            self.carry(Time::ZERO, node);
        }
        self.plan_arrivals(shape.users);
        let mut events = 0;
        let mut stopped = None;
        let mut standstill = Standstill::new(shape.nodes(), self.world.delay_bound());
        while !self.is_over() {
            let Some((now, event)) = self.agenda.pop() else {
                break;
            };
            self.happen(now, event);
            events += 1;
            if events == self.world.events_max {
                stopped = Some(format!("the run did not end within {events} events"));
                break;
            }
            if u64::is_multiple_of(events, EVENTS_PER_LOOK) {
                stopped = self.look(now, events, &mut standstill, progress);
                if stopped.is_some() {
                    break;
                }
            }
        }
        let now = self.agenda.now();
        self.stage.end(now, stopped.as_deref());
        now
    }

    /// Every now and then; says why the run must stop.
    fn look(
        &mut self,
        now: Time,
        events: u64,
        standstill: &mut Standstill,
        progress: fn(Progress),
    ) -> Option<String> {
        let measures = &self.stage.observer.measures;
        let (entries, moves) = (measures.entries, measures.entries + measures.exits);
        if events.is_multiple_of(EVENTS_PER_REPORT) {
            progress(Progress { events, entries });
        }
        self.stage.limit_trace();
        standstill.look(now, events, moves, self.planned > 0)
    }

    /// Plans what is no message and no timer.
    fn plan(&mut self, at: Time, event: Planned) {
        self.planned += 1;
        self.agenda.plan(at, event);
    }

    /// All requests are served, nothing is missing, and the links are empty; where there is traffic for ever, as
    /// soon as everybody has been served. Requests that nobody is ready to make are left out.
    fn is_over(&self) -> bool {
        self.open == 0
            && (self.requests_left == 0 || self.planned == 0)
            && (self.under_way == 0 || self.idle_traffic)
            && Q::unserved(&self.stage.users).is_none()
    }

    fn plan_faults(&mut self) {
        for fault in &self.world.faults {
            if let Fault::Outage(outage) = fault {
                let node = NodeId(outage.node);
                self.plan(outage.window.from, Planned::Down(node, outage.memory));
                if let Some(until) = outage.window.until {
                    self.plan(until, Planned::Up(node));
                }
            }
        }
        for (index, cut) in self.world.partitions.iter().enumerate() {
            self.plan(cut.window.from, Planned::Cut(index));
            if let Some(until) = cut.window.until {
                self.plan(until, Planned::Heal(index));
            }
        }
    }

    fn plan_arrivals(&mut self, users: usize) {
        match &self.world.arrivals {
            Arrivals::Closed(_) => {
                // Who only listens asks last, so that few requests go to those that make them.
                let (ready, unready): (Vec<_>, Vec<_>) =
                    UserId::all(users).partition(|&user| self.is_ready(user));
                let all = ready.into_iter().chain(unready);
                all.for_each(|user| self.plan_request(user, Time::ZERO));
            }
            Arrivals::Poisson(_) => {
                UserId::all(users).for_each(|user| self.plan_poisson(Time::ZERO, user));
            }
            Arrivals::Script(items) => {
                items
                    .iter()
                    .for_each(|(user, at)| self.plan_request(UserId(*user), *at));
                self.requests_left = 0;
            }
        }
    }

    fn plan_request(&mut self, user: UserId, at: Time) {
        if self.requests_left > 0 {
            self.requests_left -= 1;
            self.open += 1;
            self.plan(at, Planned::Arrival(user));
        }
    }

    fn plan_poisson(&mut self, now: Time, user: UserId) {
        if let Arrivals::Poisson(mean) = self.world.arrivals {
            let apart = Time(self.users.exponential(mean.0 as f64) as u64);
            self.plan_request(user, now + apart);
        }
    }

    fn happen(&mut self, now: Time, event: Planned) {
        if !matches!(event, Planned::Deliver(_) | Planned::Fire(..)) {
            self.planned -= 1;
        }
        let node = match event {
            Planned::Deliver(Flight { to: node, .. }) | Planned::Fire(node, ..) => node,
            Planned::Arrival(user) | Planned::Again(user) | Planned::Leave(user, _) => {
                self.stage.shape.home(user)
            }
            _ => return self.change_world(now, event),
        };
        match self.down[node.index()] {
            None => self.step(now, node, event),
            Some(Memory::Whole) => self.kept[node.index()].push_back(event),
            Some(_) => match event {
                Planned::Deliver(flight) => self.lose(now, flight, Loss::Down),
                Planned::Arrival(_) | Planned::Again(_) => self.open -= 1,
                _ => {}
            },
        }
    }

    /// One step of a node that is up.
    fn step(&mut self, now: Time, node: NodeId, event: Planned) {
        match event {
            Planned::Deliver(flight) => {
                if self.links.separated(now, flight.from.0, flight.to.0) {
                    return self.lose(now, flight, Loss::Partition);
                }
                self.under_way -= 1;
                self.stage.deliver(now, flight);
            }
            Planned::Arrival(user) => {
                self.plan_poisson(now, user);
                if !self.ask(now, user) {
                    return;
                }
            }
            Planned::Again(user) => {
                if !self.ask(now, user) {
                    return;
                }
            }
            Planned::Leave(user, entry) => {
                if self.entry[user.index()] != entry || self.stage.phase(user) != Phase::Inside {
                    return;
                }
                self.stage.ask(now, user, 0);
                self.open -= 1;
                self.carry(now, node);
                return self.ask_again(now, user);
            }
            Planned::Fire(_, timer, incarnation) => {
                if self.incarnation[node.index()] != incarnation {
                    return;
                }
                self.stage.fire(now, node, timer);
            }
            Planned::Down(..) | Planned::Up(_) | Planned::Cut(_) | Planned::Heal(_) => {}
        }
        self.carry(now, node);
    }

    fn is_ready(&self, user: UserId) -> bool {
        let user = &self.stage.users[user.index()];
        user.phase() == Phase::Idle && !matches!(user.next(), Next::Nothing)
    }

    /// A user asks; one that has a choice draws a lot. Who is busy asks later; who has nothing to ask leaves the
    /// request to others until it has.
    fn ask(&mut self, now: Time, user: UserId) -> bool {
        if self.stage.phase(user) != Phase::Idle {
            self.backlog[user.index()] += 1;
            return false;
        }
        if !self.is_ready(user) {
            self.unready[user.index()] = true;
            self.open -= 1;
            self.requests_left += 1;
            return false;
        }
        let asker = &self.stage.users[user.index()];
        let choice = match asker.choices() {
            0 | 1 => 0,
            _ => asker.draw(self.users.unit()),
        };
        self.stage.ask(now, user, choice)
    }

    fn ask_again(&mut self, now: Time, user: UserId) {
        if self.backlog[user.index()] > 0 {
            self.backlog[user.index()] -= 1;
            if self.ask(now, user) {
                self.carry(now, self.stage.shape.home(user));
            }
        } else if let Arrivals::Closed(think) = self.world.arrivals {
            let after = think.draw(&mut self.users);
            self.plan_request(user, now + after);
        }
    }

    /// Takes away what a step sent and set, and lets a user that got in stay for its time.
    fn carry(&mut self, now: Time, node: NodeId) {
        let mut sent = std::mem::take(&mut self.stage.sent);
        for flight in sent.drain(..) {
            self.send(now, flight);
        }
        self.stage.sent = sent;
        for (node, span, timer) in std::mem::take(&mut self.stage.timers) {
            let after = self
                .network
                .between(span.start, span.end.saturating_sub(1).max(span.start));
            let incarnation = self.incarnation[node.index()];
            self.agenda
                .plan(now + Time(after), Planned::Fire(node, timer, incarnation));
        }
        for user in self.stage.shape.users_at(node) {
            let entered = self.stage.phase(user) == Phase::Inside;
            let slot = user.index();
            if entered && !self.inside[slot] {
                self.entry[slot] += 1;
                let hold = self.world.hold.draw(&mut self.users);
                let leave = Planned::Leave(user, self.entry[slot]);
                self.plan(now + hold, leave);
            }
            self.inside[slot] = entered;
            if self.unready[slot] && self.is_ready(user) {
                self.unready[slot] = false;
                self.plan_request(user, now);
            }
        }
        for user in std::mem::take(&mut self.stage.served) {
            self.open -= 1;
            match self.backlog[user.index()] {
                0 => self.ask_again(now, user),
                _ => {
                    // As an event of its own: who is served at once could ask for ever within this step.
                    self.backlog[user.index()] -= 1;
                    self.plan(now, Planned::Again(user));
                }
            }
        }
    }

    fn send(&mut self, now: Time, flight: Flight) {
        for fault in &self.world.faults {
            if let Fault::Wrong(node, share) | Fault::Arbitrary(node, share) = fault
                && *node == flight.from.0
                && self.network.chance(share.probability())
            {
                let choice = self.network.bits();
                self.stage.lie(now, flight, choice);
            }
        }
        self.under_way += 1;
        match self
            .links
            .send(now, flight.from.0, flight.to.0, &mut self.network)
        {
            Fate::Lost(why) => self.lose(now, flight, why),
            Fate::Arrives(at) => self.agenda.plan(at, Planned::Deliver(flight)),
            Fate::ArrivesTwice(at, again) => {
                let copy = self.stage.copy(now, flight);
                self.under_way += 1;
                self.agenda.plan(at, Planned::Deliver(flight));
                self.agenda.plan(again, Planned::Deliver(copy));
            }
        }
    }

    fn lose(&mut self, now: Time, flight: Flight, why: Loss) {
        self.under_way -= 1;
        self.stage.lose(now, flight, &why.to_string());
    }

    /// What happens to nodes and links, rather than in them.
    fn change_world(&mut self, now: Time, event: Planned) {
        match event {
            Planned::Down(node, memory) if self.down[node.index()].is_none() => {
                if memory != Memory::Whole {
                    self.incarnation[node.index()] += 1;
                    for user in self.stage.shape.users_at(node) {
                        self.unready[user.index()] = false;
                        let busy = self.stage.phase(user) != Phase::Idle;
                        let backlog = std::mem::take(&mut self.backlog[user.index()]);
                        self.open -= u64::from(busy) + backlog;
                    }
                }
                self.stage.crash(now, node, memory);
                for user in self.stage.shape.users_at(node) {
                    self.inside[user.index()] = self.stage.phase(user) == Phase::Inside;
                }
                self.down[node.index()] = Some(memory);
            }
            Planned::Up(node) => {
                let Some(memory) = self.down[node.index()].take() else {
                    return;
                };
                self.stage.restart(now, node, memory);
                self.carry(now, node);
                for event in std::mem::take(&mut self.kept[node.index()]) {
                    self.step(now, node, event);
                }
                if memory != Memory::Whole {
                    for user in self.stage.shape.users_at(node) {
                        self.ask_again(now, user);
                    }
                }
            }
            Planned::Cut(index) => self.record_cut(now, index, Event::Cut),
            Planned::Heal(index) => self.record_cut(now, index, Event::Heal),
            _ => {}
        }
    }

    fn record_cut(&mut self, now: Time, index: usize, event: fn(String) -> Event) {
        let sides = self.world.partitions[index].to_string();
        self.stage.record(now, || event(sides));
    }
}
