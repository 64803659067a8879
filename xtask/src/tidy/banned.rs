//! What a source must not contain: unfinished work, tests that sleep or do not run, panics without a reason,
//! and names that say nothing.

use super::file::{in_word, mentions};
use super::{File, Finding};

/// A piece of code that has no place somewhere.
struct Ban {
    needle: &'static str,
    scope: Scope,
    wrong: &'static str,
    instead: &'static str,
}

enum Scope {
    Everywhere,
    Tests,
    /// The sources of the house's crates, outside of tests.
    Crates,
    /// The sources of the crates that only compute.
    Pure,
}

/// The crates that leave output to their callers.
const SILENT: [&str; 5] = ["protocol", "memory", "core", "flow", "sim"];

const UNFINISHED: &str = "finish it, or refuse the case with an error";
const SLEEP: &str = "drive virtual time, or wait for the event itself";
const PRINTS: &str = "return what there is to say";

#[rustfmt::skip]
const BANS: &[Ban] = &[
    Ban { needle: "todo!(", scope: Scope::Everywhere, wrong: "unfinished code", instead: UNFINISHED },
    Ban { needle: "unimplemented!(", scope: Scope::Everywhere, wrong: "unfinished code", instead: UNFINISHED },
    Ban { needle: "dbg!(", scope: Scope::Everywhere, wrong: "a leftover of debugging", instead: "remove it" },
    Ban { needle: "#[ignore", scope: Scope::Everywhere, wrong: "a test that does not run", instead: "make it run, or delete it" },
    Ban { needle: "thread::sleep", scope: Scope::Tests, wrong: "a test that sleeps", instead: SLEEP },
    Ban { needle: "time::sleep", scope: Scope::Tests, wrong: "a test that sleeps", instead: SLEEP },
    Ban { needle: ".unwrap()", scope: Scope::Crates, wrong: "a panic without a reason", instead: "handle it, or `expect` with the reason why it cannot happen" },
    Ban { needle: "println!", scope: Scope::Pure, wrong: "output in a pure crate", instead: PRINTS },
    Ban { needle: "eprintln!", scope: Scope::Pure, wrong: "output in a pure crate", instead: PRINTS },
];

/// Calls and attributes.
pub(super) fn code(file: &File) -> Vec<Finding> {
    let source = file.owner().is_some() && file.parts().nth(2) == Some("src");
    let silent = source && file.owner().is_some_and(|name| SILENT.contains(&name));
    let uses = file.code.iter().flat_map(|code| code.uses());
    let uses = uses.map(|(line, path, test)| (line, path, test || file.is_test()));
    let mut findings = Vec::new();
    for (line, text, test) in file.code_lines().chain(uses) {
        for ban in BANS {
            let here = match ban.scope {
                Scope::Everywhere => true,
                Scope::Tests => test,
                Scope::Crates => source && !test,
                Scope::Pure => silent,
            };
            if here && mentions(text, ban.needle) {
                findings.push(Finding::fault(line, ban.wrong, ban.instead));
            }
        }
    }
    // A plain `use` is seen both as a line and as a path.
    findings.sort_by(|a, b| (a.line, &a.wrong).cmp(&(b.line, &b.wrong)));
    findings.dedup_by(|a, b| (a.line, &a.wrong) == (b.line, &b.wrong));
    findings
}

/// Names of functions and types.
pub(super) fn names(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text, _) in file.code_lines() {
        let words: Vec<&str> = text.split(|c| !in_word(c)).collect();
        for pair in words.windows(2) {
            let [kind, name] = [pair[0], pair[1]];
            let names_type = matches!(kind, "struct" | "enum" | "trait" | "type" | "union");
            if kind == "fn" && name.starts_with("get_") {
                let wrong = format!("`{name}` starts with get_");
                findings.push(Finding::fault(line, wrong, "name it for what it returns"));
            } else if names_type && (name.ends_with("Manager") || name.ends_with("Helper")) {
                let wrong = format!("the type name `{name}` says nothing");
                findings.push(Finding::fault(line, wrong, "name it for what it is"));
            }
        }
    }
    findings
}

