//! What changes do, and that a refused one does nothing.

use super::*;
use crate::gate::Rule;
use crate::ownership::Origin;
use crate::ownership::{NodeId, Number, Start};

fn house() -> Replicated {
    let limits = Limits {
        gates: 2,
        sessions: 2,
        once_keys: 2,
        ..Limits::default()
    };
    Replicated::new(limits)
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn create(gate: &str, rule: Rule) -> Change {
    Change::CreateGate {
        gate: name(gate),
        definition: Definition::new(rule),
        number: Number(0),
    }
}

fn close(house: &Replicated, number: u64) -> Change {
    let session = SessionId::opened(number);
    let home = house.session(session).unwrap().home.index;
    Change::CloseSession { session, home }
}

fn open(number: u64) -> Change {
    Change::OpenSession {
        session: SessionId::opened(number),
        ttl_ms: 1000,
        label: None,
        user: None,
    }
}

fn start(key: &str, period: u64, attempt: u64, session: u64) -> OnceStart {
    OnceStart {
        key: name(key),
        period,
        given: Some(attempt),
        session: SessionId::opened(session),
        retry_unknown: false,
    }
}

/// Names the attempt by the number that the session gave it.
fn finish(key: &str, period: u64, number: u64, session: u64) -> Change {
    let session = Some(SessionId::opened(session));
    Change::FinishOnce {
        key: name(key),
        period,
        attempt: OnceAttempt { number, session },
    }
}

/// The number of an attempt that may run.
fn run(house: &mut Replicated, start: OnceStart) -> u64 {
    match once(house, Change::StartOnce(start)) {
        Ok(OnceAnswer::Run { attempt }) => attempt,
        other => panic!("{other:?}"),
    }
}

/// Applies a change and checks that a refused one left everything as it was.
fn apply(house: &mut Replicated, change: Change) -> Result<Outcome, Word> {
    let before = house.records().clone();
    match house.apply(7, &change) {
        Ok(applied) => Ok(applied.outcome().clone()),
        Err(refusal) => {
            assert!(house.records().are_as(&before), "{refusal}");
            Err(refusal.word)
        }
    }
}

fn once(house: &mut Replicated, change: Change) -> Result<OnceAnswer, Word> {
    apply(house, change).map(|outcome| match outcome {
        Outcome::Once(answer) => answer,
        other => panic!("{other:?}"),
    })
}

#[test]
fn every_start_raises_all_numbers_and_a_restored_backup_far_more() {
    let mut house = house();
    let shards = [Shard(0), Shard(7), Shard::LAST];
    for (start, generation, number) in [
        (1, 0, 64),
        (2, 0, 65),
        (9, 1, 4 + (1 << 18)),
        (10, 1, 5 + (1 << 18)),
        (11, 70, 280 + (1 << 18)),
    ] {
        let view = house.view_alone(NodeId(1), Start(start), generation);
        assert_eq!(apply(&mut house, view), Ok(Outcome::Viewed));
        for shard in shards {
            let title = house.ownership().title(shard).unwrap();
            assert_eq!((title.owner, title.start), (NodeId(1), Start(start)));
            assert_eq!(title.number, Number(number));
        }
    }
    assert!(
        house.index().0 >= 70 << 24,
        "attempts of once-keys rise, too"
    );
    let view = house.view_alone(NodeId(1), Start(12), 1 << 25);
    assert_eq!(apply(&mut house, view), Err(Word::Limit));
    let view = house.view_alone(NodeId(1), Start(12), 2);
    assert_eq!(
        apply(&mut house, view),
        Err(Word::BadArg),
        "an earlier generation"
    );
}

/// Whichever backup is restored, however often, and whatever was recovered in between, no number is ever reused.
#[test]
fn no_number_is_given_out_by_two_lives_of_one_log() {
    let mut random = 9_u64;
    let mut draw = |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
        (random >> 33) % below
    };
    for _ in 0..200 {
        let mut life = house();
        let (mut slot, mut start, mut highest) = (1_000, 1, Number(0));
        let mut backups = vec![];
        let mut begin = |life: &mut Replicated, generation| {
            start += 1;
            let view = life.view_alone(NodeId(1), Start(start), generation);
            let _ = life.apply(7, &view).unwrap();
            let number = life.ownership().highest();
            assert!(number > highest, "{number} after {highest}");
            highest = number;
        };
        for _ in 0..30 {
            let generation = life.view().generation;
            for _ in 0..draw(u64::from(Number::GENERATION)) {
                begin(&mut life, generation);
            }
            backups.push(life.records().clone());
            life = Replicated::restore(backups[draw(backups.len() as u64) as usize].clone());
            slot += 1 + draw(1_000) as u32;
            begin(&mut life, slot);
        }
    }
}

