//! Senseless and hostile input: nothing panics, a refusal changes nothing, and no limit is passed.

use super::door::Door;
use super::model::random::Random;
use testigo_core::monitor::{Monitors, nobody_waits_needlessly};
use testigo_core::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "ä"];
const WORDS: [&str; 5] = ["", "two words", "\u{0}", "*?", "\u{202e}"];
const NUMBERS: [u64; 7] = [0, 1, 2, 3, 100, u64::MAX - 1, u64::MAX];

fn small() -> Limits {
    Limits {
        gates: 6,
        sessions: 5,
        waiters_per_gate: 2,
        waiters: 4,
        waits_per_session: 2,
        holds_per_session: 4,
        holds: 8,
        set_size: 3,
        permits: 3,
        ids_per_session: 2,
        once_keys: 2,
        ..Limits::default()
    }
}

pub(super) struct Chaos {
    random: Random,
    pub(super) door: Door,
    replicated: Replicated,
    local: Local,
    monitors: Monitors,
    events: Vec<Event>,
    long: String,
    now: u64,
    done: u64,
    refused: u64,
}

impl Chaos {
    pub(super) fn new(seed: u64, door: Door) -> Chaos {
        let mut replicated = Replicated::new(small());
        let _ = replicated.apply(0, &next_start(&replicated)).unwrap();
        let mut local = Local::start(0, small(), seed, &replicated, None);
        local.observe(true);
        Chaos {
            random: Random::new(seed),
            door,
            replicated,
            local,
            monitors: Monitors::default(),
            events: Vec::new(),
            long: "x".repeat(2_000),
            now: 0,
            done: 0,
            refused: 0,
        }
    }

    fn word(&mut self) -> String {
        match self.random.below(40) {
            0 => self.long.clone(),
            1..=4 => self.random.pick(&WORDS).to_owned(),
            _ => self.random.pick(&NAMES).to_owned(),
        }
    }

    fn number(&mut self) -> u64 {
        self.random.pick(&NUMBERS)
    }

    fn maybe(&mut self) -> Option<u64> {
        self.random.one_in(8).then(|| self.number())
    }

    fn session(&mut self) -> SessionId {
        let number = self.random.below(4);
        match self.random.one_in(3) {
            true => SessionId::implicit(number),
            false => SessionId::opened(number),
        }
    }

    fn fence(&mut self) -> Fence {
        let number = self.replicated.ownership().highest();
        let number = self
            .random
            .pick(&[number, Number(number.0 - 1), Number(0), Number::MAX]);
        Fence(number.floor().0 + self.random.below(6))
    }

    pub(super) fn step(&mut self) {
        self.now += self.random.pick(&[0, 0, 1, 5, 50, 500]);
        // Sometimes the clock steps back.
        let now = self
            .random
            .pick(&[self.now, self.now, self.now, self.now / 2]);
        match self.random.below(12) {
            0 => self.change(now),
            1 => {
                let session = self.session();
                let _ = self.apply(now, session, &Command::Connect);
            }
            2 => {
                let session = self.session();
                let _ = self.apply(now, session, &Command::Disconnect);
            }
            3 => self.resume(now),
            4 if self.random.one_in(5) => self.restart(self.now),
            _ => self.command(now),
        }
        self.local.tick(self.now, &mut self.events);
        let run_out: Vec<SessionId> = self
            .events
            .iter()
            .filter_map(|event| match event {
                Event::RunOut { session } => Some(*session),
                _ => None,
            })
            .collect();
        for session in run_out {
            let close = close(&self.replicated, session);
            self.log(now, &close);
        }
        self.check();
    }

    fn check(&mut self) {
        if let Err(broken) = self.monitors.saw(&self.events) {
            panic!("{broken}\nin {:#?}", self.events);
        }
        self.events.clear();
        let [gates, sessions, holds, waits] = self.local.sizes();
        let most = small();
        assert!(gates <= most.gates + most.gates && sessions <= most.sessions + most.sessions);
        // Proven claims count only among themselves: what they claim was within the limit before the crash.
        assert!(holds <= most.holds + most.holds && waits <= most.waiters);
        if !self.local.recovering() {
            nobody_waits_needlessly(&self.views(), self.now).unwrap();
        }
    }

    fn views(&self) -> Vec<GateView> {
        let names = self.local.list().into_iter();
        names
            .map(|gate| self.local.gate(&gate.name).unwrap())
            .collect()
    }

    fn log(&mut self, now: u64, change: &Change) {
        if let Ok(applied) = self.replicated.apply(now, change) {
            if let Outcome::GateCreated { gate, definition } = applied.outcome() {
                self.monitors.define(gate.clone(), definition.clone());
            }
            self.local
                .follow(now, &self.replicated, &applied, &mut self.events);
        }
    }

    fn change(&mut self, now: u64) {
        let (word, session) = (self.word(), self.session());
        let Ok(gate) = Name::new(&word) else {
            return;
        };
        let (ttl_ms, definition) = (
            self.random.pick(&[0, 1_000, 5_000, 10_000]),
            self.random.definition(),
        );
        let change = match self.random.below(8) {
            0 | 1 => Change::CreateGate {
                number: self.replicated.gate_number(&gate),
                gate,
                definition,
            },
            2 => Change::DeleteGate {
                number: self.replicated.gate_number(&gate),
                gate,
            },
            3..=6 => Change::OpenSession {
                session,
                ttl_ms,
                label: None,
                user: None,
            },
            _ => close(&self.replicated, session),
        };
        // A created gate is not watched while its forerunner is used under another rule.
        if self.local.check(&change).is_ok() {
            self.log(now, &change);
        }
    }

