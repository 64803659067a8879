//! Commands whose `testigo` is stopped, or loses its leash: they end before another has what they held. What is asserted is an
//! order of events: whoever is inside next finds the mark that the one before has left at its end.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::running::{Ended, Node, Running};
use crate::terminal::Terminal;

/// Marks the time of its end, and ends, when asked to.
const MARKS: &str =
    "trap 'echo stopped >>mark; exit 9' TERM; echo inside; until read line; do :; done";
/// Does not listen; the file `alive` is locked for as long as it lives.
const STUBBORN: &str =
    "exec 9>alive; flock 9; trap '' TERM; echo inside; until read line; do :; done";
/// Says what it hears from a terminal, and ends when it may go on.
const LISTENS: &str = "trap 'echo stop' TSTP TTIN TTOU; trap 'echo go on; exit 7' CONT; \
                       echo inside; until read line; do :; done";

/// Each way to hold something: the words of the command, and what the next one adds to them.
const WAYS: [[&str; 2]; 3] = [
    ["lock deploy", ""],
    ["elect db", ""],
    ["pool take ports", "--wait 1h"],
];

fn node() -> Node {
    let node = Node::start();
    assert_eq!(node.run("pool create ports --slots 1", "").code, 0);
    node
}

/// Somebody inside, with a short time to live.
fn holder(node: &Node, way: &str, shell: &str) -> Running {
    let mut holder = node.begin(&format!("{way} --ttl 1s --grace 50ms"), shell);
    holder.expect("inside");
    holder
}

/// Stops the `testigo` of a holder, lets the next one in, and then lets the first go on: what the next one has found, and how
/// the first has ended.
fn passed_on([way, more]: [&str; 2], shell: &str, signal: Signal, look: &str) -> (String, Ended) {
    let node = node();
    let holder = holder(&node, way, shell);
    holder.signal(signal);
    holder.until_stopped();
    let next = node.run(&format!("{way} {more}"), look);
    assert_eq!(next.code, 0, "{way}: {}", next.stderr);
    holder.signal(Signal::CONT);
    (next.stdout, holder.wait())
}

#[test]
fn the_command_of_a_stopped_testigo_ends_before_another_is_inside() {
    for way in WAYS {
        let (found, ended) = passed_on(way, MARKS, Signal::STOP, "cat mark");
        assert_eq!((&found[..], ended.code), ("stopped\n", 9), "{way:?}");
        assert!(ended.stderr.contains("stopping"), "{}", ended.stderr);
    }
}

#[test]
fn a_command_that_does_not_listen_is_killed_before_another_is_inside() {
    for way in WAYS {
        let (found, ended) = passed_on(way, STUBBORN, Signal::STOP, "flock -n alive echo free");
        assert_eq!((&found[..], ended.code), ("free\n", 128 + 9), "{way:?}");
    }
}

#[test]
fn a_command_that_is_stopped_too_acts_on_its_end_before_another_is_inside() {
    for way in WAYS {
        let (found, ended) = passed_on(way, MARKS, Signal::TSTP, "cat mark");
        assert_eq!((&found[..], ended.code), ("stopped\n", 9), "{way:?}");
    }
}

/// Specimen: without a leash the mark is missing, so the tests above can fail.
#[test]
fn a_command_that_may_run_on_is_found_by_the_next() {
    let node = node();
    let mut holder = node.begin("lock deploy --ttl 1s --on-loss ignore", STUBBORN);
    holder.expect("inside");
    holder.signal(Signal::STOP);
    let next = node.run("lock deploy", "flock -n alive echo free");
    assert_eq!((next.code, &next.stdout[..]), (1, ""));
    holder.signal(Signal::CONT);
    holder.signal(Signal::QUIT);
    assert_eq!(holder.wait().code, 128 + 3);
}

#[test]
fn the_signals_of_job_control_reach_the_command() {
    for [way, _] in WAYS {
        let node = node();
        for signal in [Signal::TSTP, Signal::TTIN] {
            let mut holder = node.begin(&format!("{way} --ttl 60s"), LISTENS);
            holder.expect("inside");
            holder.signal(signal);
            holder.expect("stop");
            holder.until_stopped();
            holder.signal(Signal::CONT);
            holder.expect("go on");
            assert_eq!(holder.wait().code, 7, "{way}");
        }
    }
}

/// In a terminal the command is in its group, and what it started is in no other one.
#[test]
fn in_a_terminal_what_the_command_started_ends_too_before_another_is_inside() {
    let node = node();
    let words = ["lock", "deploy", "--ttl", "1s", "--", "sh", "-c"];
    let mut command = node.command(words);
    command.args(["sh -c \"$0\"; true", STUBBORN]);
    let mut terminal = Terminal::start(command, (80, 24));
    terminal.wait_for("inside");
    let holder = Pid::from_child(&terminal.child);
    kill_process(holder, Signal::STOP).expect("it lives");
    let next = node.run("lock deploy", "flock -n alive echo free");
    assert_eq!((next.code, &next.stdout[..]), (0, "free\n"));
    kill_process(holder, Signal::CONT).expect("it lives");
    let (_, status) = terminal.end();
    assert!(!status.success(), "{status}");
}

#[test]
fn who_waits_may_be_stopped_and_goes_on_waiting() {
    let node = node();
    let first = holder(&node, "lock deploy", "echo inside; cat >/dev/null");
    let mut second = node.begin("lock deploy --ttl 60s", "echo inside");
    node.until("gate show deploy", |gate| gate["waiters"][0].is_object());
    second.signal(Signal::TSTP);
    second.until_stopped();
    second.signal(Signal::CONT);
    assert_eq!(first.end().code, 0);
    second.expect("inside");
    assert_eq!(second.end().code, 0);
}

/// The leash of a holder's command.
fn leash_of(holder: &Running) -> String {
    let children = Command::new("pgrep")
        .args(["-f", "-P", &holder.pid().to_string(), "/exe leash$"])
        .output()
        .expect("it runs");
    String::from_utf8_lossy(&children.stdout).trim().to_owned()
}

fn kill(processes: &[&str]) {
    let killed = Command::new("kill").arg("-9").args(processes).status();
    assert!(killed.expect("it runs").success(), "{processes:?}");
}

/// As `pkill -9 testigo` does it.
#[test]
fn a_command_ends_though_its_testigo_and_its_leash_are_killed_together() {
    let node = node();
    let mut holder = node.begin("lock deploy --ttl 60s", MARKS);
    holder.expect("inside");
    kill(&[&holder.pid().to_string(), &leash_of(&holder)]);
    // Its output ends only when nobody is left who could write.
    assert_eq!(holder.wait().code, -1);
}

#[test]
fn a_command_that_loses_its_leash_is_stopped() {
    let node = node();
    let mut holder = node.begin("lock deploy --ttl 60s", MARKS);
    holder.expect("inside");
    kill(&[&leash_of(&holder)]);
    let ended = holder.wait();
    assert_eq!(ended.code, 9);
    assert!(
        ended.stderr.contains("the leash of the command was killed"),
        "{}",
        ended.stderr
    );
}

#[test]
fn what_the_command_started_ends_with_a_killed_testigo() {
    let node = node();
    let starts = "(trap '' TERM; echo inside; exec tail -f /dev/null) & wait";
    let holder = holder(&node, "lock deploy", starts);
    holder.signal(Signal::KILL);
    // Its output ends only when nobody is left who could write.
    assert_eq!(holder.wait().code, -1);
}