#[test]
fn a_view_rests_on_the_one_before() {
    let mut house = house();
    let first = house.view_alone(NodeId(1), Start(1), 0);
    let second = house.view_alone(NodeId(2), Start(1), 0);
    apply(&mut house, first).unwrap();
    assert_eq!(apply(&mut house, second), Err(Word::Stale));
}

#[test]
fn a_gate_is_created_and_deleted_under_its_number() {
    let mut house = house();
    let view = house.view_alone(NodeId(1), Start(1), 0);
    apply(&mut house, view).unwrap();
    let number = house.gate_number("g");
    let create = |number| Change::CreateGate {
        gate: name("g"),
        definition: Definition::new(Rule::Mutex),
        number,
    };
    let delete = |number| Change::DeleteGate {
        gate: name("g"),
        number,
    };
    let view = house.view_alone(NodeId(1), Start(2), 0);
    apply(&mut house, view).unwrap();
    assert_eq!(apply(&mut house, create(number)), Err(Word::Stale));
    let later = house.gate_number("g");
    assert!(apply(&mut house, create(later)).is_ok());
    assert_eq!(apply(&mut house, delete(number)), Err(Word::Stale));
    assert!(apply(&mut house, delete(later)).is_ok());
}

#[test]
fn a_session_has_its_home_where_it_was_opened_and_is_an_orphan_when_that_has_left() {
    let mut house = house();
    let origin = |start, sequence| Stamp {
        at: 7,
        origin: Some(Origin {
            node: NodeId(1),
            start: Start(start),
            sequence,
        }),
        term: 1,
    };
    let view = house.view_alone(NodeId(1), Start(4), 0);
    let _ = house.apply(origin(4, 1), &view).unwrap();
    let _ = house.apply(origin(4, 2), &open(1)).unwrap();
    let record = |house: &Replicated| house.session(SessionId::opened(1)).unwrap().clone();
    let home = Home {
        node: NodeId(1),
        start: Start(4),
        index: Index(2),
    };
    assert_eq!(record(&house).home, home);
    assert!(!house.is_orphan(&record(&house)));
    let view = house.view_alone(NodeId(1), Start(5), 0);
    let _ = house.apply(origin(5, 1), &view).unwrap();
    assert_eq!(record(&house).home, home);
    assert!(house.is_orphan(&record(&house)));
    let close = |home| Change::CloseSession {
        session: SessionId::opened(1),
        home,
    };
    let refused = house.apply(origin(5, 2), &close(Index(1))).unwrap_err();
    assert_eq!(refused.word, Word::Stale, "case P: it has moved");
    let _ = house.apply(origin(5, 3), &close(Index(2))).unwrap();
}

/// The log takes a start's entries once and in order, and nothing from a start that has left.
#[test]
fn an_entry_that_comes_again_changes_nothing() {
    let mut house = house();
    let view = house.view_alone(NodeId(1), Start(4), 0);
    let mut say = |sequence, change: &Change| {
        let origin = Some(Origin {
            node: NodeId(1),
            start: Start(4),
            sequence,
        });
        let applied = house.apply(
            Stamp {
                at: 7,
                origin,
                term: 1,
            },
            change,
        );
        applied.map(drop).map_err(|refusal| refusal.word)
    };
    assert_eq!(
        say(1, &open(1)),
        Err(Word::Unavailable),
        "before it is a member"
    );
    assert_eq!(say(1, &view), Ok(()));
    assert_eq!(say(2, &open(1)), Ok(()));
    assert_eq!(say(2, &open(2)), Err(Word::Unavailable));
    assert_eq!(say(4, &open(2)), Err(Word::Unavailable));
    // A refused entry counts, too: nobody waits for it.
    assert_eq!(say(3, &open(1)), Err(Word::Busy));
    assert_eq!(say(4, &open(2)), Ok(()));
}

