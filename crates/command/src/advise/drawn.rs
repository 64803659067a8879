//! Who comes in one run: the arrivals on record, drawn again. What is on record is a sample, so parts of it are drawn with
//! repetition (a bootstrap by blocks); and nodes count whole milliseconds, so the times within them are drawn, too.

use std::cmp::Reverse;

use testigo_core::Visit;
use testigo_sim::Generator;

use super::Arrival;

/// The parts of the record. What follows closely on each other stays together.
const PARTS: usize = 20;

const TICK_US: u64 = 1_000;

/// An arrival, and how it found its node.
#[derive(Clone, Copy)]
struct Came {
    arrival: Arrival,
    /// How many others were there, waiting or inside.
    present: usize,
    /// How long after the last departure from there, or since the first arrival of all.
    since_ms: u64,
}

/// The visits of one run. Arrivals are in the order of their times.
pub(super) fn visits(arrivals: &[Arrival], lots: &mut Generator) -> Vec<Visit> {
    let record = record(arrivals);
    let length = record.len().div_ceil(PARTS).max(1);
    let parts: Vec<&[Came]> = record.chunks(length).collect();
    let mut visits = Vec::with_capacity(record.len());
    let mut nodes: Vec<(usize, usize)> = Vec::new();
    for _ in 0..parts.len() {
        let part = parts[lots.below(parts.len() as u64) as usize];
        for (came, held) in part.iter().zip(stays(part, lots)) {
            let node = came.arrival.node;
            if nodes.len() <= node {
                nodes.resize(node + 1, (0, 0));
            }
            // Who comes finds as many there as it did, whoever was drawn before it.
            let (before, after) = &mut nodes[node];
            *after = before.saturating_sub(came.present).max(*after);
            *before += 1;
            let since = came.since_ms * TICK_US + lots.below(TICK_US);
            visits.push(Visit {
                at: since.saturating_sub(lots.below(TICK_US)),
                after: *after,
                node,
                kind: came.arrival.kind,
                held,
            });
        }
    }
    visits
}

/// How each arrival found its node. Who left within the same millisecond was gone.
fn record(arrivals: &[Arrival]) -> Vec<Came> {
    let first = arrivals.first().map_or(0, |arrival| arrival.at);
    let nodes = arrivals.iter().map(|arrival| arrival.node + 1).max();
    let mut left = vec![Vec::new(); nodes.unwrap_or(0)];
    for arrival in arrivals {
        left[arrival.node].push(arrival.at + arrival.waited_ms + arrival.held_ms);
    }
    left.iter_mut().for_each(|node| node.sort_unstable());
    // How many have come to each node, and how many of them were gone when the last one came.
    let mut seen = vec![(0, 0); left.len()];
    let came = |arrival: &Arrival| {
        let left = &left[arrival.node];
        let (before, gone) = &mut seen[arrival.node];
        while *gone < *before && left[*gone] <= arrival.at {
            *gone += 1;
        }
        let present = *before - *gone;
        *before += 1;
        let last: Option<usize> = gone.checked_sub(1);
        Came {
            arrival: *arrival,
            present,
            since_ms: arrival.at - last.map_or(first, |last| left[last]),
        }
    };
    arrivals.iter().map(came).collect()
}

