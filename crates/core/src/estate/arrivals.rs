//! Stays at a gate: who came, when, how long it waited and how long it stayed. They show how well a gate's algorithm does.
//! Each node remembers the latest stays in its own books: its own clients' where an algorithm moves ownership, and
//! everybody's where it owns the gate.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::Estate;
use crate::gate::Travels;
use crate::name::Name;
use crate::replicated::Replicated;
use crate::session::SessionId;

/// Cap on remembered stays per gate: an hour at one per second.
pub const ARRIVALS_MAX: usize = 4_096;
/// Cap on gates per node whose stays are remembered.
pub const ARRIVAL_GATES_MAX: usize = 256;

/// A stay at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// When it asked, in milliseconds on the clock of the node.
    pub at: u64,
    /// The home of its session.
    pub node: u64,
    /// 0 for a writer of the most urgent class, 1 for any other writer, 2 for a reader.
    pub kind: u8,
    /// How long it waited, in milliseconds.
    pub waited_ms: u32,
    /// How long it stayed, in milliseconds.
    pub held_ms: u32,
}

#[derive(Debug, Default)]
pub(super) struct Arrivals {
    gates: BTreeMap<Name, Kept>,
}

#[derive(Debug)]
struct Kept {
    /// How ownership travels; stays from before a change of it are forgotten.
    travels: Travels,
    last: VecDeque<Arrival>,
    /// How many earlier stays are forgotten.
    forgotten: u64,
}

impl Arrivals {
    pub(super) fn forget(&mut self, gate: &str) {
        self.gates.remove(gate);
    }

    fn add(&mut self, gate: Name, travels: Travels, arrival: Arrival) {
        if self.gates.len() >= ARRIVAL_GATES_MAX && !self.gates.contains_key(&gate) {
            return;
        }
        let fresh = || Kept {
            travels,
            last: VecDeque::new(),
            forgotten: 0,
        };
        let kept = self.gates.entry(gate).or_insert_with(fresh);
        if kept.travels != travels {
            *kept = fresh();
        }
        if kept.last.len() == ARRIVALS_MAX {
            kept.last.pop_front();
            kept.forgotten += 1;
        }
        kept.last.push_back(arrival);
    }
}

impl Estate {
    /// The latest stays at a gate in the books of this node, in the order of leaving, and how many earlier ones are
    /// forgotten.
    pub fn arrivals(&self, gate: &str) -> (impl Iterator<Item = Arrival>, u64) {
        let kept = self.arrivals.gates.get(gate);
        let forgotten = kept.map_or(0, |kept| kept.forgotten);
        let last = kept.map(|kept| kept.last.iter().copied());
        (last.into_iter().flatten(), forgotten)
    }

    /// Remembers the stays that have ended.
    pub(super) fn keep_arrivals(&mut self, replicated: &Replicated) {
        for left in self.local.take_departures() {
            let Some(definition) = replicated.gate(&left.gate) else {
                continue;
            };
            let ms =
                |from: u64, to: u64| u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
            let arrival = Arrival {
                at: left.asked,
                node: self.home_number(replicated, left.session),
                kind: left.kind as u8,
                waited_ms: ms(left.asked, left.entered),
                held_ms: ms(left.entered, left.left),
            };
            self.arrivals.add(left.gate, definition.travels, arrival);
        }
    }

    fn home_number(&self, replicated: &Replicated, session: SessionId) -> u64 {
        let mut members = self.members.iter();
        let of_connection = members.find(|(node, start)| session.is_of(*node, *start));
        let of_log = || Some(replicated.session(session)?.home.node);
        let home = match session.is_implicit() {
            true => of_connection.map(|(node, _)| *node),
            false => of_log(),
        };
        home.unwrap_or(self.own.0).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Using;

    #[test]
    fn the_last_stays_are_remembered_until_the_gate_is_another() {
        let mut arrivals = Arrivals::default();
        let gate = || Name::new("g").expect("a name");
        let at = |at| Arrival {
            at,
            node: 1,
            kind: 1,
            waited_ms: 0,
            held_ms: 1,
        };
        for n in 0..ARRIVALS_MAX as u64 + 3 {
            arrivals.add(gate(), Travels::default(), at(n));
        }
        let kept = &arrivals.gates["g"];
        assert_eq!((kept.last.len(), kept.forgotten), (ARRIVALS_MAX, 3));
        assert_eq!(kept.last.front().map(|first| first.at), Some(3));
        let raymond = Travels {
            using: Using::Raymond,
            ..Travels::default()
        };
        arrivals.add(gate(), raymond, at(9));
        assert_eq!(arrivals.gates["g"].last.len(), 1);
        arrivals.forget("g");
        for n in 0..ARRIVAL_GATES_MAX + 5 {
            let other = Name::new(&format!("g{n}")).expect("a name");
            arrivals.add(other, raymond, at(1));
        }
        assert_eq!(arrivals.gates.len(), ARRIVAL_GATES_MAX);
    }
}
