//! The sessions in the documents: every `$ testigo …` of a console block is run, and must print
//! what stands below it.

use std::path::Path;
use std::process::Command;

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
    let local = ["testigo lab ", "testigo flow "];
    found.retain(|(command, _)| local.iter().any(|start| command.starts_with(start)));
    found
}

fn runs_as_printed(document: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(document)).expect(document);
    let sessions = sessions(&text);
    assert!(!sessions.is_empty(), "{document} shows a session");
    let folder = tempfile::tempdir().expect("a temporary directory");
    for (command, printed) in sessions {
        let output = Command::new(env!("CARGO_BIN_EXE_testigo"))
            .args(command.split_whitespace().skip(1))
            .current_dir(folder.path())
            .output()
            .expect("the binary runs");
        let happened = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            happened.trim_end(),
            printed.trim_end(),
            "{document}: {command}"
        );
    }
}

#[test]
fn the_readme_shows_what_is_printed() {
    runs_as_printed("README.md");
}

#[test]
fn the_lab_document_shows_what_is_printed() {
    runs_as_printed("docs/lab.md");
}

#[test]
fn the_flow_document_shows_what_is_printed() {
    runs_as_printed("docs/flow.md");
}
