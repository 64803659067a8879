//! The question before something that cannot be taken back.

use std::io::{BufRead, IsTerminal, Write};

use crate::reach::Ended;
use crate::visible::on_error;

/// Whether somebody sits there who sees a question and can answer it.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks whoever sits there. A script means what it says, and is not asked.
pub(crate) fn confirm(question: &str) -> Result<(), Ended> {
    if !can_ask() {
        return Ok(());
    }
    eprint!("{}? [y/N] ", on_error(question));
    let mut answer = String::new();
    let _ = std::io::stderr().flush();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()) {
        true => Ok(()),
        false => Err(Ended::bad_input("nothing was changed")),
    }
}
