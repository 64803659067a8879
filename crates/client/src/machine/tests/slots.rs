//! Slots of pools: taken by a ticket, claimed by a resuming session, given back and lost.

use super::stage::{Stage, TTL, grant, number, ok, resumed, text};
use super::*;
use crate::standing::{self, Loss, State};

fn slots(ticket: i64, taken: &[(&str, i64)]) -> Vec<Value> {
    let pair = |(slot, fence): &(&str, i64)| [text(slot), number(*fence)];
    let taken = taken.iter().flat_map(pair).collect();
    vec![text("slots"), number(ticket), Value::List(taken)]
}

/// A session that has slots 3 and 8 of a pool.
fn with_two() -> (Stage, Vec<Entered>) {
    let mut stage = Stage::opened();
    let call = stage.call();
    let take = Take::new("ports").count(2).wait(Duration::from_secs(30));
    stage.machine.take(stage.now, call, take);
    assert_eq!(stage.sent(), ["POOL TAKE ports COUNT 2 WAIT 30000 ASYNC"]);
    stage.answer(number(1));
    stage.push(slots(1, &[("3", 70), ("8", 71)]));
    match stage.effects().pop() {
        Some(Effect::Entered(of, entered)) if of == call => (stage, entered),
        other => panic!("taken, not {other:?}"),
    }
}

#[test]
fn a_resuming_session_says_which_slots_it_has() {
    let (mut stage, entered) = with_two();
    let given = stage.release(entered[0].hold);
    assert_eq!(stage.sent(), ["POOL GIVE ports 3"]);
    stage.answer(ok());
    assert_eq!(stage.effects(), [Effect::Answer(given, Ok(ok()))]);
    stage.break_and_reconnect();
    let resume = "SESSION RESUME 77 SLOTS 1 ports 8 71";
    assert_eq!(stage.sent(), ["HELLO 3", resume]);
    stage.answer(Value::Null);
    // The pool was deleted in the meantime.
    let lost = [text("lost"), text("ports/8"), number(71), text("removed")];
    stage.push(lost.to_vec());
    stage.answer(resumed(&[], &[]));
    let effects = stage.effects();
    let told = HoldStanding {
        fence: 71,
        over: Some(Loss::Told),
        ..HoldStanding::default()
    };
    assert_eq!(effects, [Effect::Hold(entered[1].hold, told)]);
}

#[test]
fn a_take_without_an_answer_is_asked_again_and_claims_nothing() {
    let mut stage = Stage::opened();
    let call = stage.call();
    let take = Take::new("ports").up_to(4).wait(Duration::from_secs(30));
    stage.machine.take(stage.now, call, take);
    stage.sent();
    stage.pass(Duration::from_secs(1));
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    let again = "POOL TAKE ports UPTO 4 WAIT 29000 ASYNC";
    assert_eq!(stage.sent()[1..], ["SESSION RESUME 77 SLOTS 0", again]);
    stage.answer(number(5));
    // Whoever asked has gone away: what it gets goes back.
    stage.machine.cancel(stage.now, call);
    assert_eq!(stage.sent(), ["CANCEL 5"]);
    stage.push(slots(5, &[("3", 70)]));
    assert_eq!(stage.sent(), ["POOL GIVE ports 3"]);
    assert!(stage.effects().is_empty());
}

#[test]
fn a_node_without_a_majority_keeps_slots_and_loses_gates() {
    let (mut stage, entered) = with_two();
    stage.lock(Lock::new("a"));
    stage.sent();
    stage.answer(number(2));
    stage.push(grant(2, 5, None));
    stage.effects();
    let refusal = "UNAVAILABLE this node does not hear from a majority of its cluster";
    // It answers, and speaks for nothing but the slots, for longer than the session may be silent.
    for _ in 0..10 {
        let due = stage.machine.timeout().expect("something is due");
        stage.now = stage.now.max(due);
        stage.machine.tick(stage.now);
        if stage.sent() == ["PING"] {
            stage.refuse(refusal);
        }
    }
    assert!(stage.now.duration_since(stage.start) > 2 * TTL);
    let lost: Vec<HoldId> = stage
        .effects()
        .iter()
        .filter_map(|effect| match effect {
            Effect::Hold(hold, standing) if standing.over == Some(Loss::Silence) => Some(*hold),
            _ => None,
        })
        .collect();
    assert_eq!(lost.len(), 1, "the gate");
    assert_ne!(lost[0], entered[0].hold);
    let session = stage.session.expect("it lives");
    assert_eq!(session.over, None);
    let slot = HoldStanding::default();
    let seen = session.seen(true);
    assert_eq!(standing::state(stage.now, &seen, &slot), State::Held);
    assert_eq!(stage.state(), State::Lost, "for its gates");
    // When it does not answer, either, the slots are lost as well.
    let end = stage.now + 2 * TTL;
    stage.pass_in_silence(end);
    stage.effects();
    assert_eq!(
        stage.session.and_then(|session| session.over),
        Some(Loss::Silence)
    );
}
