//! How much the search for a deadlock looks at, and what it may not leave out.

use super::tests::House;
use super::*;
use crate::command::{Lock, Settled};
use crate::error::Refusal;
use crate::gate::{Ask, GateOrder};

/// As long as the chains of waits get here.
const CHAIN: u64 = 5_000;
/// Holders and waiters that a search looks at, per wait that it can reach: each a few times.
const PER_WAIT: u64 = 12;

fn ask(house: &mut House, session: u64, lock: Lock<'_>) -> Result<Answer, Refusal> {
    let id = SessionId::implicit(session);
    if house.local.session(id).is_err() {
        house.ask(0, id, &Command::Connect).unwrap();
    }
    house.ask(0, id, &Command::Lock(lock))
}

fn plain(house: &mut House, session: u64, gate: &str) -> Result<Answer, Refusal> {
    let lock = Lock {
        gate,
        ..Lock::default()
    };
    ask(house, session, lock)
}

fn enters(house: &mut House, session: u64, gate: &str) {
    let answer = plain(house, session, gate);
    assert!(
        matches!(answer, Ok(Answer::Settled(Settled::Entered(_)))),
        "{answer:?}"
    );
}

/// A session waits; says how much was looked at.
fn waits(house: &mut House, session: u64, gate: &str) -> u64 {
    let before = house.local.counters().deadlock_steps;
    let answer = plain(house, session, gate);
    assert!(matches!(answer, Ok(Answer::Waiting(_))), "{answer:?}");
    house.local.counters().deadlock_steps - before
}

fn gate(number: u64) -> String {
    format!("g{number}")
}

/// Sessions that each hold the gate of their number.
fn holders(house: &mut House, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        enters(house, number, &gate(number));
    }
}

#[test]
fn a_wait_at_the_end_of_a_chain_looks_at_nobody_in_it() {
    let mut house = House::new();
    holders(&mut house, 0..=CHAIN);
    for number in (0..CHAIN).rev() {
        let steps = waits(&mut house, number, &gate(number + 1));
        assert!(steps <= 2, "{steps} steps for wait {}", CHAIN - number);
    }
    // It holds nothing, and stands last.
    assert!(waits(&mut house, CHAIN + 1, &gate(0)) <= 1);
}

#[test]
fn a_search_along_a_chain_looks_at_each_wait_a_few_times() {
    for chain in [10, 100, 1_000, CHAIN] {
        let mut house = House::new();
        holders(&mut house, 0..=chain);
        for number in (0..chain).rev() {
            waits(&mut house, number, &gate(number + 1));
            waits(&mut house, 2 * CHAIN + number, &gate(number));
        }
        // Somebody waits for what it holds, so it has to look whether that is somebody in the chain.
        let outsider = chain + 1;
        enters(&mut house, outsider, "wanted");
        waits(&mut house, outsider + 1, "wanted");
        let steps = waits(&mut house, outsider, &gate(0));
        assert!(steps > 2 * chain, "{steps} steps look at everybody");
        assert!(steps <= PER_WAIT * 2 * chain, "{steps} steps for {chain}");
    }
}

#[test]
fn a_search_through_a_crowd_looks_at_each_wait_a_few_times() {
    let mut house = House::new();
    let crowd = 2_000;
    house.define("permits", Definition::new(Rule::Permits(crowd as u32)));
    holders(&mut house, 1..=crowd);
    enters(&mut house, 0, &gate(0));
    for number in 1..=crowd {
        enters(&mut house, number, "permits");
    }
    // A chain through all those inside, which is let in one after the other.
    for number in 1..=crowd {
        let steps = waits(&mut house, number, &gate(number - 1));
        assert!(steps <= PER_WAIT * number, "{steps} steps for {number}");
    }
    let outsider = crowd + 1;
    enters(&mut house, outsider, "wanted");
    waits(&mut house, outsider + 1, "wanted");
    let steps = waits(&mut house, outsider, "permits");
    assert!(steps <= PER_WAIT * crowd, "{steps} steps");
}

