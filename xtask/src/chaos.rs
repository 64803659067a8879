//! The tests that break things on purpose, for as long as their bars ask and not only as long as a test may take. Each is
//! a test of the product, optimised, with its number of rounds in a variable.

use crate::process::{cargo, succeeds};
use crate::test::install;

pub(crate) const HELP: &str = "\
Usage: cargo xtask chaos NAME [--rounds N]

Names:
  gates    Kill a node under load, again and again: no two holders, no fence repeated or lowered (1000 kills)
  jobs     Kill node and workers under load, again and again: every acknowledged job is there once (1000 kills)
  every    Race 20 `testigo lock --every` with clocks set apart, killing some: no period runs twice (200 periods)
  engines  The engine itself in virtual time, 3 and 5 of them, with faults of links and disks (20000 seeds)
  estates  Owners and homes of a cluster in virtual time, 3 and 5 nodes, with crashes, pauses and cuts (20000 seeds)
  parsers  Random and mutated input for the parsers of RESP, HTTP and flows: no panic (10000000 inputs each)

Options:
  --rounds N  Other than the number in parentheses

Exit code: 0 all held, 1 something broke, 2 bad input. For example:

  cargo xtask chaos gates --rounds 100";

struct Chaos {
    name: &'static str,
    rounds: u64,
    /// Arguments of `cargo test`, one run each.
    tests: &'static [&'static str],
}

const CHAOS: &[Chaos] = &[
    Chaos {
        name: "gates",
        rounds: 1_000,
        tests: &["--package testigo-command --test kill -- no_kill_ever_makes_two_holders"],
    },
    Chaos {
        name: "jobs",
        rounds: 1_000,
        tests: &["--package testigo-command --test jobs -- no_kill_ever_loses_or_doubles_a_job"],
    },
    Chaos {
        name: "every",
        rounds: 200,
        tests: &[
            "--package testigo-command --test service -- racing_clocks_never_run_a_period_twice",
        ],
    },
    Chaos {
        name: "engines",
        rounds: 20_000,
        tests: &[
            "--package testigo-engine --test simulated -- no_fault_loses_doubles_or_reorders_anything",
            "--package testigo-engine --lib -- no_lie_ends_an_engine",
        ],
    },
    Chaos {
        name: "estates",
        rounds: 20_000,
        tests: &[
            "--package testigo-core --test estate -- nobody_is_inside_with_somebody_else_whatever_fails",
        ],
    },
    Chaos {
        name: "parsers",
        rounds: 10_000_000,
        tests: &[
            "--package testigo-node --lib -- random_and_mutated_input_is_read_as_the_codec_reads_it",
            "--package testigo-node --lib -- no_input_panics_or_takes_much",
            "--package testigo-flow --test fuzz -- the_reader_withstands_hostile_texts",
        ],
    },
];

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (chaos, rounds) = parse(arguments)?;
    if chaos.name == "every" {
        install(&["faketime"]);
    }
    let mut held = true;
    for test in chaos.tests {
        println!("{} with {rounds} rounds", chaos.name);
        let mut command = cargo(&format!("test --release {test} --nocapture"))?;
        held &= succeeds(command.env("TESTIGO_ROUNDS", rounds.to_string()))?;
    }
    Ok(held)
}

fn parse(arguments: &[String]) -> Result<(&'static Chaos, u64), String> {
    let (name, rest) = arguments.split_first().ok_or(HELP)?;
    let chaos = CHAOS.iter().find(|chaos| chaos.name == name);
    let chaos = chaos.ok_or_else(|| format!("no chaos `{name}`\n\n{HELP}"))?;
    let rounds = match rest {
        [] => chaos.rounds,
        [option, number] if option == "--rounds" => number
            .parse()
            .ok()
            .filter(|rounds| *rounds > 0)
            .ok_or_else(|| format!("--rounds needs a number above 0, not `{number}`"))?,
        [other, ..] => return Err(format!("unexpected argument `{other}`\n\n{HELP}")),
    };
    Ok((chaos, rounds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(&'static str, u64), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|(chaos, rounds)| (chaos.name, rounds))
    }

    #[test]
    fn names_and_rounds_are_read() {
        assert_eq!(read("gates"), Ok(("gates", 1_000)));
        assert_eq!(read("every --rounds 7"), Ok(("every", 7)));
        assert_eq!(read("jobs"), Ok(("jobs", 1_000)));
        assert_eq!(read("engines"), Ok(("engines", 20_000)));
        for (line, why) in [
            ("", "Usage"),
            ("gate", "no chaos `gate`"),
            ("gates --rounds 0", "above 0"),
            ("gates --rounds many", "`many`"),
            ("gates --round 5", "unexpected argument `--round`"),
        ] {
            assert!(read(line).is_err_and(|found| found.contains(why)), "{line}");
        }
    }
}
