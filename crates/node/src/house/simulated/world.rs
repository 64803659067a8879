//! A cluster in virtual time: machines with their houses, links between them, clients, and faults, all drawn from one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

use bytes::Bytes;
use testigo_core::estate::{Broken, Estate};
use testigo_core::{Name, Using};
use testigo_engine::TICK_MS;
use testigo_engine::simulated::Fate;
use testigo_sim::{Agenda, Generator, Time};

use super::agreeing::Agreed;
use super::clients::Client;
use super::jobs::{FLOW, Jobs};
use super::machine::{Dial, Heard, Inbound, Machine};
use super::monitors::Monitors;
use crate::clock::simulated::WALL_MS;
use crate::random;

pub(super) const TTL_MS: u64 = 5_000;
/// By then the cluster is complete.
const WHOLE_MS: u64 = 20_000;
/// How long there are faults.
const FAULTS_MS: u64 = 20_000;
/// By this long after the last fault every gate must have been granted again: a lease, an orphan's TTL, elections, and the
/// wait of a client.
const CALM_MS: u64 = 30_000;
/// By this long after it every node must be back: a node that keeps crashing is let in again after a minute.
const BACK_MS: u64 = 100_000;
/// How long clients need to trust a node again after it was held up.
const TOLD_MS: u64 = 60;

#[derive(Debug)]
pub(super) enum Event {
    Inbound { to: u64, inbound: Inbound },
    Heard(Heard),
    Tick { node: u64, life: u64 },
    Flushed { node: u64, life: u64 },
    Boot { node: u64, life: u64 },
    Resume { node: u64, life: u64 },
    Trust { node: u64 },
    Mend { from: u64, to: u64 },
    Act(usize),
    Join,
    Fault,
}

/// Counts of what happened, to see that something did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) grants: u64,
    pub(super) answers: u64,
    pub(super) resumed: u64,
    pub(super) takes: u64,
    pub(super) decisions: u64,
    pub(super) deliveries: u64,
    pub(super) crashes: u64,
    pub(super) pauses: u64,
    pub(super) cuts: u64,
    pub(super) anew: u64,
    pub(super) frames: u64,
    pub(super) refused: BTreeMap<String, u64>,
    /// A hash of all frames that were sent.
    pub(super) trace: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.grants += other.grants;
        self.answers += other.answers;
        self.resumed += other.resumed;
        self.takes += other.takes;
        self.decisions += other.decisions;
        self.deliveries += other.deliveries;
        self.crashes += other.crashes;
        self.pauses += other.pauses;
        self.cuts += other.cuts;
        self.anew += other.anew;
        self.frames += other.frames;
        for (word, count) in other.refused {
            *self.refused.entry(word).or_default() += count;
        }
    }
}

pub(super) struct World {
    agenda: Agenda<Event>,
    pub(super) chance: Generator,
    pub(super) machines: Vec<Machine>,
    pub(super) clients: Vec<Client>,
    pub(super) gates: Vec<String>,
    pub(super) monitors: Monitors,
    pub(super) jobs: Jobs,
    pub(super) tally: Tally,
    /// Nothing gets from the first node to the second.
    pub(super) cuts: BTreeSet<(u64, u64)>,
    /// When the last frame sent over a link arrives: what follows comes later.
    last: BTreeMap<(u64, u64), Time>,
    /// The same for the line to a client and from it.
    last_line: BTreeMap<(Dial, bool), Time>,
    /// How long a frame takes at most.
    latency_ms: u64,
    pub(super) flush_ms: u64,
    pub(super) healed: bool,
    pub(super) granted: BTreeMap<String, u64>,
    /// How the ownership of the gates travels, where it does not travel in the log.
    pub(super) using: Vec<Using>,
    /// Whether clients also agree on values.
    pub(super) agrees: bool,
    pub(super) agreed: Agreed,
    broken: Option<Broken>,
    /// Whether it prints what happens.
    aloud: bool,
}

