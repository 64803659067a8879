//! `testigo cluster`: looks at a cluster, and changes who is in it.

mod status;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use status::Status;

/// Look at a cluster, change its members, back it up and restore it.
///
/// Example: testigo cluster status --resp node1:7600,node2:7600
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Status(Status),
}

impl Cluster {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::Status(status) => status.run(),
        }
    }
}
