//! What goes through the log: many at once, snapshots, and sessions whose connection is lost on the way.

mod support;

use support::{House, Value};
use testigo_engine::SnapshotPolicy;

#[test]
fn many_sessions_open_at_once_and_are_there_after_a_restart() {
    let mut house = House::open();
    let mut clients: Vec<_> = (0..50).map(|_| house.client()).collect();
    for client in &mut clients {
        client.send(&["SESSION", "OPEN", "TTL", "60000"]);
    }
    let mut ids: Vec<i64> = clients
        .iter_mut()
        .map(|client| client.read().int())
        .collect();
    ids.sort();
    house.restart();
    let list = house.client().call(&["SESSION", "LIST"]);
    let known: Vec<i64> = list.list().iter().map(|s| s.at("session").int()).collect();
    assert_eq!(known, ids);
}

#[test]
fn snapshots_replace_the_log_and_lose_nothing() {
    let mut house = House::with(|config| {
        config.snapshots = SnapshotPolicy {
            entries: 10,
            bytes: u64::MAX,
        };
    });
    let mut client = house.client();
    for gate in 0..100 {
        let name = format!("gate-{gate:03}");
        assert_eq!(
            client.call(&["GATE", "CREATE", &name, "MUTEX"]),
            Value::Simple("OK".into())
        );
    }
    client.call(&["SESSION", "OPEN", "TTL", "60000"]);
    client.call(&["ONCE", "START", "key", "3", "1"]);
    client.call(&["ONCE", "DONE", "key", "3", "1"]);
    // The last snapshot may still be on its way; a hundred entries without one would be a fault.
    while client.call(&["STATUS"]).at("log_entries").int() > 50 {
        client.call(&["GATE", "CREATE", "gate-000", "MUTEX"]);
    }
    house.restart();
    let mut client = house.client();
    assert_eq!(client.call(&["GATE", "LIST"]).list().len(), 100);
    client.call(&["SESSION", "OPEN"]);
    let done = client.call(&["ONCE", "START", "key", "3", "2"]);
    assert_eq!(done.list()[0], Value::Text("DONE".into()));
}

#[test]
fn a_connection_lost_while_its_session_is_opened_leaves_one_that_runs_out() {
    let house = House::open();
    let mut eye = house.client();
    for _ in 0..20 {
        let mut client = house.client();
        client.send(&["SESSION", "OPEN", "TTL", "100"]);
    }
    let opened = |eye: &mut support::Client| eye.call(&["SESSION", "LIST"]).list().len();
    while opened(&mut eye) > 0 || eye.call(&["STATUS"]).at("connections").int() > 1 {}
}

#[test]
fn limits_are_changed_by_a_start_and_nothing_is_lost_by_lower_ones() {
    let ok = Value::Simple("OK".into());
    let mut house = House::open();
    let mut client = house.client();
    for gate in ["a", "b", "c"] {
        assert_eq!(client.call(&["GATE", "CREATE", gate, "MUTEX"]), ok);
    }
    let opened = client.call(&["SESSION", "OPEN", "TTL", "60000"]).int();
    let opened = opened.to_string();

    house.restart_with(|config| {
        config.limits.gates = 2;
        config.limits.ttl_ms_max = 20_000;
        config.limits.once_keys = 1;
    });
    let mut client = house.client();
    assert_eq!(client.call(&["GATE", "LIST"]).list().len(), 3);
    assert_eq!(client.call(&["GATE", "CREATE", "a", "MUTEX"]), ok);
    let refused = client.call(&["GATE", "CREATE", "d", "MUTEX"]);
    assert!(refused.error().starts_with("LIMIT "), "{refused}");
    let refused = client.call(&["SESSION", "OPEN", "TTL", "60000"]);
    assert!(refused.error().starts_with("BADARG TTL "), "{refused}");
    client.call(&["SESSION", "RESUME", &opened]);
    let info = client.call(&["SESSION", "INFO"]);
    assert_eq!(info.at("ttl_ms").int(), 60_000);
    assert_eq!(client.call(&["ONCE", "START", "one", "0"]).list().len(), 2);
    let refused = client.call(&["ONCE", "START", "two", "0"]);
    assert!(refused.error().starts_with("LIMIT "), "{refused}");

    // Twice: what was refused under the lower limits stays refused when the log is replayed under the others.
    for _ in 0..2 {
        house.restart_with(|_| {});
        let mut client = house.client();
        assert_eq!(client.call(&["GATE", "LIST"]).list().len(), 3);
        let once = client.call(&["STATUS"]).at("once_keys").int();
        assert_eq!(once, 1);
    }
    let mut client = house.client();
    assert_eq!(client.call(&["GATE", "CREATE", "d", "MUTEX"]), ok);
}
