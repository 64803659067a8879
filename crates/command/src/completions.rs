//! `testigo completions`: what a shell needs to complete command lines.

use std::io;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::exit::Outcome;

/// Print the completions of a shell.
///
/// Example: testigo completions bash > ~/.local/share/bash-completion/completions/testigo
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, command: &mut Command) -> Outcome {
        generate(self.shell, command, "testigo", &mut io::stdout());
        Ok(ExitCode::SUCCESS)
    }
}
