//! The leash of a command: `testigo lock` starts itself with the command, asks the system to be signalled when its parent
//! dies, and becomes the command. So a command does not outlive a `testigo lock` or `testigo work` that was killed.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use clap::Args;

use super::held::OnLoss;
use crate::exit::{self, Outcome};

/// The hidden command's name.
const NAME: &str = "leash";

/// A command on a leash of this process, to which the program's words are still to be added. `on_loss` is one of
/// [`OnLoss`]'s words.
pub(crate) fn command(on_loss: &str) -> io::Result<Command> {
    let mut command = this_program()?;
    command.args([NAME, on_loss]);
    command.arg(std::process::id().to_string()).arg("--");
    Ok(command)
}

/// What a command that waits for it reads first: it may begin, and whether anything follows for it to read.
pub(crate) const BEGIN_READING: u8 = b'r';
/// The same, and nothing follows.
pub(crate) const BEGIN: u8 = b'b';

/// A command as [`command`] makes it, which does not begin before one of those bytes has come on its standard input.
pub(crate) fn waiting_command(on_loss: &str) -> io::Result<Command> {
    let mut command = this_program()?;
    command.args([NAME, "--wait", on_loss]);
    command.arg(std::process::id().to_string()).arg("--");
    Ok(command)
}

/// This program itself, to which its words are still to be added.
pub(crate) fn this_program() -> io::Result<Command> {
    // By this name a program finds itself even after its file was replaced.
    Ok(match cfg!(target_os = "linux") {
        true => Command::new("/proc/self/exe"),
        false => Command::new(std::env::current_exe()?),
    })
}

/// Becomes a command that ends with its parent.
#[derive(Args)]
pub(crate) struct Leash {
    /// Begin when told so on standard input.
    #[arg(long)]
    wait: bool,
    on_loss: OnLoss,
    parent: u32,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Leash {
    pub(crate) fn run(self) -> Outcome {
        if !tie(self.on_loss, self.parent)? {
            // The parent died before the leash was tied.
            return Ok(ExitCode::from(exit::NOT_GOOD));
        }
        let (program, arguments) = self.command.split_first().expect("clap requires a command");
        let mut command = Command::new(program);
        command.args(arguments);
        if self.wait {
            // Not a byte more is read: the rest is the program's.
            let mut word = [0];
            match rustix::io::read(io::stdin(), &mut word)? {
                1 if word[0] == BEGIN_READING => {}
                1 => drop(command.stdin(Stdio::null())),
                // The parent died before it said so.
                _ => return Ok(ExitCode::from(exit::NOT_GOOD)),
            }
        }
        let error = command.exec();
        Ok(exit::cannot_run(program, &error))
    }
}

/// Ties this process to its parent, and says whether the parent is still there.
#[cfg(target_os = "linux")]
fn tie(on_loss: OnLoss, parent: u32) -> Result<bool, exit::Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let signal = match on_loss {
        OnLoss::Term => Some(Signal::TERM),
        OnLoss::Kill => Some(Signal::KILL),
        OnLoss::Ignore => return Ok(true),
    };
    set_parent_process_death_signal(signal)?;
    Ok(getppid().is_some_and(|now| now.as_raw_nonzero().get().unsigned_abs() == parent))
}

/// Elsewhere no such thing is known: the fence is what protects then.
#[cfg(not(target_os = "linux"))]
fn tie(_: OnLoss, _: u32) -> Result<bool, exit::Failure> {
    Ok(true)
}
