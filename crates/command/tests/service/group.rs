//! `testigo group`: what one sends is delivered to all who follow, also after `kill -9` of the node.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::running::{Ended, Node, Running, nobody};

/// A follower of `talk`, and its session.
fn follow(node: &Node, more: &str) -> (Running, u64) {
    let mut follower = node.begin(&format!("group join talk {more}"), "");
    let first = follower.line();
    let session = match serde_json::from_str::<Value>(&first) {
        Ok(line) => line["session"].as_u64(),
        Err(_) => first.rsplit(' ').next().and_then(|word| word.parse().ok()),
    };
    let session = session.unwrap_or_else(|| panic!("who it is, not {first:?}"));
    (follower, session)
}

/// The next message, as it is printed.
fn delivered(follower: &mut Running) -> String {
    loop {
        let line = follower.line();
        assert!(!line.is_empty(), "it ended");
        if line.starts_with("delivered ") {
            return line;
        }
    }
}

fn number(sent: &Ended) -> u64 {
    assert_eq!(sent.code, 0, "{}", sent.stderr);
    sent.stdout.trim().parse().expect("a number")
}

/// Sends words that `Node::run` would part.
fn send(node: &Node, body: &str) -> u64 {
    let command = node.command(["group", "send", "talk", body]);
    number(&Running::start(command).end())
}

#[test]
fn what_is_sent_is_delivered_to_all_in_one_order_and_after_a_crash_of_the_node() {
    let mut node = Node::start();
    let (mut one, session) = follow(&node, "--ttl 60s");
    let (mut two, other) = follow(&node, "--order total --using log --ttl 60s");
    let joined = one.line();
    assert!(
        joined.ends_with(&format!(" {other}")) && joined.starts_with("joined "),
        "{joined}"
    );
    let first = send(&node, "hello everybody");
    let second = send(&node, "two\nlines \\ and \u{1b}[31m");
    assert_eq!(second, first + 1);
    for follower in [&mut one, &mut two] {
        let line = delivered(follower);
        assert!(
            line.starts_with(&format!("delivered {first} ")) && line.ends_with(" hello everybody"),
            "{line}"
        );
        let line = delivered(follower);
        assert!(line.ends_with(r" two\nlines \\ and \u{1b}[31m"), "{line}");
    }
    let members = node.json("group members talk");
    let sessions: Vec<&Value> = members["members"]
        .as_array()
        .expect("members")
        .iter()
        .map(|member| &member["session"])
        .collect();
    assert!(
        sessions.contains(&&json!(session)) && sessions.contains(&&json!(other)),
        "{members}"
    );
    assert_eq!(
        (&members["order"], &members["using"]),
        (&json!("TOTAL"), &json!("log"))
    );

    node.kill();
    node.restart();
    let third = send(&node, "after the crash");
    for follower in [&mut one, &mut two] {
        let line = delivered(follower);
        assert!(line.starts_with(&format!("delivered {third} ")), "{line}");
    }
    one.signal(Signal::TERM);
    assert_eq!(one.wait().code, 128 + 15);
    let left = format!(" {session}");
    while !two.line().ends_with(&left) {}
    assert_eq!(node.run(&format!("session end {other}"), "").code, 0);
    let ended = two.wait();
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("no member of talk any more"),
        "{}",
        ended.stderr
    );
    assert_eq!(node.run("group members talk", "").code, 1);
}

/// What only memory knew is lost with all nodes, and whoever follows is told.
#[test]
fn a_group_that_an_algorithm_orders_goes_on_behind_a_gap_after_a_crash_of_the_node() {
    let mut node = Node::start();
    let (mut follower, _) = follow(&node, "--using sequencer --ttl 60s");
    let first = send(&node, "before");
    let line = delivered(&mut follower);
    assert!(line.starts_with(&format!("delivered {first} ")), "{line}");
    assert_eq!(node.json("group members talk")["using"], "sequencer");
    node.kill();
    node.restart();
    let missed = loop {
        let line = follower.line();
        if line.starts_with("missed ") {
            break line;
        }
    };
    let second = send(&node, "after");
    assert!(second > first + 1);
    let line = delivered(&mut follower);
    assert!(line.starts_with(&format!("delivered {second} ")), "{line}");
    assert!(missed.ends_with(&format!(" {}", second - 1)), "{missed}");
}

#[test]
fn programs_read_json_and_send_what_they_read() {
    let node = Node::start();
    let (mut follower, _) = follow(&node, "--json --count 3");
    let mut bytes = node.command(["group", "send", "talk"]);
    let file = node.file("body");
    std::fs::write(&file, b"\xff\x00").expect("writable");
    bytes.stdin(std::fs::File::open(&file).expect("readable"));
    let sent = bytes.output().expect("it runs");
    assert_eq!(sent.status.code(), Some(0));
    let told = node.json("group send talk text");
    let empty = node.command(["group", "send", "talk", ""]);
    number(&Running::start(empty).end());
    let mut lines = Vec::new();
    while lines.len() < 3 {
        let line: Value = serde_json::from_str(&follower.line()).expect("JSON");
        if line["event"] == "delivered" {
            lines.push(line);
        }
    }
    let bodies: Vec<&Value> = lines.iter().map(|line| &line["body"]).collect();
    assert_eq!(
        bodies,
        [&json!({ "hex": "ff00" }), &json!("text"), &json!("")]
    );
    assert_eq!(
        told,
        json!({ "name": "talk", "number": lines[1]["number"] })
    );
    assert_eq!(
        follower.end().code,
        0,
        "all that --count wants is delivered"
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let node = Node::start();
    let alone = node.run("group send talk hello", "");
    assert_eq!((alone.code, alone.stdout.as_str()), (1, ""));
    assert!(
        alone.stderr.contains("nobody is a member of talk"),
        "{}",
        alone.stderr
    );
    let none = node.run("group members talk --json", "");
    assert_eq!((none.code, none.stdout.as_str()), (1, "null\n"));
    let (follower, _) = follow(&node, "--order fifo");
    let other = node.run("group join talk --order total", "");
    assert_eq!(other.code, 75, "{}", other.stderr);
    assert!(other.stderr.contains("--order fifo"), "{}", other.stderr);
    let isis = node.run("group join other --using gossip", "");
    assert_eq!(isis.code, 2, "{}", isis.stderr);
    let long = node.file("long");
    std::fs::write(&long, vec![b'x'; (64 << 10) + 1]).expect("writable");
    let mut command = node.command(["group", "send", "talk"]);
    command.stdin(std::fs::File::open(&long).expect("readable"));
    let long = command.output().expect("it runs");
    assert_eq!(long.status.code(), Some(2));
    let away = node.run(&format!("group join talk --resp {}", nobody()), "");
    assert_eq!(away.code, 69, "{}", away.stderr);
    follower.signal(Signal::INT);
    assert_eq!(follower.wait().code, 128 + 2);
}
