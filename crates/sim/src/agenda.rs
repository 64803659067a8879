//! What happens next: events in order of time, and of arrival where times are equal.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Time;

/// A queue of events by time. Events of the same time come out in the order in which they went in.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    heap: BinaryHeap<Planned<E>>,
    planned: u64,
    now: Time,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda {
            heap: BinaryHeap::new(),
            planned: 0,
            now: Time::ZERO,
        }
    }
}

impl<E> Agenda<E> {
    pub fn plan(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event may not be planned in the past");
        self.heap.push(Planned {
            at,
            number: self.planned,
            event,
        });
        self.planned += 1;
    }

    /// The next event; time moves to it.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let next = self.heap.pop()?;
        self.now = next.at;
        Some((next.at, next.event))
    }

    pub fn now(&self) -> Time {
        self.now
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[derive(Clone, Debug)]
struct Planned<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> Ord for Planned<E> {
    /// The earliest is the greatest, because `BinaryHeap` pops the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<E> PartialOrd for Planned<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Planned<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
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
}
