//! The keeper: a process that knows until when each command may run, and stops it in time, whatever becomes of the process
//! that started both.

use std::collections::BTreeMap;
use std::io::{self, Write};
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::Signal;
use rustix::time::{ClockId, Timespec, clock_gettime};
#[cfg(target_os = "linux")]
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use serde::{Deserialize, Serialize};

use super::{Aim, OnLoss, Terms, all_of};
use crate::exit::Outcome;

/// The hidden command's name.
pub(super) const NAME: &str = "leash";
/// How much is read at once.
const READ_BYTES: usize = 4096;

/// What the keeper is told, a line each. Times are those of [`clock`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    /// Keep this command, which may run until then.
    Begin { aim: Aim, terms: Terms, at: u64 },
    /// It may run until then.
    Until { pid: i32, at: u64 },
    /// Stop it now.
    Stop {
        pid: i32,
        on_loss: OnLoss,
        grace: Duration,
    },
    /// It has ended: say whether it was stopped.
    End { pid: i32 },
}

/// A clock that every process reads alike, and that goes on while the machine sleeps, where there is one.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// The time, in nanoseconds.
pub(super) fn clock() -> u64 {
    let now = clock_gettime(CLOCK);
    let [seconds, nanos] = [now.tv_sec, now.tv_nsec].map(|part| u64::try_from(part).unwrap_or(0));
    seconds * 1_000_000_000 + nanos
}

fn later(at: u64, by: Duration) -> u64 {
    at.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX))
}

/// Stops commands whose time is over, as its standard input says.
#[derive(Args)]
pub(crate) struct Keep;

