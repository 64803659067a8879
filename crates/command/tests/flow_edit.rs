//! `testigo flow edit` on a terminal of its own.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// Types lines, with | between them, into the editor on a pseudo-terminal; gives what it showed and the exit code.
fn edit(path: &std::path::Path, lines: &str) -> (String, i32) {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
    grantpt(&controller).expect("granted");
    unlockpt(&controller).expect("unlocked");
    let name = ptsname(&controller, Vec::new()).expect("a name");
    let name = name.to_str().expect("text").to_owned();
    let terminal = || {
        let file = File::options()
            .read(true)
            .write(true)
            .open(&name)
            .expect("the terminal");
        Stdio::from(file)
    };
    let mut child = Command::new(env!("CARGO_BIN_EXE_testigo"))
        .args(["flow", "edit"])
        .arg(path)
        .stdin(terminal())
        .stdout(terminal())
        .stderr(terminal())
        .spawn()
        .expect("the binary runs");
    let mut controller = File::from(controller);
    // The terminal keeps what is typed ahead.
    let typed = format!("{}\n", lines.replace('|', "\n"));
    controller.write_all(typed.as_bytes()).expect("typed");
    // The end of the input, for an editor that still asks.
    controller.write_all(&[4]).expect("typed");
    let mut shown = Vec::new();
    let mut part = [0; 4096];
    // When the last user of the terminal is gone, reading it fails.
    while let Ok(read @ 1..) = controller.read(&mut part) {
        shown.extend_from_slice(&part[..read]);
    }
    let code = child.wait().expect("it ends").code().expect("an exit code");
    (String::from_utf8_lossy(&shown).into_owned(), code)
}

#[test]
fn a_flow_is_built_from_nothing() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    let queue = "2|a|orders|/srv/orders|100|priority||||y|b";
    let creator = "3|a|intake|||orders||||y";
    let deleter = "a|bill||||orders|2|ann bob|y|b";
    let (shown, code) = edit(&path, &format!("{queue}|{creator}|{deleter}|4|y"));
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("nothing puts into [orders]"),
        "what is missing is shown: {shown}"
    );
    assert!(shown.contains("The flow is valid."), "{shown}");
    assert!(
        shown.starts_with("\u{1b}[?1049h") || shown.contains("\u{1b}[?1049h"),
        "the whole screen is used"
    );
    assert!(
        shown.contains("\u{1b}[?1049l"),
        "the terminal is given back"
    );
    let text = fs::read_to_string(&path).expect("written");
    assert_eq!(
        text,
        "intake -> [orders] -> bill\n\nqueue orders { limit 100; order priority; data \"/srv/orders\" }\n\
         process bill { limit 2; rights ann, bob }\n"
    );
}

#[test]
fn comments_stay_and_what_is_refused_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    let text = "# Our orders.\nintake -> [orders] -> bill  # the usual way\n";
    fs::write(&path, text).expect("written");
    let refused = "2|r|orders|a|orders";
    let (shown, code) = edit(
        &path,
        &format!("{refused}|a|failed|||||||y|b|1|nowhere||1|failed|2|y|4|y"),
    );
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("in-use: [orders] is used by bill, intake"),
        "{shown}"
    );
    assert!(shown.contains("there is a queue orders already"), "{shown}");
    assert!(shown.contains("there is no queue nowhere"), "{shown}");
    assert!(
        shown.contains("+ queue failed"),
        "the changes are shown before they are written: {shown}"
    );
    let written = fs::read_to_string(&path).expect("there");
    assert_eq!(
        written,
        format!("{text}\nflow {{ retries 2; reject [failed] }}\nqueue failed\n")
    );
}

#[test]
fn an_invalid_flow_is_not_written() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    let text = "intake -> [orders] -> bill\n";
    fs::write(&path, text).expect("written");
    let (shown, code) = edit(&path, "3|r|bill|n|r|bill|y|b|4|n|4|y");
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("left as it was"), "{shown}");
    assert!(shown.contains("nothing takes from [orders]"), "{shown}");
    assert_eq!(fs::read_to_string(&path).expect("there"), text);
}

#[test]
fn a_user_who_goes_away_leaves_the_file_as_it_was() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    let text = "intake -> [orders] -> bill\n";
    fs::write(&path, text).expect("written");
    let (shown, code) = edit(&path, "2|c|orders||7||||");
    assert_eq!(code, 2, "{shown}");
    assert!(shown.contains("nothing was written"), "{shown}");
    assert_eq!(fs::read_to_string(&path).expect("there"), text);
}
