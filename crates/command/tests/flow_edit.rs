//! `testigo flow edit` on a terminal of its own.

#[path = "terminal/mod.rs"]
mod terminal;

use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Winsize, tcsetwinsize};
use terminal::Terminal;

fn start(path: &Path, size: (u16, u16)) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command.args(["flow", "edit"]).arg(path);
    Terminal::start(command, size)
}

/// Types lines into the editor; gives what it showed and the exit code.
fn edit(path: &Path, lines: &str) -> (String, i32) {
    let mut editing = start(path, (0, 0));
    editing.enter(lines);
    // The end of the input, for an editor that still asks.
    editing.controller.write_all(&[4]).expect("typed");
    let (shown, status) = editing.end();
    (shown, status.code().expect("an exit code"))
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

#[test]
fn what_cannot_be_written_is_not_lost() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let missing = folder.path().join("missing");
    let path = missing.join("orders.flow");
    let other = folder.path().join("other.flow");
    let mut editing = start(&path, (0, 0));
    let shown = editing.wait_for("Choice");
    assert!(
        shown.contains("* ") && shown.contains("orders.flow cannot be written: No such file"),
        "it is said at the start: {shown}"
    );
    editing.enter("2|a|orders|||||||y|b|3|a|intake|||orders||||y|a|bill||||orders|||y|b|4|y");
    let shown = editing.wait_for("Another file");
    assert!(shown.contains("orders.flow cannot be written: "), "{shown}");
    // Back to the menu, where everything is still there.
    editing.enter("|3");
    let shown = editing.wait_for("bill  takes from orders, deletes from orders");
    assert!(shown.contains("The flow is valid."), "{shown}");
    editing.enter(&format!("b|4|y|{}|y", other.display()));
    let (shown, status) = editing.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    let text = fs::read_to_string(&other).expect("written");
    assert_eq!(text, "intake -> [orders] -> bill\n");
    assert!(!missing.exists());

    // The folder can be made meanwhile.
    let mut editing = start(&path, (0, 0));
    editing.enter("2|a|q|||||||y|b|3|a|a|||q||||y|a|b||||q|||y|b|4|y");
    editing.wait_for("Another file");
    fs::create_dir(&missing).expect("made");
    editing.enter("|4|y");
    let (shown, status) = editing.end();
    assert_eq!(status.code(), Some(0), "{shown}");
    assert_eq!(
        fs::read_to_string(&path).expect("written"),
        "a -> [q] -> b\n"
    );
}

const CONFIG: &str = "\
# Our orders.
cantcolas= 1, cantproctype= 2
colarechazo=
BeginCola
orders, Harcodeado, 7, 8  # all of them
EndCola
BeginProceso
intake
s: orders
fin
bill
e: orders
fin
EndProceso
";

#[test]
fn a_configuration_file_stays_one_with_its_comments() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("config.server");
    fs::write(&path, CONFIG).expect("written");
    let (shown, code) = edit(&path, "2|c|orders|/srv/orders||||||y|b|4|y");
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains("cannot say"), "{shown}");
    assert_eq!(
        fs::read_to_string(&path).expect("there"),
        CONFIG.replace("Harcodeado", "/srv/orders")
    );
}

#[test]
fn what_a_notation_cannot_say_is_told_and_asked() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let classic = "# Our orders.\nPROCintake COLAorders PROCbill\n";
    for (name, text, notation) in [
        ("config.server", CONFIG, "A configuration file cannot say:"),
        ("orders", classic, "The classic notation cannot say:"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        let limit = "2|c|orders||7|||||y|b|4";
        let (shown, code) = edit(&path, &format!("{limit}|n|y"));
        assert_eq!(code, 1, "{shown}");
        assert!(shown.contains(notation), "{shown}");
        assert!(shown.contains("queue orders { limit 7 }"), "{shown}");
        assert!(
            shown.contains("in the language of flows instead?"),
            "{shown}"
        );
        assert_eq!(fs::read_to_string(&path).expect("there"), text);
        let (shown, code) = edit(&path, &format!("{limit}|y"));
        assert_eq!(code, 0, "{shown}");
        let written = fs::read_to_string(&path).expect("there");
        assert!(written.starts_with("# Our orders.\n"), "{written}");
        assert!(
            written.contains("\nintake -> [orders] -> bill\n\nqueue orders { limit 7 }\n"),
            "{written}"
        );
    }
}

#[test]
fn a_signal_gives_the_terminal_back_first() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let mut editing = start(&path, (80, 24));
        editing.wait_for("Choice");
        let child = Pid::from_child(&editing.child);
        kill_process(child, signal).expect("it runs");
        let (shown, status) = editing.end();
        assert!(shown.contains("\u{1b}[?1049l"), "{shown}");
        assert_eq!(status.signal(), Some(signal.as_raw()));
    }
}

#[test]
fn long_lists_are_paged() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = folder.path().join("orders.flow");
    let chains: Vec<String> = (10..50).map(|n| format!("a -> [q{n}] -> b\n")).collect();
    fs::write(&path, chains.concat()).expect("written");
    let mut editing = start(&path, (80, 24));
    editing.enter("2");
    let first = editing.wait_for("(b)ack:");
    assert!(first.contains(": queues"), "the heading stays: {first}");
    assert!(
        first.contains("[q10]") && !first.contains("[q49]"),
        "{first}"
    );
    assert!(first.contains("page 1/3: Enter on, p back"), "{first}");
    // A terminal that grows shows all.
    editing.enter("");
    let second = editing.wait_for("(b)ack:");
    assert!(
        second.contains("page 2/3") && !second.contains("[q10]"),
        "{second}"
    );
    let size = Winsize {
        ws_row: 100,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&editing.controller, size).expect("a size");
    editing.enter("");
    let whole = editing.wait_for("(b)ack:");
    assert!(
        whole.contains("[q10]") && whole.contains("[q49]"),
        "{whole}"
    );
    assert!(!whole.contains("page"), "{whole}");
    editing.enter("b|4");
    let (shown, status) = editing.end();
    assert_eq!(status.code(), Some(0), "{shown}");
}

#[test]
fn standard_input_is_not_edited() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let output = Command::new(env!("CARGO_BIN_EXE_testigo"))
        .args(["flow", "edit", "-"])
        .current_dir(folder.path())
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not standard input"));
}
