//! What ends the programs of a harness that was killed, with all that they started: a process of its own, which is told
//! of every group of processes that begins and ends. When the harness is gone the pipe between the two closes.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitCode, Stdio};

use clap::Args;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::exit::Outcome;
use crate::lock::leash;

/// The hidden command's name.
const NAME: &str = "reap";

/// Kills the groups of processes that are left when its input ends: a line +N begins one, and -N ends it.
#[derive(Args)]
pub(crate) struct Reap;

impl Reap {
    pub(crate) fn run(self) -> Outcome {
        let mut groups = BTreeSet::new();
        for line in io::stdin().lines().map_while(Result::ok) {
            match line.split_at_checked(1) {
                Some(("+", group)) => groups.insert(group.to_owned()),
                Some(("-", group)) => groups.remove(group),
                _ => false,
            };
        }
        for group in groups.iter().filter_map(|group| group.parse().ok()) {
            // One that is gone already needs no signal.
            let _ = Pid::from_raw(group).map(|group| kill_process_group(group, Signal::KILL));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The reaper of a harness.
pub(super) struct Reaper(Child);

impl Reaper {
    pub(super) fn start() -> io::Result<Reaper> {
        let mut command = leash::this_program()?;
        command.arg(NAME).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // Signals for the harness and its terminal are not for it.
        command.process_group(0).spawn().map(Reaper)
    }

    /// A group of processes has begun; it is over when what is returned is dropped.
    pub(super) fn watch(&self, group: Option<Pid>) -> Watched<'_> {
        let watched = Watched(self, group);
        watched.tell('+');
        watched
    }
}

/// A group of processes that does not outlive its harness.
pub(super) struct Watched<'a>(&'a Reaper, Option<Pid>);

impl Watched<'_> {
    fn tell(&self, what: char) {
        if let (Some(group), Some(mut pipe)) = (self.1, self.0.0.stdin.as_ref()) {
            let line = format!("{what}{}\n", group.as_raw_nonzero());
            // A reaper that was killed is done without.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.tell('-');
    }
}
