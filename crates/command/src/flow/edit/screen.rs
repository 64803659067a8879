//! A screen of lines: cleared and written anew for every page on a terminal, written one after the other elsewhere.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{BufRead, Write};

use testigo_flow::Name;
use testigo_flow::limits::RIGHTS_MAX;

use super::pages::{Page, Size, rows_of};
use crate::exit::Failure;

/// The longest answer that is read.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Screen {
    input: Box<dyn BufRead>,
    output: Box<dyn Write>,
    /// Clear the screen, show no more than it holds, and give it back at the end.
    full: bool,
    /// What the last step has to say; shown once.
    news: Vec<String>,
}

/// The user went away: the input has ended.
pub(super) struct Gone;

/// Takes the whole screen, and gives it back as it was.
const TAKE: &[u8] = b"\x1b[?1049h";
const GIVE_BACK: &[u8] = b"\x1b[?1049l";

/// Questions that one page of values asks at most, one below the other.
const VALUES_ASKED: usize = 7;

/// For an end that the screen does not see coming.
pub(super) fn give_back() {
    let mut output = std::io::stdout();
    let _ = output.write_all(GIVE_BACK).and_then(|()| output.flush());
}

impl Screen {
    pub(super) fn new(input: Box<dyn BufRead>, mut output: Box<dyn Write>, full: bool) -> Screen {
        if full {
            let _ = output.write_all(TAKE);
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
            let _ = self.output.write_all(GIVE_BACK);
        }
        let _ = self.output.flush();
    }

    /// Something to be shown with the next page.
    pub(super) fn tell(&mut self, news: impl ToString) {
        self.news.push(news.to_string());
    }

    /// Something to be shown at once.
    pub(super) fn say(&mut self, news: impl Display) {
        let _ = writeln!(self.output, "* {news}");
    }

    /// The terminal as it is now; none where nothing needs to fit.
    fn size(&self) -> Option<Size> {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok();
        let size = size.filter(|size| self.full && size.ws_col > 0 && size.ws_row > 0)?;
        Some(Size {
            width: size.ws_col.into(),
            height: size.ws_row.into(),
        })
    }

    /// Shows a page and asks below it. Where the terminal cannot hold the page, Enter shows what follows and p what was
    /// before; `at` is the row of the list that is shown now.
    pub(super) fn choose(
        &mut self,
        mut page: Page,
        at: &mut usize,
        question: &str,
    ) -> Result<String, Gone> {
        page.news.append(&mut self.news);
        loop {
            let size = self.size();
            let part = page.part(*at, rows_of(question, size), size);
            self.write(&part.text);
            match self.ask(question)?.as_str() {
                "" if part.parts > 1 => *at = part.next,
                "p" if part.parts > 1 => *at = part.before,
                answer => return Ok(answer.to_owned()),
            }
        }
    }

    /// A page above several questions: of what does not fit, only that there is more.
    pub(super) fn above_values(&mut self, heading: &str, words: &[&str]) {
        let size = self.size();
        let page = |shown: usize| Page {
            heading: heading.to_owned(),
            lines: vec![words[..shown].join(" ")],
            foot: match words.len() - shown {
                0 => Vec::new(),
                left => vec![format!("and {left} more")],
            },
            news: Vec::new(),
        };
        let fits = |shown: &usize| page(*shown).part(0, VALUES_ASKED, size).parts == 1;
        let shown = (0..=words.len()).rev().find(fits).unwrap_or(0);
        let text = page(shown).part(0, VALUES_ASKED, size).text;
        self.write(&text);
    }

    fn write(&mut self, page: &str) {
        if self.full {
            let _ = self.output.write_all(b"\x1b[2J\x1b[H");
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
            if let Some(yes) = is_yes(&self.ask(&format!("{question} (y/n)"))?) {
                return Ok(yes);
            }
        }
    }

    /// The same below a page.
    pub(super) fn confirm_page(
        &mut self,
        page: impl Fn() -> Page,
        question: &str,
    ) -> Result<bool, Gone> {
        let mut at = 0;
        loop {
            let answer = self.choose(page(), &mut at, &format!("{question} (y/n)"))?;
            if let Some(yes) = is_yes(&answer) {
                return Ok(yes);
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
                    Err(why) => self.say(why),
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

fn is_yes(answer: &str) -> Option<bool> {
    match answer {
        "y" | "Y" | "yes" => Some(true),
        "n" | "N" | "no" => Some(false),
        _ => None,
    }
}

/// A user who goes away ends the editor without writing.
impl From<Gone> for Failure {
    fn from(_: Gone) -> Failure {
        Failure::from("the input ended; nothing was written")
    }
}
