//! What others wrote, on a terminal. A value, a label or a body may hold anything, and a terminal acts on what it is sent: it
//! moves the cursor, changes its title, or shows words in another order. So everything that this crate prints goes through
//! here, and on a terminal a character that is not to be seen is printed as a JSON string has it. A file or a pipe gets what
//! there is.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};
use std::io::{self, IsTerminal, Write, stderr, stdout};

/// As the standard library's. What is meant for a terminal as it is goes through that one.
macro_rules! println {
    () => { std::println!() };
    ($($words:tt)*) => { std::println!("{}", $crate::visible::on_output(format_args!($($words)*))) };
}
/// As the standard library's.
macro_rules! print {
    ($($words:tt)*) => { std::print!("{}", $crate::visible::on_output(format_args!($($words)*))) };
}

/// What is printed, and whether a terminal gets it.
pub(crate) struct Visible<T> {
    what: T,
    terminal: bool,
}

/// For standard output.
pub(crate) fn on_output<T: Display>(what: T) -> Visible<T> {
    let terminal = stdout().is_terminal();
    Visible { what, terminal }
}

/// For standard error.
pub(crate) fn on_error<T: Display>(what: T) -> Visible<T> {
    let terminal = stderr().is_terminal();
    Visible { what, terminal }
}

/// A text that is part of a line on standard output: there it has no lines and columns of its own.
pub(crate) fn in_line(text: &str) -> Cow<'_, str> {
    match stdout().is_terminal() {
        true => in_terminals_line(text),
        false => text.into(),
    }
}

/// A text that is part of a line on a terminal.
pub(crate) fn in_terminals_line(text: &str) -> Cow<'_, str> {
    match text.chars().any(|c| is_unseen(c) || c.is_control()) {
        true => {
            let escaped = Visible {
                what: text,
                terminal: true,
            }
            .to_string();
            escaped.replace('\n', "\\n").replace('\t', "\\t").into()
        }
        false => text.into(),
    }
}

impl<T: Display> Display for Visible<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.terminal {
            true => write!(Escaping(f), "{}", self.what),
            false => self.what.fmt(f),
        }
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for part in text.split_inclusive(is_unseen) {
            let seen = part.trim_end_matches(is_unseen);
            self.0.write_str(seen)?;
            for unseen in part[seen.len()..].chars() {
                write!(self.0, "\\u{:04x}", u32::from(unseen))?;
            }
        }
        Ok(())
    }
}

/// Controls but the ends of lines and tabs, and what changes the direction of writing.
fn is_unseen(c: char) -> bool {
    let directs = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    directs || c.is_control() && c != '\n' && c != '\t'
}

/// Standard output, for what is written byte for byte. A terminal gets it as text.
pub(crate) struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = stdout().lock();
        match out.is_terminal() {
            true => {
                let what = String::from_utf8_lossy(bytes);
                write!(
                    out,
                    "{}",
                    Visible {
                        what,
                        terminal: true
                    }
                )?;
                Ok(bytes.len())
            }
            false => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        stdout().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_not_told_what_to_do() {
        let shown = |what| {
            Visible {
                what,
                terminal: true,
            }
            .to_string()
        };
        for (said, seen) in [
            ("plain", "plain"),
            ("zwei Wörter\n\tund 漢字", "zwei Wörter\n\tund 漢字"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("over\rwritten\x08", "over\\u000dwritten\\u0008"),
            ("\u{9b}2J\u{7f}", "\\u009b2J\\u007f"),
            (
                "\u{202e}gpj.exe\u{2066}\u{200f}",
                "\\u202egpj.exe\\u2066\\u200f",
            ),
        ] {
            assert_eq!(shown(said), seen);
            let raw = Visible {
                what: said,
                terminal: false,
            };
            assert_eq!(raw.to_string(), said);
        }
        assert_eq!(
            in_terminals_line("a\nholders: 0\t\x1b"),
            "a\\nholders: 0\\t\\u001b"
        );
    }
}
