//! `testigo gate`, `session`, `status` and `completions`.

use serde_json::json;

use crate::running::{Node, nobody};

#[test]
fn a_gate_is_made_shown_listed_and_deleted() {
    let node = Node::start();
    let create = "gate create licences permits 5 --lease 30m --order arrival --classes 2";
    assert_eq!(node.run(create, "").code, 0);
    assert_eq!(
        node.run(create, "").code,
        0,
        "making the same once more changes nothing"
    );
    let other = node.run("gate create licences mutex", "");
    assert_eq!(other.code, 1, "refused for good: {}", other.stderr);
    let typo = node.run("gate show licencse", "");
    assert!(
        typo.stderr
            .contains("there is no gate licencse; did you mean licences?"),
        "{}",
        typo.stderr
    );
    let shown = node.json("gate show licences");
    let facts = ["rule", "lease_ms", "order", "classes"].map(|name| shown[name].clone());
    assert_eq!(json!(facts), json!(["PERMITS 5", 1_800_000, "ARRIVAL", 2]));
    let listed = json!([{"name": "licences", "rule": "PERMITS 5", "kind": "created"}]);
    assert_eq!(node.json("gate list l*"), listed);
    assert_eq!(node.json("gate list x*"), json!([]));
    assert_eq!(node.run("gate delete licences", "").code, 0);
    let gone = node.run("gate show licences", "");
    assert_eq!(gone.code, 2);
    assert!(
        gone.stderr
            .contains("there is no gate licences; `testigo gate create` makes one"),
        "{}",
        gone.stderr
    );
}

#[test]
fn people_see_who_is_inside_and_who_waits() {
    let node = Node::start();
    let mut holder = node.begin(
        "lock deploy --reason release-7",
        "echo inside; cat >/dev/null",
    );
    holder.expect("inside");
    let waiter = node.begin("lock deploy --reason release-8", "true");
    node.until("gate show deploy", |gate| gate["waiters"][0].is_object());
    let shown = node.run("gate show deploy", "").stdout;
    for wanted in [
        "rule               MUTEX",
        "holders: 1",
        "waiters: 1",
        "release-7",
        "release-8",
    ] {
        assert!(shown.contains(wanted), "{wanted}:\n{shown}");
    }
    let sessions = node.run("session list", "").stdout;
    assert_eq!(sessions.matches("deploy").count(), 2, "{sessions}");
    holder.end();
    assert_eq!(waiter.end().code, 0);
}

#[test]
fn a_gate_that_makes_no_sense_is_bad_input() {
    let node = Node::start();
    for line in [
        "gate create g permits",
        "gate create g permits 0",
        "gate create g mutex 3",
        "gate create g mutex --stay 5m",
        "gate create g mutex --lease soon",
        "gate create g monitor",
        "session end everybody",
    ] {
        assert_eq!(node.run(line, "").code, 2, "{line}");
    }
}

#[test]
fn the_status_is_told_to_people_and_programs() {
    let node = Node::start();
    assert_eq!(node.json("status")["recovering"], false);
    assert!(node.run("status", "").stdout.starts_with("version "));
    let nobody = nobody();
    for line in ["status", "gate list", "session list"] {
        assert_eq!(
            node.run(&format!("{line} --resp {nobody}"), "").code,
            69,
            "{line}"
        );
    }
}

#[test]
fn every_shell_gets_its_completions() {
    let node = Node::start();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = node.run(&format!("completions {shell}"), "").stdout;
        assert!(script.contains("retry-unknown"), "{shell}");
    }
    assert_eq!(node.run("completions cobol", "").code, 2);
}

#[test]
fn bash_completes_the_names_of_a_running_node() {
    let node = Node::start();
    for gate in ["deploy", "depot", "report"] {
        assert_eq!(node.run(&format!("gate create {gate} mutex"), "").code, 0);
    }
    let testigo = env!("CARGO_BIN_EXE_testigo");
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let script = format!(
            "source <({testigo} completions bash); COMP_WORDS=({testigo} \"$@\"); \
             COMP_CWORD=$#; _testigo_with_names {testigo} \"${{@: -1}}\" \"${{@: -2:1}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = std::process::Command::new("bash");
        bash.args(["-c", &script, "bash"]).args(words);
        bash.env("TESTIGO_RESP", node.address());
        let said = bash.output().expect("bash runs");
        String::from_utf8(said.stdout).expect("text")
    };
    assert_eq!(complete("gate show dep"), "deploy\ndepot\n");
    assert_eq!(complete("lock report dep"), "deploy\ndepot\n");
    assert_eq!(complete("gate cr"), "create\n");
    let resp = nobody();
    let alone = complete(&format!("gate show --resp {resp} dep"));
    assert!(!alone.contains("deploy"), "{alone}");
}

