//! What an administrator changes by hand is asked about, at a terminal and nowhere else.

use rustix::process::Signal;

use crate::running::Node;
use crate::scene::{ORDERS, create, node_with};
use crate::terminal::Terminal;

/// What a command shows at a terminal where this is typed, and its exit code.
fn typed(node: &Node, line: &str, answer: &str) -> (String, i32) {
    let command = node.command(line.split(' '));
    let mut terminal = Terminal::start(command, (80, 24));
    terminal.enter(answer);
    let (shown, status) = terminal.end();
    (shown, status.code().expect("an exit code"))
}

/// Where every job is, who works, and the flows that there are.
fn state(node: &Node) -> String {
    let fields = |line: &str, names: [&str; 2]| {
        let rows = node.json(line);
        let rows = rows.as_array().expect("rows").iter();
        let rows = rows.map(|row| names.map(|name| row[name].to_string()));
        rows.collect::<Vec<_>>()
    };
    let jobs = fields("job find *", ["id", "queue"]);
    let clients = fields("client list", ["id", "process"]);
    format!(
        "{jobs:?} {clients:?} {:?}",
        fields("flow list", ["name", "name"])
    )
}

#[test]
fn at_a_terminal_every_change_is_asked_about_unless_yes_is_said() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    assert_eq!(node.run("work f price --drain", "exit 1").code, 1);
    create(&node, "f/orders", &["o-2", "o-3"]);
    let worker = node.begin("work f bill --keep", "cat");
    node.until("client list", |clients| clients[0]["process"] == "bill");
    let client = node.json("client list")[0]["id"].to_string();
    let changes = [
        (
            "job move 2 3 --to failed",
            "move to failed 2 jobs (2, 3)",
            "2 moved",
        ),
        ("job retry 1", "retry 1 job (1)", "1 moved back"),
        ("job delete 2", "delete 1 job (2)", "1 deleted"),
        ("job delete --find o-3", "delete 1 job (o-3)", "1 deleted"),
        (
            &format!("client end {client}"),
            &format!("end client {client}"),
            "1 ended",
        ),
        (
            "client end --machine 127.0.0.1",
            "end all clients of flows that come from 127.0.0.1",
            "1 ended",
        ),
    ];
    for (line, question, done) in changes {
        let question = format!("{question}? [y/N]");
        let before = state(&node);
        for no in ["", "n", "what"] {
            let (shown, code) = typed(&node, line, no);
            assert_eq!(code, 2, "{line}: {shown}");
            assert!(shown.contains(&question), "{line}: {shown}");
            assert!(shown.contains("nothing was changed"), "{line}: {shown}");
        }
        assert_eq!(state(&node), before, "{line}");
        let (shown, code) = typed(&node, line, "y");
        assert_eq!(code, 0, "{line}: {shown}");
        assert!(
            shown.contains(&question) && shown.contains(done),
            "{line}: {shown}"
        );
        node.until("client list", |clients| clients[0]["process"] == "bill");
    }
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, 0);
    let (shown, code) = typed(&node, "job delete 1 --yes", "");
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains('?'), "{shown}");
    let (shown, code) = typed(&node, "flow delete f", "n");
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("delete flow f? [y/N]"), "{shown}");
    let (shown, code) = typed(&node, "flow delete f -y", "");
    assert_eq!(code, 0, "{shown}");
    assert_eq!(node.json("flow list"), serde_json::json!([]));
}
