//! A command at its beginning: it waits until the keeper has been told of it, and for what it is to read from.

use std::ffi::OsString;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use clap::Args;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::stdio::dup2_stdin;

use super::OnLoss;
use crate::exit::{self, Outcome};

/// The hidden command's name.
pub(super) const NAME: &str = "begin";
/// What comes with the file to read from.
pub(super) const WORD: u8 = b'b';

/// Becomes a command when it is handed its standard input.
#[derive(Args)]
pub(crate) struct Begin {
    orphaned: OnLoss,
    parent: u32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Begin {
    pub(crate) fn run(self) -> Outcome {
        let Some(stdin) = handed()? else {
            // Who started it died before it was ready.
            return Ok(ExitCode::from(exit::NOT_GOOD));
        };
        if !tie(self.orphaned, self.parent)? {
            return Ok(ExitCode::from(exit::NOT_GOOD));
        }
        dup2_stdin(&stdin)?;
        drop(stdin);
        let (program, arguments) = self.command.split_first().expect("clap requires a command");
        let error = Command::new(program).args(arguments).exec();
        Ok(exit::cannot_run(program, &error))
    }
}

/// Ties this process to its parent, and says whether the parent is still there. The keeper does more, but may be killed together
/// with the parent.
#[cfg(target_os = "linux")]
fn tie(orphaned: OnLoss, parent: u32) -> Result<bool, exit::Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let signal = match orphaned {
        OnLoss::Term => Some(Signal::TERM),
        OnLoss::Kill => Some(Signal::KILL),
        OnLoss::Ignore => return Ok(true),
    };
    set_parent_process_death_signal(signal)?;
    Ok(getppid().is_some_and(|now| now.as_raw_nonzero().get().unsigned_abs() == parent))
}

/// Elsewhere no such thing is known.
#[cfg(not(target_os = "linux"))]
fn tie(_: OnLoss, _: u32) -> Result<bool, exit::Failure> {
    Ok(true)
}

fn handed() -> rustix::io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let mut words = [IoSliceMut::new(&mut word)];
    recvmsg(
        io::stdin(),
        &mut words,
        &mut received,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut files = received.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut files) => files.next(),
        _ => None,
    });
    Ok(files.next())
}
