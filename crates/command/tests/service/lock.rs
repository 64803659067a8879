//! `testigo lock` while all goes well: who is inside, what is passed on, and how it ends.

use rustix::process::Signal;

use crate::running::{Node, Running, nobody};

/// Says that it is inside, and stays until its input ends.
const STAY: &str = "echo inside; cat >/dev/null; echo out";

#[test]
fn the_command_gets_its_fence_and_gives_its_exit_code() {
    let node = Node::start();
    let first = node.run("lock deploy", "echo $TESTIGO_FENCE; exit 3");
    let second = node.run("lock deploy", "echo $TESTIGO_FENCE");
    assert_eq!((first.code, second.code), (3, 0));
    let fence = |text: &str| text.trim().parse::<u64>().expect("a fence");
    assert!(fence(&second.stdout) > fence(&first.stdout));
    assert_eq!(node.run("lock deploy", "kill -KILL $$").code, 128 + 9);
    let missing = Running::start(node.command(["lock", "deploy", "--", "no-such-command"])).end();
    assert_eq!(missing.code, 127);
    assert!(
        missing.stderr.contains("no-such-command"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_set_gets_all_its_fences() {
    let node = Node::start();
    let set = node.run(
        "lock a b",
        "echo $TESTIGO_FENCES; echo ${TESTIGO_FENCE-none}",
    );
    let mut lines = set.stdout.lines();
    let fences = lines.next().expect("the fences");
    let names: Vec<&str> = fences
        .split(' ')
        .filter_map(|pair| Some(pair.split_once('=')?.0))
        .collect();
    assert_eq!(names, ["a", "b"], "{fences}");
    assert_eq!(lines.next(), Some("none"));
}

#[test]
fn only_one_is_inside_and_the_wait_ends_with_75() {
    let node = Node::start();
    let mut holder = node.begin("lock deploy --reason first", STAY);
    holder.expect("inside");
    assert_eq!(node.run("lock deploy --wait 0", "echo no").code, 75);
    let waited = node.run("lock deploy --wait 50ms", "echo no");
    assert_eq!((waited.code, waited.stdout.as_str()), (75, ""));
    let mut next = node.begin("lock deploy --class 0", STAY);
    node.until("gate show deploy", |gate| {
        gate["waiters"].as_array().is_some_and(|all| all.len() == 1)
    });
    assert_eq!(
        node.json("gate show deploy")["holders"][0]["reason"],
        "first"
    );
    assert_eq!(holder.end().code, 0);
    next.expect("inside");
    assert_eq!(next.end().code, 0);
    assert_eq!(
        node.json("gate list"),
        serde_json::json!([]),
        "implicit gates are gone when idle"
    );
}

#[test]
fn readers_are_inside_together_and_so_are_permits() {
    let node = Node::start();
    let mut readers = [0, 1].map(|_| node.begin("lock db --shared", STAY));
    readers
        .iter_mut()
        .for_each(|reader| reader.expect("inside"));
    assert_eq!(node.run("lock db --wait 0", "true").code, 75);
    assert_eq!(node.run("gate create seats permits 3", "").code, 0);
    let mut two = node.begin("lock seats --permits 2", STAY);
    two.expect("inside");
    assert_eq!(node.run("lock seats --permits 2 --wait 0", "true").code, 75);
    assert_eq!(node.run("lock seats --wait 0", "true").code, 0);
}

#[test]
fn without_a_node_it_ends_with_69() {
    let node = Node::start();
    let nobody = nobody();
    let ended = node.run(&format!("lock deploy --resp {nobody}"), "echo ran");
    assert_eq!((ended.code, ended.stdout.as_str()), (69, ""));
    assert!(ended.stderr.contains("testigo up"), "{}", ended.stderr);
    assert_eq!(
        node.run("lock deploy --resp unix:no-such-socket", "true")
            .code,
        69
    );
}

#[test]
fn bad_input_ends_with_2_and_says_what_is_right() {
    let node = Node::start();
    for (line, hint) in [
        ("lock deploy --wait 5x", "500ms"),
        ("lock deploy --resp nowhere", "HOST:PORT"),
        (
            "lock deploy --resp nowhere:1,",
            "a comma without an address",
        ),
        ("lock deploy --shared --permits 2", "cannot be used with"),
        ("lock deploy --retry-unknown", "--once"),
        (
            "lock deploy --permits 2",
            "there is no gate deploy; `testigo gate create`",
        ),
        (
            "lock deploy --ttl 1ms",
            "--ttl 1ms must be between 100ms and",
        ),
        ("lock a a", "named twice"),
    ] {
        let ended = node.run(line, "true");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
    }
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let node = Node::start();
    for (signal, code) in [(Signal::TERM, 5), (Signal::INT, 6)] {
        let mut holder = node.begin(
            "lock deploy",
            "trap 'exit 5' TERM; trap 'exit 6' INT; echo inside; while read line; do :; done",
        );
        holder.expect("inside");
        holder.signal(signal);
        assert_eq!(holder.wait().code, code);
    }
    assert_eq!(node.run("lock deploy --wait 0", "true").code, 0);
}

#[test]
fn who_is_stopped_while_it_waits_leaves_the_queue() {
    let node = Node::start();
    let mut holder = node.begin("lock deploy", STAY);
    holder.expect("inside");
    let waiter = node.begin("lock deploy", STAY);
    let waiters = |count| {
        move |gate: &serde_json::Value| gate["waiters"].as_array().map(Vec::len) == Some(count)
    };
    node.until("gate show deploy", waiters(1));
    waiter.signal(Signal::TERM);
    assert_eq!(waiter.wait().code, 128 + 15);
    assert!(waiters(0)(&node.json("gate show deploy")));
}

#[test]
fn a_nested_command_finds_the_same_node() {
    let node = Node::start();
    let mut command = node.command(["lock", "outer", "--resp", &node.address(), "--"]);
    command.arg(env!("CARGO_BIN_EXE_testigo"));
    command.args(["lock", "inner", "--", "sh", "-c", "echo $TESTIGO_FENCE"]);
    command.env_remove("TESTIGO_RESP");
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.trim().parse::<u64>().is_ok());
}
