//! The RESP door under unfriendly use: garbage, floods, clients that do not read, and too many of them.

mod support;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::thread;

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use support::{Client, House, Value};
use testigo_node::Config;

fn pong() -> Value {
    Value::Simple("PONG".into())
}

#[test]
fn garbage_ends_a_connection_and_nothing_else() {
    let house = House::open();
    let mut rng = Xoshiro256StarStar::seed_from_u64(0x7E57_160B);
    let mut witness = house.client();
    let words = [
        "LOCK", "LOCKALL", "SESSION", "OPEN", "GATE", "CREATE", "HELLO", "3", "-1", "a", "$", "*",
    ];
    for _ in 0..300 {
        let mut client = house.client();
        let mut bytes = Vec::new();
        for _ in 0..20 {
            match rng.next_u64() % 3 {
                0 => bytes.push(rng.next_u64() as u8),
                1 => bytes.extend(words[rng.next_u64() as usize % words.len()].bytes()),
                _ => bytes.extend(
                    [&b" "[..], b"\r\n", b"*3\r\n", b"$4\r\n"][rng.next_u64() as usize % 4],
                ),
            }
        }
        // The node may have hung up before everything was sent.
        let _ = client.send_bytes(&bytes);
        drop(client);
        assert_eq!(witness.call(&["PING"]), pong());
    }
}

#[test]
fn a_body_that_is_too_long_is_refused_and_the_job_stays_in_hand() {
    let house = House::open();
    let mut client = house.client();
    let flow = "intake -> [orders] -> price -> [priced] -> bill";
    client.call(&["FLOW", "APPLY", "shop", flow]);
    let most = testigo_core::Limits::BODY_BYTES;
    let (fits, too_long) = ("x".repeat(most), "x".repeat(most + 1));
    let why = "LIMIT a body of 524289 bytes is above the limit body_bytes of 524288;";
    let refused = client.call(&["JOB", "CREATE", "orders", "a", &too_long]);
    assert!(refused.error().starts_with(why), "{refused}");
    let created = client.call(&["JOB", "CREATE", "orders", "a", &fits]);
    assert_eq!(created, Value::Int(1));
    let taken = client.call(&["JOB", "TAKE", "orders"]);
    let attempt = taken.list()[3].int().to_string();
    let refused = client.call(&["JOB", "PASS", "1", &attempt, "priced", &too_long]);
    assert!(refused.error().starts_with(why), "{refused}");
    let passed = client.call(&["JOB", "PASS", "1", &attempt, "priced", "short"]);
    assert_eq!(passed, Value::Simple("OK".into()));
}

#[test]
fn a_unit_of_work_that_is_too_long_is_refused_by_the_limits_name() {
    let house = House::open();
    let mut client = house.client();
    client.call(&["FLOW", "APPLY", "shop", "intake -> [orders] -> bill"]);
    client.call(&["MULTI"]);
    for _ in 0..testigo_core::Limits::UNIT_CHANGES {
        let queued = client.call(&["JOB", "CREATE", "orders", "*", ""]);
        assert_eq!(queued, Value::Simple("QUEUED".into()));
    }
    let refused = client.call(&["JOB", "CREATE", "orders", "*", ""]);
    let why = "LIMIT a unit of work has at most 256 commands (the limit unit_changes)";
    assert_eq!(refused.error(), why);
    client.call(&["DISCARD"]);
    client.call(&["MULTI"]);
    let half = "x".repeat(testigo_core::Limits::BODY_BYTES);
    client.call(&["JOB", "CREATE", "orders", "a", &half]);
    let refused = client.call(&["JOB", "CREATE", "orders", "b", &half]);
    assert!(
        refused.error().ends_with("(the limit unit_bytes)"),
        "{refused}"
    );
    client.call(&["EXEC"]);
    assert_eq!(client.call(&["JOB", "COUNT"]), Value::Int(0));
}

#[test]
fn a_violation_is_explained_before_the_connection_is_closed() {
    let house = House::open();
    for (bytes, why) in [
        (&b"*99999999\r\n"[..], "arguments"),
        (b"*1\r\n$99999999\r\n", "argument_bytes"),
        (b"*1\r\n:1\r\n", "expected"),
    ] {
        let mut client = house.client();
        client.send_bytes(bytes).unwrap();
        let error = client.read();
        assert!(
            error.error().starts_with("BADARG protocol error: "),
            "{error}"
        );
        assert!(error.error().contains(why), "{error}");
        assert!(client.is_closed());
    }
}

