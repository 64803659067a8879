//! Many who listen: a message is in memory once, the limits name themselves, and whoever does not read is closed.

use std::collections::HashMap;

use super::tests::Stage;
use super::*;
use crate::output::{Amount, Output};
use crate::wire::Protocol;

/// What a socket does that takes everything, or nothing.
struct Sockets {
    stage: Stage,
    /// What the reactor has in hand for those who do not read.
    unwritten: HashMap<ClientId, Output>,
}

impl Sockets {
    fn new() -> Sockets {
        let mut stage = Stage::new();
        stage.house.connections.wire.output_bytes_total = 1 << 20;
        Sockets {
            stage,
            unwritten: HashMap::new(),
        }
    }

    fn listener(&mut self, command: &str) -> ClientId {
        let client = self.stage.client();
        self.stage.say(client, command);
        client
    }

    fn publish(&mut self, body: &[u8]) {
        self.stage.house.publish_on("group:g", "g", body);
        let unread = self.bytes();
        assert!(unread <= 1 << 20, "{unread} bytes are unread");
    }

    /// A turn ends: one reads everything. Returns that.
    fn reads(&mut self, client: ClientId) -> String {
        let connections = &mut self.stage.house.connections;
        let mut output = self.unwritten.remove(&client).unwrap_or_default();
        connections.take_outbox(client, &mut output);
        connections.note_unwritten(client, Amount::default(), true);
        String::from_utf8(output.into_bytes().to_vec()).unwrap()
    }

    /// A turn ends: its socket takes nothing.
    fn stalls(&mut self, client: ClientId) {
        let output = self.unwritten.entry(client).or_default();
        let connections = &mut self.stage.house.connections;
        connections.take_outbox(client, output);
        connections.note_unwritten(client, output.amount(), false);
    }

    fn bytes(&self) -> usize {
        self.stage.house.connections.unread().bytes()
    }

    fn is_closed(&self, client: ClientId) -> bool {
        self.stage.house.connections[client].overrun
    }

    fn closed(&self) -> u64 {
        let closings = self.stage.house.connections.closings();
        closings.count(Closing::OutputTotal)
    }
}

#[test]
fn a_message_to_4000_listeners_is_in_memory_once() {
    const BODY: usize = 64 << 10;
    let mut sockets = Sockets::new();
    let limit = 64 << 20;
    sockets.stage.house.connections.wire.output_bytes_total = limit;
    let listeners: Vec<ClientId> = (0..4_000)
        .map(|at| match at % 4 {
            0 => sockets.listener("PSUBSCRIBE group:*"),
            _ => sockets.listener("SUBSCRIBE group:g"),
        })
        .collect();
    for (at, client) in listeners.iter().enumerate() {
        if at % 2 == 0 {
            let client = sockets.stage.house.connections.client_mut(*client);
            client.unwrap().protocol = Protocol::Resp3;
        }
        sockets.reads(*client);
    }
    assert_eq!(sockets.bytes(), 0);
    let body = vec![b'x'; BODY];
    for _ in 0..60 {
        sockets.stage.house.publish_on("group:g", "g", &body);
    }
    assert!(sockets.bytes() > 60 * BODY, "{}", sockets.bytes());
    assert!(sockets.bytes() < limit, "{}", sockets.bytes());
    assert_eq!(sockets.closed(), 0);
    let text = format!("${BODY}\r\n{}\r\n", "x".repeat(BODY));
    for (at, client) in listeners.iter().enumerate().take(8) {
        let kind = if at % 2 == 0 { '>' } else { '*' };
        let head = match at % 4 {
            0 => format!("{kind}4\r\n$8\r\npmessage\r\n$7\r\ngroup:*\r\n$7\r\ngroup:g\r\n"),
            _ => format!("{kind}3\r\n$7\r\nmessage\r\n$7\r\ngroup:g\r\n"),
        };
        let heard = sockets.reads(*client);
        assert!(heard == format!("{head}{text}").repeat(60), "listener {at}");
    }
    // As long as anybody has not read them, they count; whoever is gone has.
    assert!(sockets.bytes() > 60 * BODY);
    for client in &listeners[8..] {
        sockets.stage.house.farewell(*client);
    }
    assert_eq!(sockets.bytes(), 0);
}