impl World {
    pub(super) fn new(seed: u64, nodes: u64, broken: Option<Broken>) -> World {
        let mut chance = Generator::new(seed);
        random::simulated::seed(Some(seed));
        let machine = |id, chance: &mut Generator| Machine::new(id, chance.between(990, 1_010));
        let machines = (1..=nodes).map(|id| machine(id, &mut chance)).collect();
        let count = chance.between(3, 7);
        let clients = (0..count).map(|_| Client::new(chance.chance(0.5), chance.chance(0.3)));
        let mut clients: Vec<Client> = clients.collect();
        // Some client must enter the gates.
        clients[0].works &= !clients.iter().all(|client| client.works);
        // Every other one is an election.
        let gates = (0..chance.between(1, 4)).map(|n| match n % 2 {
            0 => format!("gate-{n}"),
            _ => Name::election(&format!("seat-{n}"))
                .expect("a name")
                .to_string(),
        });
        World {
            agenda: Agenda::default(),
            gates: gates.collect(),
            machines,
            clients,
            monitors: Monitors::default(),
            jobs: Jobs::default(),
            tally: Tally::default(),
            cuts: BTreeSet::new(),
            last: BTreeMap::new(),
            last_line: BTreeMap::new(),
            latency_ms: chance.between(1, 15),
            flush_ms: chance.between(1, 20),
            healed: false,
            granted: BTreeMap::new(),
            using: Vec::new(),
            agrees: false,
            agreed: Agreed::default(),
            broken,
            aloud: std::env::var_os("TESTIGO_ALOUD").is_some(),
            chance,
        }
    }

    /// The same, with gates that readers and writers share and whose ownership algorithms move. Workers enter gates, too.
    pub(super) fn of_using(seed: u64, nodes: u64, broken: Option<Broken>) -> World {
        let mut world = World::new(seed, nodes, broken);
        let mut chance = Generator::new(seed ^ 0xc3);
        let last = Using::ALL.len() as u64 - 1;
        let gates = 0..world.gates.len();
        world.gates = gates.map(|n| format!("gate-{n}")).collect();
        let using = world.gates.iter();
        world.using = using
            .map(|_| Using::ALL[chance.between(1, last) as usize])
            .collect();
        for client in &mut world.clients {
            client.works = false;
        }
        world
    }

    /// Runs until every gate was granted after the last fault, or something is wrong.
    pub(super) fn run(&mut self) -> Result<Tally, String> {
        let ran = self.live();
        random::simulated::seed(None);
        WALL_MS.set(None);
        ran.map_err(|why| format!("at {} ms: {why}", self.now()))?;
        Ok(self.tally.clone())
    }

    fn live(&mut self) -> Result<(), String> {
        self.gather()?;
        self.apply_flow()?;
        self.create_gates()?;
        for which in 0..self.clients.len() {
            self.plan(1, Event::Act(which));
        }
        self.plan(500, Event::Fault);
        let until = self.now() + FAULTS_MS;
        while self.now() < until {
            self.happen()?;
        }
        self.heal()?;
        let healed = self.now();
        loop {
            self.happen()?;
            let again = |gate: &&String| self.granted.get(*gate).is_some_and(|at| *at > healed);
            let missing = self.gates.iter().find(|gate| !again(gate));
            match missing {
                None if self.acting() == self.machines.len() => return self.check_jobs(),
                None if self.now() > healed + BACK_MS => {
                    let acting = self.acting();
                    return Err(format!("only {acting} nodes are back\n{}", self.describe()));
                }
                None => {}
                Some(gate) if self.now() > healed + CALM_MS => {
                    return Err(format!("{gate} is not granted again\n{}", self.describe()));
                }
                Some(_) => {}
            }
        }
    }

    /// The first node founds the cluster, and all others join it.
    fn gather(&mut self) -> Result<(), String> {
        // No clock begins with 0.
        self.agenda.plan(Time::units(1_000), Event::Join);
        self.happen()?;
        for node in 1..=self.machines.len() as u64 {
            self.boot(node)?;
        }
        while self.acting() < self.machines.len() {
            self.happen()?;
            if self.now() > WHOLE_MS {
                return Err(format!("the cluster does not gather\n{}", self.describe()));
            }
        }
        Ok(())
    }

