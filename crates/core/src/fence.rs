//! Fences: numbers that only grow, so that the protected side can tell a stale holder from the present one. A fence is the
//! number of its shard's title and a count of the grants under it, `number·2^26 + count`, below 2^53 so that every client's
//! number type can hold it. So all fences of a later title are above all of an earlier one. Only fences of one gate are ever
//! compared. The attempts of jobs are made in the same way from their queue's shard.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ownership::{Number, Ownership, Shard};

/// The number that comes with a grant. It exceeds that of every earlier grant with which it conflicts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Fence(pub u64);

impl Fence {
    /// How many bits count the grants under a number.
    pub const COUNT_BITS: u32 = 26;

    /// The number under which it was granted.
    pub fn number(self) -> Number {
        Number(u32::try_from(self.0 >> Fence::COUNT_BITS).unwrap_or(u32::MAX))
    }

    /// Its position among the grants under its number, counted from 1.
    fn count(self) -> u64 {
        self.0 & COUNT_MAX
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The last count under a number.
const COUNT_MAX: u64 = (1 << Fence::COUNT_BITS) - 1;

/// The count at which the next number is requested, long before the last.
const LOW_WATER: u64 = 1 << (Fence::COUNT_BITS - 1);

/// After this many more grants it is requested again, if it has not come.
const ASK_AGAIN: u64 = 1 << 20;

/// The node's source of fences: the last one of every shard. It takes half a megabyte, so that a grant finds its shard's
/// fence with one lookup.
#[derive(Clone, Debug)]
pub(crate) struct Fences(Box<[Fence]>);

impl Fences {
    pub(crate) fn new(ownership: &Ownership) -> Fences {
        let mut fences = Fences(vec![Fence(0); Shard::COUNT].into());
        fences.raise(ownership);
        fences
    }

    /// Continues under the present titles. A number never falls, so neither does a fence.
    pub(crate) fn raise(&mut self, ownership: &Ownership) {
        for (shards, title) in ownership.runs() {
            let floor = title.number.floor();
            let (first, last) = (usize::from(*shards.start()), usize::from(*shards.end()));
            for last in &mut self.0[first..=last] {
                *last = floor.max(*last);
            }
        }
    }

    /// Lifts a shard to at least this number, and above this fence if its number is that one or an earlier one. Says whether
    /// it is time to request another number.
    pub(crate) fn lift(&mut self, shard: Shard, number: Number, above: Fence) -> bool {
        let last = &mut self.0[usize::from(shard.0)];
        let before = *last;
        *last = number.floor().max(*last);
        if above.number() <= last.number() {
            *last = above.max(*last);
        }
        *last > before && last.count() >= LOW_WATER
    }

    /// The number under which a shard's fences are granted.
    pub(crate) fn number(&self, shard: Shard) -> Number {
        self.last(shard).number()
    }

    /// The numbers of all shards, each with the first shard of its run.
    pub(crate) fn numbers(&self) -> Vec<(Shard, Number)> {
        let mut numbers: Vec<(Shard, Number)> = Vec::new();
        for (shard, fence) in (0..=Shard::LAST.0).zip(&*self.0) {
            if numbers.last().map(|(_, number)| *number) != Some(fence.number()) {
                numbers.push((Shard(shard), fence.number()));
            }
        }
        numbers
    }

    /// Whether `count` grants can still get their fences under the shard's number.
    #[inline]
    pub(crate) fn suffices(&self, shard: Shard, count: usize) -> bool {
        COUNT_MAX - self.last(shard).count() >= count as u64
    }

    /// The next fence of a shard, and whether it is time to request another number. The caller has checked
    /// [`Fences::suffices`].
    #[inline]
    pub(crate) fn next(&mut self, shard: Shard) -> (Fence, bool) {
        let last = &mut self.0[usize::from(shard.0)];
        assert!(
            last.count() < COUNT_MAX,
            "a fence was drawn from a number that is used up"
        );
        last.0 += 1;
        let count = last.count();
        (*last, count >= LOW_WATER && count.is_multiple_of(ASK_AGAIN))
    }

    /// The last fence granted in a shard, or its floor.
    #[inline]
    pub(crate) fn last(&self, shard: Shard) -> Fence {
        self.0[usize::from(shard.0)]
    }

    /// Acts as if this many grants had been made.
    #[cfg(test)]
    pub(crate) fn spend(&mut self, shard: Shard, count: u64) {
        self.0[usize::from(shard.0)] = Fence(self.number(shard).floor().0 + count);
    }

    #[cfg(test)]
    pub(crate) fn spend_all(&mut self, shard: Shard) {
        self.spend(shard, COUNT_MAX);
    }

    #[cfg(test)]
    pub(crate) fn spend_nearly_half(&mut self, shard: Shard) {
        self.spend(shard, LOW_WATER - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ownership::{NodeId, Span, Start, Title};

    const SHARD: Shard = Shard(7);

    fn owned(number: u32) -> Ownership {
        Ownership::of_one(Title {
            owner: NodeId(1),
            start: Start(1),
            number: Number(number),
            since: Number(number),
        })
    }

    #[test]
    fn fences_grow_across_numbers_and_stay_below_two_to_the_53() {
        let mut fences = Fences::new(&owned(64));
        let (first, _) = fences.next(SHARD);
        assert_eq!((first, first.number()), (Fence(64 << 26 | 1), Number(64)));
        assert!(fences.next(SHARD).0 > first);
        fences.raise(&owned(65));
        let (later, _) = fences.next(SHARD);
        assert_eq!(later, Fence(65 << 26 | 1));
        fences.raise(&owned(64));
        assert!(fences.next(SHARD).0 > later, "a number never falls");
        fences.raise(&owned(65));
        assert_eq!(fences.next(SHARD).0, Fence(65 << 26 | 3), "nor a count");
        assert!(Number::MAX.floor().0 + COUNT_MAX < 1 << 53);
    }

    #[test]
    fn shards_count_for_themselves() {
        let mut ownership = owned(64);
        let span = Span::of(SHARD, Number(64));
        ownership.hand_over(
            &[span],
            NodeId(1),
            Start(1),
            &std::collections::BTreeMap::new(),
        );
        let mut fences = Fences::new(&ownership);
        assert_eq!(fences.next(SHARD).0, Fence(65 << 26 | 1));
        for other in [0, 6, 8, u16::MAX] {
            assert_eq!(fences.next(Shard(other)).0, Fence(64 << 26 | 1));
        }
        let numbers = [(0, 64), (7, 65), (8, 64)];
        let numbers = numbers.map(|(shard, number)| (Shard(shard), Number(number)));
        assert_eq!(fences.numbers(), numbers);
    }

    #[test]
    fn a_lifted_shard_goes_on_above() {
        let mut fences = Fences::new(&owned(64));
        let mut lifted = |number, above| {
            assert!(!fences.lift(SHARD, Number(number), Fence(above)));
            fences.next(SHARD).0
        };
        assert_eq!(lifted(64, 64 << 26 | 9), Fence(64 << 26 | 10));
        assert_eq!(lifted(64, 64 << 26 | 3), Fence(64 << 26 | 11));
        assert_eq!(lifted(70, 69 << 26 | 3), Fence(70 << 26 | 1));
        assert_eq!(
            lifted(70, 71 << 26 | 3),
            Fence(70 << 26 | 2),
            "never granted"
        );
        let low = Fence((70 << 26) | (LOW_WATER + 1));
        assert!(fences.lift(SHARD, Number(70), low));
        assert!(!fences.lift(SHARD, Number(70), low), "it was asked for");
    }

    #[test]
    fn the_next_number_is_asked_for_early() {
        let mut fences = Fences::new(&owned(64));
        assert!(!fences.next(SHARD).1);
        fences.spend_nearly_half(SHARD);
        assert!(fences.next(SHARD).1 && !fences.next(SHARD).1);
        fences.spend(SHARD, LOW_WATER + ASK_AGAIN - 1);
        assert!(fences.next(SHARD).1, "nothing came of it");
        fences.spend(SHARD, COUNT_MAX - 2);
        assert!(fences.suffices(SHARD, 2) && !fences.suffices(SHARD, 3));
        fences.spend_all(SHARD);
        assert!(!fences.suffices(SHARD, 1) && fences.suffices(Shard(8), 64));
    }
}
