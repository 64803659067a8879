//! What became of each mutant, in a file that is written after each: a run that is stopped goes on.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use super::Mutant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// Every test passed.
    Missed,
    /// The tests did not end in time.
    TimedOut,
    /// It does not compile.
    Unviable,
}

impl Outcome {
    pub(super) const ALL: [Outcome; 4] = [
        Outcome::Caught,
        Outcome::Missed,
        Outcome::TimedOut,
        Outcome::Unviable,
    ];

    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::Missed => "missed",
            Outcome::TimedOut => "timed out",
            Outcome::Unviable => "unviable",
        }
    }

    /// What cargo-mutants says in its output folder, if it tested this mutant.
    pub(super) fn read(folder: &Path, name: &str) -> Option<Outcome> {
        let files = ["caught.txt", "missed.txt", "timeout.txt", "unviable.txt"];
        let names_it = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            text.lines().any(|line| line == name)
        };
        let at = files.iter().position(|file| names_it(file))?;
        Some(Outcome::ALL[at])
    }
}

/// The outcomes so far.
pub(super) struct Record {
    known: HashMap<(u64, String), Outcome>,
    file: File,
}

impl Record {
    pub(super) fn open(path: &Path) -> Result<Record, String> {
        let wrong = |e| format!("cannot keep outcomes in {}: {e}", path.display());
        let text = fs::read_to_string(path).unwrap_or_default();
        // A line that was cut off by the end of a run is no outcome.
        let known = text.lines().filter_map(parse).collect();
        let file = OpenOptions::new().create(true).append(true).open(path);
        let mut file = file.map_err(wrong)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n").map_err(wrong)?;
        }
        Ok(Record { known, file })
    }

    pub(super) fn of(&self, mutant: &Mutant) -> Option<Outcome> {
        self.known.get(&(mutant.hash, mutant.name.clone())).copied()
    }

    pub(super) fn add(&mut self, mutant: &Mutant, outcome: Outcome) -> Result<(), String> {
        let Mutant { hash, name, .. } = mutant;
        let line = format!("{}\t{hash:016x}\t{name}\n", outcome.word());
        let written = self.file.write_all(line.as_bytes());
        written.map_err(|e| format!("cannot keep an outcome: {e}"))?;
        self.known.insert((*hash, name.clone()), outcome);
        Ok(())
    }
}

fn parse(line: &str) -> Option<((u64, String), Outcome)> {
    let mut fields = line.splitn(3, '\t');
    let word = fields.next()?;
    let outcome = Outcome::ALL.into_iter().find(|one| one.word() == word)?;
    let hash = fields.next().filter(|hash| hash.len() == 16)?;
    let hash = u64::from_str_radix(hash, 16).ok()?;
    Some(((hash, fields.next()?.to_owned()), outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_kept_and_a_changed_file_has_none() {
        let path = std::env::temp_dir().join(format!("testigo-outcomes-{}", std::process::id()));
        let mutant = Mutant {
            name: "a.rs:1:1: replace f with ()".into(),
            file: "a.rs".into(),
            what: "replace f with ()".into(),
            code: "f()".into(),
            hash: 7,
        };
        fs::write(&path, "missed\t0000").expect("a cut line");
        let mut record = Record::open(&path).expect("opened");
        assert_eq!(record.of(&mutant), None);
        record.add(&mutant, Outcome::Caught).expect("kept");
        let record = Record::open(&path).expect("opened again");
        fs::remove_file(&path).expect("removed");
        assert_eq!(record.of(&mutant), Some(Outcome::Caught));
        let changed = Mutant { hash: 8, ..mutant };
        assert_eq!(record.of(&changed), None);
    }
}
