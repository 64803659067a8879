//! The machine against a script: what it sends, what it is told, and the result.

mod several;
mod slots;
mod stage;

use super::*;
use crate::standing::State;
use stage::{Stage, grant, number, ok, resumed, text};

#[test]
fn a_lock_is_entered_by_its_ticket() {
    let mut stage = Stage::opened();
    let first = stage.lock(Lock::new("a"));
    let second = stage.lock(Lock::new("b").wait(Duration::from_secs(3)));
    assert_eq!(
        stage.sent(),
        [
            "LOCK a ID t1 ASYNC GRANT",
            "LOCK b WAIT 3000 ID t2 ASYNC GRANT"
        ]
    );
    stage.answer(number(11));
    stage.answer(number(12));
    stage.push(grant(12, 5, None));
    assert!(stage.sent().is_empty());
    let effects = stage.effects();
    assert!(matches!(&effects[..], [Effect::Entered(call, _)] if *call == second));
    stage.push(vec![text("gone"), number(11), text("timeout")]);
    assert_eq!(stage.effects(), [Effect::Answer(first, Ok(Value::Null))]);
}

fn until(effects: &[Effect]) -> Option<Instant> {
    match effects {
        [Effect::Entered(_, entered)] => entered[0].standing.until,
        other => panic!("entered, not {other:?}"),
    }
}

#[test]
fn a_hold_limit_counts_from_the_last_command_that_the_node_has_heard() {
    let mut stage = Stage::opened();
    let asked = stage.now;
    stage.lock(Lock::new("a"));
    stage.answer(number(1));
    stage.pass(Duration::from_secs(1));
    stage.push(grant(1, 5, Some(2000)));
    let ends = asked + Duration::from_millis(1800);
    assert_eq!(until(&stage.effects()), Some(ends));
    // A sign of life moves the reference, so that a long wait costs no certainty.
    stage.lock(Lock::new("b"));
    stage.answer(number(2));
    stage.pass(Duration::from_millis(2500));
    let renewed = stage.now;
    assert_eq!(stage.sent().last().expect("a sign of life"), "PING");
    stage.pass(Duration::from_secs(1));
    stage.answer(text("PONG"));
    stage.push(grant(2, 6, Some(3000)));
    let ends = renewed + Duration::from_millis(2700);
    assert_eq!(until(&stage.effects()), Some(ends));
}

#[test]
fn a_grant_that_is_over_already_is_lost_at_once() {
    let mut stage = Stage::opened();
    stage.lock(Lock::new("a"));
    stage.answer(number(1));
    stage.push(grant(1, 5, Some(0)));
    let until = until(&stage.effects()).expect("a limit");
    assert!(until <= stage.now);
}

#[test]
fn signs_of_life_keep_a_session_alive() {
    let (mut stage, _) = Stage::inside("a", 5);
    for _ in 0..20 {
        let due = stage.machine.timeout().expect("a sign of life is due");
        stage.now = due;
        stage.machine.tick(due);
        assert_eq!(stage.sent(), ["PING"]);
        stage.answer(text("PONG"));
        assert!(stage.effects().is_empty());
        assert_eq!(stage.state(), State::Held);
    }
}

#[test]
fn silence_makes_a_session_suspect_and_ends_it_in_time() {
    let (mut stage, _) = Stage::inside("a", 5);
    let start = stage.now;
    stage.pass_in_silence(start + Duration::from_secs(7));
    assert_eq!(stage.state(), State::Suspect);
    stage.pass_in_silence(start + Duration::from_secs(9));
    assert_eq!(stage.state(), State::Lost);
    assert_eq!(stage.session.expect("a session").over, Some(Loss::Silence));
}

#[test]
fn an_answer_after_the_deadline_brings_nothing_back() {
    let (mut stage, _) = Stage::inside("a", 5);
    stage.pass(Duration::from_millis(2500));
    assert_eq!(stage.sent(), ["PING"]);
    stage.now += Duration::from_secs(20);
    stage.answer(text("PONG"));
    stage.effects();
    assert_eq!(stage.state(), State::Lost);
}

#[test]
fn a_broken_connection_is_resumed_with_what_is_held() {
    let (mut stage, hold) = Stage::inside("a", 5);
    stage.machine.broken(stage.now, "reset");
    assert_eq!(stage.effects(), [Effect::Connect]);
    assert_eq!(stage.state(), State::Suspect);
    stage.machine.connected(stage.now);
    assert_eq!(
        stage.sent(),
        [
            "HELLO 3",
            "SESSION RESUME 77 SERIAL 1 HOLDING 1 a 5 RECEIPTS r5 SLOTS 0"
        ]
    );
    stage.answer(Value::Null);
    stage.answer(resumed(&["HELD"], &[("a", 5)]));
    assert!(stage.effects().is_empty());
    assert_eq!(stage.state(), State::Held);
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&["LOST"], &[]));
    let effects = stage.effects();
    assert!(
        matches!(effects[..], [Effect::Hold(of, HoldStanding { over: Some(Loss::Told), .. })] if of == hold),
        "{effects:?}"
    );
}

