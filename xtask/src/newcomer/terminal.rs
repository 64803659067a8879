//! A shell with job control, that is typed into and read like a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::program;

/// Much longer than anything in the documents takes, on a busy machine and without optimisation too: what has not come by then does
/// not come.
const PATIENCE: Duration = Duration::from_secs(900);
/// What is typed first: jobs as in a terminal, and one stream for all that is shown.
const FIRST: &str = "set -m; exec 2>&1";

pub(super) struct Terminal {
    shell: Child,
    keys: File,
    heard: Receiver<String>,
    /// What was heard since the last command was typed.
    said: String,
    /// How many commands were typed.
    typed: usize,
}

impl Terminal {
    pub(super) fn open(name: &str, folder: &Path) -> Result<Terminal, String> {
        let wrong = |error: std::io::Error| format!("the {name} terminal: {error}");
        let pipe = folder.join("..").join(format!("{name}.keys"));
        let made = Command::new("mkfifo").arg(&pipe).status();
        made.map_err(wrong)?;
        // A newcomer's terminal knows nothing of this package, and cargo would build anew what watches its variables.
        let mut shell = program("bash")?;
        // To the shell, what is typed is a script: so no command can take the next one for its input, and the shell says
        // nothing of jobs that stop or end, which it would say whenever it comes to know.
        shell.arg(&pipe).current_dir(folder);
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut shell = shell.spawn().map_err(wrong)?;
        let keys = fs::OpenOptions::new().write(true).open(&pipe);
        let mut keys = keys.map_err(wrong)?;
        writeln!(keys, "{FIRST}").map_err(wrong)?;
        let (said, heard) = channel();
        let mut out = shell.stdout.take().ok_or("no output")?;
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                if said.send(text).is_err() {
                    return;
                }
            }
        });
        Ok(Terminal {
            shell,
            keys,
            heard,
            said: String::new(),
            typed: 0,
        })
    }

    /// Types a command, which may stay in the foreground.
    pub(super) fn type_in(&mut self, command: &str) -> Result<(), String> {
        self.said.clear();
        self.typed += 1;
        let (begins, over) = marks(self.typed);
        let typed = writeln!(self.keys, "echo '{begins}'\n{command}\necho \"{over}$?\"");
        typed.map_err(|error| format!("{command}: {error}"))
    }

    /// Waits until the last command has said what is wanted. It is asked with what was said since the command began, and
    /// the exit code once it is over.
    pub(super) fn until(
        &mut self,
        wanted: impl Fn(&str, Option<i32>) -> bool,
    ) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (said, code) = self.said();
            if wanted(&said, code) {
                return Ok(());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(text) => self.said.push_str(&text),
                Err(RecvTimeoutError::Timeout) => return Err(said),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(format!("{said}\nthe shell is gone"));
                }
            }
        }
    }

    /// What was said since the last command began, and its exit code if it is over.
    pub(super) fn said(&self) -> (String, Option<i32>) {
        since(&self.said, self.typed)
    }

    /// Ctrl-C: what is in the foreground gets a SIGINT, with all that it started.
    pub(super) fn interrupt(&mut self) -> Result<(), String> {
        let shell = self.shell.id();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        let children = children.map_err(|error| error.to_string())?;
        let foreground = children.split_whitespace().last();
        let group = format!("-{}", foreground.ok_or("nothing is in the foreground")?);
        let killed = Command::new("kill").args(["-INT", "--", &group]).status();
        match killed.is_ok_and(|status| status.success()) {
            true => self.until(|_, code| code.is_some()),
            false => Err("there is nothing to interrupt".into()),
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // The namespace takes everything else with it.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

/// What the shell prints before and after a command; the exit code follows.
fn marks(number: usize) -> (String, String) {
    let begins = format!("<command {number}>");
    let over = format!("<command {number} is over> ");
    (begins, over)
}

/// What was said since a command began, without the marks, and its exit code if it is over. What an earlier command said
/// late is before that.
fn since(said: &str, number: usize) -> (String, Option<i32>) {
    let (begins, over) = marks(number);
    let Some((_, said)) = said.split_once(&format!("{begins}\n")) else {
        return (String::new(), None);
    };
    let end = said.split_once(&over);
    let end = end.and_then(|(said, end)| Some((said, end.split_once('\n')?)));
    match end {
        Some((said, (code, later))) => (format!("{said}{later}"), code.trim().parse().ok()),
        None => (said.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_command_says_late_is_not_the_next_ones() {
        let late = "keys: line 3: 17 Killed  testigo up\n<command 1 is over> 137\n";
        assert_eq!(since(late, 2), (String::new(), None));
        let begun = format!("{late}<command 2>\nnew\n");
        assert_eq!(since(&begun, 2), ("new\n".into(), None));
        let half = format!("{begun}<command 2 is over> ");
        assert_eq!(since(&half, 2).1, None);
        let over = format!("{half}0\nfixed\n");
        assert_eq!(since(&over, 2), ("new\nfixed\n".into(), Some(0)));
    }

    #[test]
    fn a_shell_says_nothing_of_jobs_that_stop_or_end() {
        let folder = std::env::temp_dir().join(format!("testigo-keys-{}", std::process::id()));
        let inner = folder.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let mut terminal = Terminal::open("first", &inner).unwrap();
        let mut shows = |command: &str, wanted: &str| {
            terminal.type_in(command).unwrap();
            let shown = terminal.until(|said, code| code.is_some() && said == wanted);
            assert_eq!(shown, Ok(()), "{command}");
        };
        shows("cat </dev/zero >/dev/null &", "");
        shows(
            "kill -STOP %%; until grep -q '^State:.T' /proc/$!/status; do :; done",
            "",
        );
        shows("sh -c true", "");
        shows(
            "kill -CONT %%; kill -TERM %%; wait %% 2>/dev/null; echo $?",
            "143\n",
        );
        shows(
            "sh -c 'exit 3' & wait %%; echo $?; sh -c 'echo last'",
            "3\nlast\n",
        );
        drop(terminal);
        fs::remove_dir_all(&folder).unwrap();
    }
}
