//! What happens next: events in order of time, and of arrival where times are equal.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::Time;

/// A queue of events by time. Events of the same time come out in the order in which they went in.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    /// Events that were planned in order of time, as most are where every message takes the same
    /// time: they need no sorting.
    line: VecDeque<Planned<E>>,
    /// All others.
    heap: BinaryHeap<Planned<E>>,
    planned: u64,
    now: Time,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda {
            line: VecDeque::new(),
            heap: BinaryHeap::new(),
            planned: 0,
            now: Time::ZERO,
        }
    }
}

impl<E> Agenda<E> {
    pub fn plan(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event may not be planned in the past");
        let due = DueKey::new(at, self.planned);
        self.planned += 1;
        let planned = Planned { due, event };
        if self.line.back().is_none_or(|last| last.due < due) {
            self.line.push_back(planned);
        } else {
            self.heap.push(planned);
        }
    }

    /// The next event; time moves to it.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let next = match (self.line.front(), self.heap.peek()) {
            (Some(first), Some(top)) if top.due < first.due => self.heap.pop(),
            (Some(_), _) => self.line.pop_front(),
            (None, _) => self.heap.pop(),
        }?;
        self.now = next.due.time();
        Some((self.now, next.event))
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn len(&self) -> usize {
        self.line.len() + self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.line.is_empty() && self.heap.is_empty()
    }
}

/// A time, and below it the number of the plan: one number, because comparing it is most of the
/// work of an agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueKey(u128);

impl DueKey {
    fn new(at: Time, number: u64) -> DueKey {
        DueKey(u128::from(at.0) << 64 | u128::from(number))
    }

    fn time(self) -> Time {
        Time((self.0 >> 64) as u64)
    }
}

#[derive(Clone, Debug)]
struct Planned<E> {
    due: DueKey,
    event: E,
}

impl<E> Ord for Planned<E> {
    /// The earliest is the greatest, because `BinaryHeap` pops the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.due.cmp(&self.due)
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<E> Eq for Planned<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pops_by_time_then_by_arrival() {
        let mut agenda = Agenda::default();
        for (at, name) in [(2, "c"), (1, "a"), (2, "d"), (1, "b")] {
            agenda.plan(Time(at), name);
        }
        let order: Vec<&str> = std::iter::from_fn(|| agenda.pop())
            .map(|(_, e)| e)
            .collect();
        assert_eq!(order, ["a", "b", "c", "d"]);
    }

    #[test]
    fn planning_between_pops_keeps_the_order() {
        let mut generator = crate::Generator::new(5);
        let (mut agenda, mut popped) = (Agenda::default(), Vec::new());
        for number in 0..5_000 {
            let at = agenda.now() + Time(generator.below(8));
            agenda.plan(at, number);
            if generator.chance(0.6) {
                popped.extend(agenda.pop());
            }
        }
        popped.extend(std::iter::from_fn(|| agenda.pop()));
        assert_eq!(popped.len(), 5_000);
        assert!(popped.is_sorted(), "by time, then in the order of planning");
    }
}
