//! Titles: who owns a shard, and under which number. Most neighbours have the same title, so titles are kept as runs.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{NodeId, Shard, Start};
use crate::fence::Fence;

/// How many titles a shard has had. It rises with every title, and fences are made from it.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Number(pub u32);

impl Number {
    /// The first number of a new log. Older logs begin here, too: an epoch of theirs counts as 64 numbers.
    pub const FIRST: Number = Number(64);
    /// The last number whose fences are below 2^53.
    pub const MAX: Number = Number((1 << 27) - 1);
    /// A generation's numbers begin above this. The numbers of a log that was never restored are far below.
    const RESTORED: u32 = 1 << 18;
    /// How many numbers a generation has to itself: a shard changes hands less often before the next generation can begin.
    pub const GENERATION: u32 = 4;

    /// The fence above all fences of earlier numbers and below all fences of this one.
    pub fn floor(self) -> Fence {
        Fence(u64::from(self.0) << Fence::COUNT_BITS)
    }

    /// The first number of a generation, unless it is past the last. Generations are slots of time, so every number given out
    /// before this one began is lower, whichever log gave it out and whichever backup that log was restored from.
    pub fn first_of(generation: u32) -> Option<Number> {
        let above = generation.checked_mul(Number::GENERATION)?;
        Number(Number::RESTORED).raised(above)
    }

    /// The number this many titles later, unless that is past the last.
    pub(crate) fn raised(self, by: u32) -> Option<Number> {
        let raised = Number(self.0.checked_add(by)?);
        (raised <= Number::MAX).then_some(raised)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Who owns a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Title {
    /// The owner.
    pub owner: NodeId,
    /// Which start of the owner.
    pub start: Start,
    /// The title's number.
    pub number: Number,
    /// The number under which this start became the owner. Since then it has handed the shard to nobody but itself, so
    /// anything that rests on a number from then on still holds.
    pub since: Number,
}

/// Adjacent shards with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The first shard.
    pub first: Shard,
    /// The last shard.
    pub last: Shard,
    /// Their number.
    pub number: Number,
}

impl Span {
    /// A single shard.
    pub fn of(shard: Shard, number: Number) -> Span {
        Span {
            first: shard,
            last: shard,
            number,
        }
    }
}

/// All titles. Part of the replicated half.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ownership {
    /// In order, without gaps, adjacent runs different. Empty before the first view: nobody owns anything.
    runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Run {
    first: Shard,
    title: Title,
}

impl Ownership {
    /// The title of a shard; nobody owns anything before the first view.
    pub fn title(&self, shard: Shard) -> Option<Title> {
        let after = self.runs.partition_point(|run| run.first <= shard);
        Some(self.runs.get(after.checked_sub(1)?)?.title)
    }

    /// The number of a shard's title; 0 before the first title.
    pub fn number(&self, shard: Shard) -> Number {
        self.title(shard).map_or(Number(0), |title| title.number)
    }

    /// The last shard of the run that this shard is in.
    pub(crate) fn last_of_run(&self, shard: Shard) -> Shard {
        let after = self.runs.partition_point(|run| run.first <= shard);
        let next = self.runs.get(after);
        next.map_or(Shard::LAST, |run| Shard(run.first.0 - 1))
    }

    /// The highest number of all.
    pub fn highest(&self) -> Number {
        let numbers = self.runs.iter().map(|run| run.title.number);
        numbers.max().unwrap_or_default()
    }

    /// The runs of adjacent shards with one title, in order.
    pub fn runs(&self) -> impl Iterator<Item = (RangeInclusive<u16>, Title)> {
        let ends = self.runs.iter().skip(1).map(|next| next.first.0 - 1);
        let ends = ends.chain([Shard::LAST.0]);
        let runs = self.runs.iter().zip(ends);
        runs.map(|(run, last)| (run.first.0..=last, run.title))
    }

    /// Whether something that rests on a shard's number still holds.
    pub(crate) fn holds(&self, shard: Shard, number: Number) -> bool {
        match self.title(shard) {
            Some(title) => (title.since..=title.number).contains(&number),
            None => number == Number(0),
        }
    }

