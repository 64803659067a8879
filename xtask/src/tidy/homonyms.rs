//! One name means one thing. These words each named several types once; now each names at most one in the whole
//! project, tests aside. What they mean is in `docs/architecture.md`, under *Words*.

use super::file::in_word;
use super::{File, Finding};

const WORDS: [&str; 8] = [
    "Deed", "Entry", "Epoch", "Line", "Order", "Place", "Ticket", "Witness",
];

/// A type with one of the words for its name.
struct Declared<'a> {
    word: &'static str,
    path: &'a str,
    line: usize,
}

/// What is wrong in all files together, each finding with its path.
pub(super) fn check<'a>(files: &'a [File<'a>]) -> Vec<(&'a str, Finding)> {
    let declared: Vec<Declared<'a>> = files.iter().flat_map(declared).collect();
    let mut findings = Vec::new();
    for one in &declared {
        let same = |other: &&Declared| {
            other.word == one.word && (other.path, other.line) != (one.path, one.line)
        };
        if let Some(other) = declared.iter().find(same) {
            let (word, path, line) = (one.word, other.path, other.line);
            let wrong = format!("`{word}` is a type in {path}:{line}, too");
            let instead = "one word means one thing: say what this one is";
            findings.push((one.path, Finding::fault(one.line, wrong, instead)));
        }
    }
    findings
}

fn declared<'a>(file: &'a File<'a>) -> Vec<Declared<'a>> {
    let mut found = Vec::new();
    for (line, text, _) in file.code_lines().filter(|(_, _, test)| !test) {
        let words: Vec<&str> = text.split(|c| !in_word(c)).collect();
        for pair in words.windows(2) {
            let names_type = matches!(pair[0], "struct" | "enum" | "trait" | "type" | "union");
            let word = WORDS.into_iter().find(|word| *word == pair[1]);
            if let Some(word) = word.filter(|_| names_type) {
                let path = file.path;
                found.push(Declared { word, path, line });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&'static str, &str)]) -> Vec<(String, usize)> {
        let files: Vec<File> = files.iter().map(|(p, t)| File::new(p, t)).collect();
        let found = check(&files).into_iter();
        found.map(|(path, f)| (path.to_owned(), f.line)).collect()
    }

    #[test]
    fn a_word_that_names_two_types_is_caught_at_both() {
        for (one, two) in [
            ("pub struct Line;", "\npub(crate) enum Line {}"),
            ("trait Line {}", "\ntype Line = (Style, String);"),
            ("struct Line<'a>(&'a str);", "\npub struct Line {"),
        ] {
            assert_eq!(
                found(&[("crates/flow/src/a.rs", one), ("xtask/src/b.rs", two)]),
                [
                    ("crates/flow/src/a.rs".into(), 1),
                    ("xtask/src/b.rs".into(), 2)
                ],
                "{one} {two}"
            );
        }
        let twice = [(
            "crates/flow/src/a.rs",
            "mod a { struct Order; }\nenum Order {}",
        )];
        assert_eq!(found(&twice).len(), 2);
    }

    #[test]
    fn one_type_its_uses_and_tests_pass() {
        let one = ("crates/flow/src/a.rs", "pub struct Line;");
        for (path, text) in [
            (
                "crates/lab/src/b.rs",
                "fn a(line: Line) -> Shape { Shape::Line }",
            ),
            (
                "crates/lab/src/b.rs",
                "/// struct Line\npub struct LinePlace;",
            ),
            (
                "crates/lab/src/b.rs",
                "#[cfg(test)]\nmod tests {\n  struct Line;\n}",
            ),
            ("crates/lab/tests/b.rs", "struct Line;"),
            ("crates/lab/src/b.rs", "struct Order;"),
        ] {
            assert_eq!(found(&[one, (path, text)]), [], "{path}: {text}");
        }
    }
}
