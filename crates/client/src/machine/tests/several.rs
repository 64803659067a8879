//! Several nodes to connect to: when the client moves on to the next, what it repeats there, and what stays unknown.

use super::super::*;
use super::stage::{Stage, TTL, number, ok, resumed, text};
use crate::standing::State;

const NODES: usize = 3;

#[test]
fn a_session_whose_node_is_gone_is_resumed_at_the_next_at_once() {
    let (mut stage, _) = Stage::inside_among(NODES, "a", 5);
    stage.machine.broken(stage.now, "reset");
    assert_eq!(stage.effects(), [Effect::Connect]);
    stage.machine.unreachable(stage.now, "refused");
    assert_eq!(stage.effects(), [Effect::Connect], "without a pause");
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
    stage.effects();
    assert_eq!(stage.state(), State::Held);
}

#[test]
fn only_when_all_have_failed_there_is_a_pause() {
    let (mut stage, _) = Stage::inside_among(NODES, "a", 5);
    stage.machine.broken(stage.now, "reset");
    for attempt in 1..=NODES {
        assert_eq!(stage.effects(), [Effect::Connect], "attempt {attempt}");
        stage.machine.unreachable(stage.now, "refused");
    }
    assert!(stage.effects().is_empty());
    stage.now = stage.machine.timeout().expect("another attempt");
    stage.machine.tick(stage.now);
    assert_eq!(stage.effects(), [Effect::Connect]);
}

#[test]
fn without_a_session_all_are_tried_once() {
    let mut stage = Stage::among(NODES);
    let call = stage.call();
    stage
        .machine
        .ask(stage.now, call, vec!["PING".into()], Again::Always);
    for _ in 0..NODES {
        assert_eq!(stage.effects(), [Effect::Connect]);
        stage.machine.unreachable(stage.now, "refused");
    }
    let effects = stage.effects();
    let refused = matches!(&effects[..], [Effect::Answer(_, Err(why))] if why.word() == Some(&Word::Unavailable));
    assert!(refused, "{effects:?}");
}

#[test]
fn what_a_node_cannot_serve_is_asked_at_the_next() {
    let mut stage = Stage::opened_among(NODES);
    let call = stage.call();
    let line = vec!["GATE".into(), "DELETE".into(), "a".into()];
    stage.machine.ask(stage.now, call, line, Again::Never);
    stage.sent();
    stage.refuse("UNAVAILABLE this node does not hear from a majority");
    assert_eq!(stage.effects(), [Effect::Disconnect, Effect::Connect]);
    assert_eq!(stage.state(), State::Suspect);
    stage.machine.connected(stage.now);
    stage.answer(Value::Null);
    stage.answer(resumed(&[], &[]));
    let sent = stage.sent();
    assert_eq!(sent.last().expect("asked again"), "GATE DELETE a");
    stage.answer(ok());
    assert_eq!(stage.effects(), [Effect::Answer(call, Ok(ok()))]);
    assert_eq!(stage.state(), State::Held);
}

#[test]
fn what_no_node_can_serve_is_refused() {
    let mut stage = Stage::opened_among(NODES);
    let call = stage.call();
    stage
        .machine
        .ask(stage.now, call, vec!["STATUS".into()], Again::Always);
    for _ in 1..NODES {
        stage.refuse("UNAVAILABLE no majority");
        stage.effects();
        stage.machine.connected(stage.now);
        stage.answer(Value::Null);
        stage.answer(resumed(&[], &[]));
    }
    stage.refuse("UNAVAILABLE no majority");
    let effects = stage.effects();
    let refused = matches!(&effects[..], [Effect::Answer(of, Err(_)), ..] if *of == call);
    assert!(refused, "{effects:?}");
}

#[test]
fn what_was_sent_before_is_answered_before_the_node_is_left() {
    let mut stage = Stage::opened_among(NODES);
    let (first, second) = (stage.call(), stage.call());
    for call in [first, second] {
        let line = vec!["ONCE".into(), "FORGET".into(), "k".into()];
        stage.machine.ask(stage.now, call, line, Again::Never);
    }
    stage.refuse("UNAVAILABLE no majority");
    assert!(stage.effects().is_empty(), "the other answer is awaited");
    stage.answer(ok());
    assert_eq!(
        stage.effects(),
        [
            Effect::Answer(second, Ok(ok())),
            Effect::Disconnect,
            Effect::Connect
        ]
    );
}

#[test]
fn an_answer_lost_with_its_node_stays_unknown() {
    let mut stage = Stage::opened_among(NODES);
    let call = stage.call();
    let line = vec!["GATE".into(), "DELETE".into(), "a".into()];
    stage.machine.ask(stage.now, call, line, Again::Never);
    stage.machine.broken(stage.now, "reset");
    let unknown = Err(NotDone::Unknown("reset".into()));
    assert_eq!(
        stage.effects(),
        [Effect::Answer(call, unknown), Effect::Connect]
    );
}

/// Case T, ghost home: a node that is cut off from the others must not make a client believe that its session lives.
#[test]
fn a_sign_of_life_that_the_node_cannot_serve_confirms_nothing() {
    for nodes in [1, NODES] {
        let (mut stage, _) = Stage::inside_among(nodes, "a", 5);
        let deadline = stage.session.expect("a session").deadline;
        stage.pass(TTL / 4);
        assert_eq!(stage.sent().last().expect("a sign of life"), "PING");
        stage.refuse("UNAVAILABLE no majority");
        stage.effects();
        let session = stage.session.expect("a session");
        assert_eq!(session.deadline, deadline);
        assert_eq!(stage.state(), State::Suspect, "{nodes} nodes");
    }
}

#[test]
fn a_node_that_says_suspect_is_left_or_waited_for() {
    let suspect = || vec![text("suspect"), number(77)];
    let (mut stage, _) = Stage::inside_among(NODES, "a", 5);
    stage.push(suspect());
    assert_eq!(stage.effects(), [Effect::Disconnect, Effect::Connect]);
    let (mut stage, _) = Stage::inside_among(1, "a", 5);
    stage.push(suspect());
    assert!(stage.effects().is_empty());
    assert_eq!(stage.state(), State::Suspect);
    stage.pass(TTL / 4);
    stage.answer(text("PONG"));
    stage.effects();
    assert_eq!(stage.state(), State::Held);
}

#[test]
fn a_node_that_connects_and_says_nothing_is_passed_over() {
    let (mut stage, _) = Stage::inside_among(NODES, "a", 5);
    stage.break_and_reconnect();
    stage.pass(TTL / 3);
    assert_eq!(stage.effects(), [Effect::Disconnect, Effect::Connect]);
    stage.machine.connected(stage.now);
    stage.sent();
    stage.answer(Value::Null);
    stage.answer(resumed(&["HELD"], &[("a", 5)]));
    stage.effects();
    assert_eq!(stage.state(), State::Held);
}
