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
    with_two_among(1)
}

fn with_two_among(nodes: usize) -> (Stage, Vec<Entered>) {
    let mut stage = Stage::opened_among(nodes);
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
    let resume = "SESSION RESUME 77 SERIAL 1 SLOTS 1 ports 8 71";
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
        here: true,
        ..HoldStanding::default()
    };
    let elsewhere = HoldStanding {
        here: false,
        ..told
    };
    let effects_of = |standing| Effect::Hold(entered[1].hold, standing);
    assert_eq!(effects, [told, elsewhere].map(effects_of));
}

#[test]
fn every_resume_has_a_higher_number() {
    let (mut stage, _) = with_two_among(5);
    for serial in 1..4 {
        stage.break_and_reconnect();
        let resume = format!("SESSION RESUME 77 SERIAL {serial} SLOTS 2 ports 3 70 ports 8 71");
        assert_eq!(stage.sent(), ["HELLO 3".to_owned(), resume]);
        // Sometimes the resume succeeds, sometimes it does not.
        if serial == 2 {
            stage.answer(Value::Null);
            stage.answer(resumed(&[], &[]));
        }
    }
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
    assert_eq!(
        stage.sent()[1..],
        ["SESSION RESUME 77 SERIAL 1 SLOTS 0", again]
    );
    stage.answer(number(5));
    // The caller has gone away: what it gets is given back.
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
    // It answers, and speaks only for the slots, for longer than the session may be silent.
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
    let slot = entered[0].standing;
    assert_eq!(standing::state(stage.now, &session, &slot), State::Held);
    assert_eq!(stage.state(), State::Lost, "for its gates");
    // If it does not answer either, the slots are lost as well.
    let end = stage.now + 2 * TTL;
    stage.pass_in_silence(end);
    stage.effects();
    assert_eq!(
        stage.session.and_then(|session| session.over),
        Some(Loss::Silence)
    );
}

const NO_MAJORITY: &str = "UNAVAILABLE this node has not heard from a majority for a whole lease";

/// The answer to a resume at a node that owns these of the session's slots of the pool.
fn resumed_with(slots: &[(&str, i64)]) -> Value {
    let Value::Map(mut fields) = resumed(&[], &[]) else {
        unreachable!("it is a map");
    };
    let row =
        |(slot, fence): &(&str, i64)| Value::List(vec![text("ports"), text(slot), number(*fence)]);
    let rows = slots.iter().map(row).collect();
    fields.push((text("slots"), Value::List(rows)));
    Value::Map(fields)
}

/// Refuses this many signs of life.
fn refuse_pings(stage: &mut Stage, pings: usize) {
    for _ in 0..pings {
        let due = stage.machine.timeout().expect("something is due");
        stage.now = stage.now.max(due);
        stage.machine.tick(stage.now);
        if stage.sent() == ["PING"] {
            stage.refuse(NO_MAJORITY);
        }
    }
}

/// A hold's standing after what was reported, if anything was.
fn told(effects: &[Effect], entered: &Entered) -> HoldStanding {
    let told = effects.iter().rev().find_map(|effect| match effect {
        Effect::Hold(hold, standing) if *hold == entered.hold => Some(*standing),
        _ => None,
    });
    told.unwrap_or(entered.standing)
}

#[test]
fn a_node_without_a_majority_speaks_only_for_the_slots_that_it_owns() {
    let (mut stage, entered) = with_two();
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    // Another node that owns one of them has resumed the session; or this node has, and a third one owns the other.
    stage.answer(resumed_with(&[("8", 71)]));
    stage.sent();
    refuse_pings(&mut stage, 10);
    assert!(stage.now.duration_since(stage.start) > TTL);
    let effects = stage.effects();
    let session = stage.session.expect("a session");
    let states = [0, 1].map(|at| {
        let standing = told(&effects, &entered[at]);
        standing::state(stage.now, &session, &standing)
    });
    assert_eq!(states, [State::Lost, State::Held]);
}

#[test]
fn a_session_whose_slots_are_of_other_nodes_leaves_one_without_a_majority() {
    let (mut stage, _) = with_two_among(2);
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    stage.sent();
    stage.effects();
    refuse_pings(&mut stage, 1);
    assert_eq!(stage.effects(), [Effect::Disconnect, Effect::Connect]);
    // A session that has only slots of this node stays: no other node can speak for them.
    let (mut stage, _) = with_two_among(2);
    refuse_pings(&mut stage, 1);
    assert_eq!(stage.effects(), []);
}

#[test]
fn what_a_node_does_to_its_slots_says_nothing_of_the_session() {
    let (mut stage, entered) = with_two();
    let deadline = stage.session.expect("it is open").deadline;
    stage.pass(TTL / 8);
    stage.release(entered[0].hold);
    stage.answer(ok());
    let call = stage.call();
    stage.machine.take(stage.now, call, Take::new("ports"));
    stage.answer(number(2));
    let call = stage.call();
    let line = words(["POOL", "LIST"]);
    stage.machine.ask(stage.now, call, line, Again::Always);
    stage.answer(Value::List(Vec::new()));
    stage.effects();
    let session = stage.session.expect("it is open");
    assert_eq!(session.deadline, deadline);
    assert!(session.here_deadline > deadline);
}

#[test]
fn slots_that_only_a_connection_spoke_for_are_lost_with_it() {
    let (mut stage, entered) = with_two();
    refuse_pings(&mut stage, 6);
    assert!(stage.now.duration_since(stage.start) > TTL);
    stage.effects();
    let slot = entered[0].standing;
    let state = |stage: &Stage| {
        let session = stage.session.expect("a session");
        standing::state(stage.now, &session, &slot)
    };
    assert_eq!(state(&stage), State::Held);
    stage.machine.broken(stage.now, "reset");
    stage.effects();
    assert_eq!(state(&stage), State::Lost);
}
