//! The one test command: every part runs, whatever an earlier part found, and a summary of one screen
//! follows. A new part is one more entry of `PARTS`.

mod count;
mod deny;
mod externals;
mod miri;

use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::MANIFEST;
use crate::process::{cargo, succeeds, tee};
use crate::{format, newcomer, package, tidy};
use count::Count;
pub(crate) use externals::install;

pub(crate) const HELP: &str = "\
Usage: cargo xtask test [--only PART[,PART]...] [--list]

Runs everything that a change must pass, and sums it up.

Options:
  --only PART[,PART]...  Run these parts only
  --list                 Name the parts and what each runs";

/// One thing that must pass.
struct Part {
    name: &'static str,
    about: &'static str,
    run: fn() -> Result<Outcome, String>,
}

/// What a part found. A part that runs tests also counts them.
struct Outcome {
    passed: bool,
    tests: Tests,
}

enum Tests {
    None,
    Counted(Count),
    /// The run ended before its summary: a number here would be a guess.
    Unknown,
}

const PARTS: &[Part] = &[
    Part {
        name: "format",
        about: "rustfmt --check on every Rust file",
        run: || format::check().map(plain),
    },
    Part {
        name: "clippy",
        about: "cargo clippy on all targets and features, warnings denied",
        run: || step("clippy --workspace --all-targets --all-features -- -D warnings"),
    },
    Part {
        name: "externals",
        about: "programs that some tests talk to, installed where they are missing",
        run: || Ok(plain(install(&[]))),
    },
    Part {
        name: "build",
        about: "build the tests, so that their time is shown apart",
        run: || succeeds(runner()?.arg("--no-run")).map(plain),
    },
    Part {
        name: "tests",
        about: "cargo nextest run, or cargo test where nextest is not installed",
        run: || counted(runner()?.arg("--no-fail-fast")),
    },
    Part {
        name: "doc-tests",
        about: "the examples in the documentation",
        run: || counted(cargo("test --workspace --doc --no-fail-fast")?.args(corosync())),
    },
    Part {
        name: "miri",
        about: "the unsafe code of crates/memory under Miri, where a nightly toolchain has it",
        run: miri::check,
    },
    Part {
        name: "newcomer",
        about: "the README and the tutorial, step by step, on the program that the tests have built",
        run: || newcomer::check().map(plain),
    },
    Part {
        name: "package",
        about: "the packages install, verify, start as their user and leave nothing behind, as root",
        run: || package::check().map(plain),
    },
    Part {
        name: "bench",
        about: "clippy and the tests of the package in bench/, a workspace of its own",
        run: measurements,
    },
    Part {
        name: "rustdoc",
        about: "cargo doc, private items too, warnings denied",
        run: || Ok(plain(documents("--bins")? & documents("--lib")?)),
    },
    Part {
        name: "deny",
        about: "licences, sources and advisories of what is linked, where cargo-deny is installed",
        run: || deny::check().map(plain),
    },
    Part {
        name: "tidy",
        about: "the rules of the house that no compiler knows",
        run: || tidy::run().map(plain),
    },
];

/// Reads the arguments of `cargo xtask test` and runs the parts that they select.
pub(crate) fn command(arguments: &[String]) -> Result<bool, String> {
    let mut only: Option<Vec<String>> = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let names = match argument.as_str() {
            "--list" => {
                for Part { name, about, .. } in PARTS {
                    println!("{name:<10} {about}");
                }
                return Ok(true);
            }
            "--only" => arguments.next().ok_or("--only needs the name of a part")?,
            other => other
                .strip_prefix("--only=")
                .ok_or_else(|| format!("unexpected argument `{other}`\n\n{HELP}"))?,
        };
        let names = names.split(',').map(str::to_owned);
        only.get_or_insert_default().extend(names);
    }
    Ok(run(&selected(only.as_deref())?))
}

/// The named parts in the order of `PARTS`, or all.
fn selected(only: Option<&[String]>) -> Result<Vec<&'static Part>, String> {
    let Some(only) = only else {
        return Ok(PARTS.iter().collect());
    };
    let unknown = |name: &&String| !PARTS.iter().any(|part| part.name == name.as_str());
    if let Some(name) = only.iter().find(unknown) {
        let names: Vec<_> = PARTS.iter().map(|part| part.name).collect();
        return Err(format!("no part `{name}`; there are {}", names.join(", ")));
    }
    let wanted = |part: &&Part| only.iter().any(|name| name == part.name);
    Ok(PARTS.iter().filter(wanted).collect())
}

fn run(parts: &[&Part]) -> bool {
    let start = Instant::now();
    let mut results = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let label = format!("[{}/{}] {}", i + 1, parts.len(), part.name);
        println!("\n{label} … {}", part.about);
        let start = Instant::now();
        let outcome = (part.run)().unwrap_or_else(|reason| {
            println!("{reason}");
            Outcome {
                passed: false,
                tests: Tests::Unknown,
            }
        });
        let took = start.elapsed();
        println!("{label}: {} in {}", verdict(outcome.passed), seconds(took));
        results.push((part.name, outcome, took));
    }
    print!("\n{}", summary(&results, start.elapsed()));
    results.iter().all(|(_, outcome, _)| outcome.passed)
}

