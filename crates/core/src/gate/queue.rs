//! The order of the waiters at one gate, and the bound on overtaking.
//!
//! A waiter's place is its rank: preferred readers or writers first, then class, then arrival. When a later waiter is let in
//! before an earlier one because of its rank, the earlier one was *overtaken*. Once a waiter has been overtaken as often as
//! the gate allows, it and all who came before it go ahead of all others, in order of arrival. In an election only the
//! candidates' own ranks count, and there is no bound.

use std::collections::VecDeque;

use super::definition::{Definition, GateOrder};
use super::mode::Mode;
use crate::wait::WaitKey;

/// Where a waiter stands. The lowest rank is the head of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    tier: Tier,
    /// The class; in an election a number that puts the highest rank first.
    class: u64,
    seq: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tier {
    /// May not be overtaken any more, or came before one that may not.
    Spent,
    /// What the gate's order prefers.
    Preferred,
    Other,
}

/// A waiter's place in one gate's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueuedLeg {
    pub(crate) rank: Rank,
    pub(crate) wait: WaitKey,
    /// Which leg of the wait is for this gate.
    pub(crate) leg: u32,
    pub(crate) overtaken: u32,
    /// Whether the wait is a set.
    pub(crate) set: bool,
}

impl QueuedLeg {
    /// The waiter's number in order of arrival.
    pub(crate) fn seq(&self) -> u64 {
        self.rank.seq
    }
}

impl Rank {
    /// The rank of a newcomer. A set is never preferred and always of the default class, so any two sets stand in the same
    /// order at every gate where they meet. Otherwise they could block each other with no holder at all.
    pub(crate) fn new(
        definition: &Definition,
        mode: &Mode,
        class: u32,
        set: bool,
        seq: u64,
    ) -> Rank {
        let preferred = match definition.order {
            GateOrder::Arrival => {
                return Rank {
                    tier: Tier::Other,
                    class: 0,
                    seq,
                };
            }
            GateOrder::Rank => {
                let rank = mode.candidacy().map_or(0, |candidacy| candidacy.rank);
                return Rank {
                    tier: Tier::Other,
                    class: rank.abs_diff(i64::MAX),
                    seq,
                };
            }
            GateOrder::Class => false,
            GateOrder::Readers => *mode == Mode::Shared,
            GateOrder::Writers => *mode == Mode::Exclusive,
        };
        let tier = if preferred && !set {
            Tier::Preferred
        } else {
            Tier::Other
        };
        let class = class.into();
        Rank { tier, class, seq }
    }

    fn spent(seq: u64) -> Rank {
        Rank {
            tier: Tier::Spent,
            class: 0,
            seq,
        }
    }
}

