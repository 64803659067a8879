//! Random commands against the naive model, for all rules and orders at once: the same answers, the same fences, the same
//! holders and waiters in the same order after every step, and all monitors content.

use super::door::Door;
use super::model::random::Random;
use super::model::{Flaw, Holder, Leg, Model, Said, Told, Waiter, id, name};
use testigo_core::monitor::{Monitors, nobody_waits_needlessly};
use testigo_core::*;

/// The real thing and the model side by side.
pub(super) struct Pair {
    random: Random,
    pub(super) door: Door,
    replicated: Replicated,
    local: Local,
    model: Model,
    monitors: Monitors,
    names: Vec<Name>,
    sessions: usize,
    now: u64,
    events: Vec<Event>,
    tally: Tally,
}

/// What the schedules have shown, so that silence is not taken for agreement.
#[derive(Debug, Default)]
struct Tally {
    deadlocks: u64,
    through_doors: u64,
    past_dependents: u64,
    sets: u64,
    losses: u64,
    wanted: u64,
    overtaken: u64,
}

/// Where fences begin.
const FLOOR: u64 = (Number::FIRST.0 as u64) << Fence::COUNT_BITS;

impl Pair {
    pub(super) fn new(seed: u64, door: Door) -> Pair {
        let mut random = Random::new(seed);
        let gates = 1 + random.below(4);
        Pair::of(random, seed, door, gates, 2)
    }

    /// With so many gates, and at least so many sessions.
    fn of(mut random: Random, seed: u64, door: Door, gates: u64, sessions: u64) -> Pair {
        let limits = Limits::default();
        let mut replicated = Replicated::new(limits.clone());
        let view = replicated.view_alone(NodeId(1), Start(1), 0);
        let _ = replicated.apply(0, &view).unwrap();
        let mut monitors = Monitors::default();
        let mut definitions = Vec::new();
        let mut names = Vec::new();
        for number in 0..gates {
            let (gate, definition) = (name(number as usize), random.definition());
            monitors.define(gate.clone(), definition.clone());
            definitions.push(definition.clone());
            names.push(gate.clone());
            let create = Change::CreateGate {
                number: replicated.gate_number(&gate),
                gate,
                definition,
            };
            let _ = replicated.apply(0, &create).unwrap();
        }
        let mut local = Local::start(0, limits, seed, &replicated, None);
        local.observe(true);
        let sessions = (sessions + random.below(6)) as usize;
        let mut pair = Pair {
            random,
            door,
            replicated,
            local,
            model: Model::new(definitions, Flaw::None),
            monitors,
            names,
            sessions,
            now: 0,
            events: Vec::new(),
            tally: Tally::default(),
        };
        for session in 0..sessions {
            pair.apply(session, &Command::Connect);
        }
        pair
    }

    pub(super) fn step(&mut self) -> String {
        let session = self.random.below(self.sessions as u64) as usize;
        let gate = self.random.below(self.names.len() as u64) as usize;
        let (what, said, answer) = match self.random.below(20) {
            // Whoever is blocked in a call says nothing.
            0..=8 | 15 if self.model.blocked(session) => (String::new(), Said::Done, Said::Done),
            0..=8 => self.request(session),
            9..=14 => {
                let free = |h: &&Holder| !self.model.blocked(h.session);
                let holds: Vec<(usize, usize)> = self
                    .model
                    .holders
                    .iter()
                    .filter(free)
                    .map(|h| (h.session, h.gate))
                    .collect();
                let (session, gate) = match holds.is_empty() {
                    true => (session, gate),
                    false => self.random.pick(&holds),
                };
                let name = self.names[gate].clone();
                let answer = self.apply(
                    session,
                    &Command::Unlock {
                        gate: &name,
                        fence: None,
                    },
                );
                (
                    format!("{session} UNLOCK {gate}"),
                    self.model.unlock(session, gate),
                    answer,
                )
            }
            15 if self.model.gates[gate].rule == Rule::Shared => {
                let name = self.names[gate].clone();
                let answer = self.apply(session, &Command::Downgrade { gate: &name });
                (
                    format!("{session} DOWNGRADE {gate}"),
                    self.model.downgrade(session, gate),
                    answer,
                )
            }
            16 => {
                let views: Vec<GateView> = self.views();
                let waiters = views.iter().flat_map(|view| &view.waiters);
                let mine = waiters.filter(|waiter| waiter.session == id(session));
                let ticket = mine.map(|waiter| waiter.ticket).min();
                let answer = match ticket {
                    None => Said::NotHeld,
                    Some(ticket) => self.apply(session, &Command::Cancel { ticket }),
                };
                (
                    format!("{session} CANCEL"),
                    self.model.cancel(session),
                    answer,
                )
            }
            17 => {
                self.apply(session, &Command::Disconnect);
                self.apply(session, &Command::Connect);
                self.model.end(session);
                (format!("{session} gone"), Said::Done, Said::Done)
            }
            _ => {
                self.now += self.random.below(8);
                self.local.tick(self.now, &mut self.events);
                self.model.tick(self.now);
                (format!("time {}", self.now), Said::Done, Said::Done)
            }
        };
        assert_eq!(answer, said, "{what}");
        what
    }

