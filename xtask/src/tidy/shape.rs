//! How a Rust file looks from outside: it opens with a sentence about itself, it is short, and its name says
//! what is in it.

use super::{File, Finding, Weight};

/// A large file; from here on a note asks for two.
const LINES_LARGE: usize = 500;
/// The longest file.
const LINES_MAX: usize = 600;

/// A file starts with a `//!` header of at least one sentence. Data for tests is exempt.
pub(super) fn header(file: &File) -> Vec<Finding> {
    let mut parts = file.parts();
    let data = parts.any(|part| part == "tests") && parts.any(|part| part == "data");
    if file.code.is_none() || data {
        return Vec::new();
    }
    let lines = file.text.lines();
    let header: Vec<&str> = lines.map_while(|line| line.strip_prefix("//!")).collect();
    let sentence = |line: &&str| line.trim_end().ends_with('.') || line.contains(". ");
    let wrong = if header.is_empty() {
        "the file does not start with a module header"
    } else if !header.iter().any(sentence) {
        "the module header has no full sentence"
    } else {
        return Vec::new();
    };
    vec![Finding::fault(
        1,
        wrong,
        "open with `//!` and say in a sentence what the file is",
    )]
}

/// Length in lines.
pub(super) fn length(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().count();
    if file.code.is_none() || lines <= LINES_LARGE {
        return Vec::new();
    }
    vec![Finding {
        line: lines,
        wrong: format!("{lines} lines; {LINES_LARGE} are a large file, {LINES_MAX} the most"),
        instead: "split it by what its parts do",
        weight: if lines > LINES_MAX {
            Weight::Fault
        } else {
            Weight::Note
        },
    }]
}

/// Names that say nothing, for a file or a folder of Rust.
const NAMES: [&str; 4] = ["utils", "helpers", "misc", "common"];

/// The name of a module, by its file and by its `mod` item.
pub(super) fn name(file: &File) -> Vec<Finding> {
    if file.code.is_none() {
        return Vec::new();
    }
    let named = file.parts().filter(|part| NAMES.contains(part));
    let mut found: Vec<_> = named.map(|name| (1, name.to_owned())).collect();
    for (line, text, _) in file.code_lines() {
        let words: Vec<&str> = text.split(|c| !super::file::in_word(c)).collect();
        let declared = words.windows(2).filter(|pair| pair[0] == "mod");
        let declared = declared.filter(|pair| NAMES.contains(&pair[1]));
        found.extend(declared.map(|pair| (line, pair[1].to_owned())));
    }
    let finding = |(line, name)| {
        let wrong = format!("a module named `{name}`");
        Finding::fault(line, wrong, "name it for what it does")
    };
    found.into_iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    #[test]
    fn a_file_opens_with_a_sentence() {
        let path = "crates/command/src/main.rs";
        assert_eq!(faults(header, path, "fn main() {}\n"), [1]);
        assert_eq!(faults(header, path, ""), [1]);
        assert_eq!(faults(header, path, "\n//! A sentence.\n"), [1]);
        assert_eq!(
            faults(header, path, "//! Three words only\n\nfn a() {}"),
            [1]
        );
        assert_eq!(faults(header, path, "//! It is\n//! a sentence.\n"), []);
        assert_eq!(faults(header, path, "//! One. And two:\n//! - x\n"), []);
    }

    #[test]
    fn only_rust_needs_a_header_and_data_does_not() {
        assert_eq!(faults(header, "docs/lab.md", "# Lab"), []);
        assert_eq!(faults(header, "xtask/tests/data/bad.rs", "fn a() {}"), []);
        assert_eq!(faults(header, "xtask/tests/cli.rs", "fn a() {}"), [1]);
    }

    #[test]
    fn a_long_file_is_a_fault_and_a_large_one_a_note() {
        let lines = |n| "x\n".repeat(n);
        assert_eq!(faults(length, "a.rs", &lines(601)), [601]);
        assert_eq!(faults(length, "a.rs", &lines(600)), []);
        assert_eq!(length(&File::new("a.rs", &lines(501))).len(), 1);
        assert_eq!(length(&File::new("a.rs", &lines(500))).len(), 0);
        assert_eq!(faults(length, "a.md", &lines(601)), []);
    }

    #[test]
    fn names_that_say_nothing_are_caught() {
        for path in ["crates/sim/src/utils.rs", "crates/sim/tests/common/mod.rs"] {
            assert_eq!(faults(name, path, ""), [1], "{path}");
        }
        assert_eq!(faults(name, "a.rs", "\npub mod helpers;"), [2]);
        assert_eq!(faults(name, "a.rs", "mod misc {}"), [1]);
        assert_eq!(faults(name, "a.rs", "mod commons; // mod misc"), []);
        assert_eq!(faults(name, "docs/common/x.md", ""), []);
    }
}
