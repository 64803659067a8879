//! The tests that break things on purpose, for as long as their bars ask and not only as long as a test may take. Each is
//! a test of the product, optimised, with its number of rounds in a variable.

use crate::process::{cargo, succeeds};
use crate::test::install;

pub(crate) const HELP: &str = "\
Usage: cargo xtask chaos NAME [--rounds N] [--seed S] [--nodes 3|5] [--using] [--broken RULE] [--engine E]

Names:
  gates    Kill a node under load, again and again: no two holders, no fence repeated or lowered (1000 kills)
  jobs     Kill node and workers under load, again and again: every acknowledged job is there once (1000 kills)
  every    Race 20 `testigo lock --every` with clocks set apart, killing some: no period runs twice (200 periods)
  engines  The engine itself in virtual time, 3 and 5 of them, with faults of links and disks (20000 seeds)
  estates  Owners and homes of a cluster in virtual time, 3 and 5 nodes, with crashes, pauses and cuts (20000 seeds)
  simulated  Whole nodes of a cluster in virtual time, with clients that speak the protocol: crashes, pauses, cuts and disk
           faults (20000 seeds of 5 nodes)
  cluster  Real nodes in network namespaces: kills, pauses, cuts, loss, delay, full disks, clock jumps, restarts; needs
           root, iproute2 and nftables (500 faults)
  pools    Real nodes that share pools, in network namespaces: cuts, kills and stops of nodes and daemons while clients take and
           give slots everywhere; needs root, iproute2, nftables, corosync and libcpg-dev (100 rounds)
  slots    Groups that share slots in virtual time, 8 members and fewer, strict and directed, with every kind of fault (20000
           seeds each)
  parsers  Random and mutated input for the parsers of RESP, HTTP and flows: no panic (10000000 inputs each)

Options:
  --rounds N  Other than the number in parentheses; also spelled --seeds
  --seed S    Of `cluster`: which faults; a seed that failed plays the same ones again. Of `simulated` and `slots`: the first one.
              Of `pools`: which faults
  --nodes N   Of `cluster`: 3 (as it is without) or 5; of `simulated`: 5 (as it is without) or 3
  --using     Of `cluster`, `estates` and `simulated`: gates whose ownership travels by the laboratory's algorithms, all of
              them contended
  --engine E  Of `pools`: what shares them, corosync (as it is without)
  --broken R  Of `cluster`: all nodes leave a rule out, by its name in `estate::Broken`, and that must be noticed

Exit code: 0 all held, 1 something broke, 2 bad input. For example:

  cargo xtask chaos gates --rounds 100
  cargo xtask chaos cluster --nodes 5 --seed 7
  cargo xtask chaos cluster --using --rounds 50
  cargo xtask chaos pools --engine corosync --seed 7";

struct Chaos {
    name: &'static str,
    rounds: u64,
    /// Arguments of `cargo test`, one run each.
    tests: &'static [&'static str],
}

/// Instead, if a rule is left out. No release can do that.
const BROKEN: &str =
    "test --package testigo-command --test cluster -- a_rule_that_is_left_out_is_noticed";

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
        name: "simulated",
        rounds: 20_000,
        tests: &[
            "--package testigo-node --lib -- house::simulated::no_two_clients_are_inside_whatever_fails",
        ],
    },
    Chaos {
        name: "cluster",
        rounds: 500,
        tests: &[
            "--package testigo-command --test cluster -- no_fault_makes_two_holders_or_loses_anything",
        ],
    },
    Chaos {
        name: "pools",
        rounds: 100,
        tests: &[],
    },
    Chaos {
        name: "slots",
        rounds: 20_000,
        tests: &["--package testigo-lab --test slots -- whatever_interrupts_them"],
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

/// The tests of pools, by what shares them; the first one runs where none is named.
const ENGINES: &[(&str, &str)] = &[(
    "corosync",
    "--package testigo-command --features corosync --test corosync -- no_slot_is_in_use_twice",
)];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    rounds: u64,
    seed: Option<u64>,
    nodes: Option<u64>,
    using: bool,
    broken: Option<String>,
    /// The test of the engine that shares pools.
    engine: Option<&'static str>,
}

/// The tests of the same with gates whose ownership travels by algorithms.
const USING: &[(&str, &str)] = &[
    (
        "estates",
        "--package testigo-core --test estate -- nobody_is_inside_with_somebody_else_whichever_algorithm",
    ),
    (
        "simulated",
        "--package testigo-node --lib -- house::simulated::no_two_clients_are_inside_whichever_algorithm",
    ),
];

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let (chaos, options) = parse(arguments)?;
    match chaos.name {
        "every" => install(&["faketime"]),
        "cluster" => install(&["ip", "nft"]),
        "pools" => install(&["ip", "nft", "corosync", "libcpg"]),
        _ => true,
    };
    let mut held = true;
    for test in chaos.tests.iter().chain(&options.engine) {
        let rounds = options.rounds;
        println!("{} with {rounds} rounds", chaos.name);
        let test = match &options.broken {
            Some(_) => BROKEN.to_owned(),
            None => {
                let mut others = USING.iter().filter(|_| options.using);
                let using = others.find(|(name, _)| *name == chaos.name);
                format!("test --release {}", using.map_or(*test, |(_, using)| using))
            }
        };
        let mut command = cargo(&format!("{test} --nocapture"))?;
        command.env("TESTIGO_ROUNDS", rounds.to_string());
        if options.using {
            command.env("TESTIGO_USING", "1");
        }
        if let Some(rule) = &options.broken {
            command.env("TESTIGO_TEST_BROKEN", rule);
        }
        for (name, value) in [
            ("TESTIGO_SEED", options.seed),
            ("TESTIGO_NODES", options.nodes),
        ] {
            if let Some(value) = value {
                command.env(name, value.to_string());
            }
        }
        held &= succeeds(&mut command)?;
    }
    Ok(held)
}