    fn request(&mut self, session: usize) -> (String, Said, Said) {
        let set = self.names.len() > 1 && self.random.one_in(3);
        let mut gates: Vec<usize> = (0..self.names.len()).collect();
        let size = match set {
            true => 1 + self.random.below(self.names.len() as u64) as usize,
            false => 1,
        };
        while gates.len() > size {
            let out = self.random.below(gates.len() as u64) as usize;
            gates.swap_remove(out);
        }
        let legs: Vec<Leg> = gates.iter().map(|gate| self.leg(*gate, set)).collect();
        let definition = &self.model.gates[legs[0].gate];
        let longest = [definition.stay_ms, definition.lease_ms]
            .into_iter()
            .flatten()
            .min();
        let rooms = !set && definition.rule == Rule::Rooms;
        let needs_ms =
            (rooms && self.random.one_in(3)).then(|| 1 + self.random.below(longest.unwrap_or(9)));
        let wait_ms = self.random.pick(&[0, 5, 20, 1000, 1000]);
        let asynchronous = self.random.one_in(4);
        let names: Vec<Name> = legs
            .iter()
            .map(|leg| self.names[leg.gate].clone())
            .collect();
        let asks: Vec<(&str, Ask<'_>)> = names
            .iter()
            .zip(&legs)
            .map(|(name, leg)| (&**name, ask(&leg.mode)))
            .collect();
        let answer = match set {
            true => self.apply(
                session,
                &Command::LockAll(LockAll {
                    gates: asks.as_slice().into(),
                    wait_ms: Some(wait_ms),
                    asynchronous,
                    ..LockAll::default()
                }),
            ),
            false => self.apply(
                session,
                &Command::Lock(Lock {
                    gate: asks[0].0,
                    ask: asks[0].1,
                    class: Some(legs[0].class),
                    needs_ms,
                    wait_ms: Some(wait_ms),
                    asynchronous,
                    ..Lock::default()
                }),
            ),
        };
        let what = format!(
            "{session} asks {asks:?} set {set} wait {wait_ms} async {asynchronous} needs {needs_ms:?}"
        );
        let request = Waiter {
            session,
            arrival: 0,
            legs,
            set,
            needs_ms,
            deadline: 0,
            asynchronous,
        };
        (what, self.model.request(request, wait_ms), answer)
    }

    fn leg(&mut self, gate: usize, set: bool) -> Leg {
        let definition = self.model.gates[gate].clone();
        let mode = match definition.rule {
            Rule::Mutex => Mode::Exclusive,
            Rule::Election => unreachable!("elections have a model of their own"),
            Rule::Shared if self.random.one_in(3) => Mode::Exclusive,
            Rule::Shared => Mode::Shared,
            Rule::Permits(k) => Mode::Permits(1 + self.random.below(u64::from(k)) as u32),
            Rule::Rooms => {
                Mode::Room(Name::new(self.random.pick(&["red", "blue", "green"])).unwrap())
            }
        };
        let class = match set {
            true => definition.class_default(),
            false => self.random.below(u64::from(definition.classes)) as u32,
        };
        Leg {
            gate,
            mode,
            class,
            overtaken: 0,
        }
    }

    fn apply(&mut self, session: usize, command: &Command<'_>) -> Said {
        let halves = (&mut self.local, &self.replicated);
        let (now, events) = (self.now, &mut self.events);
        match self.door.apply(halves, now, id(session), command, events) {
            Ok(Answer::Settled(Settled::Ended(_))) => Said::NotNow,
            Ok(Answer::Settled(settled)) => Said::Entered(fences(&settled)),
            Ok(Answer::Waiting(_)) => Said::Waits,
            Ok(Answer::Downgraded(fence)) => Said::Entered(vec![fence.0 - FLOOR]),
            Ok(_) => Said::Done,
            Err(refusal) => match refusal.word {
                Word::Deadlock => {
                    self.check_cycle(&refusal);
                    self.tally.deadlocks += 1;
                    Said::Deadlock
                }
                Word::Held => Said::Held,
                Word::Busy => Said::Busy,
                Word::NotHeld => Said::NotHeld,
                _ => panic!("{refusal}"),
            },
        }
    }

    /// A named cycle is one: every link but the asker's own is a wait that others can see.
    fn check_cycle(&self, refusal: &Refusal) {
        assert!(refusal.cycle.len() >= 2, "{refusal}");
        let views = self.views();
        let seen = refusal.cycle.iter().filter(|link| {
            let gate = views.iter().find(|view| view.name == link.gate).unwrap();
            gate.waiters
                .iter()
                .any(|waiter| waiter.session == link.session)
        });
        assert!(seen.count() + 1 >= refusal.cycle.len(), "{refusal}");
    }

    fn views(&self) -> Vec<GateView> {
        self.names
            .iter()
            .map(|name| self.local.gate(name).unwrap())
            .collect()
    }

    /// What was told, and everything that can be seen, is as the model says.
    pub(super) fn compare(&mut self) {
        let told: Vec<Told> = self
            .events
            .iter()
            .filter_map(|event| self.told(event))
            .collect();
        assert_eq!(told, std::mem::take(&mut self.model.told));
        if let Err(broken) = self.monitors.saw(&self.events) {
            panic!("{broken}\nin {:#?}", self.events);
        }
        for event in self.events.drain(..) {
            self.tally.count(&event);
        }
        let views = self.views();
        nobody_waits_needlessly(&views, self.now).unwrap();
        for (gate, view) in views.iter().enumerate() {
            let inside: Vec<_> = view
                .holders
                .iter()
                .map(|h| {
                    (
                        h.session,
                        h.mode.clone(),
                        h.fence.0 - FLOOR,
                        h.until,
                        h.leads,
                    )
                })
                .collect();
            let expected: Vec<_> = self
                .model
                .inside(gate)
                .map(|h| (id(h.session), h.mode.clone(), h.fence, h.until, h.leads))
                .collect();
            assert_eq!(inside, expected, "inside {gate}");
            let waiting: Vec<_> = view
                .waiters
                .iter()
                .map(|w| (w.session, w.mode.clone(), w.class, w.overtaken, w.until))
                .collect();
            let order = self.model.order(gate);
            let expected: Vec<_> = order
                .iter()
                .map(|w| (w, w.leg(gate).unwrap()))
                .map(|(w, leg)| {
                    (
                        id(w.session),
                        leg.mode.clone(),
                        leg.class,
                        leg.overtaken,
                        w.deadline,
                    )
                })
                .collect();
            assert_eq!(waiting, expected, "waiting at {gate}");
            let overtaken = view.waiters.iter().map(|w| u64::from(w.overtaken));
            self.tally.overtaken = overtaken.chain([self.tally.overtaken]).max().unwrap_or(0);
            let blocked = order
                .iter()
                .any(|w| !self.model.may_enter_at(gate, w.arrival));
            assert!(
                !blocked || view.holders.iter().all(|h| h.told),
                "untold at {gate}"
            );
        }
    }

    fn told(&self, event: &Event) -> Option<Told> {
        Some(match event {
            Event::Settled {
                session, settled, ..
            } => {
                let session = number(*session);
                match settled {
                    Settled::Ended(WaitEnd::TimedOut) => Told::TimedOut { session },
                    Settled::Ended(WaitEnd::Cancelled) => Told::Cancelled { session },
                    Settled::Ended(WaitEnd::SessionEnded) => return None,
                    entered => Told::Entered {
                        session,
                        fences: fences(entered),
                    },
                }
            }
            Event::Lost { session, gate, .. } => Told::Lost {
                session: number(*session),
                gate: self.names.iter().position(|name| name == gate).unwrap(),
            },
            _ => return None,
        })
    }
}

impl Tally {
    fn count(&mut self, event: &Event) {
        match event {
            Event::Entered {
                turn: Turn::Door, ..
            } => self.through_doors += 1,
            Event::Entered {
                turn: Turn::Dependents,
                ..
            } => self.past_dependents += 1,
            Event::Entered { together, .. } if *together > 1 => self.sets += 1,
            Event::Lost { .. } => self.losses += 1,
            Event::Wanted { .. } => self.wanted += 1,
            _ => {}
        }
    }

