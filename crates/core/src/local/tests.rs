//! What scenarios cannot reach from outside: races with the log, the end of a number, bounds of inner tables.

use super::*;
use crate::command::{Lock, LockAll, Settled};
use crate::gate::{Ask, Rule};
use crate::ownership::{NodeId, Number, Span, Start};
use crate::replicated::Change;

pub(super) struct House {
    pub(super) replicated: Replicated,
    pub(super) local: Local,
    pub(super) out: Vec<Event>,
}

impl House {
    pub(super) fn new() -> House {
        let limits = Limits {
            wait_ms_max: 1_000_000,
            ..Limits::default()
        };
        House::within(limits)
    }

    pub(super) fn within(limits: Limits) -> House {
        let mut replicated = Replicated::new(limits.clone());
        let _ = replicated.apply(0, &next_start(&replicated)).unwrap();
        let local = Local::start(0, limits, 7, &replicated, None);
        House {
            replicated,
            local,
            out: Vec::new(),
        }
    }

    /// Logs a change without asking the local half first, as when things change between the two.
    pub(super) fn log(&mut self, change: Change) {
        let applied = self.replicated.apply(0, &change).unwrap();
        self.local
            .follow(0, &self.replicated, &applied, &mut self.out);
    }

    fn create(&mut self, gate: &str, rule: Rule) {
        let definition = Definition::new(rule);
        self.define(gate, definition);
    }

    pub(super) fn define(&mut self, gate: &str, definition: Definition) {
        self.log(Change::CreateGate {
            gate: Name::new(gate).unwrap(),
            definition,
            number: self.replicated.gate_number(gate),
        });
    }

    pub(super) fn say(
        &mut self,
        now: u64,
        session: u64,
        command: &Command<'_>,
    ) -> Result<Answer, Word> {
        let id = SessionId::implicit(session);
        if self.local.session(id).is_err() {
            self.ask(now, id, &Command::Connect).unwrap();
        }
        let answer = self.ask(now, id, command);
        answer.map_err(|refusal| refusal.word)
    }

    pub(super) fn ask(
        &mut self,
        now: u64,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let House {
            local, replicated, ..
        } = self;
        local.apply(now, replicated, session, command, &mut self.out)
    }

    fn lock(&mut self, session: u64, gate: &str, ask: Ask<'_>) -> Result<Answer, Word> {
        self.say(
            0,
            session,
            &Command::Lock(Lock {
                gate,
                ask,
                ..Lock::default()
            }),
        )
    }

    fn try_lock(&mut self, session: u64, gate: &str) -> Result<Answer, Word> {
        let wait_ms = Some(0);
        self.say(
            0,
            session,
            &Command::Lock(Lock {
                gate,
                wait_ms,
                ..Lock::default()
            }),
        )
    }

    fn unlock(&mut self, session: u64, gate: &str) -> Result<Answer, Word> {
        self.say(0, session, &Command::Unlock { gate, fence: None })
    }
}

/// The view of the next start of node 1.
fn next_start(replicated: &Replicated) -> Change {
    let members = replicated.view().members.iter();
    let last = members.map(|member| member.start.0).max();
    replicated.view_alone(NodeId(1), Start(last.unwrap_or(0) + 1), 0)
}

fn entered(answer: &Result<Answer, Word>) -> bool {
    matches!(answer, Ok(Answer::Settled(Settled::Entered(_))))
}

#[test]
fn a_gate_created_over_a_used_name_waits_until_that_is_idle() {
    let mut house = House::new();
    assert!(entered(&house.lock(1, "g", Ask::Plain)));
    house.create("g", Rule::Permits(2));
    assert!(house.local.gate("g").unwrap().implicit);
    assert_eq!(house.lock(2, "g", Ask::Plain), Err(Word::Busy));
    house.unlock(1, "g").unwrap();
    assert_eq!(
        house.local.gate("g").unwrap().definition.rule,
        Rule::Permits(2)
    );
    assert!(entered(&house.lock(2, "g", Ask::Permits(2))));
}

