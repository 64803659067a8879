//! The examples, run as they stand.

use std::path::PathBuf;
use std::process::Command;

use crate::running::{Node, Running, installed};

#[path = "../../../../examples/rust/deploy.rs"]
#[allow(dead_code, unreachable_pub, reason = "it is a program of its own")]
mod deploy;

fn example(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(path)
}

fn port(node: &Node) -> String {
    let address = node.address();
    address.rsplit_once(':').expect("a port").1.to_owned()
}

/// Says `inside with fence F` first, and leaves nothing behind.
fn runs(node: &Node, mut command: Command) -> Vec<String> {
    command.arg(port(node));
    let ended = Running::start(command).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let lines: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
    let fence = lines[0]
        .strip_prefix("inside with fence ")
        .expect("a fence");
    assert!(fence.parse::<u64>().is_ok(), "{fence}");
    assert_eq!(node.json("gate list"), serde_json::json!([]));
    assert_eq!(node.json("status")["holds"], 0);
    lines
}

#[test]
fn the_shell_example_runs() {
    if !installed("redis-cli", Command::new("redis-cli").arg("--version")) {
        return;
    }
    let node = Node::start();
    let lines = runs(&node, Command::new(example("shell/deploy.sh")));
    assert_eq!(lines[1], "the node agrees: 1");
}

#[test]
fn the_python_example_runs() {
    if !installed(
        "python3 with redis-py",
        Command::new("python3").args(["-c", "import redis"]),
    ) {
        return;
    }
    let node = Node::start();
    let mut python = Command::new("python3");
    python.arg(example("python/deploy.py"));
    let lines = runs(&node, python);
    assert_eq!(
        lines[1..],
        ["once more is refused: HELD", "the node agrees: 1"]
    );
}

/// It renews the lock while its command runs, and stops the command when the lock is taken away.
#[test]
fn the_python_example_notices_a_loss() {
    let redis = ["-c", "import redis"];
    if !installed("python3 with redis-py", Command::new("python3").args(redis)) {
        return;
    }
    let node = Node::start();
    let mut python = Command::new("python3");
    python.arg(example("python/deploy.py")).arg(port(&node));
    let work = "trap 'echo stopped; exit 9' TERM; echo works; until read line; do :; done";
    python.args(["sh", "-c", work]);
    let mut running = Running::start(python);
    while running.line() != "works" {}
    let session = node.json("session list")[0]["session"]
        .as_u64()
        .expect("a session");
    assert_eq!(node.run(&format!("session end {session}"), "").code, 0);
    running.expect("stopped");
    let ended = running.wait();
    assert_eq!(ended.code, 1);
    assert!(
        ended
            .stderr
            .contains("the lock is lost: the node took it away"),
        "{}",
        ended.stderr
    );
}

#[tokio::test]
async fn the_rust_example_runs() {
    let node = Node::start();
    let testigo = testigo::connect(&node.address()).await.expect("connected");
    let said = deploy::deploy(&testigo).await.expect("it runs");
    assert!(said.starts_with("done with fence "), "{said}");
    assert_eq!(node.json("status")["holds"], 0);
}

#[tokio::test]
async fn the_rust_example_runs_with_its_own_node() {
    let data = tempfile::tempdir().expect("a folder");
    let config = testigo::Config::embedded(data.path());
    let testigo = testigo::embed(config).await.expect("a node");
    let said = deploy::deploy(&testigo).await.expect("it runs");
    assert!(said.starts_with("done with fence "), "{said}");
    testigo.stop().await.expect("a clean stop");
}

/// The lines of a document that are command lines of `testigo`.
pub(crate) fn lines(document: &str) -> Vec<String> {
    let text = std::fs::read_to_string(example(document)).expect(document);
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("testigo "));
    lines.map(str::to_owned).collect()
}

/// Starts a line of a document, in the folder of its example.
pub(crate) fn start(node: &Node, folder: &str, line: &str) -> Running {
    let mut command = node.command(line.split(' ').map(|word| word.replace('"', "")));
    command.current_dir(example(folder));
    command.env("BOARD", node.file("board"));
    Running::start(command)
}

#[test]
fn the_conference_shares_the_hall_by_workshop() {
    let node = Node::start();
    let [create, attend] = &lines("conference/README.md")[..] else {
        panic!("two lines");
    };
    assert_eq!(start(&node, "conference", create).end().code, 0);
    let mut rust = [0, 1].map(|_| start(&node, "conference", attend));
    for participant in &mut rust {
        assert!(participant.line().starts_with("inside with fence"));
    }
    let other = attend.replace("--room rust", "--room python");
    let tried = start(&node, "conference", &other.replace(" -- ", " --wait 0 -- ")).end();
    assert_eq!(tried.code, 75);
    let long = attend.replace("--needs 20m", "--needs 45m --wait 0");
    assert_eq!(
        start(&node, "conference", &long).end().code,
        75,
        "less than that is left"
    );
    let never = attend.replace("--needs 20m", "--needs 46m");
    assert_eq!(
        start(&node, "conference", &never).end().code,
        2,
        "no stay is that long"
    );
    let mut python = start(&node, "conference", &other);
    node.until("gate show hall", |gate| gate["waiters"][0].is_object());
    for participant in rust {
        assert_eq!(participant.end().code, 0);
    }
    assert!(python.line().starts_with("inside with fence"));
    assert_eq!(python.end().code, 0);
}

#[test]
fn the_whiteboard_lets_a_team_draw_together() {
    let node = Node::start();
    let [create, draw] = &lines("whiteboard/README.md")[..] else {
        panic!("two lines");
    };
    assert_eq!(start(&node, "whiteboard", create).end().code, 0);
    let draw = draw.replace("\"a cloud\"", "cloud");
    let mut blue = [0, 1].map(|_| start(&node, "whiteboard", &draw));
    blue.iter_mut().for_each(|member| member.expect("drawn"));
    let mut red = start(
        &node,
        "whiteboard",
        &draw.replace("blue", "red").replace("cloud", "sun"),
    );
    node.until("gate show whiteboard", |gate| {
        gate["waiters"][0].is_object()
    });
    for member in blue {
        assert_eq!(member.end().code, 0);
    }
    red.expect("drawn");
    assert_eq!(red.end().code, 0);
    let board = std::fs::read_to_string(node.file("board")).expect("a board");
    let drawn: Vec<&str> = board
        .lines()
        .filter_map(|line| Some(line.split_once(' ')?.1))
        .collect();
    assert_eq!(drawn, ["cloud", "cloud", "sun"]);
}
