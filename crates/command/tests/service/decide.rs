//! `testigo decide`: one value for everybody, also after `kill -9`.

use crate::running::Node;

#[test]
fn the_first_value_is_decided_and_stays_so_after_a_crash_of_the_node() {
    let mut node = Node::start();
    let decide = |node: &Node, line: &str| {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended.stdout
    };
    assert_eq!(decide(&node, "decide release 7.1"), "7.1\n");
    assert_eq!(decide(&node, "decide release 7.2"), "7.1\n");
    node.kill();
    node.restart();
    assert_eq!(decide(&node, "decide release 7.2"), "7.1\n");
    let other = node.json("decide release 7.2");
    let expected = serde_json::json!({ "name": "release", "value": "7.1", "own": false });
    assert_eq!(other, expected);
    let forgotten = node.json("decide --forget release");
    let expected = serde_json::json!({ "name": "release", "forgotten": true });
    assert_eq!(forgotten, expected);
    let again = node.run("decide --forget release", "");
    assert_eq!((again.code, again.stdout.as_str()), (0, ""));
    assert!(
        again.stderr.contains("no decision release"),
        "{}",
        again.stderr
    );
    assert_eq!(decide(&node, "decide release 7.2"), "7.2\n");
    assert_eq!(node.run("decide release", "").code, 2, "a value is wanted");
    let both = node.run("decide --forget release 7", "");
    assert_eq!(both.code, 2, "a decision is made or forgotten");
    let long = node.run(&format!("decide long {}", "x".repeat(4_097)), "");
    assert_eq!(long.code, 2);
    assert!(long.stderr.contains("at most 4096"), "{}", long.stderr);
}
