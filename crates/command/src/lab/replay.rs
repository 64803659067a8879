//! `testigo lab replay`.

use std::path::{Path, PathBuf};

use clap::Args;
use testigo_lab::{KnownAlgorithm, LabError, Trace};

use crate::exit::{Failure, Outcome, good_if};

/// Run a trace again, and fail if anything differs.
///
/// A file may have several traces, one behind the other, as `testigo trace` writes them: each is run
/// again.
///
/// Exit code 0: it ran as written; 1: it differs; 2: it cannot be read.
///
/// Example: testigo lab replay maekawa-slides.counterexample.trace
/// Example: testigo trace site --out site.trace && testigo lab replay site.trace
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Replay {
    /// A trace, from `testigo lab run --trace`, `testigo lab check` or `testigo trace`.
    file: PathBuf,
}

impl Replay {
    pub(crate) fn run(self) -> Outcome {
        let traces = read(&self.file)?;
        let mut good = true;
        for (index, trace) in traces.iter().enumerate() {
            let which = match traces.len() {
                1 => String::new(),
                all => format!("trace {} of {all}: ", index + 1),
            };
            match trace.replay() {
                Ok(replayed) => {
                    let (events, entries) = (replayed.events, replayed.entries);
                    let counted = KnownAlgorithm::find(&trace.header.algorithm)?.counted();
                    let entries = counted.of(entries);
                    println!("{which}{events} events and {entries}, as written");
                    for violation in &replayed.violations {
                        println!("shows: {violation}");
                    }
                }
                Err(LabError::Differs(difference)) => {
                    println!("{which}{difference}");
                    good = false;
                }
                Err(error) => return Err(Failure::from(format!("{which}{error}"))),
            }
        }
        Ok(good_if(good))
    }
}

/// The traces of a file: one, or several.
pub(super) fn read(path: &Path) -> Result<Vec<Trace>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::from(format!("{} cannot be read: {error}", path.display())))?;
    Trace::parse_all(&text).map_err(|error| Failure::from(format!("{}: {error}", path.display())))
}
