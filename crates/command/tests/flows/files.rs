//! `testigo work --files`: the order of steps that loses nothing, whoever dies between two of them.

use std::path::PathBuf;

use rustix::process::Signal;

use crate::running::Node;
use crate::scene::{apply, counts, create, fifo, let_go, node_with, until_counts};

const PICTURES: &str = "\
flow { retries 1; reject [failed] }
scan -> [raw] -> grey -> [done] -> archive
scan -> [raw] -> grey -> [odd] -> archive
queue raw { data \"raw\" }
queue done { data \"done\" }
queue odd { data \"odd\" }
queue failed { data \"failed\" }
";

const GREY: &str = "work f grey --files --exit 0=done --exit 3=odd";

fn pictures() -> Node {
    let node = node_with(PICTURES);
    std::fs::write(node.file("cat"), "colours").expect("a file");
    let created = node.run("job create f/raw --data cat", "");
    assert_eq!(created.code, 0, "{}", created.stderr);
    node
}

/// The file that the job's body names.
fn data(node: &Node, job: u64) -> PathBuf {
    let job = node.json(&format!("job show {job}"));
    node.file(job["body"].as_str().expect("a path"))
}

/// What the order of steps is for: whatever has happened, every living job has its file.
fn every_job_has_its_file(node: &Node) -> bool {
    let jobs = node.json("job find *");
    let jobs = jobs.as_array().expect("rows").iter();
    let mut ids = jobs.filter_map(|row| row["id"].as_u64());
    ids.all(|id| data(node, id).is_file())
}

fn folder(node: &Node, name: &str) -> usize {
    std::fs::read_dir(node.file(name)).map_or(0, Iterator::count)
}

const TURN: &str = "tr a-z A-Z < $TESTIGO_IN > $TESTIGO_OUT";

#[test]
fn a_file_is_turned_into_the_next_ones_and_removed_behind() {
    let node = pictures();
    let raw = data(&node, 1);
    assert_eq!(std::fs::read_to_string(&raw).expect("a copy"), "colours");
    let worked = node.run(&format!("{GREY} --drain"), TURN);
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    assert_eq!(
        std::fs::read_to_string(data(&node, 1)).expect("an output"),
        "COLOURS"
    );
    assert_eq!((folder(&node, "raw"), folder(&node, "done")), (0, 1));
    let words = [
        "work", "f", "archive", "--files", "--drain", "--", "cat", "{in}",
    ];
    let archived = node.command(words).output().expect("it runs");
    assert_eq!(archived.stdout, b"COLOURS");
    assert_eq!(folder(&node, "done"), 0);
    assert!(node.file("cat").exists(), "the original is the creator's");
}

#[test]
fn what_a_crash_left_over_is_removed_at_the_start_and_nothing_else() {
    let node = pictures();
    let worked = node.run(&format!("{GREY} --drain"), TURN);
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    let age = |path: &std::path::Path, hours: u64| {
        let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600 * hours);
        let file = std::fs::File::options().write(true).open(path);
        file.and_then(|file| file.set_modified(old)).expect("aged");
    };
    // Jobs 1 and 3 have their files, and job 2 is called like an attempt.
    create(&node, "f/raw", &["scan.4294967299"]);
    let created = node.run("job create f/raw --data cat --name waits", "");
    assert_eq!(created.code, 0, "{}", created.stderr);
    age(&data(&node, 1), 48);
    age(&data(&node, 3), 48);
    let file = |name: &str, hours: u64| {
        let path = node.file(name);
        std::fs::write(&path, "left over").expect("a file");
        age(&path, hours);
        path
    };
    let orphans = [
        file("done/gone.4294967297", 1),
        file("done/.gone.4294967297.part", 1),
        file("odd/cat.4294967296", 1),
        file("raw/gone.4294967298", 1),
        file("raw/gone.4711-1700000000123456789", 48),
        file("raw/.waits.4711-1700000000123456789.part", 48),
    ];
    let others = [
        file("done/young.4294967297", 0),
        file("done/named.17", 48),
        file("done/later.42949672960000", 48),
        file("raw/scan.4294967299", 48),
        file("raw/plain", 48),
        file("raw/report.2024-12", 48),
        file("raw/gone.4712-1700000000123456789", 1),
    ];
    let again = node.run(
        "work f grey --files --exit 0=done --exit 3=odd --once",
        "exit 75",
    );
    assert!(again.stderr.contains("removed 6 files"), "{}", again.stderr);
    assert!(orphans.iter().all(|path| !path.exists()));
    assert!(others.iter().all(|path| path.exists()));
    assert!(data(&node, 1).is_file() && data(&node, 3).is_file());
}

#[test]
fn a_job_with_an_empty_body_keeps_its_file_when_it_is_rejected_or_moved() {
    let node = node_with(&format!("{PICTURES}[failed] -> clerk\n"));
    std::fs::create_dir(node.file("raw")).expect("a folder");
    for name in ["first", "second"] {
        std::fs::write(node.file("raw").join(name), name).expect("a file");
        let created = node.run(&format!("job create f/raw --name {name}"), "");
        assert_eq!(created.code, 0, "{}", created.stderr);
    }
    assert_eq!(node.run("job move 2 --to failed", "").code, 0);
    for _ in 0..2 {
        assert_eq!(node.run(&format!("{GREY} --once"), "exit 1").code, 1);
    }
    assert_eq!(counts(&node, "f/failed"), (2, 0));
    let words = [
        "work", "f", "clerk", "--files", "--drain", "--", "cat", "{in}",
    ];
    let worked = node.command(words).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&worked.stdout), "secondfirst");
    assert!(worked.status.success());
    assert_eq!(folder(&node, "raw"), 0, "removed where they were");
}

#[test]
fn a_job_deleted_by_hand_takes_the_file_that_was_written_for_it_with_it() {
    let node = pictures();
    assert_eq!(node.run(&format!("{GREY} --once"), TURN).code, 0);
    for line in [
        "--name second --data cat",
        "--name third --data cat",
        "--name own",
    ] {
        let created = node.run(&format!("job create f/raw {line}"), "");
        assert_eq!(created.code, 0, "{}", created.stderr);
    }
    std::fs::write(node.file("raw/own"), "mine").expect("a file");
    std::fs::write(node.file("raw/mine"), "mine").expect("a file");
    // It names the file of another.
    let second = node.json("job show 2");
    let second = second["body"].as_str().expect("a path");
    for body in ["raw/mine", second] {
        assert_eq!(node.run(&format!("job create f/raw {body}"), "").code, 0);
    }
    assert_eq!(node.run("job delete 5 6", "").stdout, "2 deleted\n");
    assert_eq!((folder(&node, "raw"), folder(&node, "done")), (4, 1));
    let taken = node.json("job take f/raw --name second");
    let (attempt, session) = (&taken["attempt"], &taken["session"]);
    let held = format!("job delete 2 --attempt {attempt} --session {session}");
    assert_eq!(node.run(&held, "").code, 0);
    assert_eq!(folder(&node, "raw"), 3);
    let deleted = node.run("job delete --find * --yes", "");
    assert_eq!(
        (deleted.stdout.as_str(), deleted.stderr.as_str()),
        ("3 deleted\n", "")
    );
    assert_eq!((folder(&node, "raw"), folder(&node, "done")), (2, 0));
    assert!(node.file("raw/own").exists() && node.file("raw/mine").exists());
}

#[test]
fn an_exit_code_chooses_the_directory_too() {
    let node = pictures();
    let worked = node.run(&format!("{GREY} --drain"), &format!("{TURN}; exit 3"));
    assert_eq!(worked.code, 0, "{}", worked.stderr);
    assert_eq!(
        std::fs::read_to_string(data(&node, 1)).expect("an output"),
        "COLOURS"
    );
    assert_eq!((folder(&node, "done"), folder(&node, "odd")), (0, 1));
}

#[test]
fn a_failure_leaves_the_input_and_no_output() {
    let node = pictures();
    for (program, why) in [
        ("echo half > $TESTIGO_OUT; exit 1", "exit code 1"),
        ("true", "wrote no output"),
    ] {
        let failed = node.run(&format!("{GREY} --once"), program);
        assert_eq!(failed.code, 1);
        assert!(failed.stderr.contains(why), "{}", failed.stderr);
        assert_eq!((folder(&node, "raw"), folder(&node, "done")), (1, 0));
    }
    // Rejected by now, and its file is still found by the body.
    assert_eq!(node.json("job show 1")["queue"], "f/failed");
    assert_eq!(
        std::fs::read_to_string(data(&node, 1)).expect("the input"),
        "colours"
    );
    assert_eq!(node.run("job retry 1", "").code, 0);
    assert_eq!(node.run(&format!("{GREY} --once"), TURN).code, 0);
    assert_eq!((folder(&node, "raw"), folder(&node, "done")), (0, 1));
}

#[test]
fn a_harness_killed_before_the_pass_leaves_the_input() {
    let node = pictures();
    fifo(&node.file("gate"));
    let slow = format!("{TURN}; echo written; read word < gate");
    let mut first = node.begin(GREY, &slow);
    first.expect("written");
    first.signal(Signal::KILL);
    first.wait();
    until_counts(&node, "f/raw", 1, 0);
    assert!(every_job_has_its_file(&node));
    assert_eq!(folder(&node, "raw"), 1);
    let mut second = node.begin(&format!("{GREY} --once"), &slow);
    second.expect("written");
    let_go(&node.file("gate"), "go");
    assert_eq!(second.end().code, 0);
    assert_eq!(folder(&node, "raw"), 0);
    assert_eq!(
        std::fs::read_to_string(data(&node, 1)).expect("an output"),
        "COLOURS"
    );
}

#[test]
fn the_input_is_there_as_long_as_the_pass_is_not_acknowledged() {
    let node = pictures();
    apply(&node, &PICTURES.replace("done { ", "done { limit 1; "));
    create(&node, "f/done", &["in-the-way"]);
    // The program is done and its output in place; the node does not take the job.
    let full = node.begin(GREY, TURN);
    while folder(&node, "done") == 0 {}
    assert_eq!(counts(&node, "f/raw"), (0, 1));
    assert_eq!(folder(&node, "raw"), 1);
    full.signal(Signal::KILL);
    full.wait();
    until_counts(&node, "f/raw", 1, 0);
    assert_eq!(
        node.run("job delete 2", "").code,
        0,
        "it has no file on purpose"
    );
    assert!(every_job_has_its_file(&node));
    assert_eq!(
        std::fs::read_to_string(data(&node, 1)).expect("the input"),
        "colours"
    );
}

#[test]
fn a_body_that_names_a_file_elsewhere_is_refused() {
    let node = pictures();
    std::fs::write(node.file("secret"), "mine").expect("a file");
    for path in ["secret", "raw/../secret", "/etc/hostname"] {
        assert_eq!(node.run(&format!("job create f/raw {path}"), "").code, 0);
    }
    let worked = node.run(&format!("{GREY} --drain"), TURN);
    assert_eq!(worked.code, 1);
    assert!(
        worked
            .stderr
            .contains("lies in no data directory of flow f"),
        "{}",
        worked.stderr
    );
    assert!(node.file("secret").exists());
    assert_eq!(counts(&node, "f/failed"), (3, 0));
    assert_eq!(counts(&node, "f/done"), (1, 0));
}

#[test]
fn links_are_not_followed() {
    let node = pictures();
    let outside = tempfile::tempdir().expect("a folder");
    std::fs::write(outside.path().join("key"), "mine").expect("a file");
    let link = |to: PathBuf, name: &str| {
        std::os::unix::fs::symlink(to, node.file(name)).expect("a link");
    };
    // A file that is one, by name and by body; and where the output is to be written.
    link(outside.path().join("key"), "raw/key");
    for line in ["job create f/raw --name key", "job create f/raw raw/key"] {
        assert_eq!(node.run(line, "").code, 0);
    }
    let worked = node.run(&format!("{GREY} --drain"), TURN);
    assert_eq!(worked.code, 1);
    assert!(worked.stderr.contains("key is a link"), "{}", worked.stderr);
    assert_eq!(counts(&node, "f/failed"), (2, 0));
    assert_eq!(counts(&node, "f/done"), (1, 0));
    let there = std::fs::read_to_string(outside.path().join("key"));
    assert_eq!(there.expect("untouched"), "mine");
    // A directory that is one.
    std::fs::remove_dir_all(node.file("odd")).expect("a folder");
    link(outside.path().to_owned(), "odd");
    let refused = node.run(&format!("{GREY} --drain"), TURN);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("odd is a link"),
        "{}",
        refused.stderr
    );
    let created = node.run("job create f/odd --data cat --name other", "");
    assert_eq!(created.code, 2, "{}", created.stderr);
    assert!(
        created.stderr.contains("odd is a link"),
        "{}",
        created.stderr
    );
    // What is not below the directory that the operator names.
    std::fs::create_dir_all(node.file("below")).expect("a folder");
    std::fs::remove_file(node.file("odd")).expect("a link");
    let elsewhere = node.run(&format!("{GREY} --files-root below --drain"), TURN);
    assert!(
        !elsewhere.stderr.contains("is a link"),
        "{}",
        elsewhere.stderr
    );
    assert!(node.file("below/raw").is_dir(), "made below it");
}

/// A specimen: a worker that takes the steps in the wrong order, and dies between them.
#[test]
fn a_worker_that_removes_its_input_before_the_pass_is_caught() {
    let node = pictures();
    let taken = node.json("job take f/raw");
    assert!(every_job_has_its_file(&node));
    std::fs::remove_file(data(&node, 1)).expect("the input");
    let session = &taken["session"];
    assert_eq!(node.run(&format!("session end {session}"), "").code, 0);
    until_counts(&node, "f/raw", 1, 0);
    assert!(!every_job_has_its_file(&node), "the check can fail");
}
