//! Crashes of a node that keeps what its sessions have touched. Whoever was told that it is inside goes on believing so until
//! it resumes or its session ends, and nobody else may be told the same meanwhile; what nobody can hold is granted at
//! once. A node that keeps touches too late, not all of them, or only until the next start is found out.

use std::collections::{BTreeMap, BTreeSet};

use super::super::model::random::Random;
use super::{ask, next_start};
use testigo_core::monitor::{nobody_waits_needlessly, together};
use testigo_core::*;

/// What a specimen does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Flaw {
    None,
    /// Tells the grant, then keeps the touch.
    TellsFirst,
    /// Keeps nearly all touches.
    Forgets,
    /// Begins the next start's record without those who are still awaited.
    BeginsEmpty,
}

/// A node, the record that a crash leaves, and what its clients believe.
struct World {
    random: Random,
    flaw: Flaw,
    limits: Limits,
    replicated: Replicated,
    local: Local,
    now: u64,
    events: Vec<Event>,
    kept: Vec<Touch>,
    names: Vec<Name>,
    sessions: Vec<SessionId>,
    opened: u64,
    believed: BTreeMap<(Name, SessionId), (Mode, Fence)>,
    /// Where each session was ever granted something, told or not.
    entered: BTreeSet<(SessionId, Shard)>,
    granted_in_recovery: usize,
}

impl World {
    fn new(seed: u64, flaw: Flaw) -> World {
        let mut random = Random::new(seed);
        let mut limits = Limits::default();
        if random.one_in(2) {
            limits.touched_shards_per_session = 1 + random.below(4) as usize;
            limits.touched_shards = random.pick(&[2, 5, 500]);
        }
        let mut replicated = Replicated::new(limits.clone());
        let start = next_start(&replicated);
        let _ = replicated.apply(0, &start).unwrap();
        let mut local = Local::start(0, limits.clone(), seed, &replicated, None);
        local.observe(true);
        let mut world = World {
            random,
            flaw,
            limits,
            replicated,
            local,
            now: 0,
            events: Vec::new(),
            kept: Vec::new(),
            names: names(),
            sessions: Vec::new(),
            opened: 0,
            believed: BTreeMap::new(),
            entered: BTreeSet::new(),
            granted_in_recovery: 0,
        };
        for _ in 0..2 + world.random.below(5) {
            world.open();
        }
        world
    }

    fn open(&mut self) {
        let session = SessionId::opened(self.opened);
        self.opened += 1;
        self.sessions.push(session);
        self.log(&Change::OpenSession {
            session,
            ttl_ms: 60_000,
            label: None,
            user: None,
        });
    }

    fn log(&mut self, change: &Change) {
        let applied = self.replicated.apply(self.now, change).unwrap();
        let events = &mut self.events;
        self.local
            .follow(self.now, &self.replicated, &applied, events);
    }

    /// One command, resume or end of a session, and perhaps a crash: before, between or after keeping and telling.
    fn step(&mut self) -> Result<(), String> {
        self.now += self.random.below(5);
        let session = self.random.pick(&self.sessions);
        let awaited = self.local.session_view(session).unwrap().awaited;
        match self.random.below(20) {
            0 => {
                // It has run out: whoever it was stopped before.
                self.believed.retain(|(_, holder), _| *holder != session);
                self.sessions.retain(|other| *other != session);
                let home = self.replicated.session(session).unwrap().home.index;
                self.log(&Change::CloseSession { session, home });
                self.open();
            }
            1..=4 if awaited => self.resume(session),
            _ => self.command(session)?,
        }
        let stage = match self.random.one_in(15) {
            true => self.random.below(3),
            false => 3,
        };
        let events = std::mem::take(&mut self.events);
        for event in &events {
            if let Event::Entered { session, gate, .. } = event {
                self.entered.insert((*session, Shard::of(gate)));
            }
        }
        let tells_first = self.flaw == Flaw::TellsFirst;
        if stage > 0 {
            match tells_first {
                true => self.tell(&events)?,
                false => self.keep(&events),
            }
        }
        if stage > 1 {
            match tells_first {
                true => self.keep(&events),
                false => self.tell(&events)?,
            }
        }
        match stage {
            3 => self.look(),
            _ => {
                let image = match self.random.one_in(6) && stage == 2 {
                    true => self.local.image(self.now),
                    false => None,
                };
                self.restart(image);
                Ok(())
            }
        }
    }

    fn command(&mut self, session: SessionId) -> Result<(), String> {
        let gates = [self.any_name(), self.any_name()];
        let gate = &gates[0];
        let asks = [Ask::Plain, Ask::Plain, Ask::Shared];
        let wait_ms = self.random.pick(&[Some(0), Some(0), Some(20)]);
        let set = [0, 1].map(|at: usize| (&*gates[at], Ask::Plain));
        let command = match self.random.below(10) {
            0..=4 => Command::Lock(Lock {
                gate,
                ask: self.random.pick(&asks),
                wait_ms,
                asynchronous: true,
                ..Lock::default()
            }),
            5 => Command::LockAll(LockAll {
                gates: (&set).into(),
                wait_ms,
                asynchronous: true,
                ..LockAll::default()
            }),
            6 => Command::Downgrade { gate },
            _ => Command::Unlock { gate, fence: None },
        };
        let awaited = self.local.session_view(session).unwrap().awaited;
        let gives_back = matches!(command, Command::Unlock { .. });
        if gives_back && !awaited {
            // Whoever sends it uses the gate no longer, whatever becomes of the answer.
            self.believed.remove(&(gate.clone(), session));
        }
        let refused = self.apply(session, &command).err();
        let unavailable = refused.is_some_and(|refusal| refusal.word == Word::Unavailable);
        if unavailable && !awaited {
            self.check_awaited(gates.iter())?;
        }
        self.local.tick(self.now, &mut self.events);
        Ok(())
    }