/// Draws how long each stays, as its milliseconds allow. Whoever is inside alone enters after the one before has left: their
/// entries and exits within a millisecond take turns, and who had waited at the same node enters at once.
fn stays(part: &[Came], lots: &mut Generator) -> Vec<u64> {
    let mut steps = Vec::with_capacity(part.len() * 2);
    for (who, Came { arrival, .. }) in part.iter().enumerate() {
        let entered = arrival.at + arrival.waited_ms;
        let left = entered + arrival.held_ms;
        // Readers are inside together, so each has its own turns.
        let turns = if arrival.kind == 2 { who + 1 } else { 0 };
        // Who was there before leaves first, and who stays enters last.
        let (enters, leaves) = match left > entered {
            true => (2, 0),
            false => (1, 1),
        };
        steps.push((entered, turns, enters, arrival.node, who, false));
        steps.push((left, turns, leaves, arrival.node, who, true));
    }
    steps.sort_unstable();
    let mut entered = vec![0; part.len()];
    let mut held = vec![0; part.len()];
    for together in steps.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let mut at_once: Vec<bool> = vec![false];
        at_once.extend(together.windows(2).map(|two| {
            let (.., last, _, left) = two[0];
            let (.., next, who, leaves) = two[1];
            left && !leaves && last == next && part[who].arrival.waited_ms > 0
        }));
        let mut times: Vec<u64> = at_once
            .iter()
            .filter(|at_once| !**at_once)
            .map(|_| lots.below(TICK_US))
            .collect();
        times.sort_unstable_by_key(|time| Reverse(*time));
        let mut now = 0;
        for (&(tick, .., who, leaves), at_once) in together.iter().zip(at_once) {
            if !at_once {
                now = tick * TICK_US + times.pop().unwrap_or(0);
            }
            match leaves {
                true => held[who] = now - entered[who],
                false => entered[who] = now,
            }
        }
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at: u64, kind: u8, waited_ms: u64, held_ms: u64) -> Arrival {
        Arrival {
            at,
            node: 1,
            kind,
            waited_ms,
            held_ms,
        }
    }

    /// Twenty holds of one millisecond take at most that millisecond, and not seven.
    #[test]
    fn those_who_were_inside_alone_do_not_overlap() {
        let held = |kind| {
            let drawn = stays(
                &record(&[arrival(7, kind, 0, 0); 20]),
                &mut Generator::new(1),
            );
            drawn.iter().sum::<u64>()
        };
        assert!(held(1) <= 1_000, "{}", held(1));
        assert!(held(2) > 1_000, "readers are inside together");
        let drawn = stays(&record(&[arrival(7, 1, 2, 3)]), &mut Generator::new(1));
        assert!((2_000..4_000).contains(&drawn[0]));
        // One after the other without a pause, they take nearly all of it.
        let all = record(&[arrival(6, 1, 1, 0); 99]);
        let drawn = stays(&all, &mut Generator::new(1));
        assert!(drawn.iter().sum::<u64>() > 900, "{drawn:?}");
    }

    /// Two clients, each of which comes back a millisecond after it has left: one is always there.
    #[test]
    fn whoever_comes_finds_as_many_as_were_there() {
        let arrivals: Vec<Arrival> = (0..200).map(|n| arrival(2 * n, 1, 1, 2)).collect();
        let drawn = visits(&arrivals, &mut Generator::new(1));
        assert_eq!(drawn.len(), 200);
        let after: Vec<usize> = drawn.iter().map(|visit| visit.after).collect();
        // The first part may have been drawn later, with its first client that found nobody.
        let found = after.iter().enumerate().skip(1).map(|(n, after)| n - after);
        assert!(found.clone().all(|found| found <= 1), "{after:?}");
        assert!(found.filter(|found| *found == 1).count() > 150, "{after:?}");
        assert!(after.is_sorted());
        assert!(drawn[20..].iter().all(|visit| visit.at < 2_000));
    }

    #[test]
    fn parts_of_the_record_are_drawn_with_repetition() {
        let arrivals: Vec<Arrival> = (0..200).map(|n| arrival(n * 1_000, 1, 0, n)).collect();
        let drawn = visits(&arrivals, &mut Generator::new(1));
        let mut parts = Vec::new();
        for part in drawn.chunks(10) {
            let held = |visit: &Visit| (visit.held + TICK_US) / TICK_US;
            assert!(part.windows(2).all(|two| held(&two[0]) < held(&two[1]) + 2));
            parts.push(held(&part[9]) / 10);
        }
        parts.sort_unstable();
        parts.dedup();
        assert!((2..20).contains(&parts.len()), "some twice: {parts:?}");
    }
}