fn parse(arguments: &[String]) -> Result<(&'static Chaos, Options), String> {
    let (name, rest) = arguments.split_first().ok_or(HELP)?;
    let chaos = CHAOS.iter().find(|chaos| chaos.name == name);
    let chaos = chaos.ok_or_else(|| format!("no chaos `{name}`\n\n{HELP}"))?;
    let mut options = Options {
        rounds: chaos.rounds,
        seed: None,
        // Its bar is of five.
        nodes: (chaos.name == "simulated").then_some(5),
        using: false,
        broken: None,
        engine: (chaos.name == "pools").then_some(ENGINES[0].1),
    };
    let mut rest = rest.iter();
    while let Some(option) = rest.next() {
        if option == "--using" && matches!(chaos.name, "cluster" | "estates" | "simulated") {
            options.using = true;
            continue;
        }
        let value = rest.next().map_or("", String::as_str);
        let number = value.parse::<u64>().ok();
        match option.as_str() {
            "--rounds" | "--seeds" => {
                let number = number.filter(|rounds| *rounds > 0);
                options.rounds = number
                    .ok_or_else(|| format!("{option} needs a number above 0, not `{value}`"))?;
            }
            "--engine" if chaos.name == "pools" => {
                let engine = ENGINES.iter().find(|(name, _)| *name == value);
                let (_, test) = engine.ok_or_else(|| {
                    let known: Vec<_> = ENGINES.iter().map(|(name, _)| *name).collect();
                    format!("--engine needs one of {}, not `{value}`", known.join(", "))
                })?;
                options.engine = Some(test);
            }
            "--seed" if matches!(chaos.name, "cluster" | "pools" | "simulated" | "slots") => {
                let number = number.ok_or_else(|| format!("--seed needs a number, not `{value}`"));
                options.seed = Some(number?);
            }
            "--nodes" if matches!(chaos.name, "cluster" | "simulated") => {
                let number = number.filter(|nodes| [1, 3, 5].contains(nodes));
                let number = number.ok_or_else(|| format!("--nodes needs 3 or 5, not `{value}`"));
                options.nodes = Some(number?);
            }
            "--broken" if chaos.name == "cluster" => {
                let rule = Some(value).filter(|rule| !rule.is_empty());
                let rule = rule.ok_or("--broken needs the name of a rule")?;
                options.broken = Some(rule.to_owned());
            }
            other => return Err(format!("unexpected argument `{other}`\n\n{HELP}")),
        }
    }
    Ok((chaos, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str) -> Result<(&'static Chaos, Options), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    fn read(line: &str) -> Result<(&'static str, u64), String> {
        whole(line).map(|(chaos, options)| (chaos.name, options.rounds))
    }

    #[test]
    fn seeds_and_nodes_are_for_clusters() {
        let (_, options) = whole("cluster --seed 7 --nodes 5 --rounds 9").expect("all are options");
        let wanted = Options {
            rounds: 9,
            seed: Some(7),
            nodes: Some(5),
            using: false,
            broken: None,
            engine: None,
        };
        assert_eq!(options, wanted);
        let (_, options) = whole("pools --engine corosync --seed 3").expect("both are options");
        assert_eq!(
            (options.engine, options.seed),
            (Some(ENGINES[0].1), Some(3))
        );
        assert_eq!(
            whole("pools").map(|(_, options)| options.engine),
            Ok(Some(ENGINES[0].1))
        );
        let (_, options) = whole("cluster --broken OldHome").expect("it is an option");
        assert_eq!(options.broken.as_deref(), Some("OldHome"));
        let (_, options) = whole("estates --using --rounds 9").expect("both are options");
        assert_eq!((options.using, options.rounds), (true, 9));
        assert!(whole("gates --using").is_err());
    }

    #[test]
    fn names_and_rounds_are_read() {
        assert_eq!(read("gates"), Ok(("gates", 1_000)));
        assert_eq!(read("every --rounds 7"), Ok(("every", 7)));
        assert_eq!(read("jobs"), Ok(("jobs", 1_000)));
        assert_eq!(read("engines"), Ok(("engines", 20_000)));
        assert_eq!(read("slots --seed 5"), Ok(("slots", 20_000)));
        for (line, why) in [
            ("", "Usage"),
            ("gate", "no chaos `gate`"),
            ("gates --rounds 0", "above 0"),
            ("gates --rounds many", "`many`"),
            ("gates --round 5", "unexpected argument `--round`"),
            ("gates --seed 5", "unexpected argument `--seed`"),
            ("pools --engine abacus", "one of corosync, not `abacus`"),
            (
                "cluster --engine corosync",
                "unexpected argument `--engine`",
            ),
            ("cluster --nodes 4", "3 or 5, not `4`"),
            ("cluster --seed", "a number"),
            ("cluster --broken", "the name of a rule"),
            ("gates --broken OldHome", "unexpected argument `--broken`"),
        ] {
            assert!(read(line).is_err_and(|found| found.contains(why)), "{line}");
        }
    }
}