#[test]
fn a_long_cycle_is_named_and_its_sentence_stays_short() {
    let mut house = House::new();
    holders(&mut house, 1..=CHAIN);
    for number in (1..CHAIN).rev() {
        waits(&mut house, number, &gate(number + 1));
    }
    let before = house.local.counters().deadlock_steps;
    let refusal = plain(&mut house, CHAIN, &gate(1)).unwrap_err();
    let steps = house.local.counters().deadlock_steps - before;
    assert_eq!(refusal.word, Word::Deadlock, "{refusal}");
    assert!(steps <= PER_WAIT * CHAIN, "{steps} steps");
    let links = refusal.cycle.iter();
    let gates: Vec<&str> = links.map(|link| &*link.gate).collect();
    let expected: Vec<String> = (1..=CHAIN).map(gate).collect();
    assert_eq!(gates, expected);
    let sentence = refusal.to_string();
    assert!(sentence.len() < 10_000, "{} bytes", sentence.len());
    assert!(sentence.contains("4936 more in the same way"), "{sentence}");
    let last = format!("gate g5000 held by session {}", SessionId::implicit(CHAIN));
    assert!(sentence.contains(&last), "{sentence}");
}

#[test]
fn whoever_waits_in_a_crowd_is_named_once() {
    let mut house = House::new();
    let crowd = 3_000;
    enters(&mut house, 0, "crowded");
    enters(&mut house, crowd + 1, "last");
    for number in 1..=crowd {
        waits(&mut house, number, "crowded");
    }
    waits(&mut house, crowd + 1, "crowded");
    let before = house.local.counters().deadlock_steps;
    let refusal = plain(&mut house, 0, "last").unwrap_err();
    let steps = house.local.counters().deadlock_steps - before;
    assert_eq!(refusal.cycle.len(), 2, "{refusal}");
    assert!(steps <= PER_WAIT * crowd, "{steps} steps");
}

#[test]
fn beyond_the_limit_a_wait_is_refused_and_has_not_begun() {
    let limits = Limits {
        deadlock_steps: 100,
        ..Limits::default()
    };
    let mut house = House::within(limits);
    holders(&mut house, 0..=50);
    for number in (1..50).rev() {
        waits(&mut house, number, &gate(number + 1));
    }
    waits(&mut house, 99, &gate(0));
    let refusal = plain(&mut house, 0, &gate(1)).unwrap_err();
    assert_eq!(refusal.word, Word::Limit, "{refusal}");
    assert!(
        refusal.sentence.contains("deadlock_steps of 100"),
        "{refusal}"
    );
    assert!(house.local.gate("g1").unwrap().waiters.is_empty());
    // Whoever only tries waits for nobody, and an asynchronous wait blocks nobody.
    let tries = Lock {
        gate: "g1",
        wait_ms: Some(0),
        ..Lock::default()
    };
    let answer = ask(&mut house, 0, tries);
    assert!(matches!(answer, Ok(Answer::Settled(Settled::Ended(_)))));
    let asynchronous = Lock {
        gate: "g1",
        asynchronous: true,
        ..Lock::default()
    };
    let answer = ask(&mut house, 0, asynchronous);
    assert!(matches!(answer, Ok(Answer::Waiting(_))), "{answer:?}");
}

#[test]
fn whoever_holds_nothing_can_still_close_a_cycle() {
    let mut house = House::new();
    let mut definition = Definition::new(Rule::Shared);
    definition.order = GateOrder::Writers;
    house.define("page", definition);
    let reads = Lock {
        gate: "page",
        ask: Ask::Shared,
        ..Lock::default()
    };
    let (reader, waiter, writer) = (1, 2, 3);
    assert!(ask(&mut house, reader, reads.clone()).is_ok());
    enters(&mut house, waiter, "door");
    // Only an asynchronous writer keeps the second reader out: it may give up.
    let writes = Lock {
        gate: "page",
        asynchronous: true,
        ..Lock::default()
    };
    assert!(ask(&mut house, 4, writes).is_ok());
    assert!(matches!(
        ask(&mut house, waiter, reads),
        Ok(Answer::Waiting(_))
    ));
    waits(&mut house, reader, "door");
    // A writer that goes ahead of the second reader would wait for it.
    let refusal = plain(&mut house, writer, "page").unwrap_err();
    assert_eq!(refusal.word, Word::Deadlock, "{refusal}");
    assert_eq!(refusal.cycle.len(), 3, "{refusal}");
}
