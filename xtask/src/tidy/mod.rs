//! The rules of the house that no compiler knows: how a file opens and how long it is, what a source must not
//! contain, which crate may know which, one name for one thing and one thing for one name. Every check but the last is a
//! function of a file's path and text alone.

mod banned;
mod code;
mod file;
mod glossary;
mod homonyms;
mod house;
mod purity;
mod shape;

use std::fmt;
use std::fs;

use crate::files;
use crate::process::root;
use file::File;

pub(crate) const HELP: &str = "\
Usage: cargo xtask tidy

Checks the rules of the house that no compiler knows, on every file that git tracks or would track.
Each finding says where it is, what is wrong and what to do instead.";

/// What a check has to say about a line.
struct Finding {
    line: usize,
    wrong: String,
    instead: &'static str,
    weight: Weight,
}

#[derive(PartialEq, Eq)]
enum Weight {
    /// The file must change.
    Fault,
    /// Nothing is broken yet.
    Note,
}

impl Finding {
    fn fault(line: usize, wrong: impl Into<String>, instead: &'static str) -> Self {
        let (wrong, weight) = (wrong.into(), Weight::Fault);
        Self {
            line,
            wrong,
            instead,
            weight,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let note = match self.weight {
            Weight::Fault => "",
            Weight::Note => "note: ",
        };
        write!(f, "{}: {note}{}; {}", self.line, self.wrong, self.instead)
    }
}

const CHECKS: &[fn(&File) -> Vec<Finding>] = &[
    shape::header,
    shape::length,
    shape::name,
    banned::code,
    banned::names,
    banned::marks,
    purity::check,
    house::check,
    glossary::check,
];

/// Checks the whole project and prints what it finds.
pub(crate) fn run() -> Result<bool, String> {
    let root = root()?;
    // Pictures and archives are no text; there is nothing in them to read.
    let text = |path: String| Some((fs::read_to_string(root.join(&path)).ok()?, path));
    let texts: Vec<(String, String)> = files::listed()?.into_iter().filter_map(text).collect();
    let files: Vec<File> = texts.iter().map(|(t, path)| File::new(path, t)).collect();
    let mut findings = homonyms::check(&files);
    for file in &files {
        let found = CHECKS.iter().flat_map(|check| check(file));
        findings.extend(found.map(|finding| (file.path, finding)));
    }
    findings.sort_by_key(|(path, finding)| (*path, finding.line));
    let mut faults = 0;
    for (path, finding) in &findings {
        println!("{path}:{finding}");
        faults += usize::from(finding.weight == Weight::Fault);
    }
    println!("tidy: files: {}, faults: {faults}", files.len());
    Ok(faults == 0)
}

/// The lines at which a check finds a fault: what the tests of the checks compare.
#[cfg(test)]
fn faults(check: fn(&File) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
    let findings = check(&File::new(path, text));
    let faults = findings.iter().filter(|f| f.weight == Weight::Fault);
    faults.map(|finding| finding.line).collect()
}
