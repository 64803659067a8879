//! Harnesses, programs and nodes that end: nothing is lost, and nobody goes on with what is another's.

use std::io::Read;
use std::process::Stdio;

use rustix::process::Signal;

use crate::running::{Node, Running};
use crate::scene::{ORDERS, WAITS, apply, counts, create, fifo, let_go, node_with, until_counts};

/// A node with jobs to bill, and a fifo.
fn billing(names: &[&str]) -> Node {
    let node = node_with("a -> [q] -> bill\nflow { retries 1; reject [failed] }\nqueue failed\n");
    create(&node, "f/q", names);
    fifo(&node.file("gate"));
    node
}

/// A harness for the process that deletes, with these options; its first job runs.
fn harness(node: &Node, options: &str, runs: &str) -> Running {
    let mut harness = node.begin(&format!("work f bill {options}"), WAITS);
    harness.expect(&format!("runs {runs}"));
    harness
}

fn deaths(node: &Node, job: u64) -> u64 {
    let job = node.json(&format!("job show {job}"));
    job["deaths"].as_u64().expect("a number")
}

#[test]
fn a_harness_killed_with_9_gives_its_jobs_back_at_once_and_takes_its_programs_with_it() {
    let node = billing(&["o-1"]);
    let first = harness(&node, "", "o-1");
    first.signal(Signal::KILL);
    // The program had our pipe too: it is gone when the pipe is.
    first.wait();
    until_counts(&node, "f/q", 1, 0);
    assert_eq!(deaths(&node, 1), 1);
    let second = harness(&node, "--once", "o-1");
    let_go(&node.file("gate"), "billed");
    let ended = second.end();
    assert_eq!((ended.code, ended.stdout.as_str()), (0, "billed\n"));
    assert_eq!(counts(&node, "f/q"), (0, 0));
}

/// Starts what does not end by itself nor by SIGTERM, and which has the harness' output open.
const STARTS: &str = "(trap '' TERM; echo runs; exec tail -f /dev/null) & wait";

#[test]
fn a_harness_killed_with_9_takes_what_its_programs_started_with_it() {
    let node = billing(&["o-1", "o-2"]);
    let mut harness = node.begin("work f bill --jobs 2", STARTS);
    harness.expect("runs");
    harness.expect("runs");
    harness.signal(Signal::KILL);
    harness.wait();
    until_counts(&node, "f/q", 2, 0);
}

#[test]
fn the_program_of_a_stopped_harness_ends_and_its_job_comes_back_without_a_death() {
    let node = billing(&["o-1"]);
    fifo(&node.file("ends"));
    let marks = "trap 'echo ended >ends; exit 9' TERM; echo runs; until read word <gate; do :; done; echo $word";
    let mut harness = node.begin("work f bill --once --keep", marks);
    harness.expect("runs");
    harness.signal(Signal::STOP);
    // The job is the harness' for as long as it is connected; and nobody works on it any more.
    let ended = std::fs::read_to_string(node.file("ends")).expect("the program writes");
    assert_eq!((&ended[..], counts(&node, "f/q")), ("ended\n", (0, 1)));
    harness.signal(Signal::CONT);
    let ended = harness.end();
    let told = "given back: the harness was stopped for too long";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert_eq!((counts(&node, "f/q"), deaths(&node, 1)), ((1, 0), 0));
}

#[test]
fn the_signals_of_job_control_reach_all_programs() {
    let node = billing(&["o-1", "o-2"]);
    let listens = "trap 'echo stop' TSTP; trap 'echo go on; exit 0' CONT; echo runs; \
                   until read word <gate; do :; done";
    let mut harness = node.begin("work f bill --jobs 2 --drain", listens);
    let expect_both = |harness: &mut Running, line| [(); 2].map(|()| harness.expect(line));
    // `--keep` or not, a process that ends jobs prints once its program has ended.
    for line in ["runs", "stop", "go on"] {
        let signal = match line {
            "stop" => Some(Signal::TSTP),
            "go on" => Some(Signal::CONT),
            _ => None,
        };
        signal.iter().for_each(|signal| harness.signal(*signal));
        expect_both(&mut harness, line);
        if signal == Some(Signal::TSTP) {
            harness.until_stopped();
        }
    }
    let ended = harness.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn what_a_stopped_program_started_is_stopped_with_it() {
    let node = billing(&["o-1"]);
    let ended = node.run("work f bill --once --timeout 50ms --grace 50ms", STARTS);
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let mut harness = node.begin("work f bill --grace 50ms", STARTS);
    harness.expect("runs");
    harness.signal(Signal::TERM);
    harness.signal(Signal::INT);
    assert!(harness.wait().code > 128);
}

#[test]
fn a_job_that_kills_its_harnesses_ends_in_the_reject_queue() {
    let node = billing(&["poison"]);
    for _ in 0..2 {
        let dies = node.begin("work f bill", "kill -KILL $PPID");
        assert_eq!(dies.end().code, -1, "ended by a signal");
    }
    until_counts(&node, "f/failed", 1, 0);
    assert_eq!(node.json("job show 1")["rejected_from"], "f/q");
}

#[test]
fn a_program_killed_with_9_has_failed_and_the_harness_goes_on() {
    let node = billing(&["o-1", "o-2"]);
    let script = "case $TESTIGO_JOB_NAME in o-1) kill -KILL $$;; esac; cat";
    let ended = node.run("work f bill --drain", script);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, "o-2"));
    assert!(
        ended.stderr.contains("ended by signal 9"),
        "{}",
        ended.stderr
    );
    assert_eq!(counts(&node, "f/failed"), (1, 0), "after its one retry");
}