/// The waiters at one gate, head first.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    queued: VecDeque<QueuedLeg>,
    /// All who arrived up to this number have [`Tier::Spent`].
    spent_up_to: u64,
    /// How many of them are sets.
    sets: usize,
    /// No waiter stands ahead of one that came earlier, so nobody can be overtaken.
    by_arrival: bool,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.queued.len()
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &QueuedLeg> {
        self.queued.iter()
    }

    pub(crate) fn queued(&self, at: usize) -> Option<&QueuedLeg> {
        self.queued.get(at)
    }

    /// Whether all stand in order of arrival, so that entering overtakes nobody.
    pub(crate) fn by_arrival(&self) -> bool {
        self.by_arrival
    }

    /// How many sets wait here.
    pub(crate) fn sets(&self) -> usize {
        self.sets
    }

    pub(crate) fn spent_up_to(&self) -> u64 {
        self.spent_up_to
    }

    /// Adds a waiter in its place. With no overtaking allowed it is spent from the start.
    pub(crate) fn insert(&mut self, mut queued: QueuedLeg, overtakes: u32) {
        if overtakes == 0 {
            self.spent_up_to = self.spent_up_to.max(queued.seq());
        }
        queued.rank = self.current(queued.rank);
        let at = self.queued.partition_point(|e| e.rank < queued.rank);
        self.by_arrival = (self.by_arrival || self.queued.is_empty()) && at == self.queued.len();
        self.sets += usize::from(queued.set);
        self.queued.insert(at, queued);
    }

    /// The present position of the waiter that arrived with this rank.
    pub(crate) fn position(&self, arrived: Rank) -> usize {
        let rank = self.current(arrived);
        let at = self.queued.partition_point(|e| e.rank < rank);
        debug_assert!(self.queued.get(at).is_some_and(|e| e.rank == rank));
        at
    }

    /// Takes a waiter out; nobody counts as overtaken.
    pub(crate) fn remove(&mut self, arrived: Rank) {
        self.take_out(arrived);
    }

    /// Takes a waiter out because it enters by its rank; those behind it that came earlier were overtaken.
    pub(crate) fn enter(&mut self, arrived: Rank, overtakes: u32) {
        let at = self.take_out(arrived);
        if self.by_arrival || overtakes == u32::MAX {
            return;
        }
        let mut spent_up_to = self.spent_up_to;
        for queued in self.queued.range_mut(at..) {
            if queued.rank.seq < arrived.seq {
                queued.overtaken += 1;
                if queued.overtaken >= overtakes {
                    spent_up_to = spent_up_to.max(queued.rank.seq);
                }
            }
        }
        if spent_up_to > self.spent_up_to {
            self.spent_up_to = spent_up_to;
            self.settle_spent();
        }
    }

    fn take_out(&mut self, arrived: Rank) -> usize {
        let at = self.position(arrived);
        let queued = self
            .queued
            .remove(at)
            .expect("a waiter stands in its queue");
        self.sets -= usize::from(queued.set);
        at
    }

    /// Restores the boundary of a stored queue.
    pub(crate) fn restore_spent(&mut self, spent_up_to: u64) {
        self.spent_up_to = spent_up_to;
        self.settle_spent();
    }

    /// Moves all waiters up to the boundary to the front. Rare: it happens at most once to each waiter.
    fn settle_spent(&mut self) {
        for queued in &mut self.queued {
            if queued.rank.seq <= self.spent_up_to {
                queued.rank = Rank::spent(queued.rank.seq);
            }
        }
        self.queued.make_contiguous().sort_by_key(|e| e.rank);
    }

    fn current(&self, arrived: Rank) -> Rank {
        if arrived.seq <= self.spent_up_to {
            Rank::spent(arrived.seq)
        } else {
            arrived
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use crate::gate::Rule;

    /// A queue of classes; the waiters are numbered by their position in the list.
    fn queue(classes: &[u32], overtakes: u32) -> (Queue, Vec<Rank>) {
        let definition = Definition::new(Rule::Mutex);
        let mut keys = Arena::new();
        let mut queue = Queue::default();
        let ranks: Vec<Rank> = (1..)
            .zip(classes)
            .map(|(seq, class)| Rank::new(&definition, &Mode::Exclusive, *class, false, seq))
            .collect();
        for rank in &ranks {
            let wait = keys.insert(crate::wait::Wait::for_test());
            queue.insert(
                QueuedLeg {
                    rank: *rank,
                    wait,
                    leg: 0,
                    overtaken: 0,
                    set: false,
                },
                overtakes,
            );
        }
        (queue, ranks)
    }

    fn order(queue: &Queue) -> Vec<u64> {
        queue.iter().map(QueuedLeg::seq).collect()
    }

    #[test]
    fn class_then_arrival() {
        let (queue, _) = queue(&[1, 2, 0, 1, 0], 5);
        assert_eq!(order(&queue), [3, 5, 1, 4, 2]);
    }

    #[test]
    fn the_overtaken_go_first_once_they_were_passed_often_enough() {
        let (mut queue, ranks) = queue(&[2, 1, 0, 0, 0], 2);
        queue.enter(ranks[2], 2);
        assert_eq!(order(&queue), [4, 5, 2, 1]);
        queue.enter(ranks[3], 2);
        // Both were overtaken twice: they go ahead of the last urgent one, in order of arrival.
        assert_eq!(order(&queue), [1, 2, 5]);
    }

    #[test]
    fn no_overtaking_at_all_is_order_of_arrival() {
        assert_eq!(order(&queue(&[2, 0, 1], 0).0), [1, 2, 3]);
    }

    #[test]
    fn leaving_overtakes_nobody() {
        let (mut queue, ranks) = queue(&[2, 0], 1);
        queue.remove(ranks[1]);
        assert_eq!(queue.queued(0).map(|e| e.overtaken), Some(0));
    }
}