    fn add(&mut self, other: Tally) {
        self.deadlocks += other.deadlocks;
        self.through_doors += other.through_doors;
        self.past_dependents += other.past_dependents;
        self.sets += other.sets;
        self.losses += other.losses;
        self.wanted += other.wanted;
        self.overtaken = self.overtaken.max(other.overtaken);
    }
}

fn number(id: SessionId) -> usize {
    (id.number() & 0xffff) as usize
}

fn ask(mode: &Mode) -> Ask<'_> {
    match mode {
        Mode::Exclusive => Ask::Plain,
        Mode::Shared => Ask::Shared,
        Mode::Permits(h) => Ask::Permits(*h),
        Mode::Room(room) => Ask::Room(room),
        Mode::Lead(of) => Ask::Lead {
            rank: of.rank,
            value: &of.value,
        },
    }
}

fn fences(settled: &Settled) -> Vec<u64> {
    match settled {
        Settled::Entered(grant) => vec![grant.fence.0 - FLOOR],
        Settled::EnteredAll(grants) => grants.iter().map(|grant| grant.fence.0 - FLOOR).collect(),
        Settled::Taken(_) | Settled::Ended(_) => Vec::new(),
    }
}

/// Runs one random schedule; a failure names the seed and shows the steps.
fn run(seed: u64, steps: usize) -> Tally {
    play(seed, Pair::new(seed, Door::default()), steps)
}

