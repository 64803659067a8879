//! A group of machines in virtual time, with faults of links, disks and machines drawn from one seed.

#[path = "faults.rs"]
mod faults;
#[path = "rooms.rs"]
mod rooms;

use std::collections::BTreeSet;

use bytes::Bytes;
use testigo_engine::simulated::Fate as Flush;
use testigo_engine::{MemberChange, Outgoing, Setup, Specimen, TICK_MS};
use testigo_sim::{Agenda, Fate, Fault, Generator, Latency, LinkOrder, Links, Time};

use crate::machine::Machine;
use crate::monitor::{Monitor, Violation};
use crate::trace::Trace;

/// How long faults go on.
const FAULTS_UNTIL: Time = Time::units(12_000);

/// How long everything may take to be well again after the last fault.
const WELL_UNTIL: Time = Time::units(42_000);

/// What happens.
#[derive(Debug)]
enum Event {
    Arrives {
        from: u64,
        to: u64,
        frame: Bytes,
    },
    Tick {
        node: u64,
        life: u64,
    },
    Flushed {
        node: u64,
        life: u64,
    },
    Submit,
    Ask,
    /// One machine says something to another.
    Say,
    /// A leader is told to answer somebody no more, or again.
    Refuse,
    /// An operator looks after the members.
    Operate,
    Fault,
    Boot {
        node: u64,
        life: u64,
    },
    Resume {
        node: u64,
        life: u64,
    },
    Mend {
        from: u64,
        to: u64,
    },
    /// A disk gets short of room.
    FillUp,
    /// There is room again.
    MakeRoom {
        node: u64,
    },
    /// The last fault is over.
    Heal,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Of everything that happened, in order.
    pub(crate) trace: u64,
    pub(crate) applied: usize,
    pub(crate) reads: u64,
    pub(crate) refusals: u64,
    pub(crate) without_room: u64,
    pub(crate) elections: u64,
    pub(crate) violation: Option<Violation>,
}

pub(crate) struct World {
    agenda: Agenda<Event>,
    links: Links,
    machines: Vec<Machine>,
    monitor: Monitor,
    chance: Generator,
    /// For how much room there is, if disks fill up.
    room: Option<Generator>,
    trace: Trace,
    /// Links that lose everything, one way.
    cuts: BTreeSet<(u64, u64)>,
    /// How long a flush takes, at most.
    flush: Time,
    submissions: u64,
    healed: bool,
    term: u64,
    damage: f64,
}

impl World {
    pub(crate) fn new(seed: u64, machines: u64, specimen: Option<Specimen>) -> Self {
        let mut chance = Generator::new(seed);
        let snapshot_every = chance.between(8, 80) as usize;
        let machine = |node| {
            let setup = Setup {
                node,
                joins: node > 1,
                piece_bytes: 40,
                message_bytes: 400,
                specimen,
                ..Setup::default()
            };
            Machine::new(setup, snapshot_every)
        };
        let slow = chance.between(1, 20);
        let latency = Latency::Uniform(Time(Time::UNIT / 10), Time::units(slow));
        let mut links = Links::new(1 + machines as usize, LinkOrder::Any, latency);
        for fault in ["duplicate:0.02", "late:0.02:80"] {
            links.faults.extend(fault.parse::<Fault>());
        }
        if chance.chance(0.5) {
            links.loss = "0.02".parse().unwrap_or_default();
        }
        World {
            agenda: Agenda::default(),
            links,
            machines: (1..=machines).map(machine).collect(),
            monitor: Monitor::default(),
            flush: Time::units(chance.between(1, 30)),
            damage: 0.002,
            chance,
            room: (seed % 4 == 3).then(|| Generator::new(!seed)),
            trace: Trace::default(),
            cuts: BTreeSet::new(),
            submissions: 0,
            healed: false,
            term: 0,
        }
    }

    /// Runs until all is well after the last fault, or something is wrong.
    pub(crate) fn run(mut self) -> Outcome {
        let violation = self.live().err();
        Outcome {
            trace: self.trace.sum(),
            applied: self.monitor.len(),
            reads: self.monitor.reads,
            refusals: self.monitor.refusals,
            without_room: self.monitor.without_room,
            elections: self.term,
            violation,
        }
    }

    fn live(&mut self) -> Result<(), Violation> {
        for nth in 0..self.machines.len() {
            self.boot(nth)?;
        }
        self.plan(1, Event::Submit);
        self.plan(1, Event::Ask);
        self.plan(1, Event::Say);
        self.plan(1, Event::Refuse);
        self.plan(1, Event::Operate);
        // First there must be a group.
        self.plan(1_500, Event::Fault);
        if self.room.is_some() {
            self.plan(2_500, Event::FillUp);
        }
        self.agenda.plan(FAULTS_UNTIL, Event::Heal);
        while let Some((now, event)) = self.agenda.pop() {
            self.happens(event)?;
            if self.healed && self.lacking().is_none() {
                return Ok(());
            }
            if now > WELL_UNTIL {
                let lacking = self.lacking().unwrap_or_default();
                let machines = self.machines.iter().map(Machine::describe);
                let machines: Vec<String> = machines.collect();
                return Err(format!(
                    "not well again: {lacking}\n{}",
                    machines.join("\n")
                ));
            }
        }
        Err("nothing happens any more".into())
    }