/// Each part with its verdict and time, the total, the number of tests where it is known, and the verdict.
fn summary(results: &[(&str, Outcome, Duration)], total: Duration) -> String {
    let mut text = String::new();
    for (name, outcome, took) in results {
        let (verdict, took) = (verdict(outcome.passed), seconds(*took));
        text += &format!("{name:<10} {verdict:<6} {took:>9}\n");
    }
    text += &format!("{:<10} {:<6} {:>9}\n", "total", "", seconds(total));

    let (mut sum, mut counted, mut unknown) = (Count::default(), false, false);
    for (_, outcome, _) in results {
        match outcome.tests {
            Tests::None => {}
            Tests::Counted(count) => {
                sum += count;
                counted = true;
            }
            Tests::Unknown => unknown = true,
        }
    }
    if counted && !unknown {
        text += &format!("{} passed, {} failed\n", sum.passed, sum.failed);
    }

    let failed = results.iter().filter(|(_, outcome, _)| !outcome.passed);
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    text += &match failed.is_empty() {
        true => "ok\n".to_owned(),
        false => format!("FAILED: {}\n", failed.join(", ")),
    };
    text
}

fn verdict(passed: bool) -> &'static str {
    if passed { "ok" } else { "FAILED" }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn plain(passed: bool) -> Outcome {
    let tests = Tests::None;
    Outcome { passed, tests }
}

fn step(arguments: &str) -> Result<Outcome, String> {
    succeeds(&mut cargo(arguments)?).map(plain)
}

fn counted(command: &mut Command) -> Result<Outcome, String> {
    let (passed, text) = tee(command)?;
    let tests = match count::read(&text) {
        // A run that failed without a failed test broke off somewhere: its count is not the whole.
        Some(count) if passed == (count.failed == 0) => Tests::Counted(count),
        _ => Tests::Unknown,
    };
    Ok(Outcome { passed, tests })
}

/// Documents one kind of target: the program and the library of one name would be written to one place.
fn documents(kind: &str) -> Result<bool, String> {
    let mut doc = cargo("doc --workspace --no-deps --document-private-items")?;
    succeeds(doc.arg(kind).env("RUSTDOCFLAGS", "-D warnings"))
}

/// What measures is looked at and tested like what is measured.
fn measurements() -> Result<Outcome, String> {
    let manifest = format!("--manifest-path {MANIFEST}");
    let clean = step(&format!("clippy {manifest} --all-targets -- -D warnings"))?;
    let tested = counted(&mut cargo(&format!("test {manifest}"))?)?;
    Ok(Outcome {
        passed: clean.passed && tested.passed,
        tests: tested.tests,
    })
}

/// What runs the tests on this machine.
fn runner() -> Result<Command, String> {
    let nextest = cargo("nextest --version")?
        .output()
        .is_ok_and(|answer| answer.status.success());
    let mut runner = match nextest {
        true => cargo("nextest run --workspace")?,
        false => cargo("test --workspace --lib --bins --tests")?,
    };
    let corosync = corosync();
    if corosync.is_empty() {
        println!("SKIPPED: the tests of pools on Corosync, for want of libcpg-dev and its like");
    }
    runner.args(corosync);
    Ok(runner)
}

/// The one feature with a C library is built where that is here. All tests are built with it then: once, not twice.
fn corosync() -> &'static [&'static str] {
    match externals::is_here("libcpg") {
        true => &["--features", "testigo-command/corosync"],
        false => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(passed: bool, tests: Tests) -> Outcome {
        Outcome { passed, tests }
    }

    fn count(passed: u64, failed: u64) -> Tests {
        Tests::Counted(Count { passed, failed })
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn parts_are_selected_by_name_in_their_own_order() {
        let names = ["tidy".to_owned(), "format".to_owned()];
        let parts = selected(Some(&names)).expect("both parts exist");
        let names: Vec<_> = parts.iter().map(|part| part.name).collect();
        assert_eq!(names, ["format", "tidy"]);
    }

    #[test]
    fn an_unknown_part_is_refused_with_the_known_ones() {
        let error = selected(Some(&["formats".to_owned()])).err();
        let error = error.expect("there is no such part");
        assert!(error.contains("`formats`") && error.contains("clippy"));
    }

    #[test]
    fn the_summary_adds_tests_of_all_parts() {
        let results = [
            ("tests", outcome(true, count(40, 0)), SECOND),
            ("doc-tests", outcome(false, count(2, 1)), SECOND),
            ("tidy", outcome(true, Tests::None), SECOND),
        ];
        let text = summary(&results, 3 * SECOND);
        assert!(text.ends_with("42 passed, 1 failed\nFAILED: doc-tests\n"));
        assert!(text.contains("doc-tests  FAILED     1.0 s\n"));
        assert!(text.contains("total                 3.0 s\n"));
    }

    #[test]
    fn the_summary_gives_no_number_when_one_is_unknown() {
        let results = [
            ("tests", outcome(false, Tests::Unknown), SECOND),
            ("doc-tests", outcome(true, count(2, 0)), SECOND),
        ];
        assert!(!summary(&results, SECOND).contains("passed"));
    }

    #[test]
    fn the_summary_of_parts_without_tests_gives_no_number() {
        let results = [("tidy", outcome(true, Tests::None), SECOND)];
        let text = summary(&results, SECOND);
        assert!(text.ends_with("ok\n") && !text.contains("passed"));
    }
}
