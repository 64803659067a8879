//! The sessions in the documents: every `$ …` of a console block is run, and must print what stands below it.

mod up;

use std::path::{Path, PathBuf};
use std::process::Command;

use up::Up;

/// The commands of a document's console blocks, each with what it prints.
fn sessions(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => inside = line == "```console",
            Some(command) if inside => found.push((command.into(), String::new())),
            _ if inside => {
                if let Some((_, printed)) = found.last_mut() {
                    printed.push_str(line);
                    printed.push('\n');
                }
            }
            _ => {}
        }
    }
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a document's sessions one after the other in a directory with the examples, against a fresh node, and compares what
/// a terminal would show. `wanted` leaves commands out.
fn runs_as_printed(document: &str, wanted: impl Fn(&str) -> bool) {
    let text = std::fs::read_to_string(root().join(document)).expect(document);
    let mut sessions = sessions(&text);
    sessions.retain(|(command, _)| wanted(command));
    assert!(!sessions.is_empty(), "{document} shows a session");
    let folder = tempfile::tempdir().expect("a temporary directory");
    let clone = folder.path().join("clone");
    std::fs::create_dir(&clone).expect("a directory");
    std::os::unix::fs::symlink(root().join("examples"), clone.join("examples")).expect("a link");
    let node = Up::start(&folder.path().join("data"), &[]);
    let binary = Path::new(env!("CARGO_BIN_EXE_testigo"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", binary.parent().expect("a folder").display());
    for (command, printed) in sessions {
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {command}")])
            .current_dir(&clone)
            .env("PATH", &path)
            .env("TESTIGO_RESP", node.address.to_string())
            .output()
            .expect("the shell runs");
        let happened = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            happened.trim_end(),
            printed.trim_end(),
            "{document}: {command}"
        );
    }
}

/// What needs neither a terminal nor a node.
fn is_local(command: &str) -> bool {
    let local = ["testigo lab ", "testigo flow "];
    local.iter().any(|start| command.starts_with(start))
}

#[test]
fn the_readme_shows_what_is_printed() {
    runs_as_printed("README.md", |_| true);
}

#[test]
fn the_lab_document_shows_what_is_printed() {
    runs_as_printed("docs/lab.md", is_local);
}

#[test]
fn the_flow_document_shows_what_is_printed() {
    runs_as_printed("docs/flow.md", is_local);
}