#[test]
fn a_signal_lets_what_runs_finish_and_takes_nothing_new() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let node = billing(&["o-1", "o-2"]);
        let harness = harness(&node, "", "o-1");
        harness.signal(signal);
        let_go(&node.file("gate"), "billed");
        let ended = harness.wait();
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (0, "billed\n"),
            "{}",
            ended.stderr
        );
        assert_eq!(counts(&node, "f/q"), (1, 0), "the other waits");
    }
}

#[test]
fn a_second_signal_stops_at_once_and_gives_back_without_a_death() {
    let node = billing(&["o-1"]);
    let harness = harness(&node, "", "o-1");
    harness.signal(Signal::TERM);
    harness.signal(Signal::INT);
    let ended = harness.wait();
    // Two signals that come together may be told in either order.
    assert!(
        [128 + 2, 128 + 15].contains(&ended.code),
        "{}: {}",
        ended.code,
        ended.stderr
    );
    assert_eq!(counts(&node, "f/q"), (1, 0));
    assert_eq!(deaths(&node, 1), 0);
}

#[test]
fn when_nobody_reads_what_is_printed_the_jobs_wait_again_without_a_death() {
    let node = billing(&["o-1", "o-2"]);
    // SIGPIPE ends a shell; other programs see it as an error of their own.
    for after in ["echo $word", "trap '' PIPE; echo $word || exit 1"] {
        let script = format!("echo runs; read word < gate; {after}");
        let mut command = node.command(["work", "f", "bill", "--drain", "--", "sh", "-c", &script]);
        let (mut read, write) = std::io::pipe().expect("a pipe");
        let harness = command.stdout(write).stderr(Stdio::piped()).spawn();
        drop(command);
        read.read_exact(&mut [0; 5]).expect("it runs");
        drop(read);
        let_go(&node.file("gate"), "billed");
        let ended = harness.expect("it starts").wait_with_output();
        let ended = ended.expect("an end");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(141), "{said}");
        assert!(said.contains("nobody reads"), "{said}");
        assert_eq!((counts(&node, "f/q"), deaths(&node, 1)), ((2, 0), 0));
    }
    // Then no program is started.
    let mut command = node.command(["work", "f", "bill", "--drain", "--", "touch", "ran"]);
    let (_, write) = std::io::pipe().expect("a pipe");
    let status = command.stdout(write).status().expect("it runs");
    assert_eq!(status.code(), Some(141));
    assert!(!node.file("ran").exists());
    assert_eq!((counts(&node, "f/q"), deaths(&node, 1)), ((2, 0), 0));
}

#[test]
fn a_harness_that_waits_for_jobs_stops_when_told() {
    let node = billing(&[]);
    let harness = node.begin("work f bill --jobs 3", "cat");
    node.until("queue show f/q", |queue| queue["takers"][2].is_object());
    harness.signal(Signal::TERM);
    let ended = harness.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    create(&node, "f/q", &["late"]);
    assert_eq!((counts(&node, "f/q"), deaths(&node, 1)), ((1, 0), 0));
}

