//! A file as the checks see it: its path, its text and, for Rust, its code without comments and literals.

use super::code::{self, Code};

/// A text file of the project.
pub(super) struct File<'a> {
    /// Below the root, with `/` between the parts.
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// Present for Rust.
    pub(super) code: Option<Code>,
}

/// Where text is read for words; data of other kinds is not ours to word.
const TEXT: [&str; 8] = ["md", "rs", "toml", "html", "js", "css", "sh", "txt"];

impl<'a> File<'a> {
    pub(super) fn new(path: &'a str, text: &'a str) -> Self {
        let code = path.ends_with(".rs").then(|| code::read(text));
        Self { path, text, code }
    }

    /// What follows the last dot of the name, or nothing.
    pub(super) fn extension(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        name.rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// A text that people wrote. A name without a dot is a script or a licence.
    pub(super) fn is_prose_or_source(&self) -> bool {
        let extension = self.extension();
        extension.is_empty() || TEXT.contains(&extension)
    }

    /// The folder and the file names on the way to this file, without `.rs`.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        let path = self.path.strip_suffix(".rs").unwrap_or(self.path);
        path.split('/')
    }

    /// A whole file of tests: under `tests/`, or a test module that became a child file.
    pub(super) fn is_test(&self) -> bool {
        self.parts()
            .any(|part| part == "tests" || part.ends_with("_tests"))
    }

    /// The crate that this file belongs to, if it is one of the house's own.
    pub(super) fn owner(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("crates/");
        let inside = inside.or_else(|| self.path.strip_prefix("apps/"))?;
        inside.split_once('/').map(|(name, _)| name)
    }

    /// Rust lines with their numbers, without comments and literals, and whether each is test code.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let whole = self.is_test();
        let lines = self.code.iter().flat_map(Code::lines);
        lines.map(move |(line, text, test)| (line, text, test || whole))
    }
}

/// Whether a character may be part of a Rust identifier.
pub(super) fn in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Whether `needle` occurs in `line`, not as a part of a longer word at the ends where it is one itself.
pub(super) fn mentions(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + needle.len()..]);
        let glued = |inner: Option<char>, outer: Option<char>| {
            inner.is_some_and(in_word) && outer.is_some_and(in_word)
        };
        !glued(needle.chars().next(), before.chars().next_back())
            && !glued(needle.chars().next_back(), after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mention_is_a_whole_word() {
        assert!(mentions("use rand::Rng;", "rand::"));
        assert!(mentions("x(tokio)", "tokio"));
        assert!(mentions("operand, rand::x", "rand::"));
        assert!(!mentions("operand::new()", "rand::"));
        assert!(!mentions("tokio_like", "tokio"));
        assert!(mentions("a.unwrap()", ".unwrap()"));
    }

    #[test]
    fn paths_say_what_a_file_is() {
        let file = |path| File::new(path, "");
        assert!(file("crates/sim/tests/net.rs").is_test());
        assert!(file("crates/sim/src/net/tests.rs").is_test());
        assert!(!file("crates/sim/src/latest.rs").is_test());
        assert_eq!(file("crates/sim/src/lib.rs").owner(), Some("sim"));
        assert_eq!(file("xtask/src/main.rs").owner(), None);
        assert_eq!(file(".ci/run").extension(), "");
        assert!(file(".ci/run").is_prose_or_source());
        assert!(!file("docs/x.svg").is_prose_or_source());
    }
}