    fn resume(&mut self, now: u64) {
        let session = self.session();
        let words = [self.word(), self.word()];
        let fences = [self.fence(), self.fence()];
        let asks = [self.ask("r"), self.ask("s")];
        let proven = [self.random.one_in(2), self.random.one_in(2)];
        let claims: Vec<Claim<'_>> = (0..self.random.below(3) as usize)
            .map(|at| Claim {
                gate: &words[at],
                fence: fences[at],
                ask: asks[at],
                proven: proven[at],
                ..Claim::default()
            })
            .collect();
        let claims = claims.into();
        let _ = self.apply(now, session, &Command::Resume { claims });
    }

    /// Somebody says this, whatever it is.
    pub(super) fn obey(&mut self, command: &Command<'_>) {
        let session = self.session();
        self.local.tick(self.now, &mut self.events);
        let _ = self.apply(self.now, session, command);
        self.check();
    }

    fn apply(
        &mut self,
        now: u64,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let halves = (&mut self.local, &self.replicated);
        let events = &mut self.events;
        self.door.apply(halves, now, session, command, events)
    }

    fn restart(&mut self, now: u64) {
        let image = self
            .random
            .one_in(2)
            .then(|| self.local.image(now))
            .flatten();
        let view = next_start(&self.replicated);
        let _ = self.replicated.apply(now, &view).unwrap();
        self.check();
        self.local = Local::start(now, small(), 0, &self.replicated, image.clone());
        self.local.observe(true);
        // What was restored is not told again, so from here on only a node that begins empty is watched from its start.
        self.monitors = Monitors::default();
        for (gate, definition) in self.replicated.gates() {
            self.monitors.define(gate.clone(), definition.clone());
        }
        if image.is_some() {
            self.local.observe(false);
        }
    }

    fn ask<'a>(&mut self, room: &'a str) -> Ask<'a> {
        let h = self.number() as u32;
        self.random.pick(&[
            Ask::Plain,
            Ask::Plain,
            Ask::Plain,
            Ask::Shared,
            Ask::Permits(h),
            Ask::Room(room),
        ])
    }

    fn command(&mut self, now: u64) {
        let session = self.session();
        if self.random.one_in(2) {
            let _ = self.apply(now, session, &Command::Connect);
        }
        let (gate, other, room) = (self.word(), self.word(), self.word());
        let gates = [
            (gate.as_str(), self.ask("r")),
            (other.as_str(), self.ask("r")),
        ];
        let text = self.word();
        let command = match self.random.below(8) {
            0..=2 => Command::Lock(Lock {
                gate: &gate,
                ask: self.ask(&room),
                needs_ms: self.maybe(),
                class: self.maybe().map(|class| class as u32),
                wait_ms: self.maybe(),
                reason: self.random.one_in(4).then_some(text.as_str()),
                id: self.random.one_in(4).then_some(text.as_str()),
                asynchronous: self.random.one_in(2),
            }),
            3 => Command::LockAll(LockAll {
                gates: gates[..self.random.below(3) as usize].into(),
                wait_ms: self.maybe(),
                ..LockAll::default()
            }),
            4 | 5 => {
                let fence = self.random.one_in(2).then(|| self.fence());
                Command::Unlock { gate: &gate, fence }
            }
            6 => Command::Downgrade { gate: &gate },
            _ => Command::Cancel {
                ticket: Ticket(self.number()),
            },
        };
        self.local.tick(now, &mut self.events);
        let before = (self.views(), self.local.sizes(), self.events.len());
        match self.apply(now, session, &command) {
            Ok(_) => self.done += 1,
            Err(refusal) => {
                let after = (self.views(), self.local.sizes(), self.events.len());
                assert_eq!(after, before, "{command:?} was refused: {refusal}");
                assert!(!refusal.sentence.is_empty() && refusal.sentence.len() < 5_000);
                self.refused += 1;
            }
        }
    }
}

/// The view of the next start of node 1.
fn next_start(replicated: &Replicated) -> Change {
    let members = replicated.view().members.iter();
    let last = members.map(|member| member.start.0).max();
    replicated.view_alone(NodeId(1), Start(last.unwrap_or(0) + 1), 0)
}

fn close(replicated: &Replicated, session: SessionId) -> Change {
    let record = replicated.session(session);
    let home = record.map(|record| record.home.index).unwrap_or_default();
    Change::CloseSession { session, home }
}

#[test]
fn nothing_panics_and_a_refusal_changes_nothing() {
    let (mut done, mut refused) = (0, 0);
    for seed in 0..3_000 {
        let mut chaos = Chaos::new(seed, Door::default());
        for _ in 0..100 {
            chaos.step();
        }
        done += chaos.done;
        refused += chaos.refused;
    }
    assert!(done > 10_000 && refused > 10_000, "{done} {refused}");
}
