//! How a call ends that is not done: refused, with a word for programs and a sentence for people, or with an unknown outcome.

use std::fmt;

/// The result of every call: done with a value, or not.
///
/// ```
/// use testigo::{Call, Testigo};
///
/// async fn deploy(testigo: &Testigo) -> Call<u64> {
///     let held = testigo.lock("deploy").await?;
///     Ok(held.fence())
/// }
/// ```
pub type Call<T> = Result<T, NotDone>;

/// A call that was refused, or whose outcome is unknown.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{Lock, NotDone, Word};
///
/// let name_with_a_space = testigo.lock("two words").await;
/// match name_with_a_space.expect_err("no name") {
///     NotDone::Refused(refusal) => assert_eq!(refusal.word, Word::BadArg),
///     NotDone::Unknown(why) => println!("it may have been done: {why}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// The node refused, or this client did before sending anything. Nothing has changed, so repeating is safe.
    Refused(Refusal),
    /// The outcome is unknown: the connection broke after the call was sent and before it was answered, or the node said
    /// `UNKNOWN`.
    Unknown(String),
}

impl NotDone {
    /// The refusal's word; `None` for an unknown outcome.
    pub fn word(&self) -> Option<&Word> {
        match self {
            NotDone::Refused(refusal) => Some(&refusal.word),
            NotDone::Unknown(_) => None,
        }
    }

    /// What a node's error means: it refuses, or it cannot tell the outcome itself (its disk failed in between).
    pub(crate) fn told(refusal: Refusal) -> NotDone {
        match (&refusal.word, refusal.sentence.strip_prefix("unknown: ")) {
            (Word::Unknown, _) => NotDone::Unknown(refusal.sentence),
            // What older nodes say, which do not have the word.
            (Word::Unavailable, Some(why)) => NotDone::Unknown(why.to_owned()),
            _ => NotDone::Refused(refusal),
        }
    }

    pub(crate) fn refused(word: Word, sentence: impl Into<String>) -> NotDone {
        NotDone::Refused(Refusal {
            word,
            sentence: sentence.into(),
        })
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDone::Refused(refusal) => refusal.fmt(f),
            NotDone::Unknown(why) => write!(f, "unknown whether it was done: {why}"),
        }
    }
}

impl std::error::Error for NotDone {}

/// An error from the node: programs decide on its first word, the rest explains.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{NotDone, Refusal, Word};
///
/// let refused = testigo.show_gate("nowhere").await;
/// let Err(NotDone::Refused(Refusal { word: Word::NoGate, sentence })) = refused else {
///     panic!("there is such a gate: {refused:?}");
/// };
/// assert!(sentence.contains("nowhere"), "{sentence}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The word on which programs decide.
    pub word: Word,
    /// What was wrong, where, and what would be right.
    pub sentence: String,
}

impl Refusal {
    /// Parses an error line. An unknown word is kept as it is.
    pub(crate) fn parse(line: &str) -> Refusal {
        // The refusal of a unit of work contains that of the command that was refused.
        let line = line.strip_prefix("EXECABORT ").unwrap_or(line);
        let (word, sentence) = line.split_once(' ').unwrap_or((line, ""));
        Refusal {
            word: Word::parse(word),
            sentence: sentence.to_owned(),
        }
    }
}

impl Refusal {
    /// Whether the node cannot serve now, so that another one may.
    pub(crate) fn cannot_serve(&self) -> bool {
        match &self.word {
            Word::Unavailable => !self.sentence.starts_with("unknown: "),
            Word::Other(word) => word == "LOADING",
            _ => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word, self.sentence)
    }
}

impl std::error::Error for Refusal {}

