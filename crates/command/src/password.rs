//! `testigo password`: makes the line of a configuration file that lets a user in.

use std::io::{self, BufRead, IsTerminal, stdin};
use std::process::ExitCode;

use clap::Args;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use testigo_node::{Secret, User};

use crate::exit::{Outcome, complain};

/// Hash a password for a node's configuration file.
///
/// Reads the password from standard input and prints the line to put into the file of
/// `testigo up --config`. The user still needs rights there: user.NAME.rights.
/// Exit code 0: done; 2: no password.
///
/// Example: testigo password alice < alice.password >> testigo.conf
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Password {
    /// The user's name.
    #[arg(value_name = "NAME", default_value = User::DEFAULT)]
    user: String,
}

impl Password {
    pub(crate) fn run(self) -> Outcome {
        let line = self.line()?;
        let password = line.trim_end_matches(['\r', '\n']);
        let secret = Secret::hash(password)?;
        match self.user.as_str() {
            User::DEFAULT => println!("password = {secret}"),
            name => println!("user.{name}.password = {secret}"),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// A line of standard input; what is typed is not shown.
    fn line(&self) -> io::Result<String> {
        let mut line = String::new();
        if !stdin().is_terminal() {
            stdin().lock().read_line(&mut line)?;
            return Ok(line);
        }
        eprint!("the password of {}, then Enter: ", self.user);
        let before = tcgetattr(stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(stdin(), OptionalActions::Flush, &silent)?;
        let read = stdin().lock().read_line(&mut line);
        tcsetattr(stdin(), OptionalActions::Flush, &before)?;
        complain!("");
        read.map(|_| line)
    }
}
