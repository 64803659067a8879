//! The words of a command: first its name, then its own syntax. A word is bytes until it is needed as text or a number; if it
//! is missing or wrong, the caller gets the refusal for the client.

use serde::{Deserialize, Serialize};
use testigo_core::{Matcher, Pattern, Refusal, Word};

/// A complete command as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawCommand<'a> {
    bytes: &'a [u8],
    ranges: &'a [(u32, u32)],
}

impl<'a> RawCommand<'a> {
    pub(super) fn new(bytes: &'a [u8], ranges: &'a [(u32, u32)]) -> RawCommand<'a> {
        RawCommand { bytes, ranges }
    }

    /// How many words there are, including the name.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// How many bytes its words have.
    pub(crate) fn bytes(&self) -> usize {
        let from = self.ranges.first().map_or(0, |(from, _)| *from);
        let to = self.ranges.last().map_or(0, |(_, to)| *to);
        to.saturating_sub(from) as usize
    }

    pub(crate) fn word(&self, at: usize) -> Option<&'a [u8]> {
        let (from, to) = *self.ranges.get(at)?;
        self.bytes.get(from as usize..to as usize)
    }

    /// The command without its first word.
    pub(crate) fn behind(self) -> RawCommand<'a> {
        RawCommand {
            ranges: self.ranges.get(1..).unwrap_or_default(),
            ..self
        }
    }

    /// A copy to keep for later, or for another node.
    pub(crate) fn to_kept(self) -> KeptCommand {
        let words = (0..self.len()).filter_map(|at| self.word(at));
        KeptCommand::of(words)
    }

    /// The words behind the name.
    pub(crate) fn words(self) -> Words<'a> {
        Words { line: self, at: 1 }
    }
}

/// A complete command that owns its words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptCommand {
    bytes: Vec<u8>,
    ranges: Vec<(u32, u32)>,
}

impl KeptCommand {
    pub(crate) fn of<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> KeptCommand {
        let mut line = KeptCommand::default();
        for word in words {
            let from = line.bytes.len() as u32;
            line.bytes.extend_from_slice(word);
            line.ranges.push((from, line.bytes.len() as u32));
        }
        line
    }

    /// The command as it arrived. A range outside of the bytes, which only a liar sends, is no word.
    pub(crate) fn raw(&self) -> RawCommand<'_> {
        RawCommand::new(&self.bytes, &self.ranges)
    }
}

/// Walks over the words of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'a> {
    line: RawCommand<'a>,
    at: usize,
}

impl<'a> Words<'a> {
    /// How many words are left.
    pub(crate) fn left(&self) -> usize {
        self.line.len().saturating_sub(self.at)
    }

    pub(crate) fn next_bytes(&mut self) -> Option<&'a [u8]> {
        let word = self.line.word(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// The word after `skipped` others, as text.
    pub(crate) fn nth_text(mut self, skipped: usize) -> Option<&'a str> {
        self.at += skipped;
        std::str::from_utf8(self.next_bytes()?).ok()
    }

    /// The next word as text; `what` names it in the refusal.
    pub(crate) fn text(&mut self, what: &str) -> Result<&'a str, Refusal> {
        let word = self
            .next_bytes()
            .ok_or_else(|| bad_arg(format!("{what} is missing")))?;
        std::str::from_utf8(word).map_err(|_| bad_arg(format!("{what} is not UTF-8")))
    }

    /// The next word as a pattern of names; without one, the pattern that all fit.
    pub(crate) fn pattern(&mut self) -> Result<Matcher, Refusal> {
        match self.left() {
            0 => Ok(Pattern::any().matcher()),
            _ => Ok(Pattern::new(self.text("the pattern")?)?.matcher()),
        }
    }

    pub(crate) fn number(&mut self, what: &str) -> Result<u64, Refusal> {
        let word = self.number_word(what)?;
        if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(bad_arg(format!("{what} {word:?} is not a whole number")));
        }
        word.parse()
            .map_err(|_| bad_arg(format!("{what} {word} is too large")))
    }

    /// The next word, which should be a number. After a keyword, the refusal of a missing number names the keyword.
    fn number_word(&mut self, what: &str) -> Result<&'a str, Refusal> {
        let keyword = what.bytes().all(|byte| byte.is_ascii_uppercase());
        if keyword && self.left() == 0 {
            return Err(bad_arg(format!("the number after {what} is missing")));
        }
        self.text(what)
    }

    /// A number that may be negative.
    pub(crate) fn integer(&mut self, what: &str) -> Result<i64, Refusal> {
        let word = self.number_word(what)?;
        word.parse()
            .map_err(|_| bad_arg(format!("{what} {word:?} is not a whole number of 64 bits")))
    }

    /// A copy of the whole command, to be carried out later.
    pub(crate) fn kept(&self) -> KeptCommand {
        self.line.to_kept()
    }

    /// Like [`Words::number`], for at most 32 bits.
    pub(crate) fn small_number(&mut self, what: &str) -> Result<u32, Refusal> {
        let number = self.number(what)?;
        u32::try_from(number).map_err(|_| bad_arg(format!("{what} {number} is too large")))
    }

    /// Takes the next word if it is this keyword, in upper or lower case.
    pub(crate) fn keyword(&mut self, keyword: &str) -> bool {
        let found = self
            .line
            .word(self.at)
            .is_some_and(|word| word.eq_ignore_ascii_case(keyword.as_bytes()));
        self.at += usize::from(found);
        found
    }

    /// Refuses if words are left.
    pub(crate) fn end(&self) -> Result<(), Refusal> {
        match self.line.word(self.at) {
            None => Ok(()),
            Some(word) => Err(self.unexpected(word)),
        }
    }

    /// The refusal of a word that is not allowed here.
    pub(crate) fn unexpected(&self, word: &[u8]) -> Refusal {
        let name = self.line.word(0).unwrap_or_default();
        bad_arg(format!(
            "{} does not take {:?} here",
            shown(name).to_ascii_uppercase(),
            shown(word)
        ))
    }
}

/// A word for an error message: shortened, and converted to text.
pub(crate) fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(64)]).into_owned()
}

pub(crate) fn bad_arg(sentence: impl Into<String>) -> Refusal {
    refuse(Word::BadArg, sentence)
}

pub(crate) fn refuse(word: Word, sentence: impl Into<String>) -> Refusal {
    Refusal {
        word,
        sentence: sentence.into(),
        cycle: Vec::new(),
    }
}
