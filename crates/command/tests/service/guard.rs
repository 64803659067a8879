//! `testigo guard`: a stale fence is refused, also when many guards run at once.

use std::fs;

use crate::running::{Node, Running};

/// Guards need no node; its folder will do.
fn guard(node: &Node, fence: u64, shell: &str) -> Running {
    node.begin(&format!("guard fence {fence}"), shell)
}

#[test]
fn a_lower_fence_than_the_highest_is_refused() {
    let node = Node::start();
    for (fence, code) in [(5, 3), (5, 3), (4, 77), (9, 3), (8, 77), (9, 3)] {
        let ended = guard(&node, fence, "echo ran; exit 3").end();
        assert_eq!(ended.code, code, "{fence}: {}", ended.stderr);
        assert_eq!(ended.stdout.is_empty(), code == 77);
    }
    let stale = guard(&node, 1, "true").end();
    assert!(
        stale.stderr.contains("fence has seen 9"),
        "{}",
        stale.stderr
    );
    assert_eq!(node.run("guard fence nine", "true").code, 2);
    assert_eq!(node.run("guard no/such/folder 1", "true").code, 2);
    let missing = Running::start(node.command(["guard", "fence", "9", "--", "no-such-command"]));
    assert_eq!(missing.end().code, 127);
}

#[test]
fn guards_run_one_after_the_other_and_fences_only_grow() {
    const GUARDS: u64 = 24;
    let node = Node::start();
    // 7 and 24 have no common divisor: every fence once, in an order far from sorted.
    let fences: Vec<u64> = (0..GUARDS).map(|at| at * 7 % GUARDS).collect();
    let shell = |fence: u64| format!("echo start {fence} >> log; echo end {fence} >> log");
    let guards: Vec<Running> = fences
        .iter()
        .map(|fence| guard(&node, *fence, &shell(*fence)))
        .collect();
    let codes: Vec<i32> = guards.into_iter().map(|guard| guard.end().code).collect();
    assert!(codes.iter().all(|code| [0, 77].contains(code)), "{codes:?}");
    let log = fs::read_to_string(node.file("log")).expect("some passed");
    let lines: Vec<&str> = log.lines().collect();
    let mut highest = None;
    for pair in lines.chunks(2) {
        let fence = pair[0].strip_prefix("start ").expect("a start");
        assert_eq!(pair[1], format!("end {fence}"), "nobody is in between");
        let fence: u64 = fence.parse().expect("a number");
        assert!(highest < Some(fence), "{fence} after {highest:?}");
        highest = Some(fence);
    }
    assert_eq!(highest, Some(GUARDS - 1));
    let passed = codes.iter().filter(|code| **code == 0).count();
    assert_eq!(lines.len(), 2 * passed);
}

#[test]
fn what_a_command_left_behind_keeps_the_next_one_waiting() {
    let node = Node::start();
    // The background process inherits the lock and outlives the command.
    let mut first = guard(
        &node,
        1,
        "(cat >/dev/null; echo late >> log) <&0 >/dev/null 2>&1 & echo left",
    );
    first.expect("left");
    let second = guard(&node, 2, "cat log");
    first.end();
    assert_eq!(second.end().stdout, "late\n");
}

#[test]
fn a_lock_and_a_guard_belong_together() {
    let node = Node::start();
    let testigo = env!("CARGO_BIN_EXE_testigo");
    let shell = format!("{testigo} guard fence $TESTIGO_FENCE -- echo written");
    assert_eq!(node.run("lock deploy", &shell).stdout, "written\n");
    assert_eq!(guard(&node, 1, "echo written").end().code, 77);
}
