//! A node that is stopped for longer than its sessions may be silent, and goes on: nobody has lost anything by that.

mod up;

use up::{Client, Up, Value};

const TTL: &str = "1500";
/// For how long the node is stopped: how long a session of this TTL lives at another node.
const STALL: &str = "2500";

/// Opens a session and locks a gate.
fn holder(node: &Up, gate: &str) -> (Client, String) {
    let mut client = node.client();
    client.call(&["SESSION", "OPEN", "TTL", TTL]);
    let fence = client.call(&["LOCK", gate]).int();
    (client, fence.to_string())
}

/// Returns when a session has run out that was silent for all its TTL.
fn wait_for_a_session_to_run_out(node: &Up, ttl: &str) {
    let mut client = node.client();
    client.call(&["HELLO", "3"]);
    client.call(&["SESSION", "OPEN", "TTL", ttl]);
    let pushed = client.read();
    assert!(
        matches!(&pushed, Value::Push(words) if words[0] == Value::Text("ended".into())),
        "{pushed}"
    );
}

#[test]
fn a_node_that_was_stopped_has_heard_everybody_before_it_ends_anybody() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [node, clock] = [0, 1].map(|at: usize| Up::start(dirs[at].path(), &[]));
    let mut renewed: Vec<_> = (0..8)
        .map(|at| holder(&node, &format!("renewed-{at}")))
        .collect();
    let mut silent = holder(&node, "silent");
    node.freeze();
    for (client, _) in &mut renewed {
        client.send(&["PING"]);
    }
    wait_for_a_session_to_run_out(&clock, STALL);
    node.thaw();
    // It said nothing while the node could not hear it.
    let info = silent.0.call(&["SESSION", "INFO"]);
    assert_eq!(info.at("connected"), &Value::Int(1), "{info}");
    for (client, _) in &mut renewed {
        assert_eq!(client.read(), Value::Simple("PONG".into()));
    }
    renewed.push(silent);
    for (client, fence) in &mut renewed {
        let info = client.call(&["SESSION", "INFO"]);
        let [Value::Text(gate)] = info.at("holds").list() else {
            panic!("{info}");
        };
        let check = client.call(&["FENCE", "CHECK", gate, fence]);
        assert_eq!(check, Value::Int(1), "{gate}");
    }
}

#[test]
fn a_session_that_stays_silent_after_a_stall_runs_out() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    client.call(&["HELLO", "3"]);
    client.call(&["SESSION", "OPEN", "TTL", "200"]);
    node.freeze();
    node.thaw();
    assert!(matches!(client.read(), Value::Push(_)));
}