    /// A client applies the workers' flow.
    fn apply_flow(&mut self) -> Result<(), String> {
        let dial = (usize::MAX, 0);
        self.send_to_node(1, Inbound::Connect(dial));
        let apply = Bytes::from(format!("{FLOW}\r\n"));
        self.send_to_node(1, Inbound::Command(dial, apply));
        let until = self.now() + WHOLE_MS;
        let applied = |machine: &Machine| {
            let house = machine.running.as_ref().map(|running| &running.house);
            house.is_some_and(|house| house.replicated().flows().next().is_some())
        };
        while !self.machines.iter().all(applied) {
            self.happen()?;
            if self.now() > until {
                return Err("the flow is not applied".into());
            }
        }
        Ok(())
    }

    /// A client creates the gates whose ownership algorithms move.
    fn create_gates(&mut self) -> Result<(), String> {
        let dial = (usize::MAX, 0);
        for at in 0..self.using.len() {
            let (gate, using) = (self.gates[at].clone(), self.using[at].name());
            let create = format!("GATE CREATE {gate} SHARED USING {using} BURST 2\r\n");
            self.send_to_node(1, Inbound::Command(dial, Bytes::from(create)));
        }
        let until = self.now() + WHOLE_MS;
        let created = |world: &World| {
            world.machines.iter().all(|machine| {
                let house = machine.running.as_ref().map(|running| &running.house);
                let gates = house.map(|house| house.replicated().gates().len());
                gates == Some(world.using.len())
            })
        };
        while !created(self) {
            self.happen()?;
            if self.now() > until {
                return Err("the gates are not created".into());
            }
        }
        Ok(())
    }

    /// How many nodes may act.
    fn acting(&self) -> usize {
        let running = self
            .machines
            .iter()
            .filter_map(|machine| machine.running.as_ref());
        running.filter(|running| running.house.acts()).count()
    }

    pub(super) fn describe(&self) -> String {
        let machines = self.machines.iter().map(|machine| {
            let Some(running) = &machine.running else {
                return format!("node {} is down", machine.id);
            };
            let house = &running.house;
            format!(
                "node {}: acts {}, view {:?}, {:?}, shut {:?}, gates {:?}",
                machine.id,
                house.acts(),
                house.replicated().view(),
                house.member(),
                house.services.estate().map(Estate::shut),
                self.gates
                    .iter()
                    .map(|gate| (gate, house.local().gate(gate).ok()))
                    .collect::<Vec<_>>()
            )
        });
        let machines: Vec<String> = machines.collect();
        format!("{}\n{:?}", machines.join("\n"), self.clients)
    }

