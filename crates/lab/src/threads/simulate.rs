//! A simulated run: every step of a thread takes a time that the seed draws, and ties are drawn too.

use testigo_memory::{Local, Program, Region};
use testigo_protocol::{NodeId, Profile, Setup, UserId};
use testigo_sim::{Fault, Generator, Memory, Time};

use super::passage::{AccessReport, Passage};
use super::requests::Requests;
use super::stage::ThreadStage;
use crate::arrivals::Arrivals;
use crate::family::LabError;
use crate::observer::{Observer, Wrong};
use crate::run::{KindReport, Report, Run};
use crate::trace::{Header, Trace};
use crate::world::{Progress, World};

/// A finished run, with every passage.
pub(crate) struct ThreadRun {
    pub(crate) run: Run,
    pub(crate) passages: Vec<Passage>,
}

pub(crate) fn run(
    profile: &'static Profile,
    problem: &'static str,
    program: &dyn Program,
    setup: &Setup,
    world: &World,
    keep_trace: bool,
    progress: fn(Progress),
) -> Result<ThreadRun, LabError> {
    refuse_what_cannot_be(profile, program, world)?;
    let mut scheduler = Scheduler::new(program, world, keep_trace);
    let end = scheduler.play(progress);
    let mut stage = scheduler.stage;
    let rooms = program.rooms();
    let counted = accesses(&stage);
    let report = report(
        (profile, problem),
        (setup, world),
        (&stage.observer, rooms),
        counted,
        end,
    );
    let passages = std::mem::take(&mut stage.passages);
    let made_by = format!("simulation with seed {}", world.seed);
    let header = Header {
        network: Some(world.network()),
        ..Header::new(profile, &stage.shape, setup, made_by)
    };
    let trace = stage.into_trace().map(|events| Trace { header, events });
    Ok(ThreadRun {
        run: Run { report, trace },
        passages,
    })
}

pub(super) fn refuse_what_cannot_be(
    profile: &Profile,
    program: &dyn Program,
    world: &World,
) -> Result<(), LabError> {
    let name = profile.name;
    let no = |what: &str| Err(LabError::new(format!("{name} shares memory: {what}")));
    let plain = World {
        entries: world.entries,
        seed: world.seed,
        latency: world.latency,
        faults: world.faults.clone(),
        arrivals: world.arrivals.clone(),
        hold: world.hold,
        events_max: world.events_max,
        ..World::default()
    };
    if *world != plain {
        return no("it has no links that could be slow, lose or part");
    }
    let stops = |fault: &Fault| match fault {
        Fault::Outage(outage) => outage.window.until.is_none() || outage.memory == Memory::Whole,
        _ => false,
    };
    if !world.faults.iter().all(stops) {
        return no("a thread may halt or pause, and nothing else");
    }
    let actors = program.processes() + program.others().len();
    if let Some(node) = world.nodes_named().find(|&node| node as usize >= actors) {
        let last = actors - 1;
        return no(&format!("there is no {node}, only 0 to {last}"));
    }
    if let Arrivals::Script(items) = &world.arrivals {
        let asked = items
            .iter()
            .find(|(user, _)| *user as usize >= program.processes());
        if let Some((user, _)) = asked {
            return no(&format!("there is no process {user}"));
        }
    }
    match world.entries {
        0 => Err(LabError::new(
            "0 entries: there would be nothing to see; ask for at least 1",
        )),
        _ => Ok(()),
    }
}

struct Scheduler<'a> {
    stage: ThreadStage<'a>,
    world: &'a World,
    /// When each actor does what it does next; none where it has nothing to do.
    next: Vec<Option<Time>>,
    requests: Requests<'a>,
    halted: Vec<bool>,
    paused: Vec<bool>,
    speeds: Generator,
}

const EVENTS_PER_REPORT: u64 = 1 << 20;

