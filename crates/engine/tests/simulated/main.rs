//! The engine itself, raft inside, in virtual time: three and five of them over links that lose, delay, repeat, reorder and
//! damage frames, and disks that crash, tear and refuse flushes. One seed is one run, byte for byte.
//!
//! `TESTIGO_ROUNDS` says how many seeds; `TESTIGO_SEED` says which one, to see a single run again.

mod machine;
mod monitor;
mod trace;
mod world;

use std::panic;

use testigo_engine::Specimen;
use world::{Outcome, World};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Three machines, or five.
fn run(seed: u64, specimen: Option<Specimen>) -> Outcome {
    let machines = if seed.is_multiple_of(3) { 5 } else { 3 };
    World::new(seed, machines, specimen).run()
}

#[test]
fn no_fault_loses_doubles_or_reorders_anything() {
    let seeds = match number("TESTIGO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TESTIGO_ROUNDS").unwrap_or(200),
    };
    let (count, mut applied, mut reads, mut refusals) = (seeds.end - seeds.start, 0, 0, 0);
    let mut violations = Vec::new();
    for seed in seeds {
        let outcome = panic::catch_unwind(|| run(seed, None));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        violations.extend(outcome.violation.map(|what| format!("seed {seed}: {what}")));
        applied += outcome.applied as u64;
        reads += outcome.reads;
        refusals += outcome.refusals;
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    println!(
        "{count} seeds: {applied} submissions applied, {reads} reads answered, {refusals} refusals"
    );
    // A world in which nothing happens would prove nothing.
    assert!(applied > 50 * count && reads > 10 * count && refusals > count);
}

#[test]
fn what_follows_a_snapshot_is_answered_and_so_is_whoever_was_allowed_in_between() {
    for seed in [968, 1_048] {
        assert_eq!(run(seed, None).violation, None, "seed {seed}");
    }
}

#[test]
fn a_seed_is_a_run_byte_for_byte() {
    for seed in 0..6 {
        let (first, second) = (run(seed, None), run(seed, None));
        assert_eq!(first.trace, second.trace, "seed {seed}");
        assert!(first.elections > 0);
    }
    assert_ne!(run(1, None).trace, run(2, None).trace);
}

/// What goes wrong with a broken engine: a panic, of raft's own checks say, is a way to notice, too.
fn violation(seed: u64, specimen: Specimen) -> Option<String> {
    let run = panic::catch_unwind(|| run(seed, Some(specimen)));
    match run {
        Ok(outcome) => outcome.violation,
        Err(_) => Some("a panic".into()),
    }
}

/// Every one of them must be noticed, by whatever is watched.
#[test]
fn every_engine_that_is_broken_on_purpose_is_caught() {
    for specimen in Specimen::REVEALED {
        let caught = (0..1_000).find_map(|seed| Some((seed, violation(seed, specimen)?)));
        let (seed, violation) = caught.unwrap_or_else(|| panic!("{specimen:?} is not caught"));
        println!("{specimen:?}: seed {seed}: {violation}");
    }
}