#[test]
fn a_gate_deleted_in_use_goes_when_it_is_idle() {
    let mut house = House::new();
    house.create("g", Rule::Permits(2));
    house.lock(1, "g", Ask::Permits(2)).unwrap();
    let deleted = Change::DeleteGate {
        gate: Name::new("g").unwrap(),
        number: house.replicated.gate_number("g"),
    };
    house.log(deleted.clone());
    assert!(house.local.gate("g").is_ok());
    house.unlock(1, "g").unwrap();
    assert_eq!(house.local.gate("g").unwrap_err().word, Word::NoGate);
    // Deleted and created again before it was idle: the new definition waits until the old gate is no longer used.
    house.create("g", Rule::Permits(2));
    house.lock(1, "g", Ask::Permits(2)).unwrap();
    house.log(deleted);
    house.create("g", Rule::Rooms);
    house.unlock(1, "g").unwrap();
    let view = house.local.gate("g").unwrap();
    assert_eq!((view.definition.rule, view.implicit), (Rule::Rooms, false));
}

/// The owner hands a gate's shard to itself.
fn hand_to_itself(house: &mut House, gate: &str) {
    let shard = Shard::of(gate);
    let title = house.replicated.ownership().title(shard).unwrap();
    house.log(Change::Titles {
        shards: vec![Span::of(shard, title.number)],
        taker: title.owner,
        start: title.start,
    });
}

#[test]
fn fences_run_low_early_and_the_next_number_goes_on() {
    let mut house = House::new();
    let (shard, other) = (Shard::of("g"), Shard::of("h"));
    assert_ne!(shard, other);
    house.local.fences.spend_nearly_half(shard);
    assert!(entered(&house.lock(1, "g", Ask::Plain)));
    assert!(house.out.contains(&Event::FencesLow { shard }));
    // The node was slow: the number is used up. Grants elsewhere continue, and those here wait.
    house.local.fences.spend_all(shard);
    assert!(entered(&house.try_lock(2, "h")));
    assert_eq!(house.try_lock(2, "g"), Err(Word::Unavailable));
    assert!(matches!(
        house.lock(2, "g", Ask::Plain),
        Ok(Answer::Waiting(_))
    ));
    house.unlock(1, "g").unwrap();
    let waits = |house: &House| house.local.gate("g").unwrap().waiters.len();
    assert_eq!(waits(&house), 1);
    hand_to_itself(&mut house, "g");
    assert_eq!(waits(&house), 0);
    let fence = house.local.gate("g").unwrap().holders[0].fence;
    assert_eq!(fence.number(), Number(Number::FIRST.0 + 1));
}

#[test]
fn a_set_waits_for_a_gate_whose_fences_are_used_up() {
    let mut house = House::new();
    assert!(entered(&house.lock(1, "h", Ask::Plain)));
    let gates = [("g", Ask::Plain), ("h", Ask::Plain)];
    let set = Command::LockAll(LockAll {
        gates: gates[..].into(),
        ..LockAll::default()
    });
    assert!(matches!(house.say(0, 2, &set), Ok(Answer::Waiting(_))));
    house.local.fences.spend_all(Shard::of("g"));
    house.unlock(1, "h").unwrap();
    let inside = |house: &House, gate| house.local.gate(gate).unwrap().holders.len();
    assert_eq!((inside(&house, "g"), inside(&house, "h")), (0, 0));
    hand_to_itself(&mut house, "g");
    assert_eq!((inside(&house, "g"), inside(&house, "h")), (1, 1));
}

#[test]
fn a_downgrade_that_takes_the_last_early_fence_asks_for_more() {
    let mut house = House::new();
    let shard = Shard::of("g");
    house.create("g", Rule::Shared);
    assert!(entered(&house.lock(1, "g", Ask::Plain)));
    house.local.fences.spend_nearly_half(shard);
    let downgrade = Command::Downgrade { gate: "g" };
    assert!(matches!(
        house.say(0, 1, &downgrade),
        Ok(Answer::Downgraded(_))
    ));
    assert!(house.out.contains(&Event::FencesLow { shard }));
}

