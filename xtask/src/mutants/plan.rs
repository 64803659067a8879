//! What is asked for: how many mutants, where, and which tests would notice them.

pub(crate) const HELP: &str = "\
Usage: cargo xtask mutants [--sample N] [--seed S] [--in FOLDER]... [--retry]

Changes the code of the crates protocol, core and engine, one small change at a time, and runs the tests
that would notice. All changes would take a day, so a sample is drawn. Outcomes are kept in the build folder:
a run that is stopped goes on where it was, and a change is tested anew only when its file has changed.

Options:
  --sample N   How many mutants are drawn (40)
  --seed S     Another seed draws others (1)
  --in FOLDER  Draw only from this folder or file, such as crates/core/src/local; may be repeated
  --retry      Test survivors and timeouts again: after a new test

Survivors are judged in docs/bugs.md; those that are not are printed as rows to judge there.

Exit code: 0 every survivor is judged, 1 one is not, 2 bad input. It needs cargo-nextest and cargo-mutants:
cargo install cargo-mutants --locked. For example:

  cargo xtask mutants --sample 60 --in crates/core/src/local";

/// A mutant that makes a loop endless is stopped after so many seconds of testing.
pub(super) const TIMEOUT_S: u32 = 120;

const SAMPLE_DEFAULT: usize = 40;
const SEED_DEFAULT: u64 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) sample: usize,
    pub(super) seed: u64,
    /// Empty for everywhere.
    pub(super) folders: Vec<String>,
    retry: bool,
}

impl Plan {
    pub(super) fn parse(arguments: &[String]) -> Result<Plan, String> {
        let mut plan = Plan {
            sample: SAMPLE_DEFAULT,
            seed: SEED_DEFAULT,
            folders: Vec::new(),
            retry: false,
        };
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            if option == "--retry" {
                plan.retry = true;
                continue;
            }
            if !["--sample", "--seed", "--in"].contains(&option.as_str()) {
                return Err(format!("unexpected argument `{option}`\n\n{HELP}"));
            }
            let value = rest.next().ok_or(format!("{option} needs a value"))?;
            let number = || format!("{option} needs a number, not `{value}`");
            match option.as_str() {
                "--sample" => {
                    let sample = value.parse().ok().filter(|sample| *sample > 0);
                    plan.sample = sample.ok_or_else(number)?;
                }
                "--seed" => plan.seed = value.parse().map_err(|_| number())?,
                _ => plan.folders.push(value.trim_end_matches('/').to_owned()),
            }
        }
        packages(&plan.folders)?;
        Ok(plan)
    }

    /// Whether a mutant with this outcome is tested again.
    pub(super) fn retries(&self, outcome: super::Outcome) -> bool {
        self.retry && matches!(outcome, super::Outcome::Missed | super::Outcome::TimedOut)
    }
}

/// A crate whose code is changed.
struct Crate {
    folder: &'static str,
    package: &'static str,
}

const CRATES: [Crate; 3] = [
    Crate {
        folder: "crates/protocol",
        package: "testigo-protocol",
    },
    Crate {
        folder: "crates/core",
        package: "testigo-core",
    },
    Crate {
        folder: "crates/engine",
        package: "testigo-engine",
    },
];

/// The packages that the folders lie in; all of them without folders.
pub(super) fn packages(folders: &[String]) -> Result<Vec<&'static str>, String> {
    if folders.is_empty() {
        return Ok(CRATES.iter().map(|one| one.package).collect());
    }
    let mut packages = Vec::new();
    for folder in folders {
        let one = CRATES.iter().find(|one| is_in(folder, one.folder));
        let one = one.ok_or_else(|| {
            let known = CRATES.map(|one| one.folder).join(", ");
            format!("`{folder}` is in none of {known}")
        })?;
        if !packages.contains(&one.package) {
            packages.push(one.package);
        }
    }
    Ok(packages)
}

fn is_in(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Tests of one package.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) package: &'static str,
    /// Which of its tests; all without.
    pub(super) arguments: &'static [&'static str],
}

impl Stage {
    const fn all(package: &'static str) -> Stage {
        Stage {
            package,
            arguments: &[],
        }
    }

    const fn only(package: &'static str, arguments: &'static [&'static str]) -> Stage {
        Stage { package, arguments }
    }
}

/// For the code below a path, the tests that would notice a change, quick ones first. The first path that
/// fits counts.
const STAGES: &[(&str, &[Stage])] = &[
    (
        "crates/protocol/src/readers",
        &[
            Stage::all("testigo-protocol"),
            Stage::only("testigo-lab", &["--test=box_office", "--test=checks"]),
        ],
    ),
    (
        "crates/protocol/src/rooms",
        &[
            Stage::all("testigo-protocol"),
            Stage::only("testigo-lab", &["--test=rooms", "--test=checks"]),
        ],
    ),
    (
        "crates/protocol",
        &[Stage::all("testigo-protocol"), Stage::all("testigo-lab")],
    ),
    (
        "crates/core",
        &[
            Stage::all("testigo-core"),
            Stage::only("testigo-node", &["--test=transcripts"]),
        ],
    ),
    ("crates/engine", &[Stage::all("testigo-engine")]),
];

pub(super) fn stages(file: &str) -> &'static [Stage] {
    let found = STAGES.iter().find(|(folder, _)| is_in(file, folder));
    found.map_or(&[], |(_, stages)| stages)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Plan, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Plan::parse(&words)
    }

    #[test]
    fn options_are_read() {
        let plan = parse("--sample 60 --seed 7 --in crates/core/src/local/ --retry");
        let expected = Plan {
            sample: 60,
            seed: 7,
            folders: vec!["crates/core/src/local".into()],
            retry: true,
        };
        assert_eq!(plan, Ok(expected));
        for (line, why) in [
            ("--sample 0", "needs a number, not `0`"),
            ("--sample", "--sample needs a value"),
            ("--seed x", "not `x`"),
            ("--in crates/corelike", "in none of crates/protocol"),
            ("60", "unexpected argument `60`"),
        ] {
            let error = parse(line).expect_err(line);
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn every_crate_has_tests() {
        for one in &CRATES {
            let own = stages(&format!("{}/src/lib.rs", one.folder));
            assert_eq!(own[0].package, one.package);
        }
        let readers = stages("crates/protocol/src/readers/user.rs");
        assert_eq!(readers[1].arguments[0], "--test=box_office");
    }
}