    fn apply(&mut self, session: SessionId, command: &Command<'_>) -> Result<Answer, Refusal> {
        let (now, events) = (self.now, &mut self.events);
        self.local
            .apply(now, &self.replicated, session, command, events)
    }

    /// Somebody was kept from a gate by the recovery: by sessions that were granted something there, and no others.
    fn check_awaited<'a>(&self, gates: impl Iterator<Item = &'a Name>) -> Result<(), String> {
        let mut somebody = false;
        for gate in gates {
            for session in self.local.awaited_at(gate) {
                somebody = true;
                let precise = self.limits == Limits::default();
                if precise && !self.entered.contains(&(session, Shard::of(gate))) {
                    return Err(format!("{gate} awaits {session}, which never was inside"));
                }
            }
        }
        match somebody {
            true => Ok(()),
            false => Err("a gate that awaits nobody does not grant".into()),
        }
    }

    fn any_name(&mut self) -> Name {
        let at = self.random.below(self.names.len() as u64) as usize;
        self.names[at].clone()
    }

    /// A client is back, with what it believes to hold.
    fn resume(&mut self, session: SessionId) {
        let believed = self.believed.iter();
        let mine: Vec<(Name, Mode, Fence)> = believed
            .filter(|((_, holder), _)| *holder == session)
            .map(|((gate, _), (mode, fence))| (gate.clone(), mode.clone(), *fence))
            .collect();
        let claims = mine.iter().map(|(gate, mode, fence)| Claim {
            gate,
            fence: *fence,
            ask: ask(mode),
            proven: true,
            ..Claim::default()
        });
        let claims = claims.collect();
        let resumed = match self.apply(session, &Command::Resume { claims }) {
            Ok(Answer::Resumed(resumed)) => resumed,
            other => panic!("{other:?}"),
        };
        for (end, (gate, ..)) in resumed.claims.iter().zip(&mine) {
            if *end != ClaimEnd::Held {
                self.believed.remove(&(gate.clone(), session));
            }
        }
    }

    fn keep(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Touched(touch) = event
                && !(self.flaw == Flaw::Forgets && self.random.one_in(10))
            {
                self.kept.push(*touch);
            }
        }
    }

    fn tell(&mut self, events: &[Event]) -> Result<(), String> {
        for event in events {
            match event {
                Event::SessionEnded { session } => {
                    self.believed.retain(|(_, holder), _| holder != session);
                }
                Event::Lost { session, gate, .. } => {
                    self.believed.remove(&(gate.clone(), *session));
                }
                Event::Entered {
                    session,
                    gate,
                    mode,
                    fence,
                    turn,
                    ..
                } if !matches!(turn, Turn::Claimed { .. }) => {
                    self.granted_in_recovery += usize::from(self.local.recovering());
                    let believes = (mode.clone(), *fence);
                    self.believed.insert((gate.clone(), *session), believes);
                    let inside = self.believed.iter();
                    let inside = inside.filter(|((at, _), _)| at == gate);
                    let modes: Vec<&Mode> = inside.map(|(_, (mode, _))| mode).collect();
                    if !together(&Definition::new(Rule::Shared), &modes) {
                        return Err(format!("two are inside {gate}: {:#?}", self.believed));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn look(&self) -> Result<(), String> {
        let names = self.local.list().into_iter();
        let views: Vec<GateView> = names
            .map(|gate| self.local.gate(&gate.name).unwrap())
            .collect();
        nobody_waits_needlessly(&views, self.now)
    }

    fn restart(&mut self, image: Option<Image>) {
        let start = next_start(&self.replicated);
        let _ = self.replicated.apply(self.now, &start).unwrap();
        let clean = image.is_some();
        let left = (image, Some(self.kept.iter().copied().collect()));
        let limits = self.limits.clone();
        self.local = Local::start_after(self.now, limits, 0, &self.replicated, left);
        self.local.observe(true);
        self.kept = match self.flaw {
            Flaw::BeginsEmpty => Vec::new(),
            _ => self.local.touches().collect(),
        };
        if clean {
            // As if nothing had happened: every client goes on.
            for session in self.sessions.clone() {
                self.resume(session);
            }
        }
    }
}

/// Some names, two of them of one shard.
fn names() -> Vec<Name> {
    let mut names: Vec<Name> = (0..6).map(super::name).collect();
    names.push(Name::new("other85845").unwrap());
    assert_eq!(Shard::of(&names[6]), Shard::of(&names[0]));
    names
}

/// Says how many grants were told while somebody was awaited.
fn run(seed: u64, flaw: Flaw) -> Result<usize, String> {
    let mut world = World::new(seed, flaw);
    for _ in 0..150 {
        world.step()?;
    }
    Ok(world.granted_in_recovery)
}

#[test]
fn after_a_crash_nobody_is_let_in_beside_a_holder_that_is_not_back_yet() {
    let mut granted = 0;
    for seed in 0..2_000 {
        granted += run(seed, Flaw::None).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
    assert!(granted > 2_000, "only {granted} grants during a recovery");
}

#[test]
fn touches_kept_too_late_or_forgotten_are_found_out() {
    for flaw in [Flaw::TellsFirst, Flaw::Forgets, Flaw::BeginsEmpty] {
        let broken = (0..2_000).find_map(|seed| run(seed, flaw).err());
        let broken = broken.unwrap_or_else(|| panic!("{flaw:?} was not found out"));
        assert!(broken.starts_with("two are inside"), "{flaw:?}: {broken}");
    }
}