#[test]
fn creating_the_same_gate_again_changes_nothing() {
    let mut house = house();
    assert!(apply(&mut house, create("g", Rule::Mutex)).is_ok());
    assert_eq!(
        apply(&mut house, create("g", Rule::Mutex)),
        Ok(Outcome::Unchanged)
    );
    assert_eq!(
        apply(&mut house, create("g", Rule::Shared)),
        Err(Word::Busy)
    );
    assert_eq!(
        apply(&mut house, create("h", Rule::Permits(0))),
        Err(Word::BadArg)
    );
    assert!(apply(&mut house, create("h", Rule::Rooms)).is_ok());
    assert_eq!(
        apply(&mut house, create("i", Rule::Rooms)),
        Err(Word::Limit)
    );
    let delete = Change::DeleteGate {
        gate: name("g"),
        number: Number(0),
    };
    assert!(apply(&mut house, delete.clone()).is_ok());
    assert_eq!(apply(&mut house, delete), Err(Word::NoGate));
}

#[test]
fn sessions_are_opened_and_closed_once() {
    let mut house = house();
    assert!(apply(&mut house, open(1)).is_ok());
    assert_eq!(apply(&mut house, open(1)), Err(Word::Busy));
    assert!(apply(&mut house, open(2)).is_ok());
    assert_eq!(apply(&mut house, open(3)), Err(Word::Limit));
    let close = close(&house, 1);
    assert!(apply(&mut house, close.clone()).is_ok());
    assert_eq!(apply(&mut house, close), Err(Word::Stale));
    for (ttl_ms, label) in [(99, None), (60_001, None), (1000, Some("\u{7}".to_owned()))] {
        let session = SessionId::opened(4);
        let change = Change::OpenSession {
            session,
            ttl_ms,
            label,
            user: None,
        };
        assert_eq!(apply(&mut house, change), Err(Word::BadArg));
    }
}

#[test]
fn a_key_is_done_once() {
    let mut house = house();
    let first = run(&mut house, start("k", 0, 1, 1));
    let again = run(&mut house, start("k", 0, 1, 1));
    assert_eq!(again, first, "asked again");
    let done = OnceAnswer::Done { period: 0, at: 7 };
    assert_eq!(once(&mut house, finish("k", 0, 1, 1)), Ok(done));
    let again = once(&mut house, finish("k", 0, 1, 1));
    assert_eq!(again, Ok(done), "asked again");
    assert_eq!(
        once(&mut house, Change::StartOnce(start("k", 0, 2, 2))),
        Ok(done)
    );
    assert_eq!(once(&mut house, finish("k", 0, 2, 2)), Err(Word::Stale));
}

#[test]
fn a_crash_between_the_command_and_its_record_is_unknown() {
    let mut house = house();
    apply(&mut house, open(1)).unwrap();
    run(&mut house, start("k", 0, 1, 1));
    // As long as its session lives, it is running.
    assert_eq!(
        once(&mut house, Change::StartOnce(start("k", 0, 2, 2))),
        Err(Word::Busy)
    );
    let close = close(&house, 1);
    apply(&mut house, close).unwrap();
    let unknown = OnceAnswer::Unknown { period: 0, at: 7 };
    assert_eq!(
        once(&mut house, Change::StartOnce(start("k", 0, 2, 2))),
        Ok(unknown)
    );
    let retry = OnceStart {
        retry_unknown: true,
        ..start("k", 0, 3, 2)
    };
    run(&mut house, retry);
    assert_eq!(
        once(&mut house, finish("k", 0, 1, 1)),
        Err(Word::Stale),
        "the first attempt is over"
    );
    assert!(once(&mut house, finish("k", 0, 3, 2)).is_ok());
}

#[test]
fn an_attempt_is_the_index_of_its_start_and_a_given_number_is_its_sessions_own() {
    let mut house = house();
    apply(&mut house, open(1)).unwrap();
    let named = |number, session: Option<u64>| OnceAttempt {
        number,
        session: session.map(SessionId::opened),
    };
    let finish = |attempt| Change::FinishOnce {
        key: name("k"),
        period: 0,
        attempt,
    };
    let own = OnceStart {
        given: None,
        ..start("k", 0, 0, 1)
    };
    let first = run(&mut house, own.clone());
    assert_eq!(Index(first), house.index());
    assert_eq!(run(&mut house, own), first, "asked again");
    let close = close(&house, 1);
    apply(&mut house, close).unwrap();
    // The fence of another gate, lower than those of earlier attempts.
    let retry = OnceStart {
        retry_unknown: true,
        ..start("k", 0, 1, 2)
    };
    let second = run(&mut house, retry);
    assert!(second > first && Index(second) == house.index());
    for stale in [
        named(first, Some(1)),
        named(first, None),
        named(1, Some(1)),
        named(1, None),
    ] {
        assert_eq!(once(&mut house, finish(stale)), Err(Word::Stale));
    }
    let done = OnceAnswer::Done { period: 0, at: 7 };
    for good in [named(1, Some(2)), named(second, None)] {
        assert_eq!(once(&mut house, finish(good)), Ok(done));
    }
}

