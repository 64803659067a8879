//! The command `testigo`. Each command is a file; a command ends with an exit code that its help
//! explains.

mod exit;
mod lab;
mod up;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

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
    /// Run a node: every kind of lock as a service.
    Up(up::Up),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Lab(command) => command.run(),
        Command::Up(command) => command.run(),
    };
    outcome.unwrap_or_else(exit::report)
}
