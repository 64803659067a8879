//! `testigo session`: lists sessions, and ends one.

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use crate::reach::Reach;
use crate::show::{print_json, print_rows, with_truths};

/// List sessions, and end one that hangs.
///
/// Example: testigo session list
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Session {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List every session with what it holds and waits for.
    ///
    /// Example: testigo session list --json
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        reach: Reach,
    },
    /// End a session. What it holds goes to those who wait; its process is told, if it can be reached.
    ///
    /// Example: testigo session end 133742993385081
    End {
        /// The session's number.
        session: u64,
        #[command(flatten)]
        reach: Reach,
    },
}

const COLUMNS: [&str; 7] = [
    "session",
    "kind",
    "label",
    "ttl_ms",
    "silent_ms",
    "holds",
    "waits",
];

impl Session {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::List { json, reach } => reach.talk(async |client| {
                let sessions = with_truths(&client.list_sessions().await?);
                match json {
                    true => print_json(&sessions),
                    false => print_rows(sessions.list().unwrap_or_default(), &COLUMNS),
                }
                Ok(ExitCode::SUCCESS)
            }),
            Action::End { session, reach } => reach.talk(async |client| {
                client.end_session(session).await?;
                Ok(ExitCode::SUCCESS)
            }),
        }
    }
}
