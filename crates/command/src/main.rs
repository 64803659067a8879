//! The command `testigo`. Each command is a file; a command ends with an exit code that its help
//! explains.

mod completions;
mod exit;
mod gate;
mod guard;
mod lab;
mod lock;
mod reach;
mod session;
mod show;
mod span;
mod status;
mod up;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Coordinates the processes of a cluster, and checks the algorithms that it runs.
#[derive(Parser)]
#[command(name = "testigo", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate, check, compare and draw algorithms.
    Lab(lab::Lab),
    Lock(Box<lock::Lock>),
    Guard(guard::Guard),
    Gate(gate::Gate),
    Session(session::Session),
    Status(status::Status),
    Completions(completions::Completions),
    #[command(hide = true)]
    Leash(lock::leash::Leash),
    /// Run a node: every kind of lock as a service.
    Up(up::Up),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Lab(command) => command.run(),
        Command::Lock(command) => command.run(),
        Command::Guard(command) => command.run(),
        Command::Gate(command) => command.run(),
        Command::Session(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Completions(command) => command.run(&mut Cli::command()),
        Command::Leash(command) => command.run(),
        Command::Up(command) => command.run(),
    };
    outcome.unwrap_or_else(exit::report)
}
