//! A program of shared memory run across nodes: every register is replicated on a majority, by messages. Each process
//! is a node with a copy of all registers; an access is an operation of two rounds.

use std::collections::BTreeMap;

use testigo_memory::{Local, Memory, Program, Region, RegisterId, Word};
use testigo_protocol::register::{Answer, Operation, Outcome, Question, Replica};
use testigo_protocol::{NodeId, Setup, UserId};
use testigo_sim::{Agenda, Fault, Generator, Time};

use super::family::found;
use super::passage::AccessReport;
use super::requests::Requests;
use super::simulate::{refuse_what_cannot_be, report};
use super::stage::{shape, violation};
use crate::family::LabError;
use crate::observer::{Observer, Wrong};
use crate::run::Report;
use crate::world::World;

/// Runs a program of loads and stores across nodes, until every process has entered as often as it should or nothing
/// more happens. A node that halts answers no more.
pub fn run_replicated(name: &str, setup: &Setup, world: &World) -> Result<Report, LabError> {
    let (profile, algorithm, program) = found(name, setup)?;
    let no = |why: &str| Err(LabError::new(format!("{name} across nodes: {why}")));
    if !program.others().is_empty() || algorithm.profile.needs_time_bound {
        return no("it needs more than the memory of its processes");
    }
    refuse_what_cannot_be(profile, &*program, world)?;
    let mut halts = vec![None; program.processes()];
    for fault in &world.faults {
        match fault {
            Fault::Outage(outage) if outage.window.until.is_none() => {
                halts[outage.node as usize] = Some(outage.window.from);
            }
            _ => return no("a node may halt for good, and nothing else"),
        }
    }
    let registers = program.registers();
    let first: Vec<u64> = registers.iter().map(|register| register.first[0]).collect();
    let nodes = program.processes();
    let mut cluster = Nodes {
        program: &*program,
        world,
        requests: Requests::new(nodes, world),
        observer: Observer::new(&shape(&*program), &[]),
        locals: vec![Local::REMAINDER; nodes],
        replicas: vec![Replica::new(first); nodes],
        operations: vec![None; nodes],
        rounds: vec![0; nodes],
        halts,
        agenda: Agenda::default(),
        delays: Generator::for_purpose(world.seed, 1),
        messages: BTreeMap::new(),
        reads: 0,
        writes: 0,
        still: 0,
    };
    let end = cluster.play();
    let (observer, entries) = (&cluster.observer, cluster.observer.measures.entries);
    let per = |total: u64| (entries > 0).then(|| total as f64 / entries as f64);
    let accesses = AccessReport {
        registers: registers.len(),
        reads: cluster.reads,
        writes: cluster.writes,
        per_entry: per(cluster.reads + cluster.writes),
        ..AccessReport::default()
    };
    let messages = cluster.messages.values().sum();
    Ok(Report {
        messages,
        messages_per_entry: per(messages),
        messages_by_kind: cluster.messages,
        ..report(
            (profile, algorithm.profile.problem),
            (setup, world),
            (observer, program.rooms()),
            accesses,
            end,
        )
    })
}

#[derive(Clone, Copy, Debug)]
enum Letter {
    Ask(Question),
    Reply(Answer),
}

/// What happens at a node.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// A letter arrives: from whom, in which round of whoever asked, and what it says.
    Letter(NodeId, u64, Letter),
    /// It is time to ask, or the stay inside is over.
    Go,
}

struct Nodes<'a> {
    program: &'a dyn Program,
    world: &'a World,
    requests: Requests<'a>,
    observer: Observer,
    locals: Vec<Local>,
    replicas: Vec<Replica>,
    operations: Vec<Option<Operation>>,
    /// How many rounds each node has begun: an answer counts only for the round that asked.
    rounds: Vec<u64>,
    /// When each node halts.
    halts: Vec<Option<Time>>,
    agenda: Agenda<(NodeId, Due)>,
    delays: Generator,
    messages: BTreeMap<String, u64>,
    reads: u64,
    writes: u64,
    /// Accesses since somebody got in or out.
    still: u64,
}

