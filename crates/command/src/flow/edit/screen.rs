//! A screen of lines: cleared and written anew for every question on a terminal, written one after the other elsewhere.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};

use testigo_flow::Name;
use testigo_flow::limits::RIGHTS_MAX;

use crate::exit::Failure;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Screen {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
    /// Clear the screen, and give it back at the end.
    full: bool,
    /// What the last step has to say; shown once.
    news: Vec<String>,
}

/// The user went away: the input has ended.
pub(super) struct Gone;

impl Screen {
    pub(super) fn new(input: Box<dyn BufRead>, mut output: Box<dyn Write>, full: bool) -> Screen {
        if full {
            let _ = output.write_all(b"\x1b[?1049h");
        }
        Screen {
            input,
            output,
            full,
            news: Vec::new(),
        }
    }

    /// Gives the terminal back as it was.
    pub(super) fn leave(&mut self) {
        if self.full {
            let _ = self.output.write_all(b"\x1b[?1049l");
        }
        let _ = self.output.flush();
    }

    /// Something to be shown with the next page.
    pub(super) fn tell(&mut self, news: impl ToString) {
        self.news.push(news.to_string());
    }

    /// A page: a heading, lines, and what there is to tell.
    pub(super) fn page(&mut self, heading: &str, lines: &[String]) {
        let mut page = String::new();
        if self.full {
            page.push_str("\x1b[2J\x1b[H");
        }
        page.push_str(&format!("{heading}\n\n"));
        for line in lines {
            page.push_str(&format!("  {line}\n"));
        }
        page.push('\n');
        for news in self.news.drain(..) {
            page.push_str(&format!("* {news}\n"));
        }
        // A terminal that went away shows up at the next question.
        let _ = self.output.write_all(page.as_bytes());
    }

    /// Asks for a line; what is typed comes without the white space around it.
    pub(super) fn ask(&mut self, question: &str) -> Result<String, Gone> {
        let asked = write!(self.output, "{question} ").and_then(|()| self.output.flush());
        let mut line = Vec::new();
        let mut limited = std::io::Read::take(&mut self.input, ANSWER_BYTES_MAX);
        match asked.and_then(|()| limited.read_until(b'\n', &mut line)) {
            Ok(read) if read > 0 => Ok(String::from_utf8_lossy(&line).trim().to_owned()),
            _ => Err(Gone),
        }
    }

    /// Nothing but y or n is an answer.
    pub(super) fn confirm(&mut self, question: &str) -> Result<bool, Gone> {
        loop {
            match self.ask(&format!("{question} (y/n)"))?.as_str() {
                "y" | "Y" | "yes" => return Ok(true),
                "n" | "N" | "no" => return Ok(false),
                _ => {}
            }
        }
    }

    /// A name, or `None` when the answer is empty or no name; then the reason is told.
    pub(super) fn ask_name(&mut self, question: &str) -> Result<Option<Name>, Gone> {
        let answer = self.ask(question)?;
        if answer.is_empty() {
            return Ok(None);
        }
        match Name::new(&answer) {
            Ok(name) => Ok(Some(name)),
            Err(why) => {
                self.tell(why);
                Ok(None)
            }
        }
    }

    /// A new value: an empty answer keeps the old one, `-` clears it, and anything else is read until it is right.
    pub(super) fn ask_value<T: Clone>(
        &mut self,
        what: &str,
        old: &Option<T>,
        show: impl Fn(&T) -> String,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Gone> {
        let shown = old.as_ref().map_or("-".to_owned(), &show);
        loop {
            let answer = self.ask(&format!("{what} [{shown}]:"))?;
            match answer.as_str() {
                "" => return Ok(old.clone()),
                "-" => return Ok(None),
                answer => match read(answer) {
                    Ok(value) => return Ok(Some(value)),
                    Err(why) => {
                        let _ = writeln!(self.output, "* {why}");
                    }
                },
            }
        }
    }
}

impl Screen {
    /// Names of users, separated by spaces.
    pub(super) fn ask_users(
        &mut self,
        what: &str,
        old: &BTreeSet<Name>,
    ) -> Result<BTreeSet<Name>, Gone> {
        let read = |text: &str| -> Result<BTreeSet<Name>, String> {
            let words = text.split([' ', ',']).filter(|word| !word.is_empty());
            let users: BTreeSet<Name> = words
                .map(|word| Name::new(word).map_err(|why| why.to_string()))
                .collect::<Result<_, _>>()?;
            match users.len() <= RIGHTS_MAX {
                true => Ok(users),
                false => Err(format!("at most {RIGHTS_MAX} users can be named")),
            }
        };
        let show = |users: &BTreeSet<Name>| {
            let users: Vec<&str> = users.iter().map(Name::as_str).collect();
            users.join(" ")
        };
        let old = Some(old.clone()).filter(|old| !old.is_empty());
        Ok(self.ask_value(what, &old, show, read)?.unwrap_or_default())
    }
}

/// A user who goes away ends the editor without writing.
impl From<Gone> for Failure {
    fn from(_: Gone) -> Failure {
        Failure::from("the input ended; nothing was written")
    }
}
