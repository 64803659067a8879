//! `testigo demo`: something to look at in a minute.

mod cluster;
mod nodes;

use clap::{Args, Subcommand};

use crate::exit::Outcome;
use cluster::DemoCluster;

/// Show what Testigo does, on this machine.
#[derive(Args)]
pub(crate) struct Demo {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Cluster(DemoCluster),
}

impl Demo {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::Cluster(demo) => demo.run(),
        }
    }
}
