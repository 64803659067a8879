//! Commands as users: who they are comes from the environment and from files, never from the command line.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::running::{Ended, Node, Running};

/// What `testigo password` prints for a password.
fn hashed(user: &str, password: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    let command = command.args(["password", user]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("it starts");
    let mut input = process.stdin.take().expect("a pipe");
    writeln!(input, "{password}").expect("written");
    drop(input);
    let output = process.wait_with_output().expect("an end");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("text")
}

fn house() -> Node {
    let alice = hashed("alice", "two words");
    assert!(alice.starts_with("user.alice.password = $pbkdf2-sha256$i="));
    Node::with_config(&format!(
        "password = root\n{alice}user.alice.rights = deploy/* : use\n"
    ))
}

fn run(node: &Node, line: &str, variables: &[(&str, &str)]) -> Ended {
    let mut command = node.command(line.split(' '));
    command.envs(variables.iter().copied());
    Running::start(command).end()
}

#[test]
fn a_command_says_who_it_is() {
    let node = house();
    let nobody = run(&node, "status", &[]);
    assert_eq!(nobody.code, 2, "{}", nobody.stderr);
    assert!(
        nobody.stderr.contains("set TESTIGO_PASSWORD"),
        "{}",
        nobody.stderr
    );
    let root = [("TESTIGO_PASSWORD", "root")];
    assert_eq!(run(&node, "gate create report mutex", &root).code, 0);
    let alice = [("TESTIGO_USER", "alice"), ("TESTIGO_PASSWORD", "two words")];
    let locked = run(&node, "lock deploy/web -- true", &alice);
    assert_eq!(locked.code, 0, "{}", locked.stderr);
    let denied = run(&node, "lock report -- true", &alice);
    assert_eq!(denied.code, 2);
    let why = "testigo: user alice may not use report; the right report : use is missing";
    assert!(denied.stderr.contains(why), "{}", denied.stderr);
    let list = run(&node, "gate list --json", &alice);
    assert_eq!(list.stdout.trim(), "[]");
    let list = run(&node, "gate list --json", &root);
    assert!(list.stdout.contains("report"), "{}", list.stdout);
}

#[test]
fn a_password_may_stand_in_a_file() {
    let node = house();
    let file = node.file("alice.password");
    std::fs::write(&file, "two words\nand a note\n").expect("writable");
    let with_file = format!("status --user alice --password-file {}", file.display());
    assert_eq!(run(&node, &with_file, &[]).code, 0);
    let wrong = [("TESTIGO_PASSWORD", "wrong")];
    let refused = run(&node, "status --user alice", &wrong);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("no such user with that password"),
        "{}",
        refused.stderr
    );
    let without = run(&node, "status --user alice", &[]);
    assert_eq!(without.code, 2);
    assert!(
        without.stderr.contains("--password-file"),
        "{}",
        without.stderr
    );
}

#[test]
fn half_a_user_is_refused_with_its_missing_half() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("conf");
    std::fs::write(&config, "user.bob.password = x\n").expect("writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    let command = command.args(["up", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
    let command = command
        .arg("--config")
        .arg(&config)
        .current_dir(folder.path());
    let output = command.output().expect("an end");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("user.bob.rights"), "{said}");
}

#[test]
fn where_connections_must_open_a_session_the_commands_do() {
    let node = Node::with_config("session_first = yes\n");
    std::fs::write(node.file("f.flow"), "make -> [q] -> work").expect("writable");
    let mut member = node.begin("group join talk", "");
    assert!(member.line().contains("joined"));
    for (line, shell) in [
        ("lock gate", "echo in"),
        ("lock gate --once key", "echo once"),
        ("elect db", "echo leads"),
        ("pool create ports --slots 2", ""),
        ("pool take ports", "echo taken"),
        ("flow apply f f.flow", ""),
        ("job create f/q x", ""),
        ("job take f/q", ""),
        ("work f work --drain", "cat"),
        ("group send talk hello", ""),
        ("decide first x", ""),
        ("status", ""),
    ] {
        let ended = node.run(line, shell);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    }
    member.signal(rustix::process::Signal::TERM);
    member.end();
}