#[test]
fn a_slow_listener_is_closed_and_the_others_hear_everything() {
    let mut sockets = Sockets::new();
    let slow = sockets.listener("SUBSCRIBE group:g");
    let quick: Vec<ClientId> = (0..5)
        .map(|_| sockets.listener("PSUBSCRIBE group:*"))
        .collect();
    sockets.stalls(slow);
    for client in &quick {
        sockets.reads(*client);
    }
    for number in 0..16 {
        let body = format!("{number:0>50000}{number:0>50000}");
        sockets.publish(body.as_bytes());
        for client in &quick {
            let heard = sockets.reads(*client);
            assert!(heard.contains(&body), "message {number}");
            assert!(!sockets.is_closed(*client));
        }
        // What only the slow one has not read is the slow one's.
        assert_eq!(sockets.is_closed(slow), number >= 10, "message {number}");
        match sockets.is_closed(slow) {
            true => assert_eq!(sockets.bytes(), 0),
            false => sockets.stalls(slow),
        }
    }
    assert_eq!(sockets.closed(), 1);
}

/// Of those who do not read the one that has taken nothing for longest goes first, and the rest of them may stay.
#[test]
fn no_more_are_closed_than_need_be() {
    let mut sockets = Sockets::new();
    let [slowest, slow] = [(); 2].map(|()| sockets.listener("SUBSCRIBE group:g"));
    sockets.stalls(slowest);
    for _ in 0..5 {
        sockets.publish(&[b'x'; 100_000]);
        sockets.stalls(slowest);
        sockets.reads(slow);
    }
    for _ in 0..6 {
        sockets.publish(&[b'x'; 100_000]);
        for client in [slowest, slow] {
            if !sockets.is_closed(client) {
                sockets.stalls(client);
            }
        }
    }
    assert!(sockets.is_closed(slowest) && !sockets.is_closed(slow));
    assert_eq!(sockets.closed(), 1);
}

/// Nobody has had a chance to be slow: the messages of one turn are too much.
#[test]
fn the_output_of_one_turn_is_bounded_too() {
    let mut sockets = Sockets::new();
    let [one, other] = [(); 2].map(|()| sockets.listener("SUBSCRIBE group:g"));
    for _ in 0..20 {
        sockets.publish(&[b'x'; 100_000]);
    }
    assert!(sockets.is_closed(one) && sockets.is_closed(other));
    assert_eq!(sockets.closed(), 2);
}

#[test]
fn a_limit_of_subscriptions_names_itself() {
    let mut stage = Stage::new();
    let wire = &mut stage.house.connections.wire;
    (wire.subscriptions, wire.patterns) = (4, 2);
    (wire.subscriptions_total, wire.pattern_bytes_total) = (6, 8);
    let refused = |answer: String, limit: &str| {
        let told = format!("-LIMIT the limit {limit} is reached\r\n");
        assert!(answer.ends_with(&told), "{answer}");
    };
    let [one, other] = [(); 2].map(|()| stage.client());
    refused(stage.say(one, "PSUBSCRIBE a b c"), "patterns of 2");
    // What it has already is no more.
    assert!(!stage.say(one, "PSUBSCRIBE a b").contains("LIMIT"));
    refused(stage.say(one, "SUBSCRIBE c d e"), "subscriptions of 4");
    refused(
        stage.say(other, "PSUBSCRIBE 1234567"),
        "pattern_bytes_total of 8",
    );
    assert!(!stage.say(other, "PSUBSCRIBE 123456").contains("LIMIT"));
    refused(
        stage.say(other, "SUBSCRIBE c d"),
        "subscriptions_total of 6",
    );
    assert_eq!(stage.house.connections.channels.total(), 6);
    stage.say(one, "PUNSUBSCRIBE a");
    stage.say(one, "UNSUBSCRIBE c c");
    assert!(!stage.say(other, "SUBSCRIBE d").contains("LIMIT"));
    assert!(!stage.say(other, "PSUBSCRIBE x").contains("LIMIT"));
    for client in [one, other] {
        stage.house.farewell(client);
    }
    assert_eq!(stage.house.connections.channels.total(), 0);
}
