//! The round simulator of SLOTS: determinism, Little's law, and transcripts that were made by another
//! program, written from the published rules alone.

use std::collections::BTreeSet;

use testigo_lab::slots::SlotsWorld;
use testigo_lab::slots::experiment::{Allocation, Arrival, LITTLE_MAX, Load, Rounds};
use testigo_protocol::NodeId;
use testigo_protocol::slots::{
    Contrast, ContrastMessage, ContrastPlan, Letter, SlotsMessage, SlotsPlan, slots_to_donate,
};

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

#[test]
fn a_request_of_the_contrast_is_answered_by_its_own_delivery_or_by_nothing() {
    for (members, spread_cap) in [(8, None), (8, Some(1)), (40, None)] {
        // With 40 members the list runs empty.
        let plan = Rounds {
            members,
            slots: 192,
            spread_cap,
            warm_up: 0,
            rounds: 500,
            ..Rounds::published(Allocation::Contrast, Load::OneMean(31.5))
        };
        let mut list: BTreeSet<u32> = (0..plan.slots).collect();
        let (mut brought, mut nothing) = (0, 0);
        for line in plan.transcript() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[2] {
                "asks" => {
                    let count: usize = words[4].parse().expect("a number");
                    let slots: Vec<u32> = list.iter().copied().take(count).collect();
                    list.retain(|slot| !slots.contains(slot));
                    brought += u64::from(!slots.is_empty());
                    nothing += u64::from(slots.is_empty());
                }
                "releases:" => list.extend(
                    words[3..]
                        .iter()
                        .map(|slot| slot.parse::<u32>().expect("a slot")),
                ),
                _ => {}
            }
        }
        let response = plan.run().response;
        assert_eq!(response.own, [0, brought]);
        assert_eq!(response.nothing, nothing);
        assert!(nothing > 0 || members < 40, "{response:?}");
        assert_eq!(response.all_mean, 1.0);
        assert_eq!(
            response.rounds_mean > 1.0,
            spread_cap.is_some(),
            "{response:?}"
        );
    }
}

#[test]
fn a13_with_an_exact_quota_no_request_brings_more_than_it_asked_for() {
    let most = |exact_quota| {
        let plan = Rounds {
            exact_quota,
            members: 8,
            slots: 192,
            warm_up: 0,
            rounds: 300,
            ..Rounds::published(Allocation::STRICT, Load::OneMean(31.5))
        };
        // What each member has asked for, less what it was given since.
        let mut rest = [0_i64; 8];
        let mut most = i64::MIN;
        for line in plan.transcript() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let member = |word: &str| {
                word.trim_matches(['p', ':'])
                    .parse::<usize>()
                    .expect("a member")
            };
            match words[2] {
                "asks" => rest[member(words[1])] = words[4].parse().expect("a number"),
                "donates" => {
                    let to = member(words[4]);
                    rest[to] -= words.len() as i64 - 5;
                    most = most.max(-rest[to]);
                }
                _ => {}
            }
        }
        most
    };
    assert_eq!(most(true), 0);
    assert!(most(false) > 0, "as printed, donors round up");
}

/// The paper calls it FREE_LOW in the rules, FREE_SLOTS in the list of parameters and LOW_SLOTS in the contrast.
#[test]
fn a08_what_is_kept_asked_for_and_released_down_to_is_one_number() {
    for free_low in 1..=8 {
        let plan = SlotsPlan::strict(3, 60, free_low);
        assert_eq!(
            slots_to_donate(30, 3, free_low, free_low),
            0,
            "a donor keeps it"
        );
        assert_eq!(slots_to_donate(30, 3, free_low + 1, free_low), 1);
        let mut member = SlotsWorld::started(&plan)
            .sharer(NodeId(1))
            .expect("it runs")
            .clone();
        let mut out: Vec<Letter> = Vec::new();
        while out.is_empty() {
            assert!(member.free().len() >= free_low, "a member with fewer asks");
            member.take(&plan, &mut out).expect("a free slot");
        }
        assert_eq!(member.free().len(), free_low - 1);
        assert!(matches!(out[0].message, SlotsMessage::Request { .. }));

        let free_high = 2 * free_low + 1;
        let plan = ContrastPlan {
            slots: 60,
            free_low,
            free_high,
        };
        let mut member = Contrast::new(NodeId(0), &plan);
        let (mut out, mut held) = (Vec::new(), Vec::new());
        member.ask_if_empty(&plan, &mut out);
        assert_eq!(out, [ContrastMessage::Fork { count: free_low }]);
        while held.len() < free_high as usize {
            for message in out.drain(..) {
                member.hear(NodeId(0), &message, &plan, &mut Vec::new());
            }
            held.extend(member.take(&plan, &mut out));
        }
        out.clear();
        while out.is_empty() {
            member.give(held.pop().expect("a used slot"), &plan, &mut out);
        }
        assert!(matches!(out[..], [ContrastMessage::Exit { .. }]), "{out:?}");
        assert_eq!(member.free().len(), free_low, "it releases down to it");
    }
}
