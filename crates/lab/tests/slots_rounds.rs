//! The round simulator of SLOTS: determinism, Little's law, and transcripts that were made by another
//! program, written from the published rules alone.

use testigo_lab::slots::experiment::{Allocation, Arrival, LITTLE_MAX, Load, Rounds};

/// Four members and forty slots, with the demand of a file.
fn small(algorithm: Allocation, arrivals: &str) -> Rounds {
    let arrival = |line: &str| {
        let mut numbers = line.split(' ').map(|word| word.parse().expect("a number"));
        let mut next = || numbers.next().expect("round, member, lifetime");
        Arrival {
            round: next(),
            member: next() as usize,
            lifetime: next() as u32,
        }
    };
    let arrivals: Vec<Arrival> = arrivals.lines().map(arrival).collect();
    Rounds {
        members: 4,
        slots: 40,
        free_low: 2,
        free_high: 4,
        warm_up: 0,
        rounds: arrivals.last().expect("an arrival").round + 1,
        ..Rounds::published(algorithm, Load::Script(arrivals))
    }
}

/// Where a transcript first differs from what was written.
fn difference(found: &[String], expected: &str) -> Option<String> {
    let expected: Vec<&str> = expected.lines().collect();
    let at = (0..found.len().max(expected.len()))
        .find(|&at| found.get(at).map(String::as_str) != expected.get(at).copied())?;
    Some(format!(
        "line {}: {:?} for {:?}",
        at + 1,
        found.get(at),
        expected.get(at)
    ))
}

#[test]
fn every_message_is_the_one_that_another_program_sends() {
    let arrivals = include_str!("slots_rounds/arrivals.txt");
    for (algorithm, spread_cap, expected) in [
        (
            Allocation::STRICT,
            None,
            include_str!("slots_rounds/strict.txt"),
        ),
        (
            Allocation::STRICT,
            Some(1),
            include_str!("slots_rounds/strict-one-per-round.txt"),
        ),
        (
            Allocation::Contrast,
            None,
            include_str!("slots_rounds/contrast.txt"),
        ),
    ] {
        let plan = Rounds {
            spread_cap,
            ..small(algorithm, arrivals)
        };
        let difference = difference(&plan.transcript(), expected);
        assert_eq!(difference, None, "{} {spread_cap:?}", algorithm.name());
    }
}

#[test]
fn t22_a_seed_fixes_a_run_and_little_holds_in_it() {
    for algorithm in [
        Allocation::STRICT,
        Allocation::ByDemand,
        Allocation::Directed,
        Allocation::Contrast,
        Allocation::Static,
        Allocation::Central,
    ] {
        for waits in [false, true] {
            let plan = |seed| Rounds {
                members: 8,
                slots: 192,
                waits,
                warm_up: 300,
                rounds: 2_000,
                seed,
                ..Rounds::published(algorithm, Load::OneMean(31.5))
            };
            let report = plan(3).run();
            assert_eq!(report, plan(3).run());
            assert_ne!(report, plan(4).run());
            assert!(report.little < LITTLE_MAX, "{report:?}");
            assert!(report.utilisation > 0.6, "{report:?}");
            assert_eq!(report.failed > 0, !waits, "{report:?}");
        }
    }
}

#[test]
fn a_request_that_waits_in_spread_is_counted_from_when_it_was_sent() {
    let plan = |spread_cap| Rounds {
        spread_cap,
        warm_up: 500,
        rounds: 1_000,
        ..Rounds::published(Allocation::STRICT, Load::OneMean(31.5))
    };
    let all = plan(None).run().response;
    assert!(all.rounds_mean >= 2.0 && all.rounds_mean < 2.1, "{all:?}");
    // SPREAD has a line: what it forwards after the request, one per round, is not all that passes.
    let one = plan(Some(1)).run().response;
    assert!(one.rounds_mean > 1.5 * one.all_mean, "{one:?}");
}
