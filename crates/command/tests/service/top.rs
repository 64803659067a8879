//! `testigo top`, printed and on a terminal: tmux plays the terminal, its keys and its 24 lines of 80.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::running::{Node, installed};

/// Long enough for a busy machine; only a broken screen makes a test wait for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the terminal runs when `top` has ended.
const TELL: &str = "; echo ended with $?; cat";

/// A terminal of 80 × 24 that runs one command. It ends with the test.
struct Terminal {
    socket: String,
}

impl Terminal {
    fn run(node: &Node, name: &str, afterwards: &str) -> Terminal {
        let socket = format!("testigo-{name}-{}", std::process::id());
        let terminal = Terminal { socket };
        let command = format!(
            "{} top --resp {} --interval 200ms {afterwards}",
            env!("CARGO_BIN_EXE_testigo"),
            node.address()
        );
        terminal.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            &command,
        ]);
        terminal
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command.args(["-L", &self.socket]).args(arguments).output();
        String::from_utf8_lossy(&output.expect("tmux runs").stdout).into_owned()
    }

    fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    /// Looks until the screen is as wanted, and gives it.
    fn until(&self, wanted: &str) -> String {
        let start = Instant::now();
        loop {
            let screen = self.tmux(&["capture-pane", "-p"]);
            if screen.contains(wanted) {
                return screen;
            }
            assert!(start.elapsed() < PATIENCE, "no {wanted:?} on\n{screen}");
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn one_picture_for_scripts() {
    let node = Node::start();
    let mut holder = node.begin("lock deploy/web --reason release", "echo inside; read line");
    holder.expect("inside");
    let waiter = node.begin("lock deploy/web --class 0 --reason hotfix", "true");
    node.until("gate show deploy/web", |gate| {
        gate["waiters"][0]["reason"] == "hotfix"
    });
    let once = node.run("top --once", "");
    assert_eq!(once.code, 0, "{}", once.stderr);
    for part in [
        "deploy/web  MUTEX, 1 inside, 1 waiting",
        "release",
        "hotfix",
        "per second: commands",
    ] {
        assert!(once.stdout.contains(part), "{part}: {}", once.stdout);
    }
    let state = node.json("top");
    assert_eq!(state["gates"][0]["holders"][0]["reason"], "release");
    assert_eq!(state["gates"][0]["waiters"][0]["class"], 0);
    let piped = node.run("top", "");
    assert_eq!(piped.code, 2);
    assert!(piped.stderr.contains("--once"), "{}", piped.stderr);
    assert_eq!(holder.end().code, 1, "its read ended");
    assert_eq!(waiter.end().code, 0);
}

#[test]
fn the_whole_terminal() {
    if !installed("tmux", Command::new("tmux").arg("-V")) {
        return;
    }
    let node = Node::start();
    let mut deploy = node.begin("lock deploy/web --reason release", "echo inside; read line");
    let mut report = node.begin("lock report --reason numbers", "echo inside; read line");
    deploy.expect("inside");
    report.expect("inside");
    let terminal = Terminal::run(&node, "whole", TELL);
    let screen = terminal.until("numbers");
    assert!(
        screen.contains("deploy/web  MUTEX, 1 inside, 0 waiting"),
        "{screen}"
    );
    assert!(screen.lines().count() <= 24, "{screen}");
    assert!(
        screen
            .lines()
            .last()
            .is_some_and(|foot| foot.starts_with("q quit  p pause")),
        "{screen}"
    );
    terminal.press(&["/", "rep", "Enter"]);
    let filtered = terminal.until("/ filter: rep");
    assert!(
        filtered.contains("report") && !filtered.contains("deploy"),
        "{filtered}"
    );
    terminal.press(&["Escape"]);
    terminal.until("deploy/web");
    terminal.press(&["s"]);
    terminal.until("sort: time");
    terminal.press(&["Tab"]);
    terminal.until("there are no queues");
    terminal.press(&["Tab"]);
    let sessions = terminal.until("WAITS FOR");
    assert!(sessions.contains(" lock "), "{sessions}");
    terminal.press(&["p"]);
    terminal.until("PAUSED");
    terminal.press(&["p", "q"]);
    terminal.until("ended with 0");
    drop((deploy.end(), report.end()));
}

#[test]
fn a_node_that_goes_is_told_and_one_that_comes_back_is_seen() {
    if !installed("tmux", Command::new("tmux").arg("-V")) {
        return;
    }
    let mut node = Node::start();
    let terminal = Terminal::run(&node, "gone", TELL);
    terminal.until("start 1");
    node.kill();
    terminal.until("NO ANSWER");
    node.restart();
    terminal.until("start 2");
    terminal.press(&["C-c"]);
    terminal.until("ended with 0");
}

#[test]
fn a_terminal_that_goes_takes_it_along() {
    if !installed("tmux", Command::new("tmux").arg("-V")) {
        return;
    }
    let node = Node::start();
    let terminal = Terminal::run(&node, "hangup", "");
    terminal.until("start 1");
    let process = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]);
    let process = format!("/proc/{}/stat", process.trim());
    assert!(std::fs::exists(&process).is_ok_and(|there| there));
    drop(terminal);
    let start = Instant::now();
    // Until nobody is there, or only what its parent has not yet buried.
    while std::fs::read_to_string(&process).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(start.elapsed() < PATIENCE, "it still runs: {process}");
        std::thread::yield_now();
    }
}
