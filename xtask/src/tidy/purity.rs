//! The pure crates do no I/O, read no clock, draw no random number and start no task: time, randomness and
//! identity are arguments. That lets one state machine be checked, simulated and run on sockets.

use super::file::mentions;
use super::{File, Finding};

pub(super) const PURE: [&str; 4] = ["protocol", "memory", "core", "flow"];

const IMPURE: [&str; 10] = [
    "time::Instant",
    "SystemTime",
    "std::thread",
    "std::net",
    "std::fs",
    "std::io",
    "std::env",
    "std::process",
    "tokio",
    "rand::",
];

/// Locks for threads park threads; the algorithms beside them know of none.
const PARKS: (&str, &str) = ("crates/memory/src/locks/", "std::thread");

/// What a pure crate reaches for, by its code; its tests may read files and print.
pub(super) fn check(file: &File) -> Vec<Finding> {
    if !file.owner().is_some_and(|name| PURE.contains(&name)) || file.is_test() {
        return Vec::new();
    }
    let uses = file.code.iter().flat_map(|code| code.uses());
    let mut findings = Vec::new();
    for (line, text, test) in file.code_lines().chain(uses) {
        let parks = |needle: &&&str| file.path.starts_with(PARKS.0) && **needle == PARKS.1;
        let mut impure = IMPURE.iter().filter(|needle| !parks(needle));
        let found = impure.find(|needle| mentions(text, needle));
        if let (Some(needle), false) = (found, test) {
            let wrong = format!("`{needle}` in a pure crate");
            findings.push(Finding::fault(
                line,
                wrong,
                "take time, randomness and input as arguments",
            ));
        }
    }
    findings.sort_by_key(|finding| finding.line);
    findings.dedup_by_key(|finding| finding.line);
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::faults;

    const PROTOCOL: &str = "crates/protocol/src/mutex/raymond.rs";

    #[test]
    fn clocks_input_and_chance_are_caught() {
        for text in [
            "let a = std::time::Instant::now();",
            "use std::time::{Duration, Instant};",
            "fn f(a: SystemTime) {}",
            "use std::{fmt, thread};",
            "use std::net::TcpStream;",
            "std::fs::read(a)",
            "use std::{\n    io,\n};",
            "let a = tokio::spawn(b);",
            "rand::rng()",
            "std::env::var(a)",
        ] {
            assert_eq!(faults(check, PROTOCOL, text).len(), 1, "{text}");
        }
        assert_eq!(
            faults(check, PROTOCOL, "\nuse std::{\n  fmt,\n  io,\n};"),
            [4]
        );
    }

    #[test]
    fn pure_code_passes() {
        for text in [
            "use std::time::Duration;",
            "use std::{collections::BTreeMap, fmt};",
            "let a = operand::b;",
            "//! Needs no tokio and no std::thread.",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}",
            "struct Instant(u64);",
        ] {
            assert_eq!(faults(check, PROTOCOL, text), [], "{text}");
        }
    }

    #[test]
    fn only_pure_crates_are_held_to_it() {
        let text = "use std::{fs, net};";
        assert_eq!(faults(check, "crates/flow/src/lib.rs", text), [1]);
        assert_eq!(faults(check, "crates/node/src/lib.rs", text), []);
        assert_eq!(faults(check, "crates/core/tests/transcripts.rs", text), []);
        assert_eq!(faults(check, "xtask/src/main.rs", text), []);
    }
}
