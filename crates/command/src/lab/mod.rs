//! `testigo lab`: one way to look at any algorithm.

mod check;
mod claims;
mod compare;
mod draw;
mod list;
mod options;
mod quorum;
mod replay;
mod run;
mod table;

use clap::{Args, Subcommand};

use crate::exit::Outcome;

#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    /// Show the algorithms that there are.
    List(list::List),
    /// Simulate one algorithm, count its messages and watch its promises.
    Run(run::Run),
    /// Explore every interleaving, up to a bound.
    Check(check::Check),
    /// Run several algorithms on the same arrivals.
    Compare(compare::Compare),
    /// Hold what is published against what is measured.
    Claims(claims::Claims),
    Quorum(quorum::Quorum),
    /// Run a trace again, and fail if anything differs.
    Replay(replay::Replay),
    /// Draw a trace as a space-time diagram.
    Draw(draw::Draw),
}

impl Lab {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            LabCommand::List(command) => command.run(),
            LabCommand::Run(command) => command.run(),
            LabCommand::Check(command) => command.run(),
            LabCommand::Compare(command) => command.run(),
            LabCommand::Claims(command) => command.run(),
            LabCommand::Quorum(command) => command.run(),
            LabCommand::Replay(command) => command.run(),
            LabCommand::Draw(command) => command.run(),
        }
    }
}
