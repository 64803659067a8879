//! The edges of limits: exactly as much as a limit says is granted, and one more is refused.

use super::tests::House;
use super::*;
use crate::command::{Claim, ClaimEnd, Lock, Settled};
use crate::fence::Fence;
use crate::gate::Ask;
use crate::replicated::Change;

fn small() -> Limits {
    Limits {
        wait_ms_max: 500,
        ..Limits::default()
    }
}

fn lock(house: &mut House, gate: &str, wait_ms: Option<u64>) -> Result<Answer, Word> {
    let lock = Lock {
        gate,
        wait_ms,
        asynchronous: true,
        ..Lock::default()
    };
    house.say(0, 1, &Command::Lock(lock))
}

/// Another session enters a gate.
fn occupy(house: &mut House, gate: &str) {
    let lock = Lock {
        gate,
        ..Lock::default()
    };
    let answer = house.say(0, 9, &Command::Lock(lock));
    assert!(matches!(answer, Ok(Answer::Settled(_))), "{answer:?}");
}

#[test]
fn a_wait_may_be_as_long_as_the_limit() {
    let mut house = House::within(small());
    occupy(&mut house, "g");
    assert_eq!(lock(&mut house, "g", Some(501)), Err(Word::BadArg));
    let answer = lock(&mut house, "g", Some(500));
    assert!(matches!(answer, Ok(Answer::Waiting(_))), "{answer:?}");
}

/// Holds three gates and waits for a fourth, then asks for a fifth.
fn fifth(limits: Limits) -> Result<Answer, Word> {
    let mut house = House::within(limits);
    for gate in ["a", "b", "c"] {
        let answer = lock(&mut house, gate, None);
        let entered = matches!(answer, Ok(Answer::Settled(Settled::Entered(_))));
        assert!(entered, "{answer:?}");
    }
    occupy(&mut house, "d");
    let answer = lock(&mut house, "d", None);
    assert!(matches!(answer, Ok(Answer::Waiting(_))), "{answer:?}");
    lock(&mut house, "e", None)
}

#[test]
fn what_a_session_waits_for_counts_as_what_it_holds() {
    let holds_per_session = 4;
    let limits = Limits {
        holds_per_session,
        ..small()
    };
    assert_eq!(fifth(limits), Err(Word::Limit));
    // The other session's hold counts too.
    let limits = Limits {
        holds: 5,
        ..small()
    };
    assert_eq!(fifth(limits), Err(Word::Limit));
    assert!(fifth(small()).is_ok());
}

#[test]
fn a_session_may_claim_as_much_as_it_may_hold() {
    let mut house = House::within(Limits {
        holds_per_session: 2,
        ..small()
    });
    let session = SessionId::opened(1);
    house.log(Change::OpenSession {
        session,
        ttl_ms: 10_000,
        label: None,
        user: None,
    });
    let mut resume = |gates: &[&'static str]| {
        let claims = gates.iter().map(|gate| Claim {
            gate,
            fence: Fence(1),
            ask: Ask::Plain,
            proven: false,
            ..Claim::default()
        });
        let claims = claims.collect();
        match house.ask(0, session, &Command::Resume { claims }) {
            Ok(Answer::Resumed(resumed)) => Ok(resumed.claims),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.to_string()),
        }
    };
    assert_eq!(resume(&["a", "b"]), Ok(vec![ClaimEnd::Lost; 2]));
    assert_eq!(
        resume(&["a", "b", "c"]).unwrap_err(),
        "LIMIT 3 claims are above the limit holds_per_session of 2"
    );
}
