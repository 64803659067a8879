//! `testigo guard`: the protected side of fencing. It refuses a fence lower than the highest that its file has seen, and
//! becomes the command otherwise. The command inherits the file's lock, so the next guard of the file waits until the
//! command and everything that it started are gone, even if they are killed.

mod record;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use rustix::io::{FdFlags, fcntl_setfd};

use crate::exit::{self, Failure, Outcome, complain};
use record::{Record, Verdict};

/// The fence is lower than the highest seen.
const STALE: u8 = 77;

/// Run a command unless its fence is stale.
///
/// FILE remembers the highest fence seen; it is made if there is none, and holds nothing
/// else. A lower fence than that is refused. An equal or higher one is flushed to disk first,
/// and then the command runs. Guards of the same FILE run their commands one after the other.
///
/// Exit code: that of the command; 77 the fence is stale; 2 bad input; 126 or 127 the command
/// cannot run.
///
/// Example: inside of `testigo lock deploy -- …`
///
///     testigo guard /srv/site/.fence "$TESTIGO_FENCE" -- rsync -a build/ /srv/site/
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Guard {
    /// Where the highest fence is kept, beside what it protects.
    file: PathBuf,
    /// The fence of the lock that the command runs under: $TESTIGO_FENCE.
    fence: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Guard {
    pub(crate) fn run(self) -> Outcome {
        let unusable = |error: std::io::Error| {
            let path = self.file.display();
            Failure::from(format!("{path} cannot guard: {error}"))
        };
        let mut record = Record::lock(&self.file).map_err(unusable)?;
        let verdict = record.judge(self.fence).map_err(unusable)?;
        if let Verdict::Stale { highest } = verdict {
            let (fence, path) = (self.fence, self.file.display());
            complain!("testigo: fence {fence} is stale: {path} has seen {highest}");
            return Ok(ExitCode::from(STALE));
        }
        let file = record.into_file();
        fcntl_setfd(&file, FdFlags::empty()).map_err(|error| unusable(error.into()))?;
        let (program, arguments) = self.command.split_first().expect("clap requires a command");
        let error = Command::new(program).args(arguments).exec();
        Ok(exit::cannot_run(program, &error))
    }
}
