//! `testigo work` while all goes well, and while programs do not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::process::Signal;

use crate::running::Running;
use crate::scene::{ORDERS, counts, create, node_with, until_counts};

const FORK: &str = "\
flow { retries 0; reject [failed] }
a -> [q] -> check -> [good] -> keep
a -> [q] -> check -> [bad] -> mend -> [q] -> check -> [good] -> keep
[failed] -> mend
";

#[test]
fn what_a_program_prints_is_the_next_body_byte_for_byte() {
    let node = node_with(ORDERS);
    let bytes: Vec<u8> = (0..=255).collect();
    std::fs::write(node.file("bytes"), &bytes).expect("a file");
    let created = node.run("job create f/orders --file bytes --name all", "");
    assert_eq!((created.code, created.stdout.as_str()), (0, "1\n"));
    let worked = node.run("work f price --drain", "cat; printf '\\377'");
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    let shown = node
        .command(["job", "show", "1", "--body"])
        .output()
        .expect("it runs");
    assert_eq!(shown.stdout, [&bytes[..], &[255]].concat());
    assert_eq!(
        node.json("job show 1")["body"]["hex"]
            .as_str()
            .map(str::len),
        Some(514)
    );
}

#[test]
fn a_program_finds_its_job_in_its_environment() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let says = "echo $TESTIGO_JOB $TESTIGO_JOB_NAME $TESTIGO_QUEUE $TESTIGO_FLOW $TESTIGO_PROCESS";
    assert_eq!(node.run("work f price --once", says).code, 0);
    assert_eq!(node.json("job show 1")["body"], "1 o-1 orders f price\n");
    // A process that ends jobs prints to whoever reads the harness.
    let billed = node.run("work f bill --once", "cat; echo $TESTIGO_ATTEMPT");
    let mut lines = billed.stdout.lines();
    assert_eq!(lines.next(), Some("1 o-1 orders f price"));
    let attempt: u64 = lines
        .next()
        .and_then(|line| line.parse().ok())
        .expect("a number");
    assert!(attempt > 1 << 32, "{attempt}");
    assert_eq!(node.run("job show 1", "").code, 2, "it is deleted");
}

#[test]
fn the_exit_code_chooses_the_queue() {
    let node = node_with(FORK);
    create(&node, "f/q", &["0", "3", "9"]);
    let unclear = node.run("work f check --drain", "exit $(cat)");
    assert_eq!(unclear.code, 2);
    assert!(
        unclear.stderr.contains("--exit 0=bad"),
        "{}",
        unclear.stderr
    );
    let worked = node.run(
        "work f check --drain --exit 0=good --exit 3=bad",
        "exit $(cat)",
    );
    assert_eq!(worked.code, 1, "one failed: {}", worked.stderr);
    for (queue, name) in [("good", "0"), ("bad", "3"), ("failed", "9")] {
        let jobs = node.json(&format!("job list f/{queue}"));
        assert_eq!(jobs[0]["name"], name, "{queue}");
    }
}

#[test]
fn a_body_may_be_kept() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let kept = node.run("work f price --once --keep", "echo looked at; cat");
    assert_eq!((kept.code, kept.stdout.as_str()), (0, "looked at\no-1"));
    assert_eq!(node.json("job show 1")["body"], "o-1");
}

#[test]
fn a_poison_job_ends_in_the_reject_queue_and_can_be_retried() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["good", "poison"]);
    let worked = node.run("work f price --drain", "grep -v poison");
    assert_eq!(worked.code, 1, "{}", worked.stderr);
    assert!(
        worked.stderr.contains("1 passed, 2 failed"),
        "{}",
        worked.stderr
    );
    let job = node.json("job show 2");
    assert_eq!(
        (&job["queue"], &job["rejected_from"]),
        (&"f/failed".into(), &"f/orders".into())
    );
    assert_eq!(counts(&node, "f/priced"), (1, 0));
    assert_eq!(node.run("job retry 2", "").stdout, "1 moved back\n");
    assert_eq!(node.run("work f price --drain", "cat").code, 0);
    assert_eq!(counts(&node, "f/priced"), (2, 0));
    let hops = node.json("job show 2");
    let hops = hops["hops"].as_array().expect("hops");
    let queues: Vec<&str> = hops
        .iter()
        .filter_map(|hop| hop["queue"].as_str())
        .collect();
    assert_eq!(queues, ["f/orders", "f/failed", "f/orders"]);
}

