//! `testigo lab replay`.

use std::path::{Path, PathBuf};

use clap::Args;
use testigo_lab::{LabError, Trace};

use crate::exit::{Failure, Outcome, good_if};

/// Run a trace again, and fail if anything differs.
///
/// Exit code 0: it ran as written; 1: it differs; 2: it cannot be read.
///
/// Example: testigo lab replay maekawa-slides.counterexample.trace
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Replay {
    /// A trace, from `testigo lab run --trace` or `testigo lab check`.
    file: PathBuf,
}

impl Replay {
    pub(crate) fn run(self) -> Outcome {
        let trace = read(&self.file)?;
        match trace.replay() {
            Ok(replayed) => {
                println!(
                    "{} events and {} entries, as written",
                    replayed.events, replayed.entries
                );
                for violation in &replayed.violations {
                    println!("shows: {violation}");
                }
                Ok(good_if(true))
            }
            Err(LabError::Differs(difference)) => {
                println!("{difference}");
                Ok(good_if(false))
            }
            Err(error) => Err(Failure::from(error)),
        }
    }
}

pub(super) fn read(path: &Path) -> Result<Trace, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::from(format!("{} cannot be read: {error}", path.display())))?;
    Trace::parse(&text).map_err(|error| Failure::from(format!("{}: {error}", path.display())))
}
