//! `testigo lab`: one way to look at any algorithm.

mod check;
mod check_faults;
mod check_slots;
mod claims;
mod compare;
mod demo;
mod draw;
mod list;
pub(crate) mod options;
mod progress;
mod quorum;
mod replay;
mod reproduce;
mod run;
mod samples;
mod sweep;
pub(crate) mod table;

use clap::{Args, Subcommand};

use crate::exit::Outcome;

#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    command: LabCommand,
}

#[derive(Subcommand)]
enum LabCommand {
    List(list::List),
    Run(run::Run),
    Check(check::Check),
    Compare(compare::Compare),
    Claims(claims::Claims),
    Reproduce(reproduce::Reproduce),
    Demo(demo::Demo),
    Quorum(quorum::Quorum),
    Replay(replay::Replay),
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
            LabCommand::Reproduce(command) => command.run(),
            LabCommand::Demo(command) => command.run(),
            LabCommand::Quorum(command) => command.run(),
            LabCommand::Replay(command) => command.run(),
            LabCommand::Draw(command) => command.run(),
        }
    }
}
