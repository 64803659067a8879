//! Mutation testing: changes the code a little at a time, and says which changes no test notices. The
//! changes are made by cargo-mutants, in a copy of the tree; what was found is kept, so that a run that
//! is stopped goes on where it was.

mod draw;
mod judged;
mod plan;
mod record;
mod tree;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use draw::drawn;
use judged::Judged;
use plan::{Plan, packages, stages};
use record::{Outcome, Record};

use crate::process::{cargo, root, unstarted};

pub(crate) use plan::HELP;

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let plan = Plan::parse(arguments)?;
    let workshop = Workshop::new()?;
    installed()?;
    tree::copy(&root()?, &workshop.tree)?;
    let all = workshop.list(&plan)?;
    let chosen = drawn(all.clone(), plan.seed, plan.sample);
    println!(
        "{} of {} mutants drawn with seed {}",
        chosen.len(),
        all.len(),
        plan.seed
    );
    let mut record = Record::open(&workshop.folder.join("outcomes"))?;
    let judged = Judged::read(&root()?.join("docs/bugs.md"))?;
    let mut survivors = Vec::new();
    let mut counts = [0; Outcome::ALL.len()];
    for (done, name) in chosen.iter().enumerate() {
        let mutant = Mutant::parse(name, &workshop.tree)?;
        let known = record.of(&mutant).filter(|outcome| !plan.retries(*outcome));
        let outcome = match known {
            Some(outcome) => outcome,
            None => {
                println!("{} of {}: {name}", done + 1, chosen.len());
                let outcome = workshop.test(&mutant)?;
                println!("  {}", outcome.word());
                record.add(&mutant, outcome)?;
                outcome
            }
        };
        counts[outcome as usize] += 1;
        if outcome == Outcome::Missed && !judged.covers(&mutant) {
            survivors.push(mutant);
        }
    }
    for (outcome, count) in Outcome::ALL.iter().zip(counts) {
        println!("{count:>6} {}", outcome.word());
    }
    println!(
        "{:>6} of the missed are not judged in docs/bugs.md",
        survivors.len()
    );
    for survivor in &survivors {
        println!("{}", survivor.row());
    }
    Ok(survivors.is_empty())
}

/// One change, as cargo-mutants names it: `FILE:LINE:COLUMN: WHAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    file: String,
    /// What is changed, without the place.
    what: String,
    /// The line of code that is changed.
    code: String,
    /// A hash of the whole file: an outcome counts only while it is the same.
    hash: u64,
}

impl Mutant {
    fn parse(name: &str, tree: &Path) -> Result<Mutant, String> {
        let odd = || format!("cargo-mutants named a mutant in an unknown way: `{name}`");
        let (place, what) = name.split_once(": ").ok_or_else(odd)?;
        let mut parts = place.split(':');
        let file = parts.next().ok_or_else(odd)?;
        let line: usize = parts.next().and_then(|n| n.parse().ok()).ok_or_else(odd)?;
        let text = std::fs::read_to_string(tree.join(file))
            .map_err(|e| format!("cannot read {file} in the copy: {e}"))?;
        Ok(Mutant {
            name: name.to_owned(),
            file: file.to_owned(),
            what: what.to_owned(),
            code: text.lines().nth(line - 1).unwrap_or("").trim().to_owned(),
            hash: draw::hash(0, &text),
        })
    }

    /// As it is written where survivors are judged.
    fn row(&self) -> String {
        let Mutant {
            file, what, code, ..
        } = self;
        format!("- `{file}`: `{what}` in `{code}`: ")
    }
}

/// Where everything is kept, in the build folder.
struct Workshop {
    folder: PathBuf,
    tree: PathBuf,
}

impl Workshop {
    fn new() -> Result<Workshop, String> {
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(target) => root()?.join(target),
            None => root()?.join("target"),
        };
        let folder = target.join("mutants");
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let tree = folder.join("tree");
        Ok(Workshop { folder, tree })
    }

    /// Every mutant of the chosen folders.
    fn list(&self, plan: &Plan) -> Result<Vec<String>, String> {
        let mut command = cargo("mutants --list --colors never")?;
        command.current_dir(&self.tree);
        for package in packages(&plan.folders)? {
            command.args(["--package", package]);
        }
        for folder in &plan.folders {
            command.args(["--file", &format!("{folder}/**")]);
        }
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.map_err(|e| unstarted(&command, &e))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names: Vec<String> = text.lines().map(str::to_owned).collect();
        match (output.status.success(), names.is_empty()) {
            (true, false) => Ok(names),
            (true, true) => Err("there is nothing to change there".to_owned()),
            (false, _) => Err("cargo-mutants could not list the mutants".to_owned()),
        }
    }

    /// Runs the tests that would notice a mutant, the quickest first.
    fn test(&self, mutant: &Mutant) -> Result<Outcome, String> {
        for stage in stages(&mutant.file) {
            let outcome = self.test_with(mutant, stage)?;
            if outcome != Outcome::Missed {
                return Ok(outcome);
            }
        }
        Ok(Outcome::Missed)
    }

    fn test_with(&self, mutant: &Mutant, stage: &plan::Stage) -> Result<Outcome, String> {
        let mut command = cargo("mutants --in-place --baseline skip --colors never --no-times")?;
        command
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .args(["--timeout", &plan::TIMEOUT_S.to_string()])
            .args(["--test-tool", "nextest", "--profile", "mutants"])
            .args(["--file", &mutant.file, "--test-package", stage.package])
            .args(["--re", &format!("^{}$", escaped(&mutant.name))])
            .arg("--output")
            .arg(&self.folder);
        for package in packages(std::slice::from_ref(&mutant.file))? {
            command.args(["--package", package]);
        }
        for argument in stage.arguments {
            command.arg(format!("--cargo-arg={argument}"));
        }
        let output = command.output().map_err(|e| unstarted(&command, &e))?;
        let found = Outcome::read(&self.folder.join("mutants.out"), &mutant.name);
        found.ok_or_else(|| {
            let [out, err] = [&output.stdout, &output.stderr].map(|b| String::from_utf8_lossy(b));
            format!("cargo-mutants did not test `{}`:\n{out}{err}", mutant.name)
        })
    }
}

fn installed() -> Result<(), String> {
    let mut command = cargo("mutants --version")?;
    let found = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => Ok(()),
        _ => Err("cargo-mutants is not installed: cargo install cargo-mutants --locked".to_owned()),
    }
}

/// A text as a regular expression that matches only it.
fn escaped(text: &str) -> String {
    let mut all = String::with_capacity(2 * text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            all.push('\\');
        }
        all.push(c);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_matches_only_itself() {
        let name = "src/a.rs:1:2: replace f -> Option<(u8, [u8; 2])> with None";
        let expected = r"src/a\.rs:1:2: replace f \-> Option<\(u8, \[u8; 2\]\)> with None";
        assert_eq!(escaped(name), expected);
    }

    #[test]
    fn a_mutant_knows_its_line() {
        let tree = std::env::temp_dir().join(format!("testigo-mutant-{}", std::process::id()));
        std::fs::create_dir_all(&tree).expect("a folder");
        std::fs::write(tree.join("a.rs"), "fn f() {\n    a > b\n}\n").expect("written");
        let mutant = Mutant::parse("a.rs:2:7: replace > with >= in f", &tree).expect("read");
        std::fs::remove_dir_all(&tree).expect("removed");
        assert_eq!(
            mutant.row(),
            "- `a.rs`: `replace > with >= in f` in `a > b`: "
        );
        assert!(Mutant::parse("odd", &tree).is_err());
    }
}
