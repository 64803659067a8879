//! Jobs and the snapshots that the log is merged into: nothing is lost on the way, and what is gone takes no room.

mod support;

use std::fs;
use std::path::Path;

use support::{Client, House, Value};
use testigo_engine::SnapshotPolicy;

const FLOW: &str = "make -> [made] -> see -> [seen] -> end";

fn apply(client: &mut Client) {
    let applied = client.call(&["FLOW", "APPLY", "f", FLOW]);
    assert_eq!(applied, Value::Simple("OK".into()));
}

fn snapshots(data: &Path) -> Vec<(String, u64)> {
    let files = fs::read_dir(data).unwrap().map(Result::unwrap);
    let named = files.filter_map(|file| {
        let name = file.file_name().into_string().unwrap();
        // Whatever is replaced just now is gone.
        let bytes = file.metadata().ok()?.len();
        name.starts_with("snapshot-").then_some((name, bytes))
    });
    named.collect()
}

#[test]
fn jobs_go_through_merges_and_lose_nothing() {
    let mut house = House::with(|config| {
        config.snapshots = SnapshotPolicy {
            entries: 10,
            bytes: u64::MAX,
        };
    });
    let mut client = house.client();
    apply(&mut client);
    let mut wanted = Vec::new();
    for nth in 0..200 {
        let (name, body) = (format!("job-{nth:03}"), format!("body {nth}"));
        client.call(&["JOB", "CREATE", "made", &name, &body]);
        if nth % 4 == 3 {
            wanted.push((name, body, "f/made"));
            continue;
        }
        let taken = client.call(&["JOB", "TAKE", "made", "NAME", &name]);
        let [id, attempt] = [0, 3].map(|at| taken.list()[at].int().to_string());
        match nth % 4 {
            0 => drop(client.call(&["JOB", "DELETE", &id, &attempt])),
            1 => {
                client.call(&["JOB", "PASS", &id, &attempt, "seen", "passed"]);
                wanted.push((name, "passed".into(), "f/seen"));
            }
            // It stays in hand and waits again after the restart.
            _ => wanted.push((name, body, "f/made")),
        }
    }
    // The last snapshot may still be on its way.
    while client.call(&["STATUS"]).at("log_entries").int() > 50 {
        client.call(&["JOB", "COUNT"]);
    }
    assert!(!snapshots(&house.dir.path().join("data")).is_empty());
    drop(client);
    house.restart();
    let mut client = house.client();
    for (name, body, queue) in &wanted {
        let taken = client.call(&["JOB", "TAKE", queue, "NAME", name]);
        let found = [1, 2, 4].map(|at| taken.list()[at].clone());
        assert_eq!(
            found,
            [name, *queue, body].map(|text| Value::Text(text.into()))
        );
    }
    assert_eq!(client.call(&["JOB", "COUNT"]).int(), 0);
}

#[test]
fn jobs_that_are_gone_leave_the_disk() {
    let house = House::with(|config| {
        config.snapshots = SnapshotPolicy {
            entries: u64::MAX,
            bytes: 1 << 20,
        };
    });
    let mut client = house.client();
    apply(&mut client);
    let data = house.dir.path().join("data");
    let in_snapshots = || snapshots(&data).iter().map(|(_, bytes)| bytes).sum::<u64>();
    let body = "b".repeat(256 << 10);
    let mut jobs = 0;
    while in_snapshots() < 8 << 20 {
        assert!(client.call(&["JOB", "CREATE", "made", "*", &body]).int() > 0);
        jobs += 1;
    }
    for _ in 0..jobs {
        let taken = client.call(&["JOB", "TAKE", "made"]);
        let [id, attempt] = [0, 3].map(|at| taken.list()[at].int().to_string());
        client.call(&["JOB", "DELETE", &id, &attempt]);
    }
    // Nothing but time passes now.
    while in_snapshots() >= 2 << 20 {
        client.call(&["PING"]);
    }
    assert_eq!(client.call(&["JOB", "COUNT"]).int(), 0);
}
