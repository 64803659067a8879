//! Names and the other short texts that come from outside. A [`Name`] that exists is valid, so nothing behind the edge checks
//! it again. It is shared, so that passing it on copies no text.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Refusal, Word};
use crate::limits::Limits;

/// The prefix of election names. The space keeps clients from using it.
const ELECTION: &str = "election ";

/// A valid name of a gate, room, queue, pool, group or anything else that clients name: 1 to 255 bytes of printable UTF-8
/// without white space.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// Parses a name. Refused with `BADARG` if it is empty, too long, or has white space or control characters.
    pub fn new(text: &str) -> Result<Name, Refusal> {
        if text.is_empty() {
            return Err(Refusal::new(
                Word::BadArg,
                "a name is empty; it needs 1 to 255 bytes",
            ));
        }
        if text.len() > Limits::NAME_BYTES {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "a name has {} bytes; at most {} are allowed",
                    text.len(),
                    Limits::NAME_BYTES
                ),
            ));
        }
        if let Some(bad) = text.chars().find(|c| c.is_whitespace() || c.is_control()) {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "the name {text:?} holds {bad:?}; white space and control characters are not allowed"
                ),
            ));
        }
        Ok(Name(Arc::from(text)))
    }

    /// The name of an election, which no gate can have, so that the two are never confused although they share the same
    /// books. Refused as in [`Name::new`].
    pub fn election(text: &str) -> Result<Name, Refusal> {
        let name = Name::new(text)?;
        Ok(Name(Arc::from(format!("{ELECTION}{name}"))))
    }

    /// A name of either kind, as it was written before.
    pub(crate) fn known(text: &str) -> Result<Name, Refusal> {
        match text.strip_prefix(ELECTION) {
            Some(election) => Name::election(election),
            None => Name::new(text),
        }
    }

    /// The name that candidates use for an election; `None` for any other name.
    pub fn as_election(&self) -> Option<&str> {
        self.0.strip_prefix(ELECTION)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

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
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = Refusal;
    fn try_from(text: String) -> Result<Name, Refusal> {
        Name::known(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0.as_ref().to_owned()
    }
}

/// The name of a gate or election, as people use it.
pub fn bare_name(name: &str) -> &str {
    name.strip_prefix(ELECTION).unwrap_or(name)
}

/// A gate or an election, for a sentence.
pub(crate) fn called(name: &str) -> String {
    match name.starts_with(ELECTION) {
        true => name.to_owned(),
        false => format!("gate {name}"),
    }
}

/// Checks a free text (a label, a reason, an ID) against its limit, and for control characters, which would garble a
/// terminal.
pub(crate) fn check_text(what: &str, text: &str, bytes_max: usize) -> Result<(), Refusal> {
    if text.len() > bytes_max {
        return Err(Refusal::new(
            Word::BadArg,
            format!(
                "{what} has {} bytes; at most {bytes_max} are allowed",
                text.len()
            ),
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Refusal::new(
            Word::BadArg,
            format!("{what} {text:?} holds a control character; plain text is wanted"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printable_and_short() {
        assert!(Name::new("deploy/eu-1:ä").is_ok());
        for bad in ["", "two words", "line\nbreak", "\u{7f}", &"x".repeat(256)] {
            assert_eq!(Name::new(bad).unwrap_err().word, Word::BadArg, "{bad:?}");
        }
        assert!(Name::new(&"x".repeat(255)).is_ok());
    }

    #[test]
    fn elections_have_names_of_their_own() {
        let election = Name::election("deploy").unwrap();
        assert_eq!(election.as_election(), Some("deploy"));
        assert_eq!(Name::new("deploy").unwrap().as_election(), None);
        assert!(Name::new(&election).is_err(), "no client can write it");
        assert!(Name::election("two words").is_err() && Name::election("").is_err());
        assert_eq!(Name::try_from(String::from(election.clone())), Ok(election));
        let long = Name::election(&"x".repeat(255)).unwrap();
        assert_eq!(Name::known(&long), Ok(long));
    }
}