    fn lacking(&self) -> Option<String> {
        let mut machines = self.machines.iter();
        let lacking = machines.find_map(|machine| machine.lacking(&self.monitor));
        lacking.or_else(|| {
            let peers = self.machines.iter().filter_map(Machine::own);
            let peers: Vec<_> = peers.collect();
            let mut links = peers
                .iter()
                .flat_map(|from| peers.iter().map(move |to| (*from, *to)));
            let unheard = links.find(|(from, to)| !self.monitor.all_heard(*from, *to));
            unheard.map(|(from, to)| format!("{to:?} has not heard all of {from:?}"))
        })
    }

    fn plan(&mut self, milliseconds: u64, event: Event) {
        let at = self.agenda.now() + Time::units(milliseconds);
        self.agenda.plan(at, event);
    }

    fn machine(&mut self, node: u64) -> &mut Machine {
        &mut self.machines[node as usize - 1]
    }

    fn any(&mut self) -> u64 {
        1 + self.chance.below(self.machines.len() as u64)
    }

    fn happens(&mut self, event: Event) -> Result<(), Violation> {
        self.trace.event(self.agenda.now(), &event);
        match event {
            Event::Arrives { from, to, frame } => {
                self.arrive(from, to, frame);
                self.turn(to)
            }
            Event::Tick { node, life } => {
                if self.machine(node).life != life {
                    return Ok(());
                }
                self.plan(TICK_MS, Event::Tick { node, life });
                // Whoever is held up does not make good for it.
                let machine = self.machine(node);
                let works = machine.running.as_ref().filter(|_| !machine.paused);
                if let Some(running) = works.filter(|running| !running.hand.is_begun()) {
                    running.hand.tick();
                }
                self.turn(node)
            }
            Event::Flushed { node, life } => match self.machine(node).life == life {
                true => self.flushed(node),
                false => Ok(()),
            },
            Event::Submit => {
                if !self.healed {
                    let next = self.chance.between(1, 60);
                    self.plan(next, Event::Submit);
                }
                let node = self.any();
                self.submit(node);
                self.turn(node)
            }
            Event::Ask => {
                if !self.healed {
                    let next = self.chance.between(10, 200);
                    self.plan(next, Event::Ask);
                }
                let node = self.any();
                self.machines[node as usize - 1].ask(&mut self.monitor);
                self.turn(node)
            }
            Event::Say => {
                if !self.healed {
                    let next = self.chance.between(5, 100);
                    self.plan(next, Event::Say);
                }
                let (node, to) = (self.any(), self.any());
                let to = self.machine(to).own();
                if let Some(to) = to {
                    self.machines[node as usize - 1].say(to, &mut self.monitor);
                }
                self.turn(node)
            }
            Event::Refuse => {
                if !self.healed {
                    let next = self.chance.between(100, 1_500);
                    self.plan(next, Event::Refuse);
                }
                let peer = self.any();
                self.refuse(peer)
            }
            Event::Operate => {
                self.plan(97, Event::Operate);
                self.operate();
                Ok(())
            }
            Event::Fault => {
                if !self.healed {
                    let next = self.chance.between(50, 1_200);
                    self.plan(next, Event::Fault);
                    self.fault();
                }
                Ok(())
            }
            Event::Boot { node, life } => match self.machine(node).life == life {
                true => self.boot(node as usize - 1),
                false => Ok(()),
            },
            Event::Resume { node, life } => {
                if self.machine(node).life == life {
                    self.machine(node).paused = false;
                }
                self.turn(node)
            }
            Event::Mend { from, to } => {
                self.cuts.remove(&(from, to));
                Ok(())
            }
            Event::FillUp => {
                if !self.healed {
                    self.fill_up();
                }
                Ok(())
            }
            Event::MakeRoom { node } => {
                self.machine(node).disk.set_room(None);
                Ok(())
            }
            Event::Heal => self.heal(),
        }
    }

    fn boot(&mut self, nth: usize) -> Result<(), Violation> {
        if self.machines[nth].running.is_some() {
            return Ok(());
        }
        let seed = self.chance.bits();
        let node = nth as u64 + 1;
        if !self.machines[nth].boot(seed, &mut self.monitor)? {
            self.boot_later(node);
            return Ok(());
        }
        let life = self.machines[nth].life;
        let first = self.chance.between(1, TICK_MS);
        self.plan(first, Event::Tick { node, life });
        Ok(())
    }

    fn submit(&mut self, node: u64) {
        for _ in 0..self.chance.between(1, 4) {
            self.submissions += 1;
            let mut data = self.submissions.to_le_bytes().to_vec();
            let length = 8 + self.chance.below(120) as usize;
            data.resize(length, self.submissions as u8 | 1);
            self.machines[node as usize - 1].submit(&data, &mut self.monitor);
        }
    }

