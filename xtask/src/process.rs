//! Starts the programs that the commands need, from the root of the workspace. Output is always shown as it
//! comes; where a command must also read it, it is copied on the way.

use std::env;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

/// The root of the workspace, wherever inside it the command was typed.
pub(crate) fn root() -> Result<PathBuf, String> {
    let own = env::var_os("CARGO_MANIFEST_DIR").ok_or("start this as `cargo xtask`")?;
    let root = PathBuf::from(own).parent().map(PathBuf::from);
    root.ok_or_else(|| "the xtask crate has no parent folder".to_owned())
}

/// A program that will run at the root.
///
/// `cargo run` describes the xtask package to us in variables. They are taken away again: a build script
/// that watches one of them would otherwise run anew whenever a build is started from here.
pub(crate) fn program(name: &str) -> Result<Command, String> {
    let mut command = Command::new(name);
    command.current_dir(root()?);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    Ok(command)
}

/// The cargo that started us, with arguments separated by spaces.
pub(crate) fn cargo(arguments: &str) -> Result<Command, String> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = program(&cargo)?;
    command.args(arguments.split_whitespace());
    Ok(command)
}

/// Runs a program that writes straight to our output.
pub(crate) fn succeeds(command: &mut Command) -> Result<bool, String> {
    let status = command.status().map_err(|e| unstarted(command, &e))?;
    Ok(status.success())
}

/// Runs a program, shows what it writes and gives it back without colours, standard output first.
pub(crate) fn tee(command: &mut Command) -> Result<(bool, String), String> {
    if std::io::stdout().is_terminal() {
        command.env("CARGO_TERM_COLOR", "always");
    }
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match child.spawn() {
        Ok(child) => child,
        Err(e) => return Err(unstarted(command, &e)),
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (mut text, errors) = thread::scope(|scope| {
        let errors = scope.spawn(|| err.map(|from| copy(from, std::io::stderr())));
        let text = out.map(|from| copy(from, std::io::stdout()));
        (text.unwrap_or_default(), errors.join().ok().flatten())
    });
    text.push_str(&errors.unwrap_or_default());
    let status = child.wait().map_err(|e| unstarted(command, &e))?;
    Ok((status.success(), without_colours(&text)))
}

pub(crate) fn unstarted(command: &Command, reason: &std::io::Error) -> String {
    format!("cannot run {}: {reason}", command.get_program().display())
}

fn copy(from: impl Read, mut to: impl Write) -> String {
    let mut from = BufReader::new(from);
    let mut all = String::new();
    let mut line = Vec::new();
    // A terminal that is gone loses only the picture; the text is still wanted.
    while from.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
        let _ = to.write_all(&line);
        all.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    all
}

/// Drops the escape sequences that select colours: from ESC to the letter that ends them.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            chars.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_dropped() {
        let painted = "\u{1b}[32;1m  Summary\u{1b}[0m [ 0.1s] \u{1b}[1m3\u{1b}[0m tests";
        assert_eq!(without_colours(painted), "  Summary [ 0.1s] 3 tests");
    }

    #[test]
    fn copying_keeps_every_byte_of_the_picture_and_a_readable_text() {
        let mut shown = Vec::new();
        let text = copy(&b"one\ntwo \xff"[..], &mut shown);
        assert_eq!(shown, b"one\ntwo \xff");
        assert_eq!(text, "one\ntwo \u{fffd}");
    }
}
