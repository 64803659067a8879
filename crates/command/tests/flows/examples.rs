//! The examples of flows, run as they stand, each in its one line.

use std::path::{Path, PathBuf};

use crate::running::{Node, Running, installed};

const TESTIGO: &str = env!("CARGO_BIN_EXE_testigo");

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flows");
    root.join(name).join("run.sh")
}

/// Runs an example against a node, or with one of its own; gives the lines that it prints.
fn run(name: &str, node: &Node, own: bool) -> Vec<String> {
    let mut command = std::process::Command::new(example(name));
    let folder = Path::new(TESTIGO).parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("ARCHIVE", node.file("archive"));
    match own {
        true => command.env_remove("TESTIGO_RESP"),
        false => command.env("TESTIGO_RESP", node.address()),
    };
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    ended.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn the_scheme_of_6_processes_and_8_queues_brings_every_job_to_its_end() {
    let node = Node::start();
    let mut lines = run("scheme", &node, false);
    lines.sort_unstable();
    let mut expected = Vec::new();
    for (kind, way) in [
        ("long", "p1 p2 p3 p4 p5"),
        ("loop", "p1 p3 p4 p3 p5"),
        ("other", "p1 p4 p6"),
        ("short", "p1 p2 p3 p5"),
    ] {
        expected.extend((1..=3).map(|number| format!("{kind}-{number}: {way}")));
    }
    assert_eq!(lines, expected);
    node.until("flow list", |flows| flows[0]["jobs"] == 0);
    assert_eq!(
        (
            &node.json("flow list")[0]["processes"],
            &node.json("flow list")[0]["queues"]
        ),
        (&6.into(), &8.into())
    );
}

#[test]
fn the_orders_go_through_rework_and_the_clerk() {
    let node = Node::start();
    for own in [true, false] {
        let lines = run("orders", &node, own);
        assert_eq!(
            lines,
            [
                "rejected: 1",
                "shipped 3 apples",
                "shipped 1 pears",
                "shipped 2 melons"
            ]
        );
    }
}

#[test]
fn the_pictures_are_really_transformed() {
    if !installed(
        "python3",
        std::process::Command::new("python3").arg("--version"),
    ) {
        return;
    }
    let node = Node::start();
    run("pictures", &node, false);
    // What it leaves behind is not in the way of the next time.
    let lines = run("pictures", &node, false);
    assert_eq!(lines[0], "disc-16.ppm.pgm: 269 bytes");
    assert_eq!(lines[3], "left in the queues' directories: 0");
    assert!(
        lines[5].contains("torn.ppm") && lines[5].contains("pictures/broken"),
        "{lines:?}"
    );
    let edges = std::fs::read(node.file("archive/disc-64.ppm.pgm")).expect("a picture");
    let dots = edges
        .strip_prefix(b"P5\n64 64\n255\n")
        .expect("a grey picture");
    assert_eq!(dots.len(), 64 * 64);
    let at = |x: usize, y: usize| dots[y * 64 + x];
    // Flat inside of the disc, and an edge around it.
    assert_eq!(at(32, 32), 0);
    assert!((8..16).any(|x| at(x, 32) > 100), "the disc has an edge");
}

/// The Python block of a document, at the port of a node that runs already.
#[test]
fn the_document_of_jobs_shows_a_transaction_of_redis_py_that_works() {
    let has = ["-c", "import redis"];
    if !installed(
        "python3 with redis-py",
        std::process::Command::new("python3").args(has),
    ) {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/jobs.md")).expect("the document");
    let block = text.split("```python\n").nth(1).expect("a block");
    let block = block.split("```").next().expect("its end");
    let node = Node::start();
    let address = node.address();
    let (_, port) = address.rsplit_once(':').expect("a port");
    assert!(block.contains("port=7600"), "{block}");
    let mut python = std::process::Command::new("python3");
    python.args(["-c", &block.replace("port=7600", &format!("port={port}"))]);
    let ended = Running::start(python).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.starts_with("[2, 3, "), "{}", ended.stdout);
    assert_eq!(node.json("queue show shop/orders")["held"], 0);
    assert_eq!(node.json("queue show shop/parts")["waiting"], 2);
}

/// The shell blocks of a document, one after the other, against a node that runs already.
#[test]
fn the_document_of_jobs_shows_what_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/jobs.md")).expect("the document");
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap_or_default().lines());
    let (starts, script): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("testigo up "));
    assert_eq!(starts.len(), 1, "a node is started once");
    let node = Node::start();
    let folder = Path::new(TESTIGO).parent().expect("a folder").to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = std::process::Command::new("sh");
    command.args(["-eu", "-c", &script.join("\n")]);
    command.current_dir(&root);
    command.env("PATH", format!("{}:{path}", folder.display()));
    command.env("TESTIGO_RESP", node.address());
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let wanted = ["shipped 3 apples", "PROCESS", "bottleneck", "deleted"];
    for word in wanted {
        assert!(ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
}