    /// Gives new titles. `next` is called once per stretch of shards between cuts and changes of title.
    pub(super) fn retitle(
        &mut self,
        cuts: impl Iterator<Item = Shard>,
        next: impl Fn(Shard, Option<Title>) -> Title,
    ) {
        let mut firsts: Vec<Shard> = self.runs.iter().map(|run| run.first).collect();
        firsts.push(Shard(0));
        firsts.extend(cuts);
        firsts.sort_unstable();
        firsts.dedup();
        let mut runs: Vec<Run> = Vec::new();
        for first in firsts {
            let title = next(first, self.title(first));
            if runs.last().is_none_or(|run| run.title != title) {
                runs.push(Run { first, title });
            }
        }
        self.runs = runs;
    }

    /// Hands shards to a start of a node. The caller has checked [`Ownership::are_so`].
    pub(crate) fn hand_over(
        &mut self,
        spans: &[Span],
        taker: NodeId,
        start: Start,
        spread: &BTreeMap<Shard, u32>,
    ) {
        let behind = |span: &Span| span.last.0.checked_add(1).map(Shard);
        let behind = spans.iter().filter_map(behind);
        let cuts = spans.iter().map(|span| span.first).chain(behind);
        let cuts_around = |shard: &Shard| [Some(*shard), shard.0.checked_add(1).map(Shard)];
        let spread_cuts = spread.keys().flat_map(cuts_around).flatten();
        self.retitle(cuts.chain(spread_cuts), |shard, title| {
            let at = spans.partition_point(|span| span.last < shard);
            let span = spans.get(at).filter(|span| span.first <= shard);
            let title = title.expect("what is handed over has a title");
            let Some(span) = span else {
                return title;
            };
            let number = Number(span.number.0 + 1);
            // Where an algorithm moves a gate's ownership, it begins anew with every number.
            let same = (title.owner, title.start) == (taker, start);
            let kept = same && !spread.contains_key(&shard);
            Title {
                owner: taker,
                start,
                number,
                since: if kept { title.since } else { number },
            }
        });
    }

    /// Gives a shard at least a number. Its owner stays, so what rests on its present one still holds.
    pub(crate) fn lift(&mut self, shard: Shard, number: Number) {
        if self.number(shard) >= number {
            return;
        }
        let cuts = [Some(shard), shard.0.checked_add(1).map(Shard)];
        self.retitle(cuts.into_iter().flatten(), |first, title| {
            let title = title.expect("a shard below another's number, which has a title");
            match first == shard {
                true => Title { number, ..title },
                false => title,
            }
        });
    }

    /// Whether spans are in order and all of their shards have the numbers that the spans say.
    pub(crate) fn are_so(&self, spans: &[Span]) -> bool {
        let ordered = spans.windows(2).all(|two| two[0].last < two[1].first);
        let so = |span: &Span| {
            let other = |(shards, title): (RangeInclusive<u16>, Title)| {
                let apart = *shards.end() < span.first.0 || span.last.0 < *shards.start();
                !apart && title.number != span.number
            };
            span.first <= span.last && !self.runs.is_empty() && !self.runs().any(other)
        };
        ordered && !spans.is_empty() && spans.iter().all(so)
    }

