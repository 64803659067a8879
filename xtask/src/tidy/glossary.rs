//! One thing has one name. The words are those of `docs/architecture.md`; here are other names that creep in
//! for the same things, in documents and in Rust, where `TwoWords` and `two_words` are read as two words.

use super::{File, Finding};

/// Another name, word by word, and what to say.
struct Synonym(&'static [&'static str], &'static str);

const SYNONYMS: &[Synonym] = &[
    Synonym(&["fencing", "token"], "say fence"),
    Synonym(&["fence", "token"], "say fence"),
    Synonym(&["critical", "region"], "say critical section"),
    Synonym(&["semaphore", "gate"], "say a gate of permits"),
    Synonym(&["group", "lock"], "say room"),
    Synonym(&["dead", "letter"], "say reject queue"),
    Synonym(&["resource", "pool"], "say pool"),
    Synonym(&["session", "timeout"], "say session TTL"),
    Synonym(&["worker", "node"], "say node"),
    Synonym(&["task", "queue"], "say queue"),
];

/// Documents and Rust. A name in double quotes is somebody else's word, and is allowed.
pub(super) fn check(file: &File) -> Vec<Finding> {
    if !["md", "rs"].contains(&file.extension()) {
        return Vec::new();
    }
    let words = words(file.text);
    let mut findings = Vec::new();
    for Synonym(name, instead) in SYNONYMS {
        for found in words.windows(name.len()) {
            if is(found, name) && !is_cited(file.text, found) {
                let wrong = format!("\"{}\" is another name for a known thing", name.join(" "));
                findings.push(Finding::fault(found[0].line, wrong, instead));
            }
        }
    }
    findings
}

/// A word of a text or a part of an identifier.
struct Word<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// It follows the word before it without punctuation: a line break or a comment sign may lie between.
    continues: bool,
}

fn words(text: &str) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let (mut line, mut start, mut continues, mut last) = (1, None, false, ' ');
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let hump = c.is_uppercase() && last.is_lowercase();
        if let Some(from) = start.filter(|_| hump || !c.is_alphanumeric()) {
            words.push(Word {
                text: &text[from..at],
                at: from,
                line,
                continues,
            });
            (start, continues) = (None, true);
        }
        if c.is_alphanumeric() {
            start = start.or(Some(at));
        } else if !c.is_whitespace() && !"_-/!*>`".contains(c) {
            continues = false;
        }
        // A paragraph ends at an empty line.
        continues &= !(c == '\n' && last == '\n');
        line += usize::from(c == '\n');
        last = c;
    }
    words
}

/// Whether the words are this name, in the plural too.
fn is(words: &[Word<'_>], name: &[&str]) -> bool {
    let joined = words[1..].iter().all(|word| word.continues);
    let same = |(word, part): (&Word<'_>, &&str)| {
        let text = word.text.to_lowercase();
        text == **part || text.strip_suffix('s') == Some(*part)
    };
    joined && words.iter().zip(name).all(same)
}

fn is_cited(text: &str, words: &[Word<'_>]) -> bool {
    let Some(last) = words.last() else {
        return false;
    };
    let before = &text[..words[0].at];
    let after = &text[last.at + last.text.len()..];
    before.ends_with(['"', '“']) && after.starts_with(['"', '”'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    const DOC: &str = "docs/guarantees.md";

    #[test]
    fn another_name_is_caught() {
        for text in [
            concat!("A fencing", " token."),
            concat!("Fencing", " Tokens"),
            concat!("the critical", "-region"),
            concat!("a dead", "-letter queue"),
        ] {
            assert_eq!(faults(check, DOC, &format!("\n{text}")), [2], "{text}");
        }
    }

    #[test]
    fn another_name_is_caught_across_lines_and_in_identifiers() {
        assert_eq!(
            faults(check, DOC, concat!("the session", "\ntimeout is")),
            [1]
        );
        for text in [
            concat!("/// the task", "\n/// queue"),
            concat!("let fencing", "_token = 1;"),
            concat!("struct Worker", "NodeView;"),
        ] {
            assert_eq!(faults(check, "crates/core/src/lib.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn every_synonym_is_caught() {
        for Synonym(name, _) in SYNONYMS {
            assert_eq!(faults(check, DOC, &name.join(" ")).len(), 1, "{name:?}");
        }
    }

    #[test]
    fn the_known_names_pass() {
        for text in [
            "A fence, a fencing number, the token of Raymond; the critical section.",
            "The lock of a group. Lock it: fencing. Token algorithms differ.",
            concat!("Others say \"fencing", " token\"."),
            "defencing tokenizer",
            "## The session\n\nTimeouts differ.",
        ] {
            assert_eq!(faults(check, DOC, text), [], "{text}");
        }
        let data = concat!("fencing", " token");
        assert_eq!(faults(check, "web/console.js", data), []);
    }
}