#[test]
fn a_program_that_cannot_now_costs_its_job_nothing() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let twice = "test -e tried || { touch tried; exit 75; }; cat";
    let worked = node.run("work f price --drain", twice);
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    assert!(
        worked.stderr.contains("1 passed, 1 given back"),
        "{}",
        worked.stderr
    );
    assert_eq!(node.json("job show 1")["deaths"], 0);
}

#[test]
fn a_program_that_cannot_run_ends_the_harness_and_not_the_job() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let words = ["work", "f", "price", "--drain", "--", "no-such-program"];
    let ended = Running::start(node.command(words)).end();
    assert_eq!(ended.code, 127, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("no-such-program cannot run"),
        "{}",
        ended.stderr
    );
    assert_eq!(counts(&node, "f/orders"), (1, 0));
    assert_eq!(node.json("job show 1")["deaths"], 0);
}

#[test]
fn what_is_too_much_or_too_long_has_failed() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let much = node.run("work f price --once", "head -c 600000 /dev/zero");
    assert_eq!(much.code, 1);
    assert!(
        much.stderr.contains("more than a body's 524288 bytes"),
        "{}",
        much.stderr
    );
    let long = node.run(
        "work f price --once --timeout 50ms",
        "exec tail -f /dev/null",
    );
    assert_eq!(long.code, 1);
    assert!(long.stderr.contains("it ran too long"), "{}", long.stderr);
    assert_eq!(counts(&node, "f/failed"), (1, 0));
}

#[test]
fn a_full_queue_is_waited_for_with_the_work_done() {
    let node = node_with(&format!("{ORDERS}queue priced {{ limit 1 }}\n"));
    create(&node, "f/orders", &["o-1", "o-2"]);
    let price = node.begin("work f price --drain", "echo $TESTIGO_JOB_NAME >> ran; cat");
    until_counts(&node, "f/orders", 0, 1);
    until_counts(&node, "f/priced", 1, 0);
    assert_eq!(node.run("work f bill --once", "cat").code, 0);
    let ended = price.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("job 2 waits to be passed to priced: queue f/priced"),
        "{}",
        ended.stderr
    );
    let ran = std::fs::read_to_string(node.file("ran")).expect("they ran");
    assert_eq!(ran, "o-1\no-2\n", "once each");
}

#[test]
fn a_node_that_cannot_delete_is_waited_for_with_the_work_done() {
    let node = node_with(ORDERS);
    create(&node, "f/priced", &["o-1"]);
    let line = format!("work f bill --drain --resp {}", full(node.address()));
    let billed = node.run(&line, "cat");
    assert_eq!(billed.code, 0, "{}", billed.stderr);
    let waits = "job 1 waits to be deleted: the disk is full";
    assert!(billed.stderr.contains(waits), "{}", billed.stderr);
    assert_eq!(billed.stdout, "o-1", "printed once");
    assert_eq!(counts(&node, "f/priced"), (0, 0));
}

/// Where a node is heard whose disk has no room for the first two deletes.
fn full(node: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let refusals = Arc::new(AtomicU32::new(2));
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let node = TcpStream::connect(&node).expect("a node");
            let refusals = Arc::clone(&refusals);
            thread::spawn(move || answer(client, node, &refusals));
        }
    });
    address
}

/// Carries one question at a time, and its answer.
fn answer(mut client: TcpStream, mut node: TcpStream, refusals: &AtomicU32) {
    let mut bytes = [0; 4096];
    while let Ok(asked @ 1..) = client.read(&mut bytes) {
        let is_delete = bytes[..asked].windows(6).any(|word| word == b"DELETE");
        if is_delete && refusals.load(Ordering::SeqCst) > 0 {
            refusals.fetch_sub(1, Ordering::SeqCst);
            let refusal = b"-UNAVAILABLE the disk is full\r\n";
            client.write_all(refusal).expect("it listens");
            continue;
        }
        node.write_all(&bytes[..asked]).expect("it listens");
        let answered = node.read(&mut bytes).expect("an answer");
        client.write_all(&bytes[..answered]).expect("it listens");
    }
}

#[test]
fn several_queues_take_turns() {
    let node = node_with("a -> [left] -> p -> [out] -> z\na -> [right] -> p -> [out] -> z\n");
    create(&node, "f/left", &["l-1", "l-2", "l-3"]);
    create(&node, "f/right", &["r-1", "r-2", "r-3"]);
    assert_eq!(node.run("work f p --drain", "cat").code, 0);
    let jobs = node.json("job list f/out");
    let names = jobs.as_array().expect("jobs").iter();
    let names: Vec<&str> = names.filter_map(|job| job["name"].as_str()).collect();
    assert_eq!(names, ["l-1", "r-1", "l-2", "r-2", "l-3", "r-3"]);
}

