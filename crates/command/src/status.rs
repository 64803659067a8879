//! `testigo status`: how a node is.

use std::process::ExitCode;

use clap::Args;

use crate::exit::Outcome;
use crate::reach::Reach;
use crate::show::{print_fields, print_json, with_truths};

/// Show how a node is.
///
/// Exit code: 0 it answers; 69 no node reachable.
///
/// Example: testigo status --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Status {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Status {
    pub(crate) fn run(self) -> Outcome {
        self.reach.talk(async |client| {
            let status = with_truths(&client.status().await?);
            match self.json {
                true => print_json(&status),
                false => print_fields(&status),
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
