//! A shell with job control, that is typed into and read like a terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::process::program;

/// Longer than anything in the documents takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(90);
/// The shell reads commands from a pipe of its own, so that no command can take the next one for its input.
const LOOP: &str = r#"set -m; exec 2>&1 3<"$0"; while IFS= read -r line <&3; do jobs >/dev/null; eval "$line" 3<&-; done"#;
/// What the shell prints when a command is over.
const OVER: &str = "<the command is over>";

pub(super) struct Terminal {
    shell: Child,
    keys: File,
    heard: Receiver<String>,
    /// What was heard since the last command was typed.
    said: String,
}

impl Terminal {
    pub(super) fn open(name: &str, folder: &Path) -> Result<Terminal, String> {
        let wrong = |error: std::io::Error| format!("the {name} terminal: {error}");
        let pipe = folder.join("..").join(format!("{name}.keys"));
        let made = Command::new("mkfifo").arg(&pipe).status();
        made.map_err(wrong)?;
        // A newcomer's terminal knows nothing of this package, and cargo would build anew what watches its variables.
        let mut shell = program("bash")?;
        shell.args(["-c", LOOP]).arg(&pipe).current_dir(folder);
        shell.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut shell = shell.spawn().map_err(wrong)?;
        let keys = fs::OpenOptions::new()
            .write(true)
            .open(&pipe)
            .map_err(wrong)?;
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
        })
    }

    /// Types a command, which may stay in the foreground.
    pub(super) fn type_in(&mut self, command: &str) -> Result<(), String> {
        while let Ok(text) = self.heard.try_recv() {
            self.said.push_str(&text);
        }
        self.said.clear();
        let typed = writeln!(self.keys, "{command}")
            .and_then(|()| writeln!(self.keys, "echo \"{OVER} $?\""));
        typed.map_err(|error| format!("{command}: {error}"))
    }

    /// Waits until what was said since the last command is as wanted.
    pub(super) fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        while !wanted(&self.said) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.heard.recv_timeout(left) {
                Ok(text) => self.said.push_str(&text),
                Err(RecvTimeoutError::Timeout) => return Err(self.said.clone()),
                Err(RecvTimeoutError::Disconnected) => return Err("the shell is gone".into()),
            }
        }
        Ok(())
    }

    /// What was said since the last command was typed.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// What a command prints, and its exit code, once it is over.
    pub(super) fn over(said: &str) -> Option<(String, i32)> {
        let at = said.find(OVER)?;
        let (code, rest) = said[at + OVER.len()..].split_once('\n')?;
        Some((said[..at].to_owned() + rest, code.trim().parse().ok()?))
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
            true => self.until(|said| Terminal::over(said).is_some()),
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
