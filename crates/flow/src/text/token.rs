//! The tokens of the language, with the comments and line breaks before each, in one pass over the text.

use std::ops::Range;

use crate::name::{is_name_char, is_name_start};
use crate::{Diagnostic, Rule, Weight};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name, a keyword or a number: which one, its place says.
    Word,
    /// With its quotes.
    Text,
    Arrow,
    OpenQueue,
    CloseQueue,
    OpenBlock,
    CloseBlock,
    Semicolon,
    Comma,
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Range<usize>,
    /// Line ends between this token and what is before it, comment or token.
    pub(crate) breaks: usize,
    /// Which of the comments stand between this token and the one before.
    pub(crate) comments: Range<usize>,
    /// Whether this is the first token of its line.
    pub(crate) first: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Comment {
    /// From the `#` on, without the white space at its end.
    pub(crate) text: String,
    /// Line ends before it; none: it stands behind something on its line.
    pub(crate) breaks: usize,
}

/// A text cut into tokens; the last one is [`Kind::End`].
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) errors: Vec<Diagnostic>,
}

impl Tokens {
    pub(crate) fn of(text: &str) -> Tokens {
        let mut lexer = Lexer {
            text,
            at: 0,
            breaks: 0,
            first: true,
            comments_before: 0,
            out: Tokens {
                tokens: Vec::new(),
                comments: Vec::new(),
                errors: Vec::new(),
            },
        };
        while lexer.step() {}
        lexer.out
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    breaks: usize,
    first: bool,
    comments_before: usize,
    out: Tokens,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// One token, comment, piece of white space or error; false at the end.
    fn step(&mut self) -> bool {
        let Some(c) = self.rest().chars().next() else {
            self.push(Kind::End, 0);
            return false;
        };
        match c {
            '\n' => {
                self.breaks += 1;
                self.first = true;
                self.at += 1;
            }
            c if c.is_whitespace() || (c == '\u{feff}' && self.at == 0) => self.at += c.len_utf8(),
            '#' => self.comment(),
            '[' => self.push(Kind::OpenQueue, 1),
            ']' => self.push(Kind::CloseQueue, 1),
            '{' => self.push(Kind::OpenBlock, 1),
            '}' => self.push(Kind::CloseBlock, 1),
            ';' => self.push(Kind::Semicolon, 1),
            ',' => self.push(Kind::Comma, 1),
            '-' if self.rest().starts_with("->") => self.push(Kind::Arrow, 2),
            '"' => self.quoted(),
            c if is_name_start(c) => {
                let length = word_length(self.rest());
                self.push(Kind::Word, length);
            }
            _ => match self.signed_number() {
                Some(length) => self.push(Kind::Word, length),
                None => self.unknown(),
            },
        }
        true
    }

    /// A number with a sign where one without is wanted: the parser says which.
    fn signed_number(&self) -> Option<usize> {
        let before = self.out.tokens.last().filter(|_| !self.first)?;
        let wanted = ["limit", "retries"].contains(&&self.text[before.span.clone()]);
        let digits = self.rest().strip_prefix(['-', '+'])?;
        let length = word_length(digits);
        (wanted && digits.starts_with(|c: char| c.is_ascii_digit())).then_some(length + 1)
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let comments = self.comments_before..self.out.comments.len();
        self.comments_before = self.out.comments.len();
        self.out.tokens.push(Token {
            kind,
            span: self.at..self.at + length,
            breaks: self.breaks,
            comments,
            first: self.first,
        });
        self.at += length;
        self.breaks = 0;
        self.first = false;
    }

    fn comment(&mut self) {
        let line = self.rest().lines().next().unwrap_or_default();
        let (length, text) = (line.len(), line.trim_end().to_owned());
        let breaks = self.breaks;
        self.out.comments.push(Comment { text, breaks });
        self.at += length.max(1);
        self.breaks = 0;
    }

    /// A text in quotes, on one line; a backslash takes the next character as it is.
    fn quoted(&mut self) {
        let mut escaped = false;
        for (at, c) in self.rest().char_indices().skip(1) {
            match c {
                '\n' => break,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return self.push(Kind::Text, at + 1),
                _ => {}
            }
        }
        let length = self.rest().lines().next().map_or(1, str::len).max(1);
        self.error(
            length,
            "the text in quotes does not end on its line",
            "close it with \"",
        );
    }

    fn unknown(&mut self) {
        let known = |c: char| c.is_whitespace() || is_name_start(c) || "#[]{};,\"".contains(c);
        let rest = self.rest();
        let end = rest.char_indices().skip(1);
        let mut end = end.filter(|(at, c)| known(*c) || rest[*at..].starts_with("->"));
        let length = end.next().map_or(rest.len(), |(at, _)| at);
        let shown: String = rest[..length].chars().take(20).collect();
        let wrong = format!("{shown:?} is not part of the language");
        self.error(
            length,
            &wrong,
            "write names, -> and [queue]; a comment starts with #",
        );
    }

    fn error(&mut self, length: usize, wrong: &str, mend: &str) {
        let span = self.at..self.at + length;
        self.at += length;
        if self.out.errors.len() < crate::limits::DIAGNOSTICS_MAX {
            let error = Diagnostic::new(self.text, span, Rule::Syntax, Weight::Error, wrong, mend);
            self.out.errors.push(error);
        }
    }
}

/// The bytes of the word that the text starts with. A `-` that belongs to an arrow ends it.
fn word_length(text: &str) -> usize {
    let mut chars = text.char_indices();
    let end = chars.find(|(at, c)| !is_name_char(*c) || text[*at..].starts_with("->"));
    end.map_or(text.len(), |(at, _)| at)
}