#[test]
fn a_lost_answer_is_asked_for_again_under_the_same_id() {
    let mut stage = Stage::opened();
    stage.lock(Lock::new("a").wait(Duration::from_secs(30)));
    stage.sent();
    stage.pass(Duration::from_secs(1));
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[("a", 5)]));
    let sent = stage.sent();
    assert_eq!(
        sent[1..],
        [
            "SESSION RESUME 77 SERIAL 1 SLOTS 0",
            "LOCK a WAIT 29000 ID t1 ASYNC GRANT"
        ]
    );
    stage.answer(number(9));
    stage.push(grant(9, 5, None));
    assert!(matches!(stage.effects()[..], [Effect::Entered(..)]));
}

#[test]
fn what_nobody_wants_any_more_is_given_back() {
    let mut stage = Stage::opened();
    let call = stage.lock(Lock::new("a"));
    stage.answer(number(1));
    stage.sent();
    stage.machine.cancel(stage.now, call);
    assert_eq!(stage.sent(), ["CANCEL 1"]);
    stage.push(grant(1, 5, None));
    assert_eq!(stage.sent(), ["UNLOCK a 5"]);
    stage.answer(number(0));
    stage.answer(ok());
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[("b", 6)]));
    assert_eq!(stage.sent()[2..], ["UNLOCK b 6"]);
    assert!(stage.effects().is_empty());
}

#[test]
fn a_cancelled_lock_is_taken_back_also_over_a_broken_connection() {
    let mut stage = Stage::opened();
    let call = stage.lock(Lock::new("a"));
    stage.machine.cancel(stage.now, call);
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    assert!(
        stage
            .sent()
            .contains(&"LOCK a ID t1 ASYNC GRANT".to_owned())
    );
    stage.answer(number(4));
    assert_eq!(stage.sent(), ["CANCEL 4"]);
}

#[test]
fn giving_back_twice_is_giving_back() {
    let (mut stage, hold) = Stage::inside("a", 5);
    let call = stage.release(hold);
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    assert_eq!(
        stage.sent()[1..],
        ["SESSION RESUME 77 SERIAL 1 SLOTS 0", "UNLOCK a 5"]
    );
    stage.refuse("NOTHELD a is not held");
    assert_eq!(stage.effects(), [Effect::Answer(call, Ok(Value::Null))]);
}

#[test]
fn a_reason_goes_with_the_claim() {
    let (mut stage, _) = Stage::inside("a", 5);
    stage.lock(Lock::new("b").reason("release 7"));
    stage.answer(number(2));
    stage.push(grant(2, 6, None));
    stage.sent();
    stage.break_and_reconnect();
    assert_eq!(
        stage.sent()[1],
        "SESSION RESUME 77 SERIAL 1 HOLDING 2 a 5 b 6 RECEIPTS r5 r6 REASONS - release 7 SLOTS 0"
    );
}

#[test]
fn a_downgraded_hold_is_a_readers_with_its_new_fence() {
    let (mut stage, hold) = Stage::inside("a", 5);
    let call = stage.call();
    stage.machine.downgrade(stage.now, call, hold);
    assert_eq!(stage.sent(), ["DOWNGRADE a GRANT"]);
    stage.answer(Value::List(vec![number(6), text("r6"), Value::Null]));
    let effects = stage.effects();
    assert!(
        matches!(&effects[..], [Effect::Hold(of, HoldStanding { fence: 6, .. }), Effect::Answer(_, Ok(_))] if *of == hold),
        "{effects:?}"
    );
    stage.break_and_reconnect();
    assert_eq!(
        stage.sent()[1],
        "SESSION RESUME 77 SERIAL 1 HOLDING 1 a 6 SHARED RECEIPTS r6 SLOTS 0"
    );
}

#[test]
fn a_downgrade_without_answer_is_unknown_and_what_it_left_is_given_back() {
    let (mut stage, hold) = Stage::inside("a", 5);
    let call = stage.call();
    stage.machine.downgrade(stage.now, call, hold);
    stage.sent();
    stage.machine.broken(stage.now, "reset");
    let effects = stage.effects();
    let unknown = Effect::Answer(call, Err(NotDone::Unknown("reset".into())));
    assert!(effects.contains(&unknown), "{effects:?}");
    stage.machine.connected(stage.now);
    stage.sent();
    stage.answer(Value::Null);
    stage.answer(resumed(&["LOST"], &[("a", 6)]));
    assert_eq!(stage.sent(), ["UNLOCK a 6"]);
}

