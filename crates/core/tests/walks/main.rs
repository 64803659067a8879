//! Deadlocks across nodes: three estates in virtual time over links that are sometimes slow. What is a deadlock is decided by
//! an oracle of its own, from all books and from what every client knows of itself. Every deadlock is found within a second
//! and ends with one refusal; nobody is refused without one.

mod oracle;
mod plots;
#[path = "../estate/random.rs"]
mod random;
mod town;

use testigo_core::estate::{Broken, CYCLE_SESSIONS};
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

/// A plot, played with a rule left out.
type Plot = fn(Option<Broken>) -> Result<Tally, String>;

#[test]
fn a_rule_of_walks_that_is_left_out_is_noticed() {
    let circles: Plot = |broken| {
        let mut circles = seeds(1_000).map(|seed| plots::circle(seed, broken));
        circles
            .find(Result::is_err)
            .unwrap_or_else(|| Ok(Tally::default()))
    };
    let plots: [(Broken, Plot); 3] = [
        (Broken::OneRound, plots::late_cancel),
        (Broken::OwnersBooks, plots::late_release),
        (Broken::EveryFinder, circles),
    ];
    for (broken, plot) in plots {
        let found = plot(Some(broken)).expect_err("it went unnoticed");
        println!("{broken:?}: {found}");
    }
}

#[test]
fn what_is_on_its_way_closes_no_circle() {
    for plot in [plots::late_cancel, plots::late_release] {
        let tally = plot(None).unwrap();
        assert!(tally.victims == 0 && tally.walked > 0, "{tally:?}");
    }
}

#[test]
fn a_cycle_of_the_promised_length_is_found_from_one_session() {
    let tally = plots::long_circle(CYCLE_SESSIONS).unwrap();
    assert_eq!((tally.deadlocks, tally.by_walks), (1, 1), "{tally:?}");
    // The promise says no less than is so.
    let longer = plots::long_circle(CYCLE_SESSIONS + 1).unwrap_err();
    assert!(longer.starts_with("nobody was refused"), "{longer}");
}

#[test]
fn a_cycle_is_found_among_more_waits_than_a_walk_looks_at() {
    let tally = plots::circle_in_a_crowd().unwrap();
    assert_eq!((tally.deadlocks, tally.by_walks), (1, 1), "{tally:?}");
}
