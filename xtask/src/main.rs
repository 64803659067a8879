//! Everything that a contributor runs, as `cargo xtask COMMAND`. It uses the standard library only, so it
//! is built in seconds on a fresh machine. This file reads the arguments; one module carries out each command.

mod bench;
mod chaos;
mod files;
mod format;
mod mutants;
mod newcomer;
mod package;
mod process;
mod test;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test     Everything that a change must pass
  fmt      Format every Rust file, those that cargo fmt does not see too
  tidy     Check the rules of the house that no compiler knows
  bench    Measure
  chaos    Kill, race and feed with rubbish, for long
  mutants  Change the code and see which changes no test notices
  newcomer Do what the README and the tutorial say, in a fresh clone
  package  Make the Debian package and the archive

`cargo xtask COMMAND --help` says more.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = arguments.split_first() else {
        eprintln!("{HELP}");
        return ExitCode::from(2);
    };
    let outcome = match command.as_str() {
        "test" => run(rest, test::HELP, || test::command(rest)),
        "fmt" => run(rest, format::HELP, || {
            no_arguments(rest).and_then(|()| format::write())
        }),
        "tidy" => run(rest, tidy::HELP, || {
            no_arguments(rest).and_then(|()| tidy::run())
        }),
        "bench" => run(rest, bench::BENCH_HELP, || bench::bench(rest)),
        "chaos" => run(rest, chaos::HELP, || chaos::run(rest)),
        "mutants" => run(rest, mutants::HELP, || mutants::run(rest)),
        "newcomer" => run(rest, newcomer::HELP, || newcomer::command(rest)),
        "package" => run(rest, package::HELP, || package::command(rest)),
        "--help" | "-h" | "help" => {
            println!("{HELP}");
            Ok(true)
        }
        other => Err(format!("no command `{other}`\n\n{HELP}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::from(2)
        }
    }
}

/// Answers a leading `--help`, or runs the command. `Ok(false)` is a check that failed, `Err` a command
/// that could not be carried out.
fn run(
    arguments: &[String],
    help: &str,
    command: impl FnOnce() -> Result<bool, String>,
) -> Result<bool, String> {
    if arguments
        .first()
        .is_some_and(|first| first == "--help" || first == "-h")
    {
        println!("{help}");
        return Ok(true);
    }
    command()
}

fn no_arguments(arguments: &[String]) -> Result<(), String> {
    match arguments.first() {
        None => Ok(()),
        Some(extra) => Err(format!("unexpected argument `{extra}`")),
    }
}