#[test]
fn the_manual_has_a_page_for_each_command() {
    let node = Node::start();
    assert_eq!(node.run("man pages", "").code, 0);
    let page = |name: &str| std::fs::read_to_string(node.file("pages").join(name));
    assert!(
        page("testigo.1")
            .expect("the first page")
            .contains("testigo")
    );
    assert!(
        page("testigo-gate-create.1")
            .expect("a page")
            .contains("permits")
    );
    assert!(page("testigo-names.1").is_err(), "what is hidden has none");
}

#[test]
fn a_backup_says_how_long_its_file_is() {
    let node = Node::start();
    let said = node.json("cluster backup monday");
    let file = std::fs::metadata(node.file("monday")).expect("the file");
    assert_eq!(said["bytes"], file.len());
    let restored = node.run("cluster restore monday --data new --json", "");
    assert_eq!(
        restored.code, 1,
        "the old node answers: {}",
        restored.stderr
    );
    let said = node.run("cluster backup tuesday", "").stdout;
    let file = std::fs::metadata(node.file("tuesday")).expect("the file");
    assert!(
        said.starts_with(&format!("tuesday: {} bytes", file.len())),
        "{said}"
    );
}

#[test]
fn the_models_of_flows_are_listed_for_scripts() {
    let node = Node::start();
    let models = node.json("flow new --list");
    let names = models.as_array().expect("a list").iter();
    assert!(
        names.clone().any(|model| model["name"] == "rework"),
        "{models}"
    );
}

#[test]
fn forgetting_what_was_never_on_record_is_said() {
    let node = Node::start();
    assert_eq!(node.run("lock a --once migrate", "true").code, 0);
    assert_eq!(node.run("once forget migrate", "").stderr, "");
    let again = node.run("once forget migrate", "");
    assert_eq!(
        (again.code, again.stderr.as_str()),
        (0, "testigo: there was no migrate on record\n")
    );
}

#[test]
fn who_takes_one_door_for_the_other_is_told() {
    let node = Node::start();
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for mut stream in server.incoming().flatten() {
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for line in ["status", "flow list"] {
        let told = node.run(&format!("{line} --resp {address}"), "");
        assert_eq!(told.code, 69, "{}", told.stderr);
        assert!(
            told.stderr.contains("an HTTP server answers there"),
            "{}",
            told.stderr
        );
        assert_eq!(told.stderr.matches("no node").count(), 1, "{}", told.stderr);
    }
}

#[test]
fn what_is_wrong_before_a_node_starts_names_its_place() {
    let node = Node::start();
    std::fs::write(node.file("a-file"), "").expect("writable");
    std::fs::write(node.file("half.conf"), "\ntls_cert = c\n").expect("writable");
    std::fs::write(node.file("peer.conf"), "peer = h:1\n").expect("writable");
    std::fs::write(node.file("wrong.conf"), "data = d\nlog = wran\n").expect("writable");
    for (line, place) in [
        ("up --data a-file/d", "a-file/d"),
        ("up --data a-file", "a-file"),
        (
            "up --config wrong.conf",
            "wrong.conf: line 2: \"wran\" is unknown; did you mean warn?",
        ),
        ("up --config none.conf", "none.conf: "),
        ("up --config half.conf", "half.conf: line 2: TLS needs"),
        ("up --config peer.conf", "peer.conf: line 1: peer needs id"),
        ("up --resp no-such-host.invalid:1", "no-such-host.invalid:1"),
    ] {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 2, "{line}: {}", ended.stderr);
        assert!(ended.stderr.contains(place), "{line}: {}", ended.stderr);
    }
}

#[test]
fn every_help_has_an_example() {
    let node = Node::start();
    for line in [
        "up",
        "lock",
        "guard",
        "gate create",
        "gate show",
        "gate list",
        "gate delete",
        "session list",
        "session end",
        "status",
        "completions",
        "man",
        "lab quorum",
    ] {
        let help = node.run(&format!("{line} --help"), "").stdout;
        assert!(help.contains("Example"), "{line}:\n{help}");
        assert!(help.contains("testigo "), "{line}:\n{help}");
    }
}
