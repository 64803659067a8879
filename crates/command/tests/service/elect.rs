//! `testigo elect`: a command runs while it leads, and everybody can see who does.

use rustix::process::Signal;
use serde_json::json;

use crate::running::Node;

/// Says that it leads, and stays until its input ends.
const STAY: &str = "echo leads; cat >/dev/null; echo out";
/// Says that it was asked to stop, and does.
const POLITE: &str = "trap 'echo stopped; exit 9' TERM; echo leads; while read line; do :; done";

#[test]
fn the_command_gets_its_term_and_gives_its_exit_code() {
    let node = Node::start();
    let say = "echo $TESTIGO_TERM $TESTIGO_FENCE $TESTIGO_ELECTION; exit 3";
    let first = node.run("elect db", say);
    let second = node.run("elect db", say);
    assert_eq!((first.code, second.code), (3, 3));
    let term = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [term, fence, "db"] = words[..] else {
            panic!("{text}");
        };
        assert_eq!(term, fence);
        term.parse::<u64>().expect("a term")
    };
    assert!(term(&second.stdout) > term(&first.stdout));
    let nobody = node.run("elect leader db", "");
    assert_eq!((nobody.code, nobody.stdout.as_str()), (1, ""));
    assert!(
        nobody.stderr.contains("nobody leads db"),
        "{}",
        nobody.stderr
    );
    let past = node.json("elect show db");
    assert_eq!(past["terms"][0]["term"], term(&second.stdout));
    assert_eq!(past["terms"][1]["why"], "resigned");
}

#[test]
fn the_highest_rank_is_next_and_the_leader_is_shown() {
    let node = Node::start();
    let mut leader = node.begin("elect db --value 10.0.0.1:5432 --rank -5", STAY);
    leader.expect("leads");
    assert_eq!(node.run("elect leader db", "").stdout, "10.0.0.1:5432\n");
    assert_eq!(node.run("elect db --rank 9 --wait 0", "echo no").code, 75);
    let candidates = |count: usize| {
        node.until("elect show db", |election| {
            election["candidates"].as_array().map(Vec::len) == Some(count)
        });
    };
    let mut low = node.begin("elect db --value low --rank -1", STAY);
    candidates(1);
    let mut high = node.begin("elect db --value high --rank 3", STAY);
    candidates(2);
    let shown = node.json("elect leader db");
    assert_eq!(
        (&shown["rank"], &shown["candidates"]),
        (&json!(-5), &json!(2))
    );
    let listed = node.json("elect list d*");
    assert_eq!(listed[0]["value"], "10.0.0.1:5432");
    assert_eq!(node.json("gate list"), json!([]), "an election is no gate");
    let text = node.run("elect show db", "").stdout;
    assert!(
        text.contains("high") && text.contains("candidates: 2"),
        "{text}"
    );
    assert_eq!(leader.end().code, 0);
    high.expect("leads");
    assert_eq!(node.run("elect leader db", "").stdout, "high\n");
    assert_eq!(high.end().code, 0);
    low.expect("leads");
    assert_eq!(low.end().code, 0);
}

#[test]
fn a_command_is_stopped_when_its_leadership_is_lost() {
    let mut node = Node::start();
    let mut ended = node.begin("elect db", POLITE);
    ended.expect("leads");
    let session = node.json("elect leader db")["session"].as_u64();
    let end = format!("session end {}", session.expect("a session"));
    assert_eq!(node.run(&end, "").code, 0);
    let ended = ended.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (9, "stopped\n"));
    let why = "the leadership of db is lost: its session is over; stopping";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    let mut silent = node.begin("elect db --ttl 1s", POLITE);
    silent.expect("leads");
    node.kill();
    let silent = silent.wait();
    assert_eq!((silent.code, silent.stdout.as_str()), (9, "stopped\n"));
}

#[test]
fn a_leader_lives_through_a_crash_of_its_node() {
    let mut node = Node::start();
    let mut leader = node.begin("elect db --value me --ttl 30s", STAY);
    leader.expect("leads");
    let term = node.json("elect leader db")["term"].clone();
    node.kill();
    node.restart();
    node.until("elect leader db", |leader| leader["term"] == term);
    assert_eq!(node.json("elect leader db")["value"], "me");
    assert_eq!(leader.end().code, 0);
}

#[test]
fn a_candidate_that_is_interrupted_is_none() {
    let node = Node::start();
    let mut leader = node.begin("elect db", STAY);
    leader.expect("leads");
    let candidate = node.begin("elect db", "echo no");
    node.until("elect show db", |election| election["waiting"] == 1);
    candidate.signal(Signal::INT);
    let ended = candidate.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (128 + 2, ""));
    node.until("elect show db", |election| election["waiting"] == 0);
    assert_eq!(leader.end().code, 0);
}

#[test]
fn bad_input_ends_with_2_and_says_what_is_right() {
    let node = Node::start();
    for (line, hint) in [
        ("elect db --rank high", "invalid value"),
        ("elect db --ttl 1ms", "--ttl 1ms must be between 100ms and"),
        (&format!("elect {}", "x".repeat(256)), "at most 255"),
    ] {
        let ended = node.run(line, "true");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{line}: {}", ended.stderr);
    }
    // An election may be called as a command is.
    let named = node.run("elect --rank 1 leader", "echo $TESTIGO_ELECTION");
    assert_eq!(named.stdout, "leader\n", "{}", named.stderr);
    // A slip is pointed out.
    let mut leader = node.begin("elect primary", STAY);
    leader.expect("leads");
    let near = node.run("elect leader primray", "");
    assert_eq!(near.code, 1);
    let hint = "did you mean primary?";
    assert!(near.stderr.contains(hint), "{}", near.stderr);
}
