//! Real nodes in network namespaces, under faults at random from a seed, with clients that record what they were
//! answered. No two holders, no fence lowered, no definition or job lost or doubled, one leader per term, one owner per
//! shard and number; and after each fault every node is back in step and every gate is granted again.
//!
//! `cargo xtask chaos cluster` runs it for longer. It needs root, iproute2 and nftables.

mod check;
mod clients;
mod door;
mod faults;
mod links;
mod net;
mod nodes;
mod recovery;
mod stage;
#[path = "../up/mod.rs"]
mod up;

use std::collections::BTreeSet;
use std::thread;

use clients::{definitions, implicit, jobs, once, opened, watch};
use faults::{Breaker, Plan};
use links::Link;
use net::{Net, Party};
use nodes::Nodes;
use stage::Stage;

/// Say other numbers of rounds and nodes, and another seed.
const ROUNDS: &str = "TESTIGO_ROUNDS";
const NODES: &str = "TESTIGO_NODES";
const SEED: &str = "TESTIGO_SEED";
/// Names the kinds of clients that play, with commas between; all of them do without it.
const CLIENTS: &str = "TESTIGO_CLIENTS";

const ROUNDS_DEFAULT: u64 = 10;
const NODES_DEFAULT: u64 = 3;
const SEED_DEFAULT: u64 = 0x7E57_160F;
/// How long nodes that know nothing of each other may go unnoticed.
const STRANGERS_MS: u64 = 30_000;

#[test]
fn no_fault_makes_two_holders_or_loses_anything() {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let nodes = number(NODES, NODES_DEFAULT) as u8;
    let run = Run {
        nodes,
        joined: nodes > 1,
        seed: number(SEED, SEED_DEFAULT),
        rounds: number(ROUNDS, ROUNDS_DEFAULT),
    };
    match run.played() {
        None => {}
        Some(Ok(summary)) => println!("{summary}"),
        Some(Err(why)) => {
            let Run {
                nodes,
                seed,
                rounds,
                ..
            } = run;
            panic!(
                "{why}\nplay it again: cargo xtask chaos cluster --nodes {nodes} --seed {seed} --rounds {rounds}"
            )
        }
    }
}

/// Three nodes that know nothing of each other, and nothing fails: whoever plays with them must notice.
#[test]
fn nodes_that_are_no_cluster_are_caught() {
    let run = Run {
        nodes: 3,
        joined: false,
        seed: SEED_DEFAULT,
        rounds: 1,
    };
    let Some(played) = run.played() else {
        return;
    };
    let why = played.expect_err("two of them let two clients in");
    let seen = [
        "inside together",
        "a fence was",
        "let {",
        "ended before its time",
        "in time, with its receipt",
    ];
    assert!(seen.iter().any(|words| why.contains(words)), "{why}");
}

/// What to play.
struct Run {
    nodes: u8,
    /// Whether the nodes form a cluster.
    joined: bool,
    seed: u64,
    rounds: u64,
}

impl Run {
    /// Plays it, or says loudly that the machine does not allow it.
    fn played(&self) -> Option<Result<String, String>> {
        let delayed = delayed(self.nodes);
        let net = allowed(Net::build(self.nodes, &delayed))?;
        // A thread that has moved to a namespace stays there: not the one of the test itself.
        let play = || {
            net.enter()?;
            self.play(&net, &delayed)
        };
        let played = thread::scope(|scope| scope.spawn(play).join());
        Some(played.expect("the run does not panic"))
    }