    /// Somebody who leads is told to answer a start no more; or again, if it was told so before.
    fn refuse(&mut self, node: u64) -> Result<(), Violation> {
        let Some(peer) = self.machine(node).own() else {
            return Ok(());
        };
        let again = self.healed || self.chance.chance(0.5);
        let tag = self.monitor.refuses(peer, !again);
        for nth in 0..self.machines.len() {
            if let Some(running) = self.machines[nth].leading() {
                match again {
                    true => running.log.allow_reads(peer),
                    false => running.log.refuse_reads(tag, peer),
                }
                self.turn(nth as u64 + 1)?;
            }
        }
        Ok(())
    }

    fn arrive(&mut self, from: u64, to: u64, frame: Bytes) {
        let damaged = self.chance.chance(self.damage);
        let (at, bit) = (self.chance.bits() as usize, self.chance.below(8));
        let machine = self.machine(to);
        let Some(running) = &mut machine.running else {
            return;
        };
        let mut frame = frame;
        if damaged {
            let mut bytes = frame.to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            frame = bytes.into();
            running.damaged += 1;
        }
        running.log.hear(from, frame);
    }

    /// A machine works off what has come, and begins a flush.
    fn turn(&mut self, node: u64) -> Result<(), Violation> {
        let machine = &mut self.machines[node as usize - 1];
        let Some(running) = machine.running.as_ref().filter(|_| !machine.paused) else {
            return Ok(());
        };
        // The links go on while the disk is at work.
        let busy = running.hand.is_begun();
        let waits = running.hand.begin();
        let life = machine.life;
        if waits && !busy {
            let took = Time(self.chance.between(1, self.flush.0));
            let at = self.agenda.now() + took;
            self.agenda.plan(at, Event::Flushed { node, life });
        }
        self.listen(node)
    }

    fn flushed(&mut self, node: u64) -> Result<(), Violation> {
        let machine = &mut self.machines[node as usize - 1];
        if machine.paused {
            // It ends when the machine goes on.
            let life = machine.life;
            self.plan(20, Event::Flushed { node, life });
            return Ok(());
        }
        if let Some(running) = &machine.running {
            running.hand.flush();
        }
        self.listen(node)?;
        let running = self.machines[node as usize - 1].running.as_ref();
        match running.is_some_and(|running| running.hand.is_asked()) {
            true => self.turn(node),
            false => Ok(()),
        }
    }

    /// Takes what a log has said and sent.
    fn listen(&mut self, node: u64) -> Result<(), Violation> {
        let machine = &mut self.machines[node as usize - 1];
        let (works, applied) = machine.listen(&mut self.monitor)?;
        for data in &applied {
            self.trace.bytes(data);
        }
        let Some(running) = &machine.running else {
            return Ok(());
        };
        self.term = self.term.max(running.standing.term);
        let sent = running.take_sent();
        self.send(node, sent);
        if !works {
            self.failed(node);
        }
        Ok(())
    }

    /// A failed disk: the process ends, and somebody starts it again.
    fn failed(&mut self, node: u64) {
        self.machine(node).crash(Flush::Done);
        self.boot_later(node);
    }

    fn send(&mut self, from: u64, outgoing: Vec<Outgoing>) {
        let now = self.agenda.now();
        for Outgoing { to, frame } in outgoing {
            self.trace.bytes(&frame);
            if to == 0 || to > self.machines.len() as u64 || self.cuts.contains(&(from, to)) {
                continue;
            }
            let arrives = |frame| Event::Arrives { from, to, frame };
            match self
                .links
                .send(now, from as u32, to as u32, &mut self.chance)
            {
                Fate::Lost(_) => {}
                Fate::Arrives(at) => self.agenda.plan(at, arrives(frame)),
                Fate::ArrivesTwice(first, second) => {
                    self.agenda.plan(first, arrives(frame.clone()));
                    self.agenda.plan(second, arrives(frame));
                }
            }
        }
    }

    /// Whoever should be a member is made one, step by step.
    fn operate(&mut self) {
        let all: Vec<u64> = self.machines.iter().map(Machine::node).collect();
        for machine in &self.machines {
            let Some(running) = machine.leading() else {
                continue;
            };
            let members = &running.standing.members;
            let learner = members.learners.first().copied();
            let missing = all.iter().find(|node| !members.contains(**node));
            let change = learner.map(MemberChange::Promote);
            let change = change.or(missing.map(|node| MemberChange::AddLearner(*node)));
            if let Some(change) = change {
                // Refused if one is under way, or it has not caught up.
                running.log.change_members(0, change);
            }
        }
    }

    fn heal(&mut self) -> Result<(), Violation> {
        self.healed = true;
        self.cuts.clear();
        self.links.faults.clear();
        self.links.loss = Default::default();
        self.flush = Time::units(2);
        self.damage = 0.0;
        for nth in 0..self.machines.len() {
            self.machines[nth].paused = false;
            self.machines[nth].disk.next_flush(Flush::Done);
            self.machines[nth].disk.set_room(None);
            self.boot(nth)?;
            // What is new shows that the group works.
            self.submit(nth as u64 + 1);
            self.turn(nth as u64 + 1)?;
        }
        for node in 1..=self.machines.len() as u64 {
            self.refuse(node)?;
        }
        Ok(())
    }
}
