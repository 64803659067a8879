//! What connections may cost before AUTH, and what all of them together may cost: the named bounds hold, and whoever is in
//! their way is closed.

mod support;

use std::io::{ErrorKind, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use support::{Client, House, Value, with_password, with_users};

/// Only a broken node makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks for the status until something is so.
fn until(client: &mut Client, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = client.call(&["STATUS"]);
        if holds(&status) {
            return status;
        }
        assert!(Instant::now() < deadline, "never so: {status}");
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

#[test]
fn before_auth_commands_are_small() {
    let house = House::with(with_users);
    let line = "x".repeat(9_000);
    for (bytes, limit) in [
        (
            &b"*2\r\n$4\r\nAUTH\r\n$9000\r\n"[..],
            "preauth_frame_bytes, 8192",
        ),
        (b"*17\r\n", "preauth_arguments, 16"),
        (line.as_bytes(), "preauth_frame_bytes, 8192"),
    ] {
        let mut client = house.client();
        client.send_bytes(bytes).unwrap();
        let error = client.read();
        let error = error.error();
        assert!(error.starts_with("BADARG protocol error: "), "{error}");
        assert!(error.ends_with(limit), "{error}");
        assert!(client.is_closed());
    }
    // Right behind AUTH they may be large, also while a hash is worked out.
    let large = "x".repeat(100_000);
    for (user, password) in [("alice", "alice's"), ("carol", "carol's")] {
        let mut client = house.client();
        let both = [
            command(&["AUTH", user, password]),
            command(&["ECHO", &large]),
        ];
        client.send_bytes(&both.concat()).unwrap();
        assert_eq!(client.read(), Value::Simple("OK".into()));
        assert_eq!(client.read(), Value::Text(large.clone()));
        client.call(&["RESET"]);
        client.send_bytes(b"*17\r\n").unwrap();
        assert!(client.read().error().contains("preauth_arguments"));
    }
}

/// Answers to a stranger who does not read are as few.
#[test]
fn before_auth_unread_answers_are_few() {
    let house = House::with(with_password);
    let stranger = TcpStream::connect(house.address()).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let mut admin = house.client();
    admin.call(&["AUTH", "secret"]);
    let pings = b"PING\r\n".repeat(10_000);
    let deadline = Instant::now() + PATIENCE;
    // Until its own socket takes no more, the node has read all it will.
    let mut full = 0;
    while full < 100 {
        assert!(Instant::now() < deadline);
        match (&stranger).write(&pings) {
            Ok(_) => full = 0,
            Err(error) if error.kind() == ErrorKind::WouldBlock => full += 1,
            Err(error) => panic!("{error}"),
        }
        let status = admin.call(&["STATUS"]);
        let unread = status.at("unread_bytes").int();
        assert!(unread < 8192 + 100, "{unread} bytes are unread");
    }
}

#[test]
fn before_auth_time_is_short() {
    let house = House::with(|config| {
        with_password(config);
        config.wire.preauth_ms = 1_000;
    });
    let mut user = house.client();
    assert_eq!(user.call(&["AUTH", "secret"]), Value::Simple("OK".into()));
    let mut silent = house.client();
    let mut partial = house.client();
    partial.send_bytes(b"*2\r\n$4\r\nAU").unwrap();
    let mut busy = house.client();
    assert!(busy.call(&["PING"]).error().starts_with("NOAUTH"));
    for stranger in [&mut silent, &mut partial, &mut busy] {
        let told = stranger.read();
        assert!(told.error().ends_with("the limit preauth_ms"), "{told}");
        assert!(stranger.is_closed());
    }
    // Who has said who it is may be silent; who takes that back may not.
    let status = user.call(&["STATUS"]);
    assert_eq!(status.at("closed_preauth_ever"), &Value::Int(3));
    user.call(&["RESET"]);
    assert!(user.read().error().ends_with("the limit preauth_ms"));
}

/// Many connections with a part of a command each: all that is kept stays within its bound, and the oldest are closed.
#[test]
fn unfinished_commands_together_are_bounded() {
    const MOST: i64 = 1 << 20;
    let house = House::with(|config| config.wire.unfinished_bytes = MOST as usize);
    let mut eye = house.client();
    // One that waits for a gate with a command behind is not in the way.
    let mut waiter = house.client();
    eye.call(&["LOCK", "a"]);
    let behind = [command(&["LOCK", "a"]), command(&["PING"])];
    waiter.send_bytes(&behind.concat()).unwrap();
    until(&mut eye, |status| status.at("unfinished_bytes").int() > 0);
    let body = "x".repeat(400_000);
    let whole = command(&["ECHO", &body]);
    let half = whole.len() / 2;
    let mut all = Vec::new();
    for _ in 0..20 {
        let mut client = house.client();
        let sent = [&command(&["PING"])[..], &whole[..half]].concat();
        client.send_bytes(&sent).unwrap();
        // So the node has begun to read it, and those before it are older.
        assert_eq!(client.read(), Value::Simple("PONG".into()));
        all.push(client);
        let status = eye.call(&["STATUS"]);
        assert!(status.at("unfinished_bytes").int() <= MOST, "{status}");
    }
    assert!(all[0].is_closed());
    let mut last = all.pop().unwrap();
    last.send_bytes(&whole[half..]).unwrap();
    assert_eq!(last.read(), Value::Text(body));
    eye.call(&["UNLOCK", "a"]);
    assert!(waiter.read().int() > 0);
    assert_eq!(waiter.read(), Value::Simple("PONG".into()));
    drop(all);
    until(&mut eye, |status| status.at("unfinished_bytes").int() == 0);
}

/// Clients that ask for much and read nothing: what they have not read stays within its bound together, and those who read
/// are not in the way.
#[test]
fn unread_answers_together_are_bounded() {
    const MOST: i64 = 4 << 20;
    const ROWS: usize = 2_000;
    let house = House::with(|config| config.wire.output_bytes_total = MOST as usize);
    let mut eye = house.client();
    for row in 0..ROWS {
        eye.send(&["LOCK", &format!("{row:0200}")]);
    }
    for _ in 0..ROWS {
        assert!(eye.read().int() > 0);
    }
    // The system's own buffers take the first of them.
    let lists = command(&["GATE", "LIST"]).repeat(60);
    let mut deaf = Vec::new();
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        let mut client = house.client();
        client.send_bytes(&lists).unwrap();
        deaf.push(client);
        assert_eq!(eye.call(&["GATE", "LIST"]).list().len(), ROWS);
        let status = eye.call(&["STATUS"]);
        assert!(status.at("unread_bytes").int() <= MOST, "{status}");
        if status.at("closed_output_total_ever").int() >= 3 {
            break status;
        }
        assert!(Instant::now() < deadline, "nobody is closed: {status}");
    };
    assert!(deaf.len() as i64 > status.at("closed_output_total_ever").int());
    assert!(deaf[0].is_closed());
    drop(deaf);
    until(&mut eye, |status| status.at("unread_bytes").int() == 0);
}

/// A listener that does not read is closed, and those who read hear every message.
#[test]
fn a_listener_that_does_not_read_is_closed_for_the_others() {
    let house = House::with(|config| config.wire.output_bytes_total = 2 << 20);
    let [mut eye, mut sender, mut reader] = [(); 3].map(|()| house.client());
    sender.call(&["SESSION", "OPEN"]);
    sender.call(&["GROUP", "JOIN", "g"]);
    let mut deaf = house.client();
    for listener in [&mut reader, &mut deaf] {
        listener.call(&["SUBSCRIBE", "group:g"]);
    }
    let deadline = Instant::now() + PATIENCE;
    for number in 1.. {
        let body = format!("{number:0>60000}");
        sender.call(&["GROUP", "SEND", "g", &body]);
        let told = reader.read();
        let Value::Text(line) = &told.list()[2] else {
            panic!("{told}");
        };
        assert!(line.ends_with(&format!(" {body}")), "message {number}");
        let status = eye.call(&["STATUS"]);
        assert!(status.at("unread_bytes").int() <= 2 << 20, "{status}");
        assert_eq!(status.at("closed_output_ever").int(), 0);
        if status.at("closed_output_total_ever").int() == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "it is not closed: {status}");
    }
    until(&mut eye, |status| status.at("unread_bytes").int() == 0);
    let status = eye.call(&["STATUS"]);
    assert_eq!(status.at("subscriptions").int(), 1);
}