#[test]
fn an_image_fits_the_next_number_of_every_shard() {
    let mut house = House::new();
    house.log(Change::OpenSession {
        session: SessionId::opened(1),
        ttl_ms: 10_000,
        label: None,
        user: None,
    });
    hand_to_itself(&mut house, "g");
    let image = house.local.image(0).unwrap();
    let replicated = house.replicated.clone();
    let restored = |replicated: &mut Replicated| {
        let _ = replicated.apply(0, &next_start(replicated)).unwrap();
        let image = Some(image.clone());
        let local = Local::start(0, Limits::default(), 7, replicated, image);
        !local.recovering()
    };
    assert!(restored(&mut house.replicated), "the next");
    assert!(!restored(&mut house.replicated), "the one after it");
    // One shard is enough: it was handed over after the image was made.
    house.replicated = replicated;
    hand_to_itself(&mut house, "g");
    assert!(!restored(&mut house.replicated));
}

#[test]
fn a_crowd_leaves_in_any_order() {
    let mut house = House::new();
    for session in 0..50 {
        assert!(entered(&house.lock(session, "g", Ask::Shared)));
        assert_eq!(house.lock(session, "g", Ask::Shared), Err(Word::Held));
    }
    assert_eq!(house.local.crowd.len(), 50 - CROWD as usize);
    for step in 0..50 {
        let session = step * 7 % 50;
        assert_eq!(house.unlock(session, "g"), Ok(Answer::Done));
        assert_eq!(house.unlock(session, "g"), Err(Word::NotHeld));
        // A session that enters a gate that is no longer crowded is found without the index.
        assert!(entered(&house.lock(100 + step, "h", Ask::Shared)));
        house.unlock(100 + step, "h").unwrap();
    }
    assert_eq!((house.local.crowd.len(), house.local.sizes()[2]), (0, 0));
}

#[test]
fn nobody_is_entangled_once_the_waits_are_over() {
    let mut house = House::new();
    assert!(entered(&house.lock(1, "g", Ask::Plain)));
    assert!(entered(&house.lock(2, "h", Ask::Plain)));
    assert!(matches!(
        house.lock(2, "g", Ask::Plain),
        Ok(Answer::Waiting(_))
    ));
    assert_eq!(house.local.entangled, 1);
    house.unlock(1, "g").unwrap();
    assert_eq!(house.local.entangled, 0);
}

#[test]
fn what_a_session_held_at_its_end_counts_as_given_back() {
    let mut house = House::new();
    for gate in ["g", "h", "i"] {
        assert!(entered(&house.lock(1, gate, Ask::Plain)));
    }
    house.unlock(1, "i").unwrap();
    house.say(0, 1, &Command::Disconnect).unwrap();
    assert_eq!(house.local.counters().releases, 3);
}

#[test]
fn timers_of_what_is_gone_do_not_pile_up() {
    let mut house = House::new();
    let mut definition = Definition::new(Rule::Mutex);
    definition.lease_ms = Some(1_000_000);
    house.define("g", definition);
    for _ in 0..10_000 {
        house.lock(1, "g", Ask::Plain).unwrap();
        house.lock(2, "g", Ask::Plain).unwrap();
        house.unlock(1, "g").unwrap();
        house.unlock(2, "g").unwrap();
    }
    let mut due = 0;
    while house.local.timers.pop_due(u64::MAX).is_some() {
        due += 1;
    }
    assert!(due < 100, "{due} timers");
}

#[test]
fn a_clock_that_steps_back_is_not_believed() {
    let mut house = House::new();
    let wait_ms = Some(10);
    house
        .say(
            1_000,
            1,
            &Command::Lock(Lock {
                gate: "g",
                ..Lock::default()
            }),
        )
        .unwrap();
    let waits = house.say(
        5,
        2,
        &Command::Lock(Lock {
            gate: "g",
            wait_ms,
            ..Lock::default()
        }),
    );
    assert!(matches!(waits, Ok(Answer::Waiting(_))));
    assert_eq!(house.local.gate("g").unwrap().waiters[0].until, 1_010);
}
