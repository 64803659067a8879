//! Names of processes, queues and users. A [`Name`] that exists is valid, so nothing behind the edge checks one again.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_BYTES_MAX;

/// 1 to 100 bytes of letters, digits, `_`, `-` and `.`, of which the first is a letter, a digit or `_`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// Parses a name, or says what is wrong with it.
    pub fn new(text: &str) -> Result<Name, BadName> {
        let Some(first) = text.chars().next() else {
            return Err(BadName::Empty);
        };
        if text.len() > NAME_BYTES_MAX {
            return Err(BadName::TooLong(text.len()));
        }
        let wrong = text.chars().find(|c| !is_name_char(*c));
        match wrong.or((!is_name_start(first)).then_some(first)) {
            Some(c) => Err(BadName::Char(c)),
            None => Ok(Name(Arc::from(text))),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn is_name_start(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c) || c == '-' || c == '.'
}

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadName {
    Empty,
    /// So many bytes.
    TooLong(usize),
    /// This character may not stand there.
    Char(char),
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadName::Empty => write!(f, "a name is empty"),
            BadName::TooLong(bytes) => write!(
                f,
                "a name has {bytes} bytes; at most {NAME_BYTES_MAX} are allowed"
            ),
            BadName::Char(c) => write!(
                f,
                "{c:?} does not fit in a name: letters, digits, _ - and . do, after a letter, a digit or _"
            ),
        }
    }
}

impl std::error::Error for BadName {}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;
    fn try_from(text: String) -> Result<Name, BadName> {
        Name::new(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_has_no_signs() {
        for good in ["a", "7", "_x", "orders-2", "v1.2", "revisión", "C1"] {
            assert!(Name::new(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".a", "a b", "a/b", "a>", "a\n", "[a]"] {
            assert!(Name::new(bad).is_err(), "{bad:?}");
        }
        assert!(Name::new(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        assert_eq!(Name::new(&"x".repeat(101)), Err(BadName::TooLong(101)));
    }
}
