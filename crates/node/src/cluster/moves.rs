//! Moves: which shards went from which node to which, as applied by this node. Only the latest are kept.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use testigo_core::{Change, NodeId, Ownership, Shard};

/// Cap on moves that are kept.
const MOVES_MAX: usize = 256;

/// Shards that one entry of the log moved from one node to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Move {
    /// The wall clock when the entry was submitted.
    pub(crate) at_ms: u64,
    /// Their previous owner; `None` for the first owner ever.
    pub(crate) from: Option<u64>,
    pub(crate) to: u64,
    /// How many there are, and the first of them.
    pub(crate) shards: usize,
    pub(crate) first: u16,
    /// The highest number that they have now.
    pub(crate) number: u32,
    /// Whether a view gave them, because a node came or left; otherwise their owner handed them over.
    pub(crate) by_view: bool,
}

/// The latest moves, and the number of moves since this node started.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    latest: VecDeque<Move>,
    ever: u64,
}

impl Moves {
    /// Notes an applied entry; `before` has the titles until then.
    pub(crate) fn note(
        &mut self,
        at_ms: u64,
        change: &Change,
        before: &Ownership,
        now: &Ownership,
    ) {
        let by_view = matches!(change, Change::View { .. } | Change::ViewInTerm { .. });
        for moved in moved(before, now).into_values() {
            self.ever += 1;
            if self.latest.len() == MOVES_MAX {
                self.latest.pop_front();
            }
            self.latest.push_back(Move {
                at_ms,
                by_view,
                ..moved
            });
        }
    }

    /// The number of moves since this node started.
    pub(crate) fn ever(&self) -> u64 {
        self.ever
    }

    /// The latest, newest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Move> {
        self.latest.iter().rev()
    }
}

/// The shards that changed hands, by giver and taker.
fn moved(before: &Ownership, now: &Ownership) -> BTreeMap<(Option<NodeId>, NodeId), Move> {
    let mut cuts: Vec<u16> = [before, now]
        .iter()
        .flat_map(|titles| titles.runs().map(|(shards, _)| *shards.start()))
        .collect();
    cuts.sort_unstable();
    cuts.dedup();
    let mut moves: BTreeMap<(Option<NodeId>, NodeId), Move> = BTreeMap::new();
    for (at, first) in cuts.iter().enumerate() {
        let end = cuts
            .get(at + 1)
            .map_or(Shard::COUNT, |next| usize::from(*next));
        let Some(title) = now.title(Shard(*first)) else {
            continue;
        };
        let from = before.title(Shard(*first)).map(|title| title.owner);
        if from == Some(title.owner) {
            continue;
        }
        let one = moves.entry((from, title.owner)).or_insert(Move {
            at_ms: 0,
            from: from.map(|node| node.0),
            to: title.owner.0,
            shards: 0,
            first: *first,
            number: 0,
            by_view: false,
        });
        one.shards += end - usize::from(*first);
        one.number = one.number.max(title.number.0);
    }
    moves
}

#[cfg(test)]
mod tests {
    use testigo_core::{Limits, Number, Replicated, Span, Start};

    use super::*;

    fn apply(log: &mut Replicated, moves: &mut Moves, change: Change) {
        let before = log.ownership().clone();
        drop(log.apply(0, &change).unwrap());
        moves.note(7, &change, &before, log.ownership());
    }

    fn view(log: &Replicated, members: &[(u64, u64)]) -> Change {
        let members = members
            .iter()
            .map(|(node, start)| (NodeId(*node), Start(*start)));
        Change::View {
            before: log.view().index,
            members: members.collect(),
            generation: 0,
        }
    }

    #[test]
    fn what_changes_hands_is_counted_by_giver_and_taker() {
        let (mut log, mut moves) = (Replicated::new(Limits::default()), Moves::default());
        let alone = view(&log, &[(1, 1)]);
        apply(&mut log, &mut moves, alone);
        let first = moves.latest().next().unwrap();
        assert_eq!(
            (first.from, first.to, first.shards),
            (None, 1, Shard::COUNT)
        );
        let two = view(&log, &[(1, 1), (2, 1)]);
        apply(&mut log, &mut moves, two);
        assert_eq!(moves.ever(), 1, "who comes takes nothing from anybody");
        let (shard, number) = (Shard(9), log.ownership().number(Shard(9)));
        let handed = Change::Titles {
            shards: vec![Span::of(shard, number)],
            taker: NodeId(2),
            start: Start(1),
        };
        apply(&mut log, &mut moves, handed);
        let number = Number(number.0 + 1).0;
        let expected = Move {
            at_ms: 7,
            from: Some(1),
            to: 2,
            shards: 1,
            first: 9,
            number,
            by_view: false,
        };
        assert_eq!(moves.latest().next(), Some(&expected));
        let left = view(&log, &[(2, 1)]);
        apply(&mut log, &mut moves, left);
        let all = moves.latest().next().unwrap();
        assert_eq!((all.from, all.shards), (Some(1), Shard::COUNT - 1));
        assert!(all.by_view);
    }

    #[test]
    fn only_the_latest_are_kept() {
        let (mut log, mut moves) = (Replicated::new(Limits::default()), Moves::default());
        for start in 1..300 {
            let next = view(&log, &[(1 + start % 2, start)]);
            apply(&mut log, &mut moves, next);
        }
        assert_eq!(moves.latest().count(), MOVES_MAX);
        assert_eq!(moves.ever(), 299);
    }
}