fn play(seed: u64, mut pair: Pair, steps: usize) -> Tally {
    let definitions = format!("{:?}", pair.model.gates);
    let mut history: Vec<String> = Vec::new();
    for _ in 0..steps {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let what = pair.step();
            pair.compare();
            what
        }));
        match outcome {
            Ok(what) => history.push(what),
            Err(_) => {
                let steps = history.join("\n");
                panic!("seed {seed} of {definitions}\n{steps}\nand then it failed, as said above");
            }
        }
    }
    pair.tally
}

#[test]
fn the_gates_do_what_the_model_says() {
    let mut tally = Tally::default();
    for seed in 0..6_000 {
        tally.add(run(seed, 60));
    }
    let rare = [tally.deadlocks, tally.past_dependents];
    let common = [tally.through_doors, tally.sets, tally.losses, tally.wanted];
    assert!(rare.iter().all(|count| *count > 50), "{tally:?}");
    assert!(common.iter().all(|count| *count > 1_000), "{tally:?}");
    assert_eq!(tally.overtaken, 5, "{tally:?}");
}

#[test]
fn long_schedules_do_too() {
    for seed in 1_000_000..1_000_040 {
        run(seed, 3_000);
    }
}

/// More gates and sessions than elsewhere, so that waits depend on each other in longer ways.
#[test]
fn a_wait_is_refused_exactly_if_the_model_finds_nobody_who_could_end_it() {
    let mut tally = Tally::default();
    for seed in 2_000_000..2_001_500 {
        let mut random = Random::new(seed);
        let gates = 3 + random.below(5);
        let pair = Pair::of(random, seed, Door::default(), gates, 6);
        tally.add(play(seed, pair, 120));
    }
    assert!(
        tally.deadlocks > 300 && tally.past_dependents > 300,
        "{tally:?}"
    );
}
