//! Simulation: virtual time, links and faults drive a stage, by the lots that one seed draws.

use std::collections::VecDeque;

use testigo_protocol::{Machine, NodeId, Phase, Problem, Timer};
use testigo_sim::{
    Agenda, Fate, Fault, Generator, Latency, Links, Loss, Memory, Order, Partition, Share, Time,
};

use crate::arrivals::Arrivals;
use crate::stage::{Flight, Stage};
use crate::trace::{Event, Trace};

/// Everything about a run but the algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// How many times the section is entered, in all.
    pub entries: u64,
    pub seed: u64,
    pub latency: Latency,
    /// Links with a latency of their own.
    pub slow: Vec<(u32, u32, Latency)>,
    pub order: Order,
    pub loss: Share,
    pub faults: Vec<Fault>,
    pub partitions: Vec<Partition>,
    pub arrivals: Arrivals,
    /// How long a user stays inside.
    pub hold: Latency,
    /// After so many events a run is stopped, and counts as not live.
    pub events_max: u64,
}

impl Default for World {
    fn default() -> Self {
        World {
            entries: 100,
            seed: 1,
            latency: Latency::Fixed(Time::units(1)),
            slow: Vec::new(),
            order: Order::Fifo,
            loss: Share::default(),
            faults: Vec::new(),
            partitions: Vec::new(),
            arrivals: Arrivals::FULL_LOAD,
            hold: Latency::Fixed(Time::units(1)),
            events_max: 100_000_000,
        }
    }
}

impl World {
    /// The longest delay of a message: the bound that algorithms may rely on.
    pub fn delay_bound(&self) -> Time {
        let slow = self
            .slow
            .iter()
            .map(|(_, _, latency)| latency.longest())
            .max();
        self.latency.longest().max(slow.unwrap_or_default())
    }

    /// Every node that a fault, a partition, a link or a script names.
    pub fn nodes_named(&self) -> impl Iterator<Item = u32> + '_ {
        let script = match &self.arrivals {
            Arrivals::Script(items) => items.as_slice(),
            _ => &[],
        };
        let faults = self.faults.iter().flat_map(Fault::nodes);
        let cuts = self
            .partitions
            .iter()
            .flat_map(|cut| cut.groups.iter().flatten().copied());
        let links = self.slow.iter().flat_map(|(from, to, _)| [*from, *to]);
        faults
            .chain(cuts)
            .chain(links)
            .chain(script.iter().map(|(node, _)| *node))
    }
}

#[derive(Clone, Copy, Debug)]
enum Planned {
    Deliver(Flight),
    /// A user's next request has come.
    Arrival(NodeId),
    /// A user leaves; only if it is still inside the same entry.
    Leave(NodeId, u32),
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
) -> Time {
    let nodes = machine.shape().nodes();
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
        backlog: vec![0; nodes],
        entry: vec![0; nodes],
        inside: vec![false; nodes],
        requests_left: world.entries,
        open: 0,
        under_way: 0,
        idle_traffic,
    };
    run.play()
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
    /// Requests that nobody has been given yet.
    requests_left: u64,
    /// Requests that are planned, waiting or inside.
    open: u64,
    under_way: u64,
    idle_traffic: bool,
}

