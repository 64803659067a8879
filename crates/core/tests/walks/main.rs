//! Deadlocks across nodes: three estates in virtual time over links that are sometimes slow. What is a deadlock is decided by
//! an oracle of its own, from all books and from what every client knows of itself. Every deadlock is found within a second
//! and ends with one refusal; nobody is refused without one.

mod oracle;
mod plots;
#[path = "../estate/random.rs"]
mod random;
mod town;

use testigo_core::estate::Broken;
use town::Tally;

/// So many runs, or as a longer run says.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let first = number("TESTIGO_SEED").unwrap_or(0);
    first..first + number("TESTIGO_ROUNDS").unwrap_or(default)
}

#[test]
fn every_deadlock_is_found_within_a_second_with_one_victim() {
    let mut sum = Tally::default();
    for seed in seeds(1_000) {
        sum += plots::circle(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    println!("{sum:?}");
    assert_eq!(sum.deadlocks, sum.victims);
    assert!(
        sum.by_walks * 2 > sum.deadlocks,
        "most need a walk: {sum:?}"
    );
}

#[test]
fn nobody_is_refused_without_a_deadlock() {
    let mut sum = Tally::default();
    for seed in seeds(1_000) {
        sum += plots::crowd(seed, None).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
    }
    println!("{sum:?}");
    assert!(sum.grants > 10_000 && sum.walked > 1_000, "{sum:?}");
}

#[test]
fn a_rule_of_walks_that_is_left_out_is_noticed() {
    for broken in [Broken::OneRound, Broken::OwnersBooks, Broken::EveryFinder] {
        let found = seeds(1_000).find_map(|seed| {
            let circle = plots::circle(seed, Some(broken)).err();
            let found = circle.or_else(|| plots::crowd(seed, Some(broken)).err());
            found.map(|why| format!("seed {seed}: {why}"))
        });
        assert!(found.is_some(), "{broken:?} went unnoticed");
        println!("{broken:?}: {}", found.unwrap());
    }
}