#[test]
fn ten_thousand_commands_in_one_flood_are_answered_in_order() {
    let house = House::open();
    let client = TcpStream::connect(house.address()).unwrap();
    let mut writer = client.try_clone().unwrap();
    let flood = thread::spawn(move || {
        for number in 0..10_000 {
            // A kilobyte each: far more than a connection's output may hold unread.
            let text = format!("{number:01000}");
            write!(writer, "*2\r\n$4\r\nECHO\r\n$1000\r\n{text}\r\n").unwrap();
        }
        writer.shutdown(Shutdown::Write).unwrap();
    });
    // Nothing is read before everything is sent and the node has had to hold back.
    let mut reader = client;
    let mut all = Vec::new();
    reader.read_to_end(&mut all).unwrap();
    flood.join().unwrap();
    let text = String::from_utf8(all).unwrap();
    let echoes: Vec<usize> = text
        .split("$1000\r\n")
        .skip(1)
        .map(|echo| echo.trim().parse().unwrap())
        .collect();
    assert_eq!(echoes, (0..10_000).collect::<Vec<_>>());
}

#[test]
fn a_subscriber_that_does_not_read_is_closed() {
    let house = House::with(|config| config.wire.output_bytes = 20_000);
    let mut deaf = house.client();
    deaf.call(&["PSUBSCRIBE", "gate:*"]);
    let mut busy = house.client();
    let gate = "g".repeat(250);
    let mut eye = house.client();
    // The system's own buffers fill first.
    loop {
        for _ in 0..1000 {
            busy.send(&["LOCK", &gate]);
            busy.send(&["UNLOCK", &gate]);
        }
        for _ in 0..2000 {
            busy.read();
        }
        let Value::Text(list) = eye.call(&["CLIENT", "LIST"]) else {
            panic!("no list");
        };
        if !list.contains("psub=1") {
            break;
        }
    }
    assert!(deaf.is_closed());
}

#[test]
fn one_connection_too_many_is_told_so() {
    let house = House::with(|config| config.wire.connections = 2);
    let mut first = house.client();
    let mut second = house.client();
    assert_eq!(
        (first.call(&["PING"]), second.call(&["PING"])),
        (pong(), pong())
    );
    let mut third = house.client();
    assert!(third.read().error().starts_with("LIMIT "));
    assert!(third.is_closed());
    drop(first);
    // The place is free as soon as the node has seen the end.
    loop {
        let mut fourth = house.client();
        if let Ok(Value::Simple(_)) = fourth.try_call(&["PING"]) {
            break;
        }
    }
}

#[test]
fn waiters_beyond_the_limit_are_refused() {
    let house = House::with(|config: &mut Config| config.limits.waiters = 2);
    let mut holder = house.client();
    holder.call(&["LOCK", "a"]);
    let mut waiters: Vec<Client> = (0..2).map(|_| house.client()).collect();
    for waiter in &mut waiters {
        waiter.send(&["LOCK", "a"]);
    }
    while holder.call(&["STATUS"]).at("waits").int() < 2 {}
    let mut late = house.client();
    assert!(late.call(&["LOCK", "a"]).error().starts_with("LIMIT "));
    holder.call(&["UNLOCK", "a"]);
    assert!(waiters[0].read().int() > 0);
}

#[test]
fn an_unfinished_command_waits_for_its_end() {
    let house = House::open();
    let mut client = house.client();
    let mut other = house.client();
    for byte in b"*2\r\n$4\r\nECHO\r\n$3\r\nabc\r\n*1\r\n$4\r\nPI" {
        client.send_bytes(&[*byte]).unwrap();
        assert_eq!(other.call(&["PING"]), pong());
    }
    assert_eq!(client.read(), Value::Text("abc".into()));
    client.send_bytes(b"NG\r\n").unwrap();
    assert_eq!(client.read(), pong());
}

#[test]
fn a_unix_socket_serves_the_same_house_and_is_gone_with_it() {
    let mut house = House::open();
    let path = house.dir.path().join("door");
    house.node.take().unwrap().stop().unwrap();
    let start = || {
        let mut config = Config::embedded(house.dir.path().join("data"));
        config.unix = Some(path.clone());
        testigo_node::Node::start(config)
    };
    let node = start().unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    node.stop().unwrap();
    assert!(!path.exists());
    // What a killed node leaves behind is no obstacle; another file is.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    start().unwrap().stop().unwrap();
    std::fs::write(&path, "mine").unwrap();
    assert!(start().unwrap_err().to_string().contains("no socket"));
}
