//! What the tests of flows share: a node with a flow, jobs in it, and a fifo at which programs wait for the test.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::running::Node;

/// Orders come in, are priced, and are billed; what fails twice is for the clerk.
pub(crate) const ORDERS: &str = "\
flow { retries 1; reject [failed] }
intake -> [orders] -> price -> [priced] -> bill
[failed] -> clerk -> [orders] -> price -> [priced] -> bill
";

/// Says that it runs and for whom, and waits at the fifo `gate` for a word.
pub(crate) const WAITS: &str = "echo runs $TESTIGO_JOB_NAME; read word < gate; echo $word";

/// A node with the flow `f`.
pub(crate) fn node_with(flow: &str) -> Node {
    let node = Node::start();
    apply(&node, flow);
    node
}

pub(crate) fn apply(node: &Node, flow: &str) {
    std::fs::write(node.file("f.flow"), flow).expect("a file");
    let applied = node.run("flow apply f f.flow", "");
    assert_eq!(applied.code, 0, "{}", applied.stderr);
}

/// Creates jobs of these names in a queue; each body is its job's name.
pub(crate) fn create(node: &Node, queue: &str, names: &[&str]) {
    for name in names {
        let created = node.run(&format!("job create {queue} {name} --name {name}"), "");
        assert_eq!(created.code, 0, "{}", created.stderr);
    }
}

/// Creates so many jobs in one go, called as their ids.
pub(crate) fn create_many(node: &Node, queue: &str, count: usize) {
    let mut stream = TcpStream::connect(node.address()).expect("a node");
    let line = format!("JOB CREATE {queue} * body\r\n");
    let lines = line.repeat(count);
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let writer = std::thread::spawn(move || stream.write_all(lines.as_bytes()).map(|()| stream));
    for _ in 0..count {
        let mut answer = String::new();
        reader.read_line(&mut answer).expect("an answer");
        assert!(answer.starts_with(':'), "{answer}");
    }
    writer.join().expect("it ends").expect("writable");
}

/// How many jobs wait in a queue, and how many are in hand.
pub(crate) fn counts(node: &Node, queue: &str) -> (u64, u64) {
    let queue = node.json(&format!("queue show {queue}"));
    let number = |field: &str| queue[field].as_u64().expect("a number");
    (number("waiting"), number("held"))
}

pub(crate) fn until_counts(node: &Node, queue: &str, waiting: u64, held: u64) {
    node.until(&format!("queue show {queue}"), |queue| {
        queue["waiting"] == waiting && queue["held"] == held
    });
}

pub(crate) fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("mkfifo");
    assert!(made.success());
}

/// Lets one program at a fifo go on with a word.
pub(crate) fn let_go(path: &Path, word: &str) {
    let mut fifo = OpenOptions::new().write(true).open(path).expect("a fifo");
    writeln!(fifo, "{word}").expect("somebody reads");
}
