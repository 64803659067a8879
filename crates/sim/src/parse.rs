//! Reading options: every error says what was given and what would be right.

use std::fmt;
use std::str::FromStr;

/// A piece of text that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    given: String,
    expected: String,
}

impl ParseError {
    pub fn new(given: &str, expected: impl Into<String>) -> ParseError {
        ParseError {
            given: given.to_owned(),
            expected: expected.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not {}", self.given, self.expected)
    }
}

impl std::error::Error for ParseError {}

/// Reads `text` as a `T`, or says that `expected` was wanted.
pub(crate) fn read<T: FromStr>(text: &str, expected: &str) -> Result<T, ParseError> {
    text.parse().map_err(|_| ParseError::new(text, expected))
}