#[test]
fn limits_change_by_the_log_and_take_nothing_away() {
    let mut house = house();
    for change in [
        create("a", Rule::Mutex),
        create("b", Rule::Permits(9)),
        open(1),
        open(2),
        Change::StartOnce(start("a", 0, 1, 1)),
        Change::StartOnce(start("b", 0, 2, 1)),
    ] {
        apply(&mut house, change).unwrap();
    }
    let refused = |house: &mut Replicated| {
        [
            create("c", Rule::Mutex),
            open(3),
            Change::StartOnce(start("c", 0, 3, 1)),
        ]
        .map(|change| apply(house, change).err())
    };
    let limits = |most: usize| SharedLimits {
        gates: most,
        sessions: most,
        once_keys: most,
        permits: most as u32,
        ..SharedLimits::default()
    };
    let change = |most| Change::Limits {
        limits: Box::new(limits(most)),
    };
    assert_eq!(refused(&mut house), [Some(Word::Limit); 3]);
    assert_eq!(apply(&mut house, change(1)), Ok(Outcome::LimitsChanged));
    assert_eq!(apply(&mut house, change(1)), Ok(Outcome::Unchanged));
    assert_eq!(refused(&mut house), [Some(Word::Limit); 3]);
    assert_eq!((house.gates().len(), house.sessions().len()), (2, 2));
    let again = apply(&mut house, create("b", Rule::Permits(9)));
    assert_eq!(again, Ok(Outcome::Unchanged), "as it is, above the limit");
    assert_eq!(run(&mut house, start("a", 0, 1, 1)), 5, "as it is");
    apply(&mut house, change(3)).unwrap();
    assert_eq!(refused(&mut house), [None; 3]);
}

#[test]
fn a_failed_command_may_be_repeated() {
    let mut house = house();
    let abandon = Change::AbandonOnce {
        key: name("k"),
        attempt: OnceAttempt {
            number: 1,
            session: Some(SessionId::opened(1)),
        },
    };
    assert_eq!(once(&mut house, abandon.clone()), Err(Word::Stale));
    run(&mut house, start("k", 0, 1, 1));
    assert_eq!(once(&mut house, abandon), Ok(OnceAnswer::Abandoned));
    assert_eq!(house.once_keys(), 0);
    run(&mut house, start("k", 0, 2, 1));
}

#[test]
fn an_earlier_period_is_never_run_again() {
    let mut house = house();
    run(&mut house, start("k", 5, 1, 1));
    assert!(once(&mut house, finish("k", 5, 1, 1)).is_ok());
    for period in [4, 5] {
        let answer = once(&mut house, Change::StartOnce(start("k", period, 2, 1)));
        assert_eq!(answer, Ok(OnceAnswer::Done { period: 5, at: 7 }));
    }
    run(&mut house, start("k", 6, 3, 1));
    // The outcome of period 6 is unknown; period 7 is not affected.
    run(&mut house, start("k", 7, 4, 1));
    assert_eq!(once(&mut house, finish("k", 6, 3, 1)), Err(Word::Stale));
}

#[test]
fn once_keys_have_a_limit_and_can_be_forgotten() {
    let mut house = house();
    for key in ["a", "b"] {
        assert!(once(&mut house, Change::StartOnce(start(key, 0, 1, 1))).is_ok());
    }
    assert_eq!(
        once(&mut house, Change::StartOnce(start("c", 0, 1, 1))),
        Err(Word::Limit)
    );
    assert!(apply(&mut house, Change::ForgetOnce { key: name("a") }).is_ok());
    assert!(once(&mut house, Change::StartOnce(start("c", 0, 1, 1))).is_ok());
}

#[test]
fn a_snapshot_and_the_log_survive_the_codec() {
    let mut house = house();
    let change = create("g", Rule::Permits(3));
    let bytes = postcard::to_allocvec(&change).unwrap();
    assert_eq!(postcard::from_bytes::<Change>(&bytes), Ok(change.clone()));
    for change in [change, open(1), Change::StartOnce(start("k", 0, 1, 1))] {
        apply(&mut house, change).unwrap();
    }
    let bytes = postcard::to_allocvec(house.records()).unwrap();
    let records: Records = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(Replicated::restore(records).records(), house.records());
    // A name from a damaged store is refused, not believed.
    assert!(postcard::from_bytes::<Name>(&postcard::to_allocvec("two words").unwrap()).is_err());
}