impl<Q: Problem> Simulation<'_, Q> {
    fn play(&mut self) -> Time {
        let shape = self.stage.shape.clone();
        self.plan_faults();
        for node in NodeId::all(shape.nodes()) {
            self.stage.start(Time::ZERO, node);
            self.carry(Time::ZERO, node);
        }
        self.plan_arrivals(shape.users);
        let mut events = 0;
        let mut stopped = None;
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
            // A longer trace is refused: do not fill the memory with it first.
            if self.stage.events().len() > Trace::EVENTS_MAX {
                break;
            }
        }
        let now = self.agenda.now();
        self.stage.end(now, stopped.as_deref());
        now
    }

    /// All entries are left and the links are empty; where there is traffic for ever, after the
    /// last exit.
    fn is_over(&self) -> bool {
        self.requests_left == 0 && self.open == 0 && (self.under_way == 0 || self.idle_traffic)
    }

    fn plan_faults(&mut self) {
        for fault in &self.world.faults {
            if let Fault::Outage(outage) = fault {
                let node = NodeId(outage.node);
                self.agenda
                    .plan(outage.window.from, Planned::Down(node, outage.memory));
                if let Some(until) = outage.window.until {
                    self.agenda.plan(until, Planned::Up(node));
                }
            }
        }
        for (index, cut) in self.world.partitions.iter().enumerate() {
            self.agenda.plan(cut.window.from, Planned::Cut(index));
            if let Some(until) = cut.window.until {
                self.agenda.plan(until, Planned::Heal(index));
            }
        }
    }

    fn plan_arrivals(&mut self, users: usize) {
        match &self.world.arrivals {
            Arrivals::Closed(_) => {
                NodeId::all(users).for_each(|node| self.plan_request(node, Time::ZERO));
            }
            Arrivals::Poisson(_) => {
                NodeId::all(users).for_each(|node| self.plan_poisson(Time::ZERO, node));
            }
            Arrivals::Script(items) => {
                items
                    .iter()
                    .for_each(|(node, at)| self.plan_request(NodeId(*node), *at));
                self.requests_left = 0;
            }
        }
    }

    fn plan_request(&mut self, node: NodeId, at: Time) {
        if self.requests_left > 0 {
            self.requests_left -= 1;
            self.open += 1;
            self.agenda.plan(at, Planned::Arrival(node));
        }
    }

    fn plan_poisson(&mut self, now: Time, node: NodeId) {
        if let Arrivals::Poisson(mean) = self.world.arrivals {
            let apart = Time(self.users.exponential(mean.0 as f64) as u64);
            self.plan_request(node, now + apart);
        }
    }

    fn happen(&mut self, now: Time, event: Planned) {
        let (Planned::Deliver(Flight { to: node, .. })
        | Planned::Arrival(node)
        | Planned::Leave(node, _)
        | Planned::Fire(node, ..)) = event
        else {
            return self.change_world(now, event);
        };
        match self.down[node.index()] {
            None => self.step(now, node, event),
            Some(Memory::Whole) => self.kept[node.index()].push_back(event),
            Some(_) => match event {
                Planned::Deliver(flight) => self.lose(now, flight, Loss::Down),
                Planned::Arrival(_) => self.open -= 1,
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
            Planned::Arrival(_) => {
                self.plan_poisson(now, node);
                if self.stage.phase(node) != Phase::Idle {
                    self.backlog[node.index()] += 1;
                    return;
                }
                self.stage.ask(now, node);
            }
            Planned::Leave(_, entry) => {
                if self.entry[node.index()] != entry || self.stage.phase(node) != Phase::Inside {
                    return;
                }
                self.stage.ask(now, node);
                self.open -= 1;
                self.carry(now, node);
                return self.ask_again(now, node);
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

    fn ask_again(&mut self, now: Time, node: NodeId) {
        if self.backlog[node.index()] > 0 {
            self.backlog[node.index()] -= 1;
            self.stage.ask(now, node);
            self.carry(now, node);
        } else if let Arrivals::Closed(think) = self.world.arrivals {
            let after = think.draw(&mut self.users);
            self.plan_request(node, now + after);
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
        let entered = self.stage.phase(node) == Phase::Inside;
        if entered && !self.inside[node.index()] {
            self.entry[node.index()] += 1;
            let hold = self.world.hold.draw(&mut self.users);
            self.agenda
                .plan(now + hold, Planned::Leave(node, self.entry[node.index()]));
        }
        self.inside[node.index()] = entered;
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
                    let busy = self.stage.phase(node) != Phase::Idle;
                    self.open -= u64::from(busy) + std::mem::take(&mut self.backlog[node.index()]);
                }
                self.stage.crash(now, node, memory);
                self.inside[node.index()] = self.stage.phase(node) == Phase::Inside;
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
                if memory != Memory::Whole && node.index() < self.stage.users.len() {
                    self.ask_again(now, node);
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
