//! How far a harness is: a counter line on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testigo_client::Job;

use crate::visible::on_error;

pub(super) struct Progress {
    terminal: bool,
    quiet: bool,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    running: u64,
    passed: u64,
    deleted: u64,
    failed: u64,
    back: u64,
    dropped: u64,
    /// Whether the counter line stands on the terminal.
    drawn: bool,
}

/// How a job's run ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    Passed(String),
    Deleted,
    /// Why.
    Failed(String),
    /// Why.
    Back(String),
    /// The attempt was not ours any more; why.
    Dropped(String),
}

impl Progress {
    pub(super) fn new(quiet: bool) -> Progress {
        Progress {
            terminal: std::io::stderr().is_terminal(),
            quiet,
            counts: Mutex::default(),
        }
    }

    /// Something that is not about a single job.
    pub(super) fn say(&self, line: &str) {
        let mut counts = self.counts();
        self.print(&mut counts, line);
        self.draw(&mut counts);
    }

    /// Something that goes as it should, and that is not about a single job.
    pub(super) fn remark(&self, line: &str) {
        if !self.quiet {
            self.say(line);
        }
    }

    pub(super) fn begun(&self) {
        let mut counts = self.counts();
        counts.running += 1;
        self.draw(&mut counts);
    }

    pub(super) fn ended(&self, job: &Job, end: &End, took: Duration) {
        let mut counts = self.counts();
        counts.running -= 1;
        let (what, remarkable) = match end {
            End::Passed(queue) => {
                counts.passed += 1;
                (format!("passed to {queue}"), false)
            }
            End::Deleted => {
                counts.deleted += 1;
                ("done".to_owned(), false)
            }
            End::Failed(why) => {
                counts.failed += 1;
                (format!("failed: {why}"), true)
            }
            End::Back(why) => {
                counts.back += 1;
                (format!("given back: {why}"), true)
            }
            End::Dropped(why) => {
                counts.dropped += 1;
                (format!("its result is dropped: {why}"), true)
            }
        };
        if !self.quiet && (remarkable || !self.terminal) {
            let (id, name, ms) = (job.id, &job.name, took.as_millis());
            self.print(&mut counts, &format!("job {id} ({name}) {what}, {ms}ms"));
        }
        self.draw(&mut counts);
    }

    /// The last line; says whether a job failed.
    pub(super) fn end(&self) -> bool {
        let mut counts = self.counts();
        let line = counts.line();
        if !self.quiet || counts.failed > 0 {
            self.print(&mut counts, &line);
        }
        counts.failed > 0
    }

    fn print(&self, counts: &mut Counts, line: &str) {
        let clear = match std::mem::take(&mut counts.drawn) {
            true => "\r\x1b[K",
            false => "",
        };
        // Who cannot be told goes without.
        let _ = writeln!(std::io::stderr(), "{clear}testigo: {}", on_error(line));
    }

    fn draw(&self, counts: &mut Counts) {
        if self.terminal && !self.quiet {
            counts.drawn = true;
            let mut err = std::io::stderr();
            let _ = write!(err, "\r\x1b[K{}", counts.line()).and_then(|()| err.flush());
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn line(&self) -> String {
        let numbers = [
            (self.running, "running"),
            (self.passed, "passed"),
            (self.deleted, "done"),
            (self.failed, "failed"),
            (self.back, "given back"),
            (self.dropped, "dropped"),
        ];
        let some: Vec<String> = numbers
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        match some.is_empty() {
            true => "no jobs".to_owned(),
            false => some.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_only_what_there_is() {
        let mut counts = Counts::default();
        assert_eq!(counts.line(), "no jobs");
        (counts.passed, counts.failed) = (3, 1);
        assert_eq!(counts.line(), "3 passed, 1 failed");
    }
}