impl Nodes<'_> {
    fn play(&mut self) -> Time {
        let nodes = self.locals.len();
        let still_max = 1_000 + 1_000 * (nodes * nodes) as u64;
        let (mut events, mut stopped) = (0, None);
        (0..nodes).for_each(|node| self.wait(node));
        while let Some((now, (to, due))) = self.agenda.pop() {
            if self.halts[to.index()].is_some_and(|at| at <= now) {
                self.observer.gone(now, UserId(to.0));
                continue;
            }
            match due {
                Due::Letter(from, round, Letter::Ask(question)) => {
                    let answer = self.replicas[to.index()].answer(question);
                    self.send(to, from, round, Letter::Reply(answer));
                }
                Due::Letter(from, round, Letter::Reply(answer)) => {
                    if self.rounds[to.index()] == round {
                        self.hear(to.index(), from, answer);
                    }
                }
                Due::Go => self.go(to.index()),
            }
            events += 1;
            if events == self.world.events_max {
                stopped = Some(format!("the run did not end within {events} events"));
            } else if self.still > still_max {
                stopped = Some(format!("nobody got in or out for {still_max} accesses"));
            }
            if stopped.is_some() {
                break;
            }
        }
        let now = self.agenda.now();
        self.observer.end_waiting(now, stopped.as_deref());
        now
    }

    fn send(&mut self, from: NodeId, to: NodeId, round: u64, letter: Letter) {
        let kind = match letter {
            Letter::Ask(Question::Newest { .. }) => "Newest",
            Letter::Ask(Question::Keep { .. }) => "Keep",
            Letter::Reply(Answer::Holds { .. }) => "Holds",
            Letter::Reply(Answer::Kept) => "Kept",
        };
        *self.messages.entry(kind.into()).or_default() += 1;
        let delay = self.world.latency.draw(&mut self.delays);
        let at = self.agenda.now() + delay;
        self.agenda.plan(at, (to, Due::Letter(from, round, letter)));
    }

    fn plan(&mut self, node: usize, at: Time) {
        let at = at.max(self.agenda.now());
        self.agenda.plan(at, (NodeId(node as u32), Due::Go));
    }

    /// A process in its remainder waits until it asks next, if it does.
    fn wait(&mut self, node: usize) {
        if let Some(at) = self.requests.next(node) {
            self.plan(node, at);
        }
    }

    /// A process asks, or leaves.
    fn go(&mut self, node: usize) {
        let (now, user) = (self.agenda.now(), UserId(node as u32));
        match self.locals[node].region {
            Region::Remainder => {
                let room = self.requests.take(node, now, self.program.rooms());
                self.locals[node] = Local::asking(room);
                self.observer.asked(now, user, u32::from(room));
            }
            _ => {
                self.locals[node].leave();
                self.observer.left(now, user);
                self.still = 0;
            }
        }
        self.begin(node);
    }

    /// The next access of a process becomes an operation.
    fn begin(&mut self, node: usize) {
        let mut copy = self.locals[node];
        // The next access does not hang on what it will find, so a step on a copy tells which it is.
        let mut probe = Probe::default();
        self.program.step(node, &mut copy, &mut probe);
        let (me, nodes) = (NodeId(node as u32), self.locals.len());
        self.operations[node] = probe.access.map(|access| match access {
            (register, None) => Operation::load(me, register as u32, nodes),
            (register, Some(value)) => Operation::store(me, register as u32, value, nodes),
        });
        match probe.access {
            Some((_, None)) => self.reads += 1,
            _ => self.writes += 1,
        }
        self.still += 1;
        self.ask(node);
    }

    /// Asks everybody, oneself last.
    fn ask(&mut self, node: usize) {
        let Some(operation) = &self.operations[node] else {
            return;
        };
        let (me, question) = (NodeId(node as u32), operation.question());
        self.rounds[node] += 1;
        let round = self.rounds[node];
        for other in NodeId::all(self.locals.len()).filter(|other| *other != me) {
            self.send(me, other, round, Letter::Ask(question));
        }
        let answer = self.replicas[node].answer(question);
        self.hear(node, me, answer);
    }

    fn hear(&mut self, node: usize, from: NodeId, answer: Answer) {
        let Some(operation) = &mut self.operations[node] else {
            return;
        };
        match operation.answered(from, answer) {
            Outcome::Waits => {}
            Outcome::NextRound => self.ask(node),
            Outcome::Done(value) => {
                self.operations[node] = None;
                self.rounds[node] += 1;
                self.done(node, value);
            }
        }
    }

    /// An access is done: the process takes its step, and goes on.
    fn done(&mut self, node: usize, value: Word) {
        let (now, user) = (self.agenda.now(), UserId(node as u32));
        let before = self.locals[node].region;
        let mut probe = Probe {
            value,
            ..Probe::default()
        };
        self.program.step(node, &mut self.locals[node], &mut probe);
        let local = self.locals[node];
        if before == Region::Trying && local.region == Region::Inside {
            self.still = 0;
            self.observer.entered(now, user, None);
            if let Some(what) = violation(self.program, &self.locals) {
                self.observer.report(now, Wrong::Safety, what);
            }
        }
        match (local.region, local.is_idle()) {
            (Region::Remainder, _) => {
                self.requests.ended(node, now);
                self.wait(node);
            }
            (Region::Inside, true) => {
                let stay = self.requests.hold();
                self.plan(node, now + stay);
            }
            _ => self.begin(node),
        }
    }
}

/// Finds out which access a step makes, and gives it the value that an operation has loaded.
#[derive(Default)]
struct Probe {
    value: Word,
    access: Option<(RegisterId, Option<Word>)>,
}

impl Memory for Probe {
    fn load(&mut self, register: RegisterId) -> Word {
        self.access = Some((register, None));
        self.value
    }

    fn store(&mut self, register: RegisterId, value: Word) {
        self.access = Some((register, Some(value)));
    }

    fn compare_exchange(&mut self, _: RegisterId, _: Word, _: Word) -> bool {
        unreachable!("the programs that run across nodes load and store only")
    }
}