#[test]
fn queues_may_be_called_as_options_are() {
    let node = node_with(
        "a -> [name] -> w -> [wait] -> x\na -> [nm] -> z\na -> [Name] -> z\na -> [zz] -> z\n",
    );
    create(&node, "f/name", &["n-1"]);
    assert_eq!(node.run("work f w --drain", "cat").code, 0);
    assert_eq!(counts(&node, "f/wait"), (1, 0));
    assert_eq!(node.run("work f x --drain", "cat").stdout, "n-1");
    create(&node, "f/nm", &["n-2"]);
    create(&node, "f/Name", &["n-3"]);
    create(&node, "f/zz", &["n-4"]);
    let mut done = node.run("work f z --drain --jobs 1", "cat; echo").stdout;
    done.retain(|c| !c.is_whitespace());
    assert_eq!(done, "n-3n-2n-4", "by the queues' names");
    create(&node, "f/Name", &["n-5"]);
    create(&node, "f/name", &["n-6"]);
    assert_eq!(node.json("job take zz Name")["name"], "n-5");
    assert_eq!(node.json("job take name zz")["name"], "n-6");
}

#[test]
fn a_process_may_take_from_more_queues_than_one_take_names() {
    let chains: Vec<String> = (0..130).map(|n| format!("a -> [q{n}] -> p\n")).collect();
    let node = node_with(&chains.concat());
    let some = ["q0", "q63", "q64", "q129"];
    let fill = || some.map(|queue| create(&node, &format!("f/{queue}"), &[queue]));
    fill();
    let drained = node.run("work f p --drain", "cat; echo");
    assert_eq!(drained.code, 0, "{}", drained.stderr);
    let mut done: Vec<&str> = drained.stdout.lines().collect();
    done.sort_unstable();
    assert_eq!(done, ["q0", "q129", "q63", "q64"]);
    // Also jobs that come later, whatever the harness waits for at that moment.
    let mut harness = node.begin("work f p", "cat; echo");
    node.until("client list", |clients| clients[0].is_object());
    fill();
    let mut done: Vec<String> = some.iter().map(|_| harness.line()).collect();
    done.sort_unstable();
    assert_eq!(done, ["q0", "q129", "q63", "q64"]);
    harness.signal(Signal::TERM);
    let ended = harness.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn where_nothing_rejects_a_drain_tries_every_job_and_leaves_those_that_fail() {
    // By key, so that the bad one is the next again each time that it fails.
    let node = node_with("a -> [q] -> b\nqueue q { order key; retries 1 }\n");
    create(&node, "f/q", &["1-bad", "2-good", "3-bad", "4-good"]);
    let script = "echo $TESTIGO_JOB_NAME >> ran; grep good";
    let worked = node.run("work f b --drain --jobs 2", script);
    assert_eq!(worked.code, 1, "{}", worked.stderr);
    let left = "jobs that failed and stay where they are: 2";
    assert!(worked.stderr.contains(left), "{}", worked.stderr);
    let ran = std::fs::read_to_string(node.file("ran")).expect("they ran");
    let mut ran: Vec<&str> = ran.lines().collect();
    ran.sort_unstable();
    assert_eq!(
        ran,
        ["1-bad", "1-bad", "2-good", "3-bad", "3-bad", "4-good"]
    );
    assert_eq!(counts(&node, "f/q"), (2, 0));
    assert_eq!(node.json("job show 1")["deaths"], 2);
    // The next run tries them again.
    assert_eq!(node.run("work f b --drain", "cat").code, 0);
}

#[test]
fn where_nothing_rejects_a_job_that_fails_holds_up_nobody() {
    let node = node_with("a -> [q] -> b\nqueue q { order key; retries 1 }\n");
    create(&node, "f/q", &["1-bad", "2-good"]);
    let mut harness = node.begin("work f b", "echo $TESTIGO_JOB_NAME; grep -q good");
    let ran: Vec<String> = (0..6).map(|_| harness.line()).collect();
    assert_eq!(ran.iter().filter(|name| *name == "2-good").count(), 1);
    assert_eq!(ran.iter().filter(|name| *name == "1-bad").count(), 5);
    until_counts(&node, "f/q", 0, 1);
    harness.signal(Signal::TERM);
    let ended = harness.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(counts(&node, "f/q"), (1, 0), "given back");
}
