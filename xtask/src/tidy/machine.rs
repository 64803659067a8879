//! Words that belong to the place where the work was done and not to the product: folders of one machine, hosts
//! of package registries, names of writing tools, numbers of a tracker. They are spelled in pieces here, so
//! that this file passes its own check.

use super::file::in_word;
use super::{File, Finding};

const FOLDERS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tm", "p/"),
];

const HOST: &str = concat!("crates", ".io");

const TOOLS: [&str; 8] = [
    concat!("cla", "ude"),
    concat!("gp", "t"),
    concat!("chat", "gp", "t"),
    concat!("ll", "m"),
    concat!("co", "pilot"),
    concat!("open", "ai"),
    concat!("anth", "ropic"),
    concat!("helper ", "agent"),
];

/// Every text that people read.
pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.is_prose_or_source() {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let line = line.to_lowercase();
        let mut fault = |wrong, instead| findings.push(Finding::fault(i + 1, wrong, instead));
        if let Some(folder) = FOLDERS.iter().find(|folder| is_path(&line, folder)) {
            let wrong = format!("the path `{folder}` of one machine");
            fault(
                wrong,
                "use a path below the project or the user's own folder",
            );
        }
        if line.contains(HOST) {
            fault(format!("the host `{HOST}`"), "name the crate only");
        }
        if let Some(tool) = TOOLS.iter().find(|tool| is_named(&line, tool)) {
            let wrong = format!("`{tool}` is no part of the product");
            fault(wrong, "speak of the product only");
        }
        if numbers_an_issue(&line) {
            let wrong = "a reference to an issue by number".to_owned();
            fault(wrong, "say what it is about");
        }
    }
    findings
}

/// An absolute path into the folder: nothing of a longer path before it, a name after it.
fn is_path(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        let longer = before.is_some_and(|c| in_word(c) || ['-', '.', '~', '}'].contains(&c));
        !longer && after.is_some_and(char::is_alphabetic)
    })
}

/// The name as a whole word, one or many.
fn is_named(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = &line[at + name.len()..];
        let after = after.strip_prefix('s').unwrap_or(after).chars().next();
        !before.is_some_and(in_word) && !after.is_some_and(in_word)
    })
}

fn numbers_an_issue(line: &str) -> bool {
    line.match_indices("issue").any(|(at, word)| {
        let rest = &line[at + word.len()..];
        let rest = rest.strip_prefix('s').unwrap_or(rest).trim_start();
        let number = rest.strip_prefix('#').unwrap_or_default();
        number.starts_with(|c: char| c.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    #[test]
    fn words_of_the_workshop_are_caught() {
        for line in [
            concat!("see /wo", "rk/main"),
            concat!("`/ro", "ot/x`"),
            concat!("--data=/tm", "p/node1"),
            concat!("https://crates", ".io/crates/serde"),
            concat!("written with Cla", "ude"),
            concat!("GP", "T-5"),
            concat!("two LL", "Ms"),
            concat!("Helper ", "agents"),
            concat!("fixes issue ", "#12"),
            concat!("Issues ", "#7 and #8"),
        ] {
            for path in [
                "docs/lab.md",
                "crates/sim/src/lib.rs",
                "Cargo.toml",
                ".ci/run",
            ] {
                assert_eq!(faults(check, path, &format!("\n{line}")), [2], "{line}");
            }
        }
    }

    #[test]
    fn ordinary_words_pass() {
        for line in [
            "the folder frame/work/x and net/root/y",
            "~/work/x, ${HOME}/work/x",
            "mktemp -d /tmp",
            "an agent of the user, a helper",
            "the issue is #2 of the list",
            "color: #123456; a tissue",
            "realm, script, gptx, Claudette",
            "crates/io.rs",
        ] {
            assert_eq!(faults(check, "docs/lab.md", line), [], "{line}");
        }
        let elsewhere = concat!("/tm", "p/x");
        assert_eq!(faults(check, "Cargo.lock", elsewhere), []);
    }
}
