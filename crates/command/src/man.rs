//! `testigo man`: manual pages.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Command};

use crate::exit::{Failure, Outcome};

/// Write the manual pages, one per command, into a directory; it is made if it is not there.
///
/// Exit code: 0 written; 2 they cannot be written there.
///
/// Example: testigo man ~/.local/share/man/man1 && man testigo-lock
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Man {
    /// The directory.
    dir: PathBuf,
}

impl Man {
    pub(crate) fn run(self, command: Command) -> Outcome {
        let dir = self.dir.display();
        let written = std::fs::create_dir_all(&self.dir)
            .and_then(|()| clap_mangen::generate_to(command, &self.dir));
        written.map_err(|error| Failure(format!("{dir}: {error}")))?;
        Ok(ExitCode::SUCCESS)
    }
}
