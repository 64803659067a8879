//! SLOTS under random schedules. `cargo xtask chaos slots` runs more of them.

use testigo_lab::slots::{Scheduled, SlotsSchedule, SlotsViolation, run_schedule};

/// A number that `cargo xtask chaos` sets.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Runs the schedules of so many seeds.
fn run(members: impl Fn(u64) -> usize) -> Scheduled {
    let (rounds, first) = (number("TESTIGO_ROUNDS", 1_500), number("TESTIGO_SEED", 1));
    let mut total = Scheduled::default();
    let mut wrong: Vec<(u64, SlotsViolation)> = Vec::new();
    for seed in first..first + rounds {
        match run_schedule(&SlotsSchedule::drawn(seed, members(seed))) {
            Ok(done) => total = total.and(&done),
            Err(violation) => wrong.push((seed, violation)),
        }
    }
    println!("{rounds} schedules from seed {first}: {total:?}");
    let shown = &wrong[..wrong.len().min(20)];
    assert!(wrong.is_empty(), "{} wrong: {shown:?}", wrong.len());
    // Every kind of transaction was interrupted.
    let often = rounds / 10;
    assert!(total.joins_interrupted >= often, "{total:?}");
    assert!(total.merges_interrupted >= often, "{total:?}");
    assert!(total.cycles_interrupted >= often, "{total:?}");
    assert!(total.donations_undone >= rounds / 100, "{total:?}");
    assert!(total.waiting >= often, "{total:?}");
    total
}

#[test]
fn eight_members_keep_every_slot_at_one_of_them_whatever_interrupts_them() {
    run(|_| 8);
}

#[test]
fn few_members_keep_every_slot_at_one_of_them_whatever_interrupts_them() {
    run(|seed| 2 + (seed % 6) as usize);
}
