//! What was counted at a gate since some moment. A node now and then marks how far its counts had come; the older its marks,
//! the fewer it keeps.

use std::collections::{BTreeMap, VecDeque};

use super::ARRIVAL_GATES_MAX;
use crate::branch::Counts;
use crate::name::Name;

/// Cap on marks per gate. Beyond it every second mark is dropped, and new ones are set half as often.
const MARKS_MAX: usize = 512;
/// Minimum distance between a gate's first marks, in milliseconds.
const APART_MS: u64 = 100;

/// The marks of gates whose ownership an algorithm moves, for as many gates as stays are remembered.
#[derive(Debug, Default)]
pub(super) struct Marks {
    gates: BTreeMap<Name, Set>,
}

#[derive(Debug)]
struct Set {
    apart_ms: u64,
    /// When, and what had been counted until then.
    marks: VecDeque<(u64, Counts)>,
}

impl Marks {
    pub(super) fn forget(&mut self, gate: &str) {
        self.gates.remove(gate);
    }

    /// Something happens at a gate; `counts` is what was counted before it.
    pub(super) fn mark(&mut self, now: u64, gate: &Name, counts: Counts) {
        let Some(set) = self.gates.get_mut(gate) else {
            if self.gates.len() >= ARRIVAL_GATES_MAX {
                return;
            }
            let set = Set {
                apart_ms: APART_MS,
                marks: VecDeque::from([(now, counts)]),
            };
            self.gates.insert(gate.clone(), set);
            return;
        };
        let last = set.marks.back().map_or(0, |(at, _)| *at);
        if now < last + set.apart_ms {
            return;
        }
        set.marks.push_back((now, counts));
        if set.marks.len() > MARKS_MAX {
            let mut kept = false;
            set.marks.retain(|_| {
                kept = !kept;
                kept
            });
            set.apart_ms *= 2;
        }
    }

    /// What was counted since the first mark at or after this time; nothing if there is none.
    pub(super) fn since(&self, gate: &str, since: u64, counts: Counts) -> Counts {
        let marks = self.gates.get(gate).map(|set| &set.marks);
        let mut marks = marks.into_iter().flatten();
        let first = marks.find(|(at, _)| *at >= since);
        let before = first.map_or(counts, |(_, before)| *before);
        Counts {
            messages: counts.messages.saturating_sub(before.messages),
            hand_overs: counts.hand_overs.saturating_sub(before.hand_overs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(n: u64) -> Counts {
        Counts {
            messages: 3 * n,
            hand_overs: n,
        }
    }

    #[test]
    fn a_window_has_what_was_counted_in_it() {
        let mut marks = Marks::default();
        let gate = Name::new("g").expect("a name");
        for n in 0..200 {
            marks.mark(n * APART_MS, &gate, counts(n));
        }
        let since = |n: u64| marks.since("g", n * APART_MS, counts(200));
        assert_eq!(since(0), counts(200));
        assert_eq!(since(150), counts(50));
        assert_eq!(since(200), counts(0), "nothing has happened since");
        assert_eq!(marks.since("other", 0, counts(7)), counts(0));
        marks.forget("g");
        assert_eq!(marks.since("g", 0, counts(7)), counts(0));
    }

    /// A window that begins between two marks counts less than there was, and nothing from before it.
    #[test]
    fn old_marks_are_thinned_out() {
        let mut marks = Marks::default();
        let gate = Name::new("g").expect("a name");
        let last = 50 * MARKS_MAX as u64;
        for n in 0..last {
            marks.mark(n * APART_MS, &gate, counts(n));
        }
        let set = &marks.gates["g"];
        assert!((MARKS_MAX / 4..=MARKS_MAX).contains(&set.marks.len()));
        for n in [0, 1, last / 3, last / 2 + 1] {
            let found = marks.since("g", n * APART_MS, counts(last)).hand_overs;
            let wanted = last - n;
            assert!(
                found <= wanted && wanted - found <= last / 100,
                "{found} of {wanted}"
            );
        }
    }
}
