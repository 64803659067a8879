//! Producers and consumers over the thesis' own scheme of 6 processes and 8 queues, all at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use testigo_core::monitor::{Fate, JobLedger};

use crate::text;
use crate::up::{Up, Value, ok};

const SCHEME: &str = include_str!("../../../../examples/flows/scheme/scheme.flow");

/// A process that takes: its queues, and where jobs go from each; nowhere is the end of a chain.
type Consumer = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
);

const CONSUMERS: [Consumer; 5] = [
    ("p2", &[("c1", &["c7"]), ("c2", &["c7"])]),
    ("p3", &[("c7", &["c5", "c8"]), ("c3", &["c5", "c8"])]),
    ("p4", &[("c4", &["c6", "c5"]), ("c8", &["c5", "c3", "c6"])]),
    ("p5", &[("c5", &[])]),
    ("p6", &[("c6", &[])]),
];

const PRODUCERS: u64 = 3;
const OF_EACH: usize = 2;
const JOBS: usize = 200;

#[test]
fn every_job_of_many_producers_and_consumers_over_the_scheme_is_deleted_once() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    let mut client = node.client();
    assert_eq!(client.call(&["FLOW", "APPLY", "scheme", SCHEME]), ok());
    let (ledger, deleted) = (&Mutex::new(JobLedger::default()), &AtomicUsize::new(0));
    let node = &node;
    thread::scope(|scope| {
        for number in 0..PRODUCERS {
            scope.spawn(move || produce(node, ledger, number));
        }
        for (process, of_each) in
            (0..CONSUMERS.len()).flat_map(|p| (0..OF_EACH).map(move |n| (p, n)))
        {
            scope.spawn(move || consume(node, ledger, deleted, CONSUMERS[process], of_each as u64));
        }
    });
    let jobs = JOBS * PRODUCERS as usize;
    assert_eq!(deleted.load(Ordering::SeqCst), jobs);
    let left = client.call(&["JOB", "FIND", "*"]);
    let left: Vec<&[Value]> = left.list().iter().map(Value::list).collect();
    let ledger = ledger.lock().unwrap();
    ledger.settle(left.iter().map(|row| text(&row[1]))).unwrap();
    assert_eq!((left.len(), ledger.len()), (0, jobs));
}

fn produce(node: &Up, ledger: &Mutex<JobLedger>, number: u64) {
    let mut random = Xoshiro256StarStar::seed_from_u64(number);
    let mut client = node.worker("scheme", "p1");
    for nth in 0..JOBS {
        let name = format!("job-{number}-{nth}");
        let queue = ["c1", "c2", "c3", "c4"][random.next_u64() as usize % 4];
        let created = |fate| ledger.lock().unwrap().created(&name, fate).unwrap();
        created(Fate::Unknown);
        let answer = client.call(&["JOB", "CREATE", queue, &name, &name]);
        assert!(matches!(answer, Value::Int(_)), "{answer}");
        created(Fate::Yes);
    }
}

fn consume(
    node: &Up,
    ledger: &Mutex<JobLedger>,
    deleted: &AtomicUsize,
    (process, ways): Consumer,
    number: u64,
) {
    let mut random = Xoshiro256StarStar::seed_from_u64(number);
    let mut client = node.worker("scheme", process);
    let worker = client.call(&["CLIENT", "ID"]).int() as u64;
    let mut take = vec!["JOB", "TAKE"];
    take.extend(ways.iter().map(|(queue, _)| *queue));
    take.extend(["WAIT", "20"]);
    while deleted.load(Ordering::SeqCst) < JOBS * PRODUCERS as usize {
        let taken = client.call(&take);
        let Value::List(row) = &taken else { continue };
        let (id, attempt) = (row[0].int().to_string(), row[3].int().to_string());
        let (name, queue) = (text(&row[1]), text(&row[2]));
        let held = row[3].int() as u64;
        ledger.lock().unwrap().taken(name, held, worker).unwrap();
        let from = queue.rsplit('/').next().unwrap();
        let (_, to) = ways.iter().find(|(queue, _)| *queue == from).unwrap();
        // Whoever gets it next may do so before this answer is here.
        ledger.lock().unwrap().accepted(name, held, worker).unwrap();
        if to.is_empty() {
            ledger.lock().unwrap().deleted(name, Fate::Unknown);
            assert_eq!(client.call(&["JOB", "DELETE", &id, &attempt]), ok());
            ledger.lock().unwrap().deleted(name, Fate::Yes);
            deleted.fetch_add(1, Ordering::SeqCst);
        } else {
            let next = to[random.next_u64() as usize % to.len()];
            assert_eq!(client.call(&["JOB", "PASS", &id, &attempt, next]), ok());
        }
    }
}

/// The thesis' processes sleep before an empty queue. The time of a processor is counted, not the time on the wall.
#[test]
fn a_take_that_waits_uses_no_processor() {
    let dir = tempfile::tempdir().unwrap();
    let node = Up::start(dir.path(), &[]);
    assert_eq!(
        node.client().call(&["FLOW", "APPLY", "scheme", SCHEME]),
        ok()
    );
    let mut worker = node.worker("scheme", "p5");
    let before = node.ticks();
    assert_eq!(
        worker.call(&["JOB", "TAKE", "c5", "WAIT", "1000"]),
        Value::Nil
    );
    // A hundred ticks are a second.
    let used = node.ticks() - before;
    assert!(
        used < 20,
        "{used} ticks of a processor for a second of waiting"
    );
}
