//! SLOTS under random schedules. `cargo xtask chaos slots` runs more of them.

use testigo_lab::slots::{Scheduled, SlotsSchedule, SlotsViolation, run_schedule};
use testigo_protocol::slots::Flaws;

/// A number that `cargo xtask chaos` sets.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

fn rounds() -> u64 {
    number("TESTIGO_ROUNDS", 1_500)
}

/// Runs the schedules of so many seeds.
fn run(drawn: impl Fn(u64) -> SlotsSchedule) -> Scheduled {
    let (rounds, first) = (rounds(), number("TESTIGO_SEED", 1));
    let mut total = Scheduled::default();
    let mut wrong: Vec<(u64, SlotsViolation)> = Vec::new();
    for seed in first..first + rounds {
        match run_schedule(&drawn(seed)) {
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
    total
}

#[test]
fn eight_members_keep_every_slot_at_one_of_them_whatever_interrupts_them() {
    let total = run(|seed| SlotsSchedule::drawn(seed, 8));
    assert!(total.waiting >= rounds() / 10, "{total:?}");
}

#[test]
fn few_members_keep_every_slot_at_one_of_them_whatever_interrupts_them() {
    let total = run(|seed| SlotsSchedule::drawn(seed, 2 + (seed % 6) as usize));
    assert!(total.waiting >= rounds() / 10, "{total:?}");
}

#[test]
fn eight_that_name_donors_keep_every_slot_at_one_of_them_whatever_interrupts_them() {
    run(|seed| directed(seed, Flaws::NONE));
}

/// Eight members whose requests name their donors.
fn directed(seed: u64, flaws: Flaws) -> SlotsSchedule {
    let mut schedule = SlotsSchedule::drawn(seed, 8);
    schedule.plan.standing_requests = false;
    schedule.plan.directed = true;
    schedule.plan.flaws = flaws;
    schedule.wishes = false;
    schedule
}

#[test]
fn two_members_that_lack_slots_do_not_hand_them_to_each_other_for_ever() {
    let done = run_schedule(&SlotsSchedule::drawn(86_767, 8));
    assert!(done.is_ok(), "{done:?}");
}

#[test]
fn members_that_give_nothing_or_keep_nothing_are_found() {
    let found = |flaws: Flaws, expected: fn(&SlotsViolation) -> bool| {
        let strict = |seed| {
            let mut schedule = SlotsSchedule::drawn(seed, 8);
            schedule.plan.directed = false;
            schedule.plan.flaws = flaws;
            schedule
        };
        let named = |seed| directed(seed, flaws);
        for schedule in [&strict as &dyn Fn(u64) -> SlotsSchedule, &named] {
            let finds = |seed| run_schedule(&schedule(seed)).is_err_and(|found| expected(&found));
            assert!((1..=50).any(finds), "{flaws:?}");
        }
    };
    let deaf = Flaws {
        deaf: true,
        ..Flaws::NONE
    };
    found(deaf, |what| matches!(what, SlotsViolation::Starved { .. }));
    let greedy = Flaws {
        keeps_nothing: true,
        ..Flaws::NONE
    };
    found(greedy, |what| {
        matches!(what, SlotsViolation::TooGenerous { .. })
    });
}