    /// Prints what happens, for a person who looks at one seed.
    pub(super) fn note(&self, what: impl FnOnce(&World) -> String) {
        if self.aloud {
            println!("{} {}", self.now(), what(self));
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.agenda.now().0 / Time::UNIT
    }

    pub(super) fn plan(&mut self, milliseconds: u64, event: Event) {
        let at = self.agenda.now() + Time::units(milliseconds);
        self.agenda.plan(at, event);
    }

    pub(super) fn machine(&mut self, node: u64) -> &mut Machine {
        &mut self.machines[node as usize - 1]
    }

    pub(super) fn any_node(&mut self) -> u64 {
        1 + self.chance.below(self.machines.len() as u64)
    }

    pub(super) fn any_gate(&mut self) -> String {
        let nth = self.chance.below(self.gates.len() as u64);
        self.gates[nth as usize].clone()
    }

    fn happen(&mut self) -> Result<(), String> {
        let Some((_, event)) = self.agenda.pop() else {
            return Err("nothing happens any more".into());
        };
        let now = self.now();
        WALL_MS.set(Some(1_700_000_000_000 + now));
        self.machines
            .iter()
            .for_each(|machine| machine.set_clock(now));
        match event {
            Event::Inbound { to, inbound } => {
                let machine = self.machine(to);
                match (machine.running.is_some(), inbound) {
                    (true, inbound) => {
                        machine.inbox.push(inbound);
                        self.turn(to)
                    }
                    (false, Inbound::Connect(line) | Inbound::Command(line, _)) => {
                        self.close(line);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            Event::Heard(heard) => self.hear(heard),
            Event::Tick { node, life } if self.machine(node).life == life => {
                self.plan(TICK_MS, Event::Tick { node, life });
                self.tick(node)
            }
            Event::Flushed { node, life } if self.machine(node).life == life => self.flushed(node),
            Event::Boot { node, life } if self.machine(node).life == life => self.boot(node),
            Event::Resume { node, life } if self.machine(node).life == life => self.go_on(node),
            Event::Trust { node } => match self.machine(node).paused {
                true => Ok(()),
                false => self.trust_again(node),
            },
            Event::Mend { from, to } => {
                self.cuts.remove(&(from, to));
                Ok(())
            }
            Event::Act(which) => {
                self.act(which);
                Ok(())
            }
            Event::Join => {
                self.plan(100, Event::Join);
                self.join()
            }
            Event::Fault => {
                if !self.healed {
                    let next = self.chance.between(200, 2_500);
                    self.plan(next, Event::Fault);
                    self.fault()?;
                }
                Ok(())
            }
            Event::Tick { .. }
            | Event::Flushed { .. }
            | Event::Boot { .. }
            | Event::Resume { .. } => Ok(()),
        }
    }

    fn tick(&mut self, node: u64) -> Result<(), String> {
        let machine = self.machine(node);
        let Some(running) = machine.running.as_mut().filter(|_| !machine.paused) else {
            return Ok(());
        };
        if !running.hand.is_begun() {
            running.hand.tick();
        }
        self.turn(node)?;
        if let Some(running) = &mut self.machine(node).running {
            running.judge_silence();
        }
        self.turn(node)
    }

    /// A machine does what there is to do.
    pub(super) fn turn(&mut self, node: u64) -> Result<(), String> {
        let machine = &mut self.machines[node as usize - 1];
        if !machine.works() {
            return Ok(());
        }
        let life = machine.life;
        let running = machine.running.as_ref();
        let busy = running.is_some_and(|running| running.hand.is_begun());
        let heard = machine.turn();
        let Some(running) = &machine.running else {
            return Ok(());
        };
        running.show_titles(&self.gates, &mut self.monitors.owners)?;
        let begun = running.hand.is_begun();
        let sent = running.take_sent();
        let failed = running.house.submissions.failed().is_some();
        let anew = running.house.must_start_anew().is_some();
        for heard in heard {
            self.send_to_client(heard);
        }
        for (to, frame) in sent {
            self.send(node, to, frame);
        }
        if begun && !busy {
            let took = self.chance.between(1, self.flush_ms);
            self.plan(took, Event::Flushed { node, life });
        }
        if failed {
            self.crash(node, Fate::Full);
            self.boot_later(node);
        } else if anew {
            self.tally.anew += 1;
            self.crash(node, Fate::Done);
            let life = self.machine(node).life;
            self.plan(1, Event::Boot { node, life });
        }
        Ok(())
    }

    fn flushed(&mut self, node: u64) -> Result<(), String> {
        let machine = self.machine(node);
        if machine.paused {
            // It ends when the machine goes on.
            let life = machine.life;
            self.plan(20, Event::Flushed { node, life });
            return Ok(());
        }
        if let Some(running) = &machine.running {
            running.hand.flush();
        }
        self.turn(node)
    }

    pub(super) fn boot(&mut self, node: u64) -> Result<(), String> {
        if self.machine(node).running.is_some() {
            return Ok(());
        }
        let (seed, broken) = (self.chance.bits(), self.broken);
        if !self.machine(node).boot(seed, broken)? {
            self.boot_later(node);
            return Ok(());
        }
        self.note(|_| format!("node {node} starts"));
        let life = self.machine(node).life;
        let first = self.chance.between(1, TICK_MS);
        self.plan(first, Event::Tick { node, life });
        Ok(())
    }

    pub(super) fn boot_later(&mut self, node: u64) {
        let life = self.machine(node).life;
        let later = self.chance.between(10, 4_000);
        self.plan(later, Event::Boot { node, life });
    }

    pub(super) fn crash(&mut self, node: u64, fate: Fate) {
        self.note(|_| format!("node {node} ends"));
        for line in self.machine(node).crash(fate) {
            self.close(line);
        }
    }

    /// A machine that was held up goes on.
    fn go_on(&mut self, node: u64) -> Result<(), String> {
        if std::mem::take(&mut self.machine(node).paused) {
            self.turn(node)?;
            self.plan(TOLD_MS, Event::Trust { node });
        }
        Ok(())
    }

    fn close(&mut self, line: Dial) {
        self.send_to_client(Heard {
            line,
            bytes: Bytes::new(),
            closed: true,
        });
    }

    fn send_to_client(&mut self, heard: Heard) {
        let at = self.after(self.last_line.get(&(heard.line, true)).copied(), 5);
        self.last_line.insert((heard.line, true), at);
        self.agenda.plan(at, Event::Heard(heard));
    }

    pub(super) fn send_to_node(&mut self, to: u64, inbound: Inbound) {
        let line = match &inbound {
            Inbound::Connect(line) | Inbound::Command(line, _) | Inbound::HangUp(line) => *line,
            Inbound::Frame { .. } => return,
        };
        let at = self.after(self.last_line.get(&(line, false)).copied(), 5);
        self.last_line.insert((line, false), at);
        self.agenda.plan(at, Event::Inbound { to, inbound });
    }

    /// When something arrives that is sent now, after the last thing sent.
    fn after(&mut self, last: Option<Time>, latency_ms: u64) -> Time {
        let took = Time(
            self.chance
                .between(Time::UNIT / 10, latency_ms * Time::UNIT),
        );
        let at = self.agenda.now() + took;
        last.map_or(at, |last| at.max(last + Time(1)))
    }

    /// A frame goes over a connection, which keeps the order, or is lost with it.
    fn send(&mut self, from: u64, to: u64, frame: Bytes) {
        self.tally.frames += 1;
        for byte in frame.iter().chain([from as u8, to as u8].iter()) {
            // FNV-1a.
            let sum = self.tally.trace ^ u64::from(*byte);
            self.tally.trace = sum.wrapping_mul(0x0100_0000_01B3);
        }
        let lost = self.cuts.contains(&(from, to)) || !self.healed && self.chance.chance(0.002);
        if to == 0 || to > self.machines.len() as u64 || lost {
            return;
        }
        let at = self.after(self.last.get(&(from, to)).copied(), self.latency_ms);
        self.last.insert((from, to), at);
        let inbound = Inbound::Frame { from, frame };
        self.agenda.plan(at, Event::Inbound { to, inbound });
    }

    /// Nodes that are no members yet ask others to let them in.
    fn join(&mut self) -> Result<(), String> {
        for node in 2..=self.machines.len() as u64 {
            let machine = self.machine(node);
            let joined = |running: &super::machine::Running| running.house.check_joined().is_ok();
            if !machine.works() || machine.running.as_ref().is_some_and(joined) {
                continue;
            }
            let newcomer = machine.newcomer();
            let other = self.any_node();
            let cut = self.cuts.contains(&(node, other)) || self.cuts.contains(&(other, node));
            let other_works = other != node && !cut && self.machine(other).works();
            if let (Some(newcomer), true) = (newcomer, other_works) {
                if let Some(running) = &mut self.machine(other).running {
                    let _ = running.house.wants_to_join(newcomer);
                }
                self.turn(other)?;
            }
        }
        Ok(())
    }

    fn heal(&mut self) -> Result<(), String> {
        self.healed = true;
        self.cuts.clear();
        self.flush_ms = 2;
        for node in 1..=self.machines.len() as u64 {
            self.machine(node).disk.next_flush(Fate::Done);
            self.go_on(node)?;
            self.boot(node)?;
        }
        Ok(())
    }
}
