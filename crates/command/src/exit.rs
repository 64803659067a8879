//! How a command ends.

use std::fmt::Display;
use std::process::ExitCode;

/// What a command has to say when it could not do its work: exit code 2.
#[derive(Debug)]
pub(crate) struct Failure(String);

/// Anything that explains itself can end a command.
impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure(error.to_string())
    }
}

pub(crate) type Outcome = Result<ExitCode, Failure>;

/// What was looked at is not as it should be.
pub(crate) const NOT_GOOD: u8 = 1;
const BAD_INPUT: u8 = 2;

pub(crate) fn good_if(good: bool) -> ExitCode {
    if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NOT_GOOD)
    }
}

pub(crate) fn report(Failure(why): Failure) -> ExitCode {
    eprintln!("testigo: {why}");
    ExitCode::from(BAD_INPUT)
}
