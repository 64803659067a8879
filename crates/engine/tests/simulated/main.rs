//! The engine itself, raft inside, in virtual time: three and five of them over links that lose, delay, repeat, reorder and
//! damage frames, and disks that crash, tear and refuse flushes. One seed is one run, byte for byte.
//!
//! `TESTIGO_ROUNDS` says how many seeds; `TESTIGO_SEED` says which one, to see a single run again.

mod machine;
mod monitor;
mod trace;
mod world;

use std::panic;

use testigo_engine::{DISK_RESERVE_BYTES, START_BYTES, Specimen};
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
    let mut without_room = 0;
    let mut violations = Vec::new();
    for seed in seeds {
        let outcome = panic::catch_unwind(|| run(seed, None));
        let outcome = outcome.unwrap_or_else(|_| panic!("seed {seed}"));
        violations.extend(outcome.violation.map(|what| format!("seed {seed}: {what}")));
        applied += outcome.applied as u64;
        reads += outcome.reads;
        refusals += outcome.refusals;
        without_room += outcome.without_room;
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
    println!(
        "{count} seeds: {applied} submissions applied, {without_room} refused for lack of room, {reads} reads answered, \
         {refusals} refusals"
    );
    // A world in which nothing happens would prove nothing.
    assert!(applied > 50 * count && reads > 10 * count && refusals > count);
    assert!(count < 4 || without_room > count);
}

#[test]
fn what_follows_a_snapshot_is_answered_and_so_is_whoever_was_allowed_in_between() {
    for seed in [968, 1_048] {
        assert_eq!(run(seed, None).violation, None, "seed {seed}");
    }
}

/// With next to no room, with none for entries, and short of the reserve.
const ROOMS: [u64; 3] = [700, START_BYTES - 1, DISK_RESERVE_BYTES - 1];

#[test]
fn a_leader_that_is_short_of_room_lets_another_lead_and_nobody_waits() {
    for (seed, bytes) in (0..40).zip(ROOMS.into_iter().cycle()) {
        let ran = World::leader_runs_short(seed, bytes, None);
        assert_eq!(ran, Ok(()), "seed {seed}, {bytes} bytes");
    }
    let broken = World::leader_runs_short(1, ROOMS[1], Some(Specimen::LeadWithoutRoom));
    let broken = broken.expect_err("it goes on leading");
    assert!(broken.ends_with("before another leads"), "{broken}");
}

#[test]
fn when_no_disk_has_room_everybody_is_told() {
    for seed in 0..40 {
        assert_eq!(World::all_run_out(seed, None), Ok(()), "seed {seed}");
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