impl<'a> Scheduler<'a> {
    fn new(program: &'a dyn Program, world: &'a World, keep_trace: bool) -> Scheduler<'a> {
        let stage = ThreadStage::new(program, keep_trace);
        let (users, actors) = (stage.shape.users, stage.locals.len());
        let mut scheduler = Scheduler {
            stage,
            world,
            next: vec![None; actors],
            requests: Requests::new(users, world),
            halted: vec![false; actors],
            paused: vec![false; actors],
            speeds: Generator::for_purpose(world.seed, 1),
        };
        for user in 0..users {
            scheduler.next[user] = scheduler.requests.next(user);
        }
        for actor in users..actors {
            scheduler.next[actor] = Some(Time::ZERO);
        }
        scheduler
    }

    fn play(&mut self, progress: fn(Progress)) -> Time {
        let processes = self.stage.shape.users as u64;
        let still_max = 1_000 + 1_000 * processes * processes;
        let (mut now, mut events, mut still) = (Time::ZERO, 0, 0);
        let mut stopped = None;
        while !self.is_over() {
            let Some((at, actor)) = self.earliest() else {
                break;
            };
            now = at;
            if self.is_down(now, actor) {
                continue;
            }
            if self.stage.program.is_delayed(actor, &self.stage.locals) {
                self.next[actor] = Some(now + self.pause());
            } else {
                let moves = self.moves();
                self.act(now, actor);
                still = if moves == self.moves() { still + 1 } else { 0 };
            }
            events += 1;
            if events == self.world.events_max {
                stopped = Some(format!("the run did not end within {events} events"));
                break;
            }
            if still > still_max {
                stopped = Some(format!("nobody got in or out for {still_max} steps"));
                break;
            }
            if u64::is_multiple_of(events, EVENTS_PER_REPORT) {
                let entries = self.stage.observer.measures.entries;
                progress(Progress { events, entries });
            }
        }
        self.stage.end(now, stopped.as_deref());
        now
    }

    fn moves(&self) -> u64 {
        let measures = &self.stage.observer.measures;
        measures.entries + measures.exits
    }

    /// Nobody has anything left to do but actors that serve for ever.
    fn is_over(&self) -> bool {
        let users = 0..self.stage.shape.users;
        users.into_iter().all(|user| self.next[user].is_none())
    }

    /// Who is next; of several at one time, one that the lot falls on.
    fn earliest(&mut self) -> Option<(Time, usize)> {
        let first = self.next.iter().filter_map(|next| *next).min()?;
        let ties = || (0..self.next.len()).filter(|&actor| self.next[actor] == Some(first));
        let lot = self.speeds.below(ties().count() as u64);
        let actor = ties().nth(lot as usize)?;
        Some((first, actor))
    }

    fn pause(&mut self) -> Time {
        // A step takes some time, so that a wait does not stand still.
        self.world.latency.draw(&mut self.speeds).max(Time(1))
    }

    /// Whether a fault keeps the actor from its step; then its next is planned, or there is none.
    fn is_down(&mut self, now: Time, actor: usize) -> bool {
        let outages = self.world.faults.iter().filter_map(|fault| match fault {
            Fault::Outage(outage) if outage.node as usize == actor => Some(&outage.window),
            _ => None,
        });
        let window = outages.into_iter().find(|window| window.contains(now));
        let node = NodeId(actor as u32);
        let Some(window) = window else {
            if std::mem::take(&mut self.paused[actor]) {
                self.stage
                    .record(now, || crate::trace::Event::Restart(node));
            }
            return false;
        };
        self.next[actor] = window.until;
        let crash = || crate::trace::Event::Crash(node, Memory::Whole);
        match window.until {
            None => {
                self.halted[actor] = true;
                self.stage.record(now, crash);
                if actor < self.stage.shape.users {
                    self.stage.observer.gone(now, UserId(actor as u32));
                }
            }
            Some(_) => {
                if !std::mem::replace(&mut self.paused[actor], true) {
                    self.stage.record(now, crash);
                }
            }
        }
        true
    }

    fn act(&mut self, now: Time, actor: usize) {
        let Local { region, .. } = self.stage.locals[actor];
        let mut room = 0;
        if region == Region::Remainder {
            room = self.requests.take(actor, now, self.stage.program.rooms());
        }
        let stepped = self.stage.step(now, actor, room);
        let local = self.stage.locals[actor];
        if stepped.ended {
            self.requests.ended(actor, now);
        }
        self.next[actor] = match (local.region, local.is_idle()) {
            (Region::Remainder, _) => {
                let next = self.requests.next(actor);
                next.map(|at| at.max(now + Time(1)))
            }
            (Region::Inside, true) => Some(now + self.requests.hold()),
            _ => Some(now + self.pause()),
        };
    }
}

