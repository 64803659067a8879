//! `testigo once`: the records behind `testigo lock --once` and `--every`.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use crate::reach::Reach;

/// Look after the records of --once and --every.
///
/// Example: testigo once forget nightly@24h
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Once {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Forget a key, done or not: the next `testigo lock` with it runs its command again.
    ///
    /// The key of --every is the gates' names and the span, such as nightly@24h. Exit code 0: it is
    /// forgotten, or was never known; 69: no node reachable; 76: unknown whether it was forgotten.
    ///
    /// Example: testigo once forget nightly@24h
    #[command(verbatim_doc_comment)]
    Forget {
        /// The key.
        key: String,
        #[command(flatten)]
        reach: Reach,
    },
}

impl Once {
    pub(crate) fn run(self) -> Outcome {
        let Action::Forget { key, reach } = self.action;
        reach.talk(async |client| {
            client.forget_once(&key).await?;
            Ok(ExitCode::SUCCESS)
        })
    }
}