#[test]
fn a_lost_hold_cannot_be_given_back() {
    let (mut stage, hold) = Stage::inside("a", 5);
    stage.push(vec![text("lost"), text("a"), number(5), text("lease")]);
    stage.effects();
    let call = stage.release(hold);
    let effects = stage.effects();
    let [Effect::Answer(of, Err(not_done))] = &effects[..] else {
        panic!("an answer, not {effects:?}");
    };
    assert_eq!((*of, not_done.word()), (call, Some(&Word::NotHeld)));
}

#[test]
fn an_unrepeatable_call_ends_unknown_and_an_unsent_one_waits() {
    let mut stage = Stage::opened();
    let sent = stage.call();
    let delete = |gate| words(["GATE", "DELETE", gate]);
    stage
        .machine
        .ask(stage.now, sent, delete("a"), Again::Never);
    stage.sent();
    stage.machine.broken(stage.now, "reset");
    let effects = stage.effects();
    let unknown = Effect::Answer(sent, Err(NotDone::Unknown("reset".into())));
    assert_eq!(effects, [unknown, Effect::Connect]);
    let unsent = stage.call();
    stage
        .machine
        .ask(stage.now, unsent, delete("b"), Again::Never);
    stage.machine.connected(stage.now);
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    assert_eq!(stage.sent()[2..], ["GATE DELETE b"]);
}

#[test]
fn a_node_that_forgot_the_session_ends_it() {
    let (mut stage, _) = Stage::inside("a", 5);
    let waiting = stage.lock(Lock::new("b"));
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.refuse("STALE session 77 is over");
    let effects = stage.effects();
    assert!(
        matches!(&effects[0], Effect::Answer(call, Err(NotDone::Unknown(_))) if *call == waiting)
    );
    assert_eq!(stage.state(), State::Lost);
}

#[test]
fn without_a_session_an_unreachable_node_refuses_at_once() {
    let mut stage = Stage::new();
    let call = stage.call();
    stage
        .machine
        .ask(stage.now, call, words(["PING"]), Again::Always);
    assert_eq!(stage.effects(), [Effect::Connect]);
    stage.machine.unreachable(stage.now, "connection refused");
    let effects = stage.effects();
    let [Effect::Answer(_, Err(not_done))] = &effects[..] else {
        panic!("an answer, not {effects:?}");
    };
    assert_eq!(not_done.word(), Some(&Word::Unavailable));
    assert_eq!(stage.machine.timeout(), None);
}

#[test]
fn a_wrong_password_is_told_and_not_tried_again() {
    let mut stage = Stage::new();
    let credentials = Credentials {
        user: "alice".into(),
        password: "secret".into(),
    };
    stage.machine = Machine::new(Some(credentials), 1, 1);
    let call = stage.call();
    stage
        .machine
        .ask(stage.now, call, words(["PING"]), Again::Always);
    stage.effects();
    stage.machine.connected(stage.now);
    assert_eq!(stage.sent(), ["HELLO 3 AUTH alice secret"]);
    stage.refuse("WRONGPASS no");
    let effects = stage.effects();
    assert!(matches!(
        &effects[..],
        [
            Effect::Answer(_, Err(NotDone::Refused(_))),
            Effect::Disconnect
        ]
    ));
}

#[test]
fn answers_that_nobody_asked_for_end_the_connection() {
    let mut stage = Stage::opened();
    stage.answer(ok());
    assert_eq!(stage.effects(), [Effect::Disconnect, Effect::Connect]);
}

#[test]
fn a_subscription_is_answered_by_its_push_and_lives_through_connections() {
    let mut stage = Stage::opened();
    let call = stage.call();
    stage.machine.subscribe(stage.now, call, "gate:a".into());
    assert_eq!(stage.sent(), ["SUBSCRIBE gate:a"]);
    stage.push(vec![text("subscribe"), text("gate:a"), number(1)]);
    assert_eq!(stage.effects(), [Effect::Answer(call, Ok(text("gate:a")))]);
    stage.push(vec![text("message"), text("gate:a"), text("left 5")]);
    let published = Effect::Published("gate:a".into(), b"left 5".to_vec());
    assert_eq!(stage.effects(), [published]);
    stage.break_and_reconnect();
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    assert_eq!(stage.sent()[2..], ["SUBSCRIBE gate:a"]);
}

#[test]
fn calls_beyond_the_limit_are_refused() {
    let mut stage = Stage::new();
    for _ in 0..=CALLS_MAX {
        let call = stage.call();
        stage
            .machine
            .ask(stage.now, call, words(["PING"]), Again::Always);
    }
    let effects = stage.effects();
    let [Effect::Connect, Effect::Answer(_, Err(not_done))] = &effects[..] else {
        panic!("one refusal, not {effects:?}");
    };
    assert_eq!(not_done.word(), Some(&Word::Limit));
}
