//! Whom a signal is sent to.

use std::fs;

use rustix::process::{
    Pid, Signal, kill_process, kill_process_group, test_kill_process, test_kill_process_group,
};
use serde::{Deserialize, Serialize};

use super::OnLoss;

fn parent_of(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The state and the parent follow the name, which ends with a parenthesis.
    let (_, fields) = text.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// A command: everything in its group, where it has one of its own. In a terminal it stays in our group, or it could not read
/// from it, and is alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Aim {
    pid: i32,
    own_group: bool,
}

impl Aim {
    pub(super) fn new(pid: Pid, own_group: bool) -> Aim {
        let pid = pid.as_raw_nonzero().get();
        Aim { pid, own_group }
    }

    pub(super) fn pid(self) -> i32 {
        self.pid
    }

    /// Whether it has had the signal already: a terminal sends its own to the whole group.
    pub(super) fn has_heard(self, signal: Signal) -> bool {
        !self.own_group && [Signal::INT, Signal::QUIT].contains(&signal)
    }

    pub(super) fn send(self, signal: Signal) {
        // One that is gone already needs no signal.
        let _ = Pid::from_raw(self.pid).map(|pid| match self.own_group {
            true => kill_process_group(pid, signal),
            false => kill_process(pid, signal),
        });
    }

    /// The first of what stops it.
    pub(super) fn stop(self, on_loss: OnLoss) {
        match on_loss {
            OnLoss::Term => {
                self.send(Signal::TERM);
                // One that is stopped hears nothing else.
                self.send(Signal::CONT);
            }
            OnLoss::Kill => self.send(Signal::KILL),
            OnLoss::Ignore => {}
        }
    }

    /// Whether anything of it is left.
    pub(super) fn is_there(self) -> bool {
        Pid::from_raw(self.pid).is_some_and(|pid| match self.own_group {
            true => test_kill_process_group(pid).is_ok(),
            false => test_kill_process(pid).is_ok(),
        })
    }

    /// What it has started, as far as no group holds them together: its descendants, where the system lists them.
    pub(super) fn family(self) -> Vec<Aim> {
        if self.own_group {
            return Vec::new();
        }
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let all: Vec<(i32, i32)> = all.filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
        let mut family = vec![self.pid];
        let mut next = 0;
        while let Some(&parent) = family.get(next) {
            next += 1;
            family.extend(
                all.iter()
                    .filter(|(_, of)| *of == parent)
                    .map(|(pid, _)| pid),
            );
        }
        let one = |pid| Aim {
            pid,
            own_group: false,
        };
        family.into_iter().skip(1).map(one).collect()
    }
}