impl Keep {
    pub(crate) fn run(self) -> Outcome {
        Keeper::default().keep()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A command that is kept.
#[derive(Debug)]
struct Kept {
    aim: Aim,
    terms: Terms,
    until: u64,
    stopped: bool,
    /// When SIGKILL follows.
    kill_at: Option<u64>,
    /// What it had started when it was stopped.
    family: Vec<Aim>,
}

impl Kept {
    /// When something is to be done.
    fn due(&self) -> Option<u64> {
        if self.stopped {
            return self.kill_at;
        }
        match self.terms.on_loss {
            OnLoss::Term => {
                let grace = u64::try_from(self.terms.grace.as_nanos()).unwrap_or(u64::MAX);
                Some(self.until.saturating_sub(grace))
            }
            OnLoss::Kill => Some(self.until),
            OnLoss::Ignore => None,
        }
    }

    fn act(&mut self) {
        match self.kill_at.take() {
            Some(_) => all_of(self.aim, &self.family).for_each(|one| one.send(Signal::KILL)),
            None => self.stop(self.terms.on_loss, self.until),
        }
    }

    fn stop(&mut self, on_loss: OnLoss, kill_at: u64) {
        if !self.stopped && on_loss != OnLoss::Ignore {
            self.stopped = true;
            self.kill_at = (on_loss == OnLoss::Term).then_some(kill_at);
            self.family = self.aim.family();
            all_of(self.aim, &self.family).for_each(|one| one.stop(on_loss));
        }
    }
}

#[derive(Debug, Default)]
struct Keeper {
    all: BTreeMap<i32, Kept>,
    /// What was read and is no whole line yet.
    read: Vec<u8>,
}

impl Keeper {
    fn keep(mut self) -> io::Result<()> {
        let alarm = Alarm::new()?;
        let stdin = io::stdin();
        loop {
            let said = alarm.wait(Some(stdin.as_fd()), self.next_due())?;
            // What is due comes first: a renewal that comes later does not count.
            self.act();
            if said && !self.hear()? {
                break;
            }
        }
        self.let_go();
        while let Some(due) = self.next_due() {
            alarm.wait(None, Some(due))?;
            self.act();
        }
        Ok(())
    }

    fn next_due(&self) -> Option<u64> {
        self.all.values().filter_map(Kept::due).min()
    }

    fn act(&mut self) {
        let now = clock();
        let due = self.all.values_mut();
        due.filter(|kept| kept.due().is_some_and(|due| due <= now))
            .for_each(Kept::act);
    }

    /// Hears what there is to hear; false when nobody is left who could say more.
    fn hear(&mut self) -> io::Result<bool> {
        let mut some = [0; READ_BYTES];
        let read = rustix::io::read(io::stdin(), &mut some)?;
        self.read.extend_from_slice(&some[..read]);
        while let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.read.drain(..=end).collect();
            self.obey(serde_json::from_slice(&line)?)?;
        }
        Ok(read > 0)
    }

    fn obey(&mut self, word: Word) -> io::Result<()> {
        match word {
            Word::Begin { aim, terms, at } => {
                let kept = Kept {
                    aim,
                    terms,
                    until: at,
                    stopped: false,
                    kill_at: None,
                    family: Vec::new(),
                };
                self.all.insert(aim.pid(), kept);
            }
            Word::Until { pid, at } => {
                if let Some(kept) = self.all.get_mut(&pid) {
                    kept.until = at;
                }
            }
            Word::Stop {
                pid,
                on_loss,
                grace,
            } => {
                if let Some(kept) = self.all.get_mut(&pid) {
                    kept.stop(on_loss, later(clock(), grace));
                }
            }
            Word::End { pid } => {
                let Some(mut kept) = self.all.remove(&pid) else {
                    return Ok(());
                };
                if kept.kill_at.is_some() {
                    // The command is gone; what it started has had its time.
                    kept.act();
                }
                let mut out = io::stdout().lock();
                writeln!(out, "[{pid},{}]", kept.stopped)?;
                out.flush()?;
            }
        }
        Ok(())
    }

    /// The process that started the commands is gone.
    fn let_go(&mut self) {
        let now = clock();
        for kept in self.all.values_mut() {
            let kill_at = later(now, kept.terms.grace).min(kept.until.max(now));
            kept.stop(kept.terms.orphaned, kill_at);
            // Nobody renews it any more.
            kept.terms.on_loss = OnLoss::Ignore;
        }
    }
}

/// What wakes the keeper at a time of its [`clock`].
#[cfg(target_os = "linux")]
struct Alarm(OwnedFd);

#[cfg(target_os = "linux")]
impl Alarm {
    fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Alarm(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Waits until then, or until there is something to hear, which it says.
    fn wait(&self, heard: Option<BorrowedFd<'_>>, due: Option<u64>) -> io::Result<bool> {
        let zero = Timespec::default();
        // A time of 0 would be none at all.
        let value = due.map_or(zero, |due| timespec(due.max(1)));
        let once = Itimerspec {
            it_interval: zero,
            it_value: value,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once)?;
        let mut all = vec![PollFd::new(&self.0, PollFlags::IN)];
        all.extend(heard.map(|heard| PollFd::from_borrowed_fd(heard, PollFlags::IN)));
        poll(&mut all, None)?;
        Ok(all.get(1).is_some_and(|heard| !heard.revents().is_empty()))
    }
}

/// Elsewhere nothing wakes a process that long sleep has made late; its clock stands still meanwhile.
#[cfg(not(target_os = "linux"))]
struct Alarm;

#[cfg(not(target_os = "linux"))]
impl Alarm {
    fn new() -> io::Result<Alarm> {
        Ok(Alarm)
    }

    fn wait(&self, heard: Option<BorrowedFd<'_>>, due: Option<u64>) -> io::Result<bool> {
        let left = due.map(|due| timespec(due.saturating_sub(clock())));
        let mut all: Vec<PollFd<'_>> = Vec::new();
        all.extend(heard.map(|heard| PollFd::from_borrowed_fd(heard, PollFlags::IN)));
        poll(&mut all, left.as_ref())?;
        Ok(all.first().is_some_and(|heard| !heard.revents().is_empty()))
    }
}

fn timespec(nanos: u64) -> Timespec {
    let part = |nanos: u64| i64::try_from(nanos).unwrap_or(i64::MAX);
    Timespec {
        tv_sec: part(nanos / 1_000_000_000),
        tv_nsec: part(nanos % 1_000_000_000),
    }
}
