//! What `testigo lock` does when its node or itself is killed, and when its lock is taken away.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::Signal;

use crate::running::{Node, Running};

const STAY: &str = "echo inside; cat >/dev/null; echo out";
/// Says that it was asked to stop, and does.
const POLITE: &str = "trap 'echo stopped; exit 9' TERM; echo inside; while read line; do :; done";
/// Does not listen.
const STUBBORN: &str = "trap '' TERM; echo inside; while read line; do :; done; echo out";

/// A holder of gate `deploy`, inside.
fn holder(node: &Node, options: &str, shell: &str) -> Running {
    let mut holder = node.begin(&format!("lock deploy --ttl 1s {options}"), shell);
    holder.expect("inside");
    holder
}

#[test]
fn a_command_is_stopped_when_its_node_is_gone() {
    let mut node = Node::start();
    let polite = holder(&node, "", POLITE);
    node.kill();
    let ended = polite.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (9, "stopped\n"));
    assert!(
        ended.stderr.contains("the lock deploy is about to be lost"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_loss_that_cannot_be_told_still_stops_the_command() {
    let mut node = Node::start();
    let mut command = node.command(["lock", "deploy", "--ttl", "1s", "--", "sh", "-c", POLITE]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(
        File::options()
            .write(true)
            .open("/dev/full")
            .expect("a device"),
    );
    let mut polite = command.spawn().expect("started");
    let mut output = BufReader::new(polite.stdout.take().expect("piped"));
    let mut said = String::new();
    output.read_line(&mut said).expect("text");
    node.kill();
    output.read_to_string(&mut said).expect("text");
    assert_eq!(said, "inside\nstopped\n");
    assert_eq!(polite.wait().expect("ended").code(), Some(9));
}

#[test]
fn a_command_that_does_not_listen_is_killed() {
    let mut node = Node::start();
    let stubborn = holder(&node, "--grace 50ms", STUBBORN);
    node.kill();
    assert_eq!(stubborn.wait().code, 128 + 9);
}

#[test]
fn a_command_may_be_killed_at_once_or_left_alone() {
    let mut node = Node::start();
    let mut calm = node.begin("lock other --ttl 1s --on-loss ignore", STUBBORN);
    calm.expect("inside");
    let killed = holder(&node, "--on-loss kill", POLITE);
    node.kill();
    let ended = killed.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (128 + 9, ""));
    assert!(
        ended.stderr.contains("was silent for too long; killing"),
        "{}",
        ended.stderr
    );
    let ended = calm.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "out\n"));
}

#[test]
fn a_restarted_node_is_found_again_and_nobody_else_gets_in() {
    let mut node = Node::start();
    let mut first = node.begin(
        "lock deploy --ttl 60s",
        "echo $TESTIGO_FENCE; cat >/dev/null",
    );
    let fence: u64 = first.line().parse().expect("a fence");
    node.kill();
    node.restart();
    node.until("status", |status| status["recovering"] == false);
    let shown = node.json("gate show deploy");
    assert_eq!(shown["holders"][0]["fence"], fence, "{shown}");
    assert_eq!(node.run("lock deploy --wait 0", "true").code, 75);
    let mut second = node.begin("lock deploy", "echo $TESTIGO_FENCE; cat >/dev/null");
    node.until("gate show deploy", |gate| gate["waiters"][0].is_object());
    assert_eq!(first.end().code, 0);
    let later: u64 = second.line().parse().expect("a fence");
    assert!(later > fence, "{later} is after {fence}");
}

#[test]
fn a_waiter_waits_on_at_a_restarted_node() {
    let mut node = Node::start();
    let mut first = node.begin("lock deploy --ttl 60s", STAY);
    first.expect("inside");
    let mut second = node.begin("lock deploy --ttl 60s", STAY);
    node.until("gate show deploy", |gate| gate["waiters"][0].is_object());
    node.kill();
    node.restart();
    node.until("gate show deploy", |gate| {
        gate["holders"][0].is_object() && gate["waiters"][0].is_object()
    });
    assert_eq!(first.end().code, 0);
    second.expect("inside");
    assert_eq!(second.end().code, 0);
}

#[test]
fn a_killed_holder_takes_its_command_along_and_the_next_gets_in() {
    let node = Node::start();
    let mut killed = holder(&node, "", "echo inside; echo $$; exec cat");
    let mut next = node.begin("lock deploy", STAY);
    node.until("gate show deploy", |gate| gate["waiters"][0].is_object());
    let pid = killed.line();
    killed.signal(Signal::KILL);
    // Its output ends only when nobody is left who could write: the command is gone, too.
    assert_eq!(killed.wait().code, -1, "process {pid}");
    next.expect("inside");
    assert_eq!(next.end().code, 0);
}

#[test]
fn a_hold_limit_stops_the_command_in_time() {
    let node = Node::start();
    assert_eq!(
        node.run("gate create deploy mutex --lease 600ms", "").code,
        0
    );
    let ended = holder(&node, "--grace 100ms", POLITE).wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (9, "stopped\n"));
    assert_eq!(node.run("lock deploy", "true").code, 0);
}

#[test]
fn a_session_that_is_ended_stops_its_command() {
    let node = Node::start();
    let mut polite = node.begin("lock deploy --grace 50ms", POLITE);
    polite.expect("inside");
    let session = node.json("session list")[0]["session"]
        .as_u64()
        .expect("a session");
    assert_eq!(node.run(&format!("session end {session}"), "").code, 0);
    let ended = polite.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (9, "stopped\n"));
    assert!(
        ended.stderr.contains("its session is over"),
        "{}",
        ended.stderr
    );
}
