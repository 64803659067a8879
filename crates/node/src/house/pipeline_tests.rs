//! Several changes of one connection on their way through the log at the same time.

use super::tests::Stage;
use super::*;
use crate::commands::{Serves, Turn};
use crate::wire::Reply;
use crate::wire::{Frame, Framer, Progress};
use testigo_core::{Change, SharedLimits};

impl Stage {
    /// Gives a command; returns its outcome.
    fn serve(&mut self, client: ClientId, command: &str) -> Turn {
        let mut framer = Framer::default();
        let line = format!("{command}\r\n");
        let limits = WireLimits::default().of_users();
        match framer.read(line.as_bytes(), &limits, &mut Progress::default()) {
            Frame::Command(line, _) => self.house.serve(client, line),
            other => panic!("{other:?}"),
        }
    }

    /// Lets the log answer everything that is under way.
    fn answer_all(&mut self) {
        while self.house.submissions.len() > 0 {
            self.deliver();
        }
    }
}

fn gates(stage: &mut Stage, client: ClientId, count: usize) {
    for gate in 0..count {
        let served = stage.serve(client, &format!("GATE CREATE g{gate} MUTEX"));
        assert_eq!(served, Turn::Done);
    }
}

#[test]
fn changes_of_one_connection_go_to_the_log_together() {
    let mut stage = Stage::new();
    let client = stage.client();
    gates(&mut stage, client, 3);
    assert_eq!(stage.house.submissions.len(), 3);
    assert_eq!(stage.hear(client), "");
    stage.answer_all();
    assert_eq!(stage.hear(client), "+OK\r\n".repeat(3));
    assert_eq!(stage.house.connections.take_unblocked(), [client]);
}

#[test]
fn what_is_no_change_waits_for_the_changes_before_it() {
    let mut stage = Stage::new();
    let client = stage.client();
    gates(&mut stage, client, 2);
    for command in [
        "PING",
        "GATE SHOW g1",
        "LOCK g0",
        "SESSION OPEN",
        "NONSENSE",
    ] {
        assert_eq!(stage.serve(client, command), Turn::NotYet, "{command}");
    }
    assert!(stage.house.connections[client].blocked.is_some());
    assert_eq!(stage.hear(client), "");
    stage.answer_all();
    assert!(stage.house.connections[client].blocked.is_none());
    assert_eq!(stage.serve(client, "GATE SHOW g1"), Turn::Done);
}

#[test]
fn a_change_that_would_be_refused_is_judged_when_those_before_it_are_done() {
    let mut stage = Stage::new();
    let client = stage.client();
    let flow = "intake -> [orders] -> price -> [priced] -> bill\\nqueue orders { limit 1 }";
    stage.apply(client, "shop", flow);
    stage.create(client, 1);
    let held = stage.take(client, "orders");
    let pass = format!("JOB PASS {held} shop/priced");
    assert_eq!(stage.serve(client, &pass), Turn::Done);
    // Until the pass is done the queue is full, and nobody can delete the job.
    let (create, delete) = ("JOB CREATE shop/orders * new", format!("JOB DELETE {held}"));
    assert_eq!(stage.serve(client, create), Turn::NotYet);
    assert_eq!(stage.serve(client, &delete), Turn::NotYet);
    stage.answer_all();
    assert_eq!(stage.hear(client), "+OK\r\n");
    assert_eq!(stage.serve(client, create), Turn::Done);
    stage.answer_all();
    assert_eq!(stage.hear(client), ":2\r\n");
    assert_eq!(stage.serve(client, &delete), Turn::Done);
    assert!(stage.hear(client).starts_with("-NOTYOURS "));
}

#[test]
fn a_change_that_may_change_who_asks_is_waited_for() {
    let mut stage = Stage::new();
    let client = stage.client();
    assert_eq!(stage.serve(client, "SESSION OPEN"), Turn::Done);
    assert!(stage.house.connections[client].blocked.is_some());
}

#[test]
fn a_refused_change_leaves_the_next_one_as_it_is() {
    let mut stage = Stage::new();
    let client = stage.client();
    stage.apply(client, "shop", "intake -> [orders] -> price");
    for name in ["a", "a", "b"] {
        let create = format!("JOB CREATE shop/orders {name} body");
        assert_eq!(stage.serve(client, &create), Turn::Done);
    }
    stage.answer_all();
    let heard = stage.hear(client);
    let lines: Vec<_> = heard.lines().collect();
    assert_eq!((lines[0], lines[2]), (":1", ":2"), "{heard}");
    assert!(lines[1].starts_with("-DUPLICATE "), "{heard}");
}

#[test]
fn no_more_changes_are_taken_than_the_limit() {
    let mut stage = Stage::new();
    let client = stage.client();
    let most = stage.house.connections.wire().changes_under_way;
    gates(&mut stage, client, most - 1);
    let wire = stage.house.connections.wire().clone();
    assert!(stage.house.connections[client].may_go_on(&wire));
    gates(&mut stage, client, 1);
    assert!(!stage.house.connections[client].may_go_on(&wire));
    stage.answer_all();
    assert!(stage.house.connections[client].may_go_on(&wire));
}

#[test]
fn gates_on_their_way_count_against_the_limit() {
    let mut stage = Stage::new();
    let (one, other) = (stage.client(), stage.client());
    let limits = Box::new(SharedLimits {
        gates: 3,
        ..SharedLimits::default()
    });
    let change = Change::Limits { limits };
    let services = &mut stage.house.services;
    services.apply(0, 0.into(), &change).unwrap();
    gates(&mut stage, one, 3);
    assert_eq!(stage.serve(one, "GATE CREATE more MUTEX"), Turn::NotYet);
    let refused = stage.say(other, "GATE CREATE more MUTEX");
    assert!(refused.starts_with("-LIMIT there are 3"), "{refused}");
}

#[test]
fn a_reply_waits_for_those_before_it() {
    let mut stage = Stage::new();
    let client = stage.client();
    gates(&mut stage, client, 3);
    let mut tags: Vec<u64> = stage.house.submissions.tags();
    tags.sort_unstable();
    let error = testigo_engine::ProposeError::DiskFull { free_bytes: 0 };
    let (tag, first) = (tags[1], tags[0]);
    stage
        .house
        .deliver(testigo_engine::Delivery::Refused { tag, error });
    assert_eq!(stage.hear(client), "", "the first is not answered yet");
    stage
        .house
        .connections
        .answer_under_way(client, first, Reply::Ok);
    let heard = stage.hear(client);
    assert!(heard.starts_with("+OK\r\n-UNAVAILABLE "), "{heard}");
    assert!(stage.house.connections[client].has_under_way());
}

#[test]
fn a_node_that_stops_answers_what_it_has_under_way() {
    let mut stage = Stage::new();
    let client = stage.client();
    gates(&mut stage, client, 3);
    stage.house.begin_stop();
    assert!(!stage.house.connections[client].leaving);
    stage.answer_all();
    assert_eq!(stage.hear(client), "+OK\r\n".repeat(3));
    assert!(stage.house.connections[client].leaving);
}