#[test]
fn two_harnesses_share_a_queue_and_no_job_is_done_twice() {
    let names: Vec<String> = (0..40).map(|number| format!("o-{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let node = billing(&names[..2]);
    // Each has one in hand at the same time.
    let first = harness(&node, "", "o-00");
    let second = harness(&node, "", "o-01");
    create(&node, "f/q", &names[2..]);
    for harness in [first, second] {
        harness.signal(Signal::KILL);
        harness.wait();
    }
    until_counts(&node, "f/q", 40, 0);
    let drain = || node.begin("work f bill --jobs 2 --drain", "echo $TESTIGO_JOB_NAME");
    let (first, second) = (drain(), drain());
    let (first, second) = (first.end(), second.end());
    assert_eq!((first.code, second.code), (0, 0), "{}", first.stderr);
    let all = first.stdout + &second.stdout;
    let mut done: Vec<&str> = all.lines().collect();
    done.sort_unstable();
    assert_eq!(done, names);
}

#[test]
fn a_node_that_is_killed_and_restarted_gets_its_harness_back() {
    let mut node = billing(&["o-1"]);
    let says = "echo runs $TESTIGO_ATTEMPT; read word < gate; echo $word";
    let mut harness = node.begin("work f bill --once", says);
    let attempt = |line: String| -> u64 {
        let number = line.strip_prefix("runs ").expect("it runs");
        number.parse().expect("an attempt")
    };
    let first = attempt(harness.line());
    node.kill();
    node.restart();
    // The program was stopped: another may have the job now. Here it is the same harness.
    let second = attempt(harness.line());
    assert!(
        second >> 26 > first >> 26,
        "{first} {second}: a later number"
    );
    let_go(&node.file("gate"), "billed");
    let ended = harness.end();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (0, "billed\n"),
        "{}",
        ended.stderr
    );
    for line in ["its result is dropped", "trying again", "connected again"] {
        assert!(ended.stderr.contains(line), "{line}: {}", ended.stderr);
    }
    assert_eq!(counts(&node, "f/q"), (0, 0));
}

#[test]
fn a_client_that_an_administrator_ends_loses_its_job_and_its_program() {
    let node = billing(&["o-1"]);
    let mut harness = harness(&node, "", "o-1");
    let clients = node.json("client list --flow f --process bill");
    let client = &clients[0];
    assert_eq!(
        (&client["machine"], &client["jobs"][0]["name"]),
        (&"127.0.0.1".into(), &"o-1".into())
    );
    let id = client["id"].as_u64().expect("an id");
    assert_eq!(
        node.run(&format!("client end {id}"), "").stdout,
        "1 ended\n"
    );
    harness.expect("runs o-1");
    assert_eq!(deaths(&node, 1), 1);
    assert_eq!(
        node.run("client end --machine 127.0.0.1", "").stdout,
        "1 ended\n"
    );
    until_counts(&node, "f/failed", 1, 0);
    assert_eq!(node.run("client end --machine 10.9.9.9", "").code, 1);
    node.until("queue show f/q", |queue| queue["takers"][0].is_object());
    harness.signal(Signal::TERM);
    assert_eq!(harness.wait().code, 0);
}

#[test]
fn a_harness_follows_its_flow_and_ends_when_its_process_is_gone() {
    let node = node_with(ORDERS);
    let harness = node.begin("work f price", "cat");
    node.until("queue show f/orders", |queue| {
        queue["takers"][0].is_object()
    });
    apply(&node, "intake -> [orders] -> bill\n");
    create(&node, "f/orders", &["o-1"]);
    let ended = harness.end();
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(
        ended.stderr.contains("flow f has no process price"),
        "{}",
        ended.stderr
    );
    assert_eq!((counts(&node, "f/orders"), deaths(&node, 1)), ((1, 0), 0));
}

#[test]
fn a_waiting_harness_takes_from_a_queue_and_passes_to_one_that_a_later_apply_brings() {
    let node = node_with("mk -> [a] -> w -> [b] -> x\n");
    let harness = node.begin("work f w", "cat");
    node.until("queue show f/a", |queue| queue["takers"][0].is_object());
    apply(
        &node,
        "mk -> [a] -> w -> [d] -> x\nmk -> [c] -> w -> [d] -> x\n",
    );
    create(&node, "f/c", &["new"]);
    until_counts(&node, "f/d", 1, 0);
    create(&node, "f/a", &["old"]);
    until_counts(&node, "f/d", 2, 0);
    harness.signal(Signal::TERM);
    let ended = harness.wait();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains("trying again"), "{}", ended.stderr);
}

#[test]
fn the_processs_limit_holds_for_the_workers_of_all_harnesses() {
    let node = billing(&["o-1", "o-2"]);
    apply(&node, "a -> [q] -> bill\nprocess bill { limit 1 }\n");
    let harness = harness(&node, "--jobs 2", "o-1");
    node.until("client list", |clients| {
        clients.as_array().map(Vec::len) == Some(1)
    });
    assert_eq!(counts(&node, "f/q"), (1, 1));
    harness.signal(Signal::TERM);
    let_go(&node.file("gate"), "billed");
    assert_eq!(harness.wait().code, 0);
}