/// What the observer of a run saw, and what was counted.
pub(super) fn report(
    (profile, problem): (&'static Profile, &'static str),
    (setup, world): (&Setup, &World),
    (observer, rooms): (&Observer, usize),
    accesses: AccessReport,
    end: Time,
) -> Report {
    let measures = &observer.measures;
    let unit = world.latency.mean();
    let time_unit = match unit {
        Time::ZERO => Time::UNIT,
        unit => unit.0,
    };
    let kinds = observer.kinds().iter().enumerate();
    let kinds = kinds.map(|(room, kind)| KindReport {
        kind: format!("room {room}"),
        entries: kind.entries,
        waiting_time: kind.waiting.in_units_of(unit),
        passed_max: kind.passed_max,
    });
    Report {
        algorithm: profile.name,
        problem,
        counted: testigo_protocol::Counted::ENTRIES,
        nodes: setup.users,
        seed: world.seed,
        entries: measures.entries,
        safe: observer.holds(Wrong::Safety),
        live: observer.holds(Wrong::Liveness),
        ordered: None,
        bounded: None,
        messages: 0,
        messages_per_entry: None,
        published_messages_per_entry: None,
        as_published: None,
        message_bytes: None,
        messages_by_kind: Default::default(),
        entry_delay: measures.entry_delay.in_units_of(unit),
        waiting_time: measures.waiting.in_units_of(unit),
        response_time: measures.response.in_units_of(unit),
        synchronisation_delay: measures.synchronisation.in_units_of(unit),
        overtakes_max: Some(measures.overtakes_max),
        rounds: Some(measures.rounds),
        messages_behind: None,
        switches: Some(measures.switches),
        inside_max: Some(measures.inside_max),
        kinds: match rooms {
            1 => Vec::new(),
            _ => kinds.collect(),
        },
        accesses: Some(accesses),
        well_formed: true,
        violations: observer
            .violations
            .iter()
            .map(|v| format!("{} at {}: {}", v.kind.word(), v.at, v.what))
            .collect(),
        time: end.0 as f64 / time_unit as f64,
    }
}

fn accesses(stage: &ThreadStage<'_>) -> AccessReport {
    let entries = stage.passages.len();
    let per = |total: u64| (entries > 0).then(|| total as f64 / entries as f64);
    let sum = |of: fn(&Passage) -> u64| per(stage.passages.iter().map(of).sum());
    let lone = || {
        let alone = stage
            .passages
            .iter()
            .filter(|passage| passage.interval == 1);
        alone.map(|passage| passage.accesses)
    };
    AccessReport {
        registers: stage.registers.len(),
        reads: stage.reads,
        writes: stage.writes,
        per_entry: sum(|passage| passage.accesses),
        remote_per_entry: sum(|passage| passage.remote),
        once_per_entry: sum(|passage| passage.once),
        behind_per_entry: per(stage.behind).filter(|_| stage.locals.len() > stage.shape.users),
        lone_min: lone().min(),
        lone_max: lone().max(),
    }
}
