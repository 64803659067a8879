//! Opposite passes between two queues, by two clients at once, on a running node.

mod support;

use std::collections::BTreeSet;
use std::thread;

use support::{Client, House, Value};

/// Jobs in each queue at the start, and at the end.
const JOBS: i64 = 100;
/// Commands that a client sends before it reads an answer.
const BATCH: usize = 50;
const ROUNDS: usize = 200;

/// Takes from one queue and passes to the other, a batch at a time; gives the jobs and the attempts. A take waits for what the other
/// client passes here, so that two which wait for each other are noticed by the client's patience.
fn carry(mut client: Client, process: &str, from: &str, to: &str) -> Vec<(i64, i64)> {
    let ok = Value::Simple("OK".into());
    assert_eq!(client.call(&["PRESENT", "loop", process]), ok);
    let mut attempts = Vec::new();
    for _ in 0..ROUNDS {
        let takes = format!("JOB TAKE {from} WAIT 3600000\r\n").repeat(BATCH);
        client.send_bytes(takes.as_bytes()).unwrap();
        let taken: Vec<Value> = (0..BATCH).map(|_| client.read()).collect();
        let passes = taken.iter().map(|taken| {
            let (job, attempt) = (taken.list()[0].int(), taken.list()[3].int());
            attempts.push((job, attempt));
            format!("JOB PASS {job} {attempt} {to}\r\n")
        });
        let passes: String = passes.collect();
        client.send_bytes(passes.as_bytes()).unwrap();
        for _ in 0..BATCH {
            assert_eq!(client.read(), ok);
        }
    }
    attempts
}

#[test]
fn opposite_passes_in_parallel_never_wait_for_each_other() {
    let house = House::open();
    let mut admin = house.client();
    let flow = "intake -> [left] -> there -> [right] -> back -> [left] -> done";
    admin.call(&["FLOW", "APPLY", "loop", flow]);
    for queue in ["left", "right"] {
        for _ in 0..JOBS {
            admin.call(&["JOB", "CREATE", queue, "*", "body"]);
        }
    }
    let attempts = thread::scope(|scope| {
        let there = scope.spawn(|| carry(house.client(), "there", "left", "right"));
        let back = scope.spawn(|| carry(house.client(), "back", "right", "left"));
        [there, back].map(|one| one.join().unwrap())
    });
    let given: BTreeSet<(i64, i64)> = attempts.iter().flatten().copied().collect();
    assert_eq!(
        given.len(),
        2 * ROUNDS * BATCH,
        "an attempt at a job is given once, whichever queue it lies in"
    );
    for queue in &attempts {
        let grow = queue.iter().map(|(_, attempt)| attempt);
        assert!(grow.is_sorted_by(|one, next| one < next));
    }
    for queue in ["left", "right"] {
        assert_eq!(admin.call(&["JOB", "COUNT", queue]), Value::Int(JOBS));
    }
}
