//! `--once` and `--every`: what is recorded, what is repeated, and what a crash in between leaves behind.

use rustix::process::Signal;

use crate::running::{Node, Running};

const DAY_MS: u64 = 86_400_000;

#[test]
fn what_is_done_is_not_run_again_not_even_after_a_crash_of_the_node() {
    let mut node = Node::start();
    let run = |node: &Node| node.run("lock setup --once v1", "echo ran");
    assert_eq!(run(&node).stdout, "ran\n");
    let again = run(&node);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert!(
        again.stderr.contains("v1 is done already"),
        "{}",
        again.stderr
    );
    node.kill();
    node.restart();
    let again = run(&node);
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert_eq!(node.run("lock setup --once v2", "echo ran").stdout, "ran\n");
}

#[test]
fn what_failed_may_be_repeated() {
    let node = Node::start();
    assert_eq!(node.run("lock setup --once v1", "exit 4").code, 4);
    assert_eq!(
        node.run("lock setup --once v1", "kill -TERM $$").code,
        128 + 15
    );
    assert_eq!(node.run("lock setup --once v1", "echo ran").stdout, "ran\n");
}

#[test]
fn a_crash_before_the_record_is_reported_and_repeated_only_on_request() {
    let node = Node::start();
    let mut killed = node.begin("lock setup --ttl 500ms --once v1", "echo inside; exec cat");
    killed.expect("inside");
    killed.signal(Signal::KILL);
    killed.wait();
    let unknown = node.run("lock setup --once v1", "echo ran");
    assert_eq!((unknown.code, unknown.stdout.as_str()), (76, ""));
    assert!(
        unknown.stderr.contains("--retry-unknown"),
        "{}",
        unknown.stderr
    );
    assert_eq!(node.run("lock setup --once v1", "echo ran").code, 76);
    let again = node.run("lock setup --once v1 --retry-unknown", "echo ran");
    assert_eq!((again.code, again.stdout.as_str()), (0, "ran\n"));
    let done = node.run("lock setup --once v1 --retry-unknown", "echo ran");
    assert_eq!((done.code, done.stdout.as_str()), (0, ""));
}

#[test]
fn a_run_that_cannot_be_recorded_is_reported() {
    let mut node = Node::start();
    let mut running = node.begin(
        "lock setup --ttl 1s --on-loss ignore --once v1",
        "echo inside; cat >/dev/null",
    );
    running.expect("inside");
    node.kill();
    let ended = running.end();
    assert_eq!(ended.code, 76, "{}", ended.stderr);
    assert!(ended.stderr.contains("not on record"), "{}", ended.stderr);
    node.restart();
    assert_eq!(node.run("lock setup --once v1", "echo ran").code, 76);
}

#[test]
fn a_node_that_comes_back_in_time_records_the_run() {
    let mut node = Node::start();
    let mut running = node.begin(
        "lock setup --ttl 60s --once v1",
        "echo inside; cat >/dev/null",
    );
    running.expect("inside");
    node.kill();
    node.restart();
    assert_eq!(running.end().code, 0);
    let again = node.run("lock setup --once v1", "echo ran");
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
}

fn every(node: &Node, now_ms: u64, shell: &str) -> Running {
    node.begin(
        &format!("lock nightly --ttl 1s --every 24h --now {now_ms}"),
        shell,
    )
}

#[test]
fn a_period_runs_once_and_an_earlier_one_never_again() {
    let node = Node::start();
    let run = |now_ms| every(&node, now_ms, "echo ran").end().stdout;
    let noon = 20_000 * DAY_MS + DAY_MS / 2;
    assert_eq!(run(noon), "ran\n");
    assert_eq!(run(noon + 1), "");
    assert_eq!(run(noon + DAY_MS), "ran\n");
    assert_eq!(run(noon), "", "a clock that is behind runs nothing");
    assert_eq!(
        node.run("lock nightly --every 1h --now 1", "echo ran")
            .stdout,
        "ran\n"
    );
}

#[test]
fn a_clock_that_was_far_ahead_is_pointed_out() {
    let node = Node::start();
    assert_eq!(every(&node, 30_000 * DAY_MS, "true").end().code, 0);
    let skipped = every(&node, 20_000 * DAY_MS, "echo ran").end();
    assert_eq!((skipped.code, skipped.stdout.as_str()), (0, ""));
    assert!(
        skipped.stderr.contains("testigo once forget nightly@1d"),
        "{}",
        skipped.stderr
    );
}

#[test]
fn an_unknown_attempt_does_not_stop_the_next_period() {
    let node = Node::start();
    let mut killed = every(&node, 20_000 * DAY_MS, "echo inside; exec cat");
    killed.expect("inside");
    killed.signal(Signal::KILL);
    killed.wait();
    assert_eq!(every(&node, 20_000 * DAY_MS, "echo ran").end().code, 76);
    assert_eq!(
        every(&node, 20_001 * DAY_MS, "echo ran").end().stdout,
        "ran\n"
    );
}

#[test]
fn a_forgotten_key_is_run_again() {
    let node = Node::start();
    let ran = || node.run("lock report --once first", "echo ran").stdout;
    assert_eq!(
        [ran(), ran()],
        [
            "ran
", ""
        ]
    );
    assert_eq!(node.run("once forget first", "").code, 0);
    assert_eq!(
        ran(),
        "ran
"
    );
    assert_eq!(node.run("once forget never-heard-of", "").code, 0);
}