/// Marks of work left behind, in comments too.
pub(super) fn marks(file: &File) -> Vec<Finding> {
    if !file.is_prose_or_source() {
        return Vec::new();
    }
    let needles = [concat!("FIX", "ME"), concat!("XX", "X")];
    let marked = |(i, line): (usize, &str)| {
        let needle = needles.iter().find(|needle| mentions(line, needle))?;
        let instead = "do it now, or write down what holds today";
        Some(Finding::fault(i + 1, format!("a mark `{needle}`"), instead))
    };
    file.text.lines().enumerate().filter_map(marked).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    const LIB: &str = "crates/sim/src/lib.rs";
    const TEST: &str = "crates/sim/tests/net.rs";

    #[test]
    fn unfinished_code_is_caught() {
        for text in ["todo!()", "unimplemented!(\"x\")", "dbg!(x)"] {
            assert_eq!(
                faults(code, LIB, &format!("\nlet a = {text};")),
                [2],
                "{text}"
            );
            assert_eq!(faults(code, TEST, text), [1], "{text}");
        }
        assert_eq!(
            faults(code, LIB, "// todo!() and \"dbg!(x)\"\nfn todo() {}"),
            []
        );
        assert_eq!(faults(code, LIB, "let a = \"unimplemented!()\";"), []);
    }

    #[test]
    fn a_test_that_does_not_run_is_caught() {
        assert_eq!(
            faults(code, TEST, "#[test]\n#[ignore = \"slow\"]\nfn a() {}"),
            [2]
        );
        assert_eq!(faults(code, TEST, "#[ignore]"), [1]);
        assert_eq!(faults(code, TEST, "#[test]\nfn ignore() {}"), []);
    }

    #[test]
    fn a_test_that_sleeps_is_caught() {
        assert_eq!(faults(code, TEST, "std::thread::sleep(a);"), [1]);
        assert_eq!(faults(code, TEST, "tokio::time::sleep(a).await;"), [1]);
        assert_eq!(faults(code, TEST, "use std::thread::{self, sleep};"), [1]);
        assert_eq!(faults(code, TEST, "use std::thread::sleep;"), [1]);
        let module = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { thread::sleep(c) }\n}";
        assert_eq!(faults(code, "crates/node/src/lib.rs", module), [4]);
        assert_eq!(
            faults(code, "crates/node/src/lib.rs", "thread::sleep(c)"),
            []
        );
        assert_eq!(faults(code, TEST, "network.sleep(node)"), []);
    }

    #[test]
    fn unwrap_is_caught_in_crates_outside_of_tests() {
        assert_eq!(faults(code, LIB, "\na.unwrap();"), [2]);
        assert_eq!(
            faults(code, "apps/boxoffice/src/main.rs", "a.unwrap();"),
            [1]
        );
        assert_eq!(faults(code, LIB, "a.unwrap_or(b).expect(\"c\")"), []);
        assert_eq!(
            faults(code, LIB, "/// a.unwrap()\n#[test]\nfn a() { b.unwrap() }"),
            []
        );
        assert_eq!(faults(code, TEST, "a.unwrap()"), []);
        assert_eq!(
            faults(code, "crates/sim/src/net/tests.rs", "a.unwrap()"),
            []
        );
        assert_eq!(faults(code, "crates/sim/benches/a.rs", "a.unwrap()"), []);
    }

    #[test]
    fn output_is_caught_in_pure_crates() {
        assert_eq!(faults(code, LIB, "println!(\"a\");\neprintln!();"), [1, 2]);
        assert_eq!(faults(code, "crates/command/src/main.rs", "println!()"), []);
        assert_eq!(faults(code, LIB, "writeln!(a, \"println!\")"), []);
    }

    #[test]
    fn two_faults_on_a_line_are_both_found() {
        assert_eq!(faults(code, LIB, "dbg!(a.unwrap());"), [1, 1]);
    }

    #[test]
    fn names_are_caught() {
        for text in [
            "pub fn get_slot(&self) {}",
            "pub(crate) struct SlotManager {",
            "enum Helper {}",
            "trait ParseHelper: Sized {",
            "type LockManager<T> = Vec<T>;",
        ] {
            assert_eq!(faults(names, LIB, &format!("\n{text}")), [2], "{text}");
        }
        for text in [
            "fn get(&self) {}",
            "fn budget_left() {}",
            "a.get_mut(0)",
            "struct Managers;",
            "let a: foreign::Manager = b;",
            "/// fn get_slot",
        ] {
            assert_eq!(faults(names, LIB, text), [], "{text}");
        }
    }

    #[test]
    fn marks_are_caught_in_comments_and_text() {
        let first = format!("ok\n// {}: later", concat!("FIX", "ME"));
        assert_eq!(faults(marks, LIB, &first), [2]);
        let second = concat!("<!-- XX", "X -->");
        assert_eq!(faults(marks, "docs/lab.md", second), [1]);
        assert_eq!(faults(marks, "docs/lab.md", "Fix me in XXXL."), []);
    }
}
