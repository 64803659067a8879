//! A node that stalls for a while: what it has not read yet does not count as silence, and its absence is held against
//! nobody.

use super::tests::House;
use super::*;
use crate::command::Lock;
use crate::event::Loss;
use crate::gate::Rule;
use crate::replicated::Change;

const TTL_MS: u64 = 1_000;

/// Opens a session at time 0 and lets it enter a gate.
fn holder(house: &mut House, number: u64, gate: &str) -> SessionId {
    let session = SessionId::opened(number);
    house.log(Change::OpenSession {
        session,
        ttl_ms: TTL_MS,
        label: None,
        user: None,
    });
    let lock = Command::Lock(Lock {
        gate,
        ..Lock::default()
    });
    let answer = house.ask(0, session, &lock);
    assert!(matches!(answer, Ok(Answer::Settled(_))), "{answer:?}");
    house.out.clear();
    session
}

fn renew(house: &mut House, now: u64, session: SessionId) -> Result<Answer, Refusal> {
    house.ask(now, session, &Command::Renew)
}

fn ran_out(house: &House) -> Vec<SessionId> {
    let ended = house.out.iter().filter_map(|event| match event {
        Event::RunOut { session } => Some(*session),
        _ => None,
    });
    ended.collect()
}

#[test]
fn what_others_say_does_not_end_a_session_whose_words_are_unread() {
    let mut house = House::new();
    let (a, b) = (holder(&mut house, 1, "a"), holder(&mut house, 2, "b"));
    // After a stall the node reads one socket after the other; the second renewal was sent in time, too.
    renew(&mut house, 2 * TTL_MS, a).unwrap();
    renew(&mut house, 2 * TTL_MS, b).unwrap();
    house.local.tick(2 * TTL_MS, &mut house.out);
    assert_eq!(ran_out(&house), []);
    house.local.tick(3 * TTL_MS, &mut house.out);
    assert_eq!(ran_out(&house), [a, b]);
}

#[test]
fn time_in_which_the_node_was_absent_is_no_silence() {
    let mut house = House::new();
    let a = holder(&mut house, 1, "a");
    house.local.was_absent(5_000);
    house.local.tick(5_000 + TTL_MS - 1, &mut house.out);
    assert_eq!(ran_out(&house), []);
    assert_eq!(house.local.next_silence(), Some(5_000 + TTL_MS));
    house.local.tick(5_000 + TTL_MS, &mut house.out);
    assert_eq!(ran_out(&house), [a]);
}

#[test]
fn an_absence_before_the_last_sign_of_life_gives_no_time() {
    let mut house = House::new();
    let a = holder(&mut house, 1, "a");
    house.local.was_absent(5_000);
    renew(&mut house, 5_500, a).unwrap();
    house.local.tick(5_500 + TTL_MS, &mut house.out);
    assert_eq!(ran_out(&house), [a]);
}

#[test]
fn silence_is_judged_as_of_when_everybody_was_heard() {
    let mut house = House::new();
    let (a, b) = (holder(&mut house, 1, "a"), holder(&mut house, 2, "b"));
    renew(&mut house, 500, b).unwrap();
    // It is 1,600 now, but only what was sent before 1,100 has been read.
    house.local.expire(1_600, &mut house.out);
    house.local.tick(1_100, &mut house.out);
    assert_eq!(ran_out(&house), [a]);
}

#[test]
fn hold_limits_end_on_time_whether_or_not_the_node_was_there() {
    let mut house = House::new();
    let definition = Definition {
        lease_ms: Some(300),
        ..Definition::new(Rule::Mutex)
    };
    house.define("leased", definition);
    let a = holder(&mut house, 1, "leased");
    house.local.was_absent(5_000);
    // The first command from anybody finds the hold over.
    renew(&mut house, 5_000, a).unwrap();
    let lost = |event: &Event| matches!(event, Event::Lost { loss, .. } if *loss == Loss::Lease);
    assert!(house.out.iter().any(lost), "{:?}", house.out);
}
