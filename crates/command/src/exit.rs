//! How a command ends.

use std::ffi::OsStr;
use std::fmt::{Arguments, Display};
use std::io::{self, Write, stderr};
use std::process::ExitCode;

use crate::visible::on_error;

/// Says a line on standard error, as `complain!` does, but never panics: see [`say`].
macro_rules! complain {
    ($($words:tt)*) => { $crate::exit::say(format_args!($($words)*)) };
}
pub(crate) use complain;

/// What cannot be said, because the disk there is full or nobody reads any more, is lost; what the command does and its
/// exit code stay the same.
pub(crate) fn say(words: Arguments<'_>) {
    let _ = writeln!(stderr(), "{}", on_error(words));
}

/// What a command has to say when it could not do its work: exit code 2.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// Anything that explains itself can end a command.
impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

pub(crate) type Outcome = Result<ExitCode, Failure>;

/// What was looked at is not as it should be.
pub(crate) const NOT_GOOD: u8 = 1;
pub(crate) const BAD_INPUT: u8 = 2;
/// The node's disk failed.
pub(crate) const DISK_FAILED: u8 = 3;
/// As a shell reports a program that was ended by a closed pipe.
pub(crate) const NOBODY_READS: i32 = 141;

pub(crate) fn good_if(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_GOOD)
    }
}

pub(crate) fn report(Failure(why): Failure) -> ExitCode {
    complain!("testigo: {why}");
    ExitCode::from(BAD_INPUT)
}

/// No node answers.
pub(crate) const UNREACHABLE: u8 = 69;
/// The wait for a lock ended without it.
pub(crate) const WAIT_ENDED: u8 = 75;
/// It may have been done or not; or an earlier attempt of a once-key has an unknown outcome.
pub(crate) const UNKNOWN: u8 = 76;

/// A command that could not be started, with its exit code.
pub(crate) fn cannot_run(program: &OsStr, error: &io::Error) -> ExitCode {
    complain!("testigo: {} cannot run: {error}", program.display());
    ExitCode::from(code_of_unrunnable(error))
}

/// As shells have it: 127 when there is no such command, else 126.
pub(crate) fn code_of_unrunnable(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        _ => 126,
    }
}