/// The first word of an error.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use std::time::Duration;
/// use testigo::{Lock, Word};
///
/// let _held = testigo.lock("deploy").await?;
/// let tried = testigo.lock(Lock::new("deploy").wait(Duration::from_millis(1))).await;
/// assert_eq!(tried.expect_err("it is taken").word(), Some(&Word::Busy));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The call is wrong, and will be wrong if it is repeated.
    BadArg,
    /// There is no gate with that name, and this request cannot create one.
    NoGate,
    /// The user has no right to do this.
    Denied,
    /// The session holds already what it asks for.
    Held,
    /// The session does not hold what it wants to give back.
    NotHeld,
    /// A newer fact has overtaken the caller's: another fence, a closed session, a later attempt.
    Stale,
    /// Only the clock could end the wait.
    Deadlock,
    /// A named limit is reached.
    Limit,
    /// Another use is in the way; it may work later.
    Busy,
    /// The node cannot be reached, or cannot answer yet.
    Unavailable,
    /// The node cannot tell whether it was done; such a call ends as [`NotDone::Unknown`].
    Unknown,
    /// There is no such flow.
    NoFlow,
    /// There is no such queue.
    NoQueue,
    /// There is no such job.
    NoJob,
    /// The session does not hold the job.
    NotYours,
    /// The queue has as many jobs as its limit allows.
    Full,
    /// The flow's graph does not allow the process to do this.
    NoRight,
    /// A living job of the flow already has this name.
    Duplicate,
    /// The text is not a valid flow.
    BadFlow,
    /// There is no such pool.
    NoPool,
    /// A word of a newer node, or of a server that is not Testigo.
    Other(String),
}

/// The known words as on the wire.
const WORDS: [(&str, Word); 20] = [
    ("BADARG", Word::BadArg),
    ("NOGATE", Word::NoGate),
    ("NOPOOL", Word::NoPool),
    ("DENIED", Word::Denied),
    ("HELD", Word::Held),
    ("NOTHELD", Word::NotHeld),
    ("STALE", Word::Stale),
    ("DEADLOCK", Word::Deadlock),
    ("LIMIT", Word::Limit),
    ("BUSY", Word::Busy),
    ("UNAVAILABLE", Word::Unavailable),
    ("UNKNOWN", Word::Unknown),
    ("NOFLOW", Word::NoFlow),
    ("NOQUEUE", Word::NoQueue),
    ("NOJOB", Word::NoJob),
    ("NOTYOURS", Word::NotYours),
    ("FULL", Word::Full),
    ("NORIGHT", Word::NoRight),
    ("DUPLICATE", Word::Duplicate),
    ("BADFLOW", Word::BadFlow),
];

impl Word {
    fn parse(text: &str) -> Word {
        let known = WORDS.iter().find(|(word, _)| *word == text);
        known.map_or_else(|| Word::Other(text.to_owned()), |(_, word)| word.clone())
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = WORDS.iter().find(|(_, word)| word == self);
        match (known, self) {
            (Some((text, _)), _) => f.write_str(text),
            (None, Word::Other(text)) => f.write_str(text),
            (None, other) => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_line_is_a_word_and_a_sentence() {
        let refusal = Refusal::parse("STALE session 7 is over");
        assert_eq!(refusal.word, Word::Stale);
        assert_eq!(refusal.sentence, "session 7 is over");
        assert_eq!(refusal.to_string(), "STALE session 7 is over");
        assert_eq!(Refusal::parse("LIMIT").word, Word::Limit);
        let unit = Refusal::parse("EXECABORT FULL command 2: queue a/b has 1 jobs");
        assert_eq!(unit.word, Word::Full);
    }

    #[test]
    fn a_node_may_say_that_it_cannot_tell() {
        let told = |line| NotDone::told(Refusal::parse(line));
        let unknown = NotDone::Unknown("the disk failed".into());
        assert_eq!(told("UNKNOWN the disk failed"), unknown);
        assert_eq!(told("UNAVAILABLE unknown: the disk failed"), unknown);
        assert!(matches!(
            told("UNAVAILABLE the disk failed"),
            NotDone::Refused(_)
        ));
    }

    #[test]
    fn an_unknown_word_is_kept() {
        let refusal = Refusal::parse("NOAUTH say the password");
        assert_eq!(refusal.word, Word::Other("NOAUTH".into()));
        assert_eq!(refusal.to_string(), "NOAUTH say the password");
    }

    #[test]
    fn every_word_is_written_as_it_is_read() {
        for (text, word) in WORDS {
            assert_eq!(Word::parse(text), word);
            assert_eq!(word.to_string(), text);
        }
    }
}
