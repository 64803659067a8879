//! A group of machines in virtual time, with faults of links, disks and machines drawn from one seed.

#[path = "faults.rs"]
mod faults;

use std::collections::BTreeSet;

use bytes::Bytes;
use testigo_engine::simulated::Fate as Flush;
use testigo_engine::{FrameError, MemberChange, Outgoing, Setup, Specimen, TICK_MS};
use testigo_sim::{Agenda, Fate, Fault, Generator, Latency, LinkOrder, Links, Time};

use crate::house::Machine;
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
    pub(crate) elections: u64,
    pub(crate) violation: Option<Violation>,
}

pub(crate) struct World {
    agenda: Agenda<Event>,
    links: Links,
    machines: Vec<Machine>,
    monitor: Monitor,
    chance: Generator,
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
        self.plan(1, Event::Operate);
        // First there must be a group.
        self.plan(1_500, Event::Fault);
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
                let machine = self.machine(to);
                if machine.engine.is_some() {
                    machine.inbox.push_back((from, frame));
                }
                self.turn(to)
            }
            Event::Tick { node, life } => {
                if self.machine(node).life != life {
                    return Ok(());
                }
                self.plan(TICK_MS, Event::Tick { node, life });
                let machine = self.machine(node);
                // Whoever is held up does not make good for it.
                machine.ticks = 1;
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
                self.submit(node)
            }
            Event::Ask => {
                if !self.healed {
                    let next = self.chance.between(10, 200);
                    self.plan(next, Event::Ask);
                }
                let node = self.any();
                let nth = node as usize - 1;
                if self.machines[nth].is_idle() {
                    self.machines[nth].ask(&mut self.monitor);
                }
                self.turn(node)
            }
            Event::Say => {
                if !self.healed {
                    let next = self.chance.between(5, 100);
                    self.plan(next, Event::Say);
                }
                let (node, to) = (self.any(), self.any());
                let to = self.machine(to).own();
                let machine = &mut self.machines[node as usize - 1];
                if let Some(to) = to.filter(|_| machine.is_idle()) {
                    machine.say(to, &mut self.monitor);
                }
                self.turn(node)
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
            Event::Heal => self.heal(),
        }
    }

    fn boot(&mut self, nth: usize) -> Result<(), Violation> {
        if self.machines[nth].engine.is_some() {
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

    fn submit(&mut self, node: u64) -> Result<(), Violation> {
        for _ in 0..self.chance.between(1, 4) {
            let nth = node as usize - 1;
            if !self.machines[nth].is_idle() {
                return Ok(());
            }
            self.submissions += 1;
            let mut data = self.submissions.to_le_bytes().to_vec();
            let length = 8 + self.chance.below(120) as usize;
            data.resize(length, self.submissions as u8 | 1);
            self.machines[nth].submit(&data, &mut self.monitor)?;
        }
        self.turn(node)
    }

    /// A machine works off what has come, and begins a flush.
    fn turn(&mut self, node: u64) -> Result<(), Violation> {
        if !self.machine(node).is_idle() {
            return Ok(());
        }
        let damage = self.damage;
        let machine = &mut self.machines[node as usize - 1];
        let (Some(engine), Some(links)) = (&mut machine.engine, &mut machine.links) else {
            return Ok(());
        };
        for _ in 0..std::mem::take(&mut machine.ticks) {
            engine.tick();
            links.tick();
        }
        while let Some((from, frame)) = machine.inbox.pop_front() {
            let mut frame = frame;
            let damaged = self.chance.chance(damage);
            if damaged {
                let mut bytes = frame.to_vec();
                let at = self.chance.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.chance.below(8);
                frame = bytes.into();
            }
            let taken = match links.step(from, &frame) {
                Err(FrameError::Impossible(_)) => engine.step(from, &frame),
                taken => taken,
            };
            match taken {
                Ok(()) if damaged => return Err("a damaged frame was taken".into()),
                Err(error) if !damaged => {
                    return Err(format!("node {node} refused node {from}'s frame: {error}"));
                }
                _ => {}
            }
        }
        engine.begin();
        let mut outgoing = engine.take_outgoing();
        outgoing.extend(links.take_outgoing());
        machine.busy = true;
        let life = machine.life;
        self.send(node, outgoing);
        let took = Time(self.chance.between(1, self.flush.0));
        let at = self.agenda.now() + took;
        self.agenda.plan(at, Event::Flushed { node, life });
        Ok(())
    }

    fn flushed(&mut self, node: u64) -> Result<(), Violation> {
        let machine = &mut self.machines[node as usize - 1];
        if machine.paused {
            // It ends when the machine goes on.
            let life = machine.life;
            self.plan(20, Event::Flushed { node, life });
            return Ok(());
        }
        let Some(engine) = &mut machine.engine else {
            return Ok(());
        };
        machine.busy = false;
        match engine.flush() {
            Ok(committed) => {
                let outgoing = engine.take_outgoing();
                self.term = self.term.max(engine.term());
                for entry in &committed {
                    self.trace.bytes(&entry.data);
                }
                let works = machine.take_over(&committed, &mut self.monitor)?;
                self.send(node, outgoing);
                if !works {
                    self.failed(node);
                }
            }
            Err(_) => self.failed(node),
        }
        let machine = self.machine(node);
        match machine.inbox.is_empty() {
            true => Ok(()),
            false => self.turn(node),
        }
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
        for machine in &mut self.machines {
            let idle = machine.is_idle();
            let Some(engine) = machine
                .engine
                .as_mut()
                .filter(|engine| idle && engine.leads())
            else {
                continue;
            };
            let members = engine.members();
            let learner = members.learners.first().copied();
            let missing = all.iter().find(|node| !members.contains(**node));
            let change = learner.map(MemberChange::Promote);
            let change = change.or(missing.map(|node| MemberChange::AddLearner(*node)));
            if let Some(change) = change {
                // Refused if one is under way, or it has not caught up.
                let _ = engine.change_members(change);
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
            self.boot(nth)?;
            // What is new shows that the group works.
            self.submit(nth as u64 + 1)?;
            self.turn(nth as u64 + 1)?;
        }
        Ok(())
    }
}