    fn play(&self, net: &Net, delayed: &BTreeSet<(Party, Party)>) -> Result<String, String> {
        let links: Vec<Link> = delayed
            .iter()
            .map(|(from, to)| Link::open(*from, *to))
            .collect::<Result<_, _>>()?;
        let stage = Stage::new(self.nodes, self.seed);
        let stage = &stage;
        let mut breaker = Breaker {
            stage,
            net,
            links: &links,
            nodes: Nodes::prepare(net, self.nodes, self.joined)?,
        };
        breaker.nodes.start_all()?;
        let ended = recovery::prepare(stage).and_then(|()| {
            thread::scope(|scope| {
                self.cast(stage, |client| {
                    scope.spawn(client);
                });
                if self.is_one_thing() {
                    for round in 1..=self.rounds {
                        stage.begin_round(round);
                        if let Err(why) = one_round(&mut breaker, round) {
                            stage.fail(why);
                        }
                        if stage.is_over() {
                            break;
                        }
                    }
                } else {
                    stage.goes_on_after(STRANGERS_MS);
                }
                stage.end();
            });
            stage.judge_all();
            match stage.failure() {
                Some(why) => Err(why),
                None => recovery::settle(stage),
            }
        });
        match ended {
            Ok(()) => Ok(summary(stage, self.rounds)),
            Err(why) => Err(format!("{why}\n{}", breaker.nodes.logs())),
        }
    }

    /// Whether the nodes are, for their clients, one thing: then everything must hold, whatever fails.
    fn is_one_thing(&self) -> bool {
        self.joined || self.nodes == 1
    }

    #[expect(
        clippy::needless_lifetimes,
        reason = "what is spawned lives as long as the stage"
    )]
    fn cast<'a>(&self, stage: &'a Stage, mut spawn: impl FnMut(Box<dyn FnOnce() + Send + 'a>)) {
        let only = std::env::var(CLIENTS).ok();
        let mut number = 0;
        let mut clients = |name: &str, count: u64, run: fn(&Stage, u64)| {
            let wanted = |only: &String| only.split(',').any(|one| one == name);
            if !only.as_ref().is_none_or(wanted) {
                return;
            }
            for _ in 0..count {
                number += 1;
                let number = number;
                spawn(Box::new(move || run(stage, number)));
            }
        };
        clients("opened", 4, opened::run);
        clients("implicit", 3, implicit::run);
        if self.is_one_thing() {
            clients("definitions", 3, definitions::run);
            clients("jobs", 1, jobs::create);
            clients("jobs", 3, jobs::work);
            clients("once", 2, once::run);
        }
        if self.joined {
            spawn(Box::new(move || watch::run(stage)));
        }
    }
}

/// What the machine allows, or a loud word that it does not.
fn allowed<T>(built: Result<T, String>) -> Option<T> {
    match built {
        Ok(built) => Some(built),
        Err(why) => {
            println!(
                "SKIPPED: network namespaces are not allowed here, or `ip` or `nft` is missing: {why}"
            );
            None
        }
    }
}

/// The links that the harness passes on: one of three, each node's own and others'.
fn delayed(nodes: u8) -> BTreeSet<(Party, Party)> {
    let pairs = (1..=nodes).flat_map(|from| (1..=nodes).map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to && (from + 2 * to) % 3 == 1)
        .collect()
}

fn one_round(breaker: &mut Breaker<'_>, round: u64) -> Result<(), String> {
    let stage = breaker.stage;
    let plan = Plan::of(stage.seed, round, stage.nodes).against(recovery::leader(stage));
    eprintln!("{:>7} ms  round {round}: {plan:?}", stage.now() / 1_000);
    breaker.begin(&plan)?;
    stage.goes_on_after(plan.lasts_ms);
    breaker.heal()?;
    let began = stage.now();
    recovery::in_step(stage, breaker)?;
    let took = (stage.now() - began) / 1_000;
    eprintln!("{:>7} ms  in step after {took} ms", stage.now() / 1_000);
    stage.judge();
    Ok(())
}

fn summary(stage: &Stage, rounds: u64) -> String {
    let records = stage.records();
    let counts = records.counts.iter();
    let counts: Vec<String> = counts.map(|(what, n)| format!("{n} {what}")).collect();
    let (terms, titles) = records.reigns.seen();
    format!(
        "{rounds} rounds with {} nodes, seed {}: {}; {} jobs tried, {} uses let through and {} kept out by fences, \
         {terms} terms, {titles} titles",
        stage.nodes,
        stage.seed,
        counts.join(", "),
        records.jobs.len(),
        records.store.accepted,
        records.store.refused,
    )
}