    /// What an older log says: one node owns everything, under one number.
    pub(crate) fn of_one(title: Title) -> Ownership {
        let first = Shard(0);
        Ownership {
            runs: vec![Run { first, title }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(owner: u64, number: u32, since: u32) -> Title {
        Title {
            owner: NodeId(owner),
            start: Start(1),
            number: Number(number),
            since: Number(since),
        }
    }

    fn span(first: u16, last: u16, number: u32) -> Span {
        Span {
            first: Shard(first),
            last: Shard(last),
            number: Number(number),
        }
    }

    #[test]
    fn a_hand_over_changes_its_shards_and_no_others() {
        let mut ownership = Ownership::of_one(title(1, 64, 64));
        for (first, last) in [(7, 7), (0, 0), (65_535, 65_535), (100, 199)] {
            ownership.hand_over(
                &[span(first, last, 64)],
                NodeId(2),
                Start(1),
                &BTreeMap::new(),
            );
        }
        for (shard, owner, number) in [
            (0, 2, 65),
            (1, 1, 64),
            (7, 2, 65),
            (99, 1, 64),
            (100, 2, 65),
            (199, 2, 65),
            (200, 1, 64),
            (65_535, 2, 65),
        ] {
            let title = ownership.title(Shard(shard)).unwrap();
            assert_eq!((title.owner, title.number), (NodeId(owner), Number(number)));
        }
        assert_eq!(ownership.runs().count(), 7);
        assert_eq!(ownership.highest(), Number(65));
        // Back again: equal neighbours are one run.
        let all: Vec<Span> = ownership
            .runs()
            .map(|(shards, title)| span(*shards.start(), *shards.end(), title.number.0))
            .filter(|span| span.number == Number(64))
            .collect();
        assert!(ownership.are_so(&all));
        ownership.hand_over(&all, NodeId(2), Start(1), &BTreeMap::new());
        assert_eq!(ownership.runs().count(), 1);
    }

    #[test]
    fn what_rests_on_a_number_holds_until_another_owns_the_shard() {
        let mut ownership = Ownership::of_one(title(1, 64, 64));
        let holds = |ownership: &Ownership, number| ownership.holds(Shard(7), Number(number));
        ownership.hand_over(&[span(7, 7, 64)], NodeId(1), Start(1), &BTreeMap::new());
        assert!(holds(&ownership, 64) && holds(&ownership, 65));
        assert!(!holds(&ownership, 63) && !holds(&ownership, 66));
        ownership.hand_over(&[span(7, 7, 65)], NodeId(2), Start(1), &BTreeMap::new());
        assert!(!holds(&ownership, 65) && holds(&ownership, 66));
        // The same node, but it had given the shard away.
        ownership.hand_over(&[span(7, 7, 66)], NodeId(1), Start(1), &BTreeMap::new());
        assert!(!holds(&ownership, 65) && holds(&ownership, 67));
        // The same node, restarted.
        ownership.hand_over(&[span(7, 7, 67)], NodeId(1), Start(2), &BTreeMap::new());
        assert!(!holds(&ownership, 67) && holds(&ownership, 68));
    }

    #[test]
    fn a_lifted_shard_stays_with_its_owner() {
        let mut ownership = Ownership::of_one(title(1, 64, 64));
        ownership.hand_over(&[span(7, 7, 64)], NodeId(1), Start(1), &BTreeMap::new());
        let before = ownership.clone();
        ownership.lift(Shard(8), Number(64));
        ownership.lift(Shard(7), Number(65));
        assert_eq!(ownership, before, "they have such a number");
        ownership.lift(Shard(8), Number(65));
        assert_eq!(ownership.number(Shard(8)), Number(65));
        assert_eq!(ownership.number(Shard(9)), Number(64));
        assert!(ownership.holds(Shard(8), Number(64)));
        ownership.lift(Shard::LAST, Number(70));
        assert_eq!(ownership.number(Shard::LAST), Number(70));
        assert_eq!(ownership.number(Shard(65_534)), Number(64));
    }

    #[test]
    fn spans_that_are_not_so_are_noticed() {
        let mut ownership = Ownership::of_one(title(1, 64, 64));
        ownership.hand_over(&[span(7, 9, 64)], NodeId(1), Start(1), &BTreeMap::new());
        for good in [
            &[span(0, 6, 64)][..],
            &[span(0, 6, 64), span(7, 9, 65), span(10, 65_535, 64)],
            &[span(8, 8, 65)],
        ] {
            assert!(ownership.are_so(good), "{good:?}");
        }
        for bad in [
            &[][..],
            &[span(0, 7, 64)],
            &[span(8, 8, 64)],
            &[span(9, 10, 65)],
            &[span(6, 5, 64)],
            &[span(20, 21, 64), span(21, 22, 64)],
            &[span(30, 31, 64), span(20, 21, 64)],
        ] {
            assert!(!ownership.are_so(bad), "{bad:?}");
        }
        assert!(!Ownership::default().are_so(&[span(0, 0, 0)]));
    }
}
