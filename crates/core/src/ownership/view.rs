//! Views: who is in. A view lists its members by node and start. It decides whose entries the log accepts, and gives the
//! shards of starts that have left to the members that stay.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{NODES_MAX, NodeId, Number, Ownership, Shard, Start, Title};
use crate::error::{Refusal, Word};

/// The position of a change in the log, counted from 1. It names views, homes of sessions and attempts of once-keys. The
/// engine's log counts flushes, each with many changes; this counts changes, refused ones included.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Index(pub u64);

/// Who submitted an entry, and its position among all that this start submits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// The node.
    pub node: NodeId,
    /// Which start of the node.
    pub start: Start,
    /// Counted from 1.
    pub sequence: u64,
}

/// A member of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its present start.
    pub start: Start,
    /// The sequence number of the last entry that the log accepted from it.
    pub sequence: u64,
}

/// Who is in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// The log entry of this view.
    pub index: Index,
    /// By node.
    pub members: Vec<Member>,
    /// The slot of time in which the log was last restored from a backup; 0 if it never was.
    pub generation: u32,
}

/// Shards are given away in blocks of 2^6, so that titles stay in few runs.
const BLOCK_BITS: u32 = 6;

impl View {
    /// Whether a start of a node is a member.
    pub fn has(&self, node: NodeId, start: Start) -> bool {
        self.member(node, start).is_some()
    }

    /// Whether some start of a node is a member.
    pub(crate) fn has_node(&self, node: NodeId) -> bool {
        self.members.iter().any(|member| member.node == node)
    }

    fn member(&self, node: NodeId, start: Start) -> Option<&Member> {
        let mut members = self.members.iter();
        members.find(|member| (member.node, member.start) == (node, start))
    }

    /// Accepts a member's next entry and nothing else. From a start that is not a member it accepts only a view.
    pub(crate) fn take(&mut self, origin: Origin, view: bool) -> Result<(), Refusal> {
        let Origin {
            node,
            start,
            sequence,
        } = origin;
        let mut members = self.members.iter_mut();
        let member = members.find(|member| (member.node, member.start) == (node, start));
        let why = match member {
            // The first entry may come after others that were submitted before the start was a member.
            Some(member) if member.sequence + 1 == sequence || member.sequence == 0 => {
                member.sequence = sequence;
                return Ok(());
            }
            None if view => return Ok(()),
            Some(member) => format!("was to follow its entry {}", member.sequence),
            None => "is of a start that is not a member".into(),
        };
        Err(Refusal::new(
            Word::Unavailable,
            format!("entry {sequence} of node {node}, start {start}, {why}; nothing came of it"),
        ))
    }

    /// Whether these members can follow the present ones.
    pub(crate) fn check_next(
        &self,
        before: Index,
        members: &[(NodeId, Start)],
        generation: u32,
    ) -> Result<(), Refusal> {
        if before != self.index {
            return Err(Refusal::new(
                Word::Stale,
                format!(
                    "the view was to follow view {before}, and the present one is {}",
                    self.index
                ),
            ));
        }
        let ordered = members.windows(2).all(|two| two[0].0 < two[1].0);
        let known = |(node, _): &(NodeId, Start)| (1..=NODES_MAX).contains(&node.0);
        let later = |(node, start): &(NodeId, Start)| {
            let mut present = self.members.iter().filter(|member| member.node == *node);
            present.all(|member| member.start <= *start)
        };
        if ordered
            && !members.is_empty()
            && members.iter().all(known)
            && members.iter().all(later)
            && generation >= self.generation
        {
            return Ok(());
        }
        Err(Refusal::new(
            Word::BadArg,
            format!(
                "a view has members 1 to {NODES_MAX} in order, none of an earlier start or generation; this one has {members:?}"
            ),
        ))
    }

    /// The view of these members. Members that stay keep their sequence; `origin` has begun with this entry.
    pub(crate) fn next(
        &self,
        index: Index,
        members: &[(NodeId, Start)],
        generation: u32,
        origin: Option<Origin>,
    ) -> View {
        let members = members.iter().map(|&(node, start)| {
            let own = origin.filter(|origin| (origin.node, origin.start) == (node, start));
            let present = self.member(node, start).map(|member| member.sequence);
            let begun = own.map(|origin| origin.sequence);
            Member {
                node,
                start,
                sequence: present.or(begun).unwrap_or(0),
            }
        });
        View {
            index,
            members: members.collect(),
            generation,
        }
    }

    /// The member that inherits a block of shards when its owner has left: the one with the highest lot. Every node computes
    /// the same; when a member leaves, only its own shards move, and they spread over all others.
    fn heir(&self, block: u16) -> &Member {
        let lot = |member: &&Member| (mixed(member.node.0 << 16 | u64::from(block)), member.node);
        let heir = self.members.iter().max_by_key(lot);
        heir.expect("a view has members")
    }
}

/// The finisher of SplitMix64: every bit of the result depends on every bit of the number.
fn mixed(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

impl Ownership {
    /// Whether there are numbers for the next view.
    pub(crate) fn can_rise(&self, view: &View, generation: u32) -> bool {
        let restored = generation != view.generation;
        let numbered = !restored || Number::first_of(generation).is_some();
        numbered && self.highest().max(Number::FIRST).raised(1).is_some()
    }

    /// A view gives every shard of a start that has left to a member, and the first view of a generation every shard. Shards
    /// with gates whose ownership an algorithm moves get another number in any case, because the algorithm begins anew with
    /// every view.
    pub(crate) fn follow(
        &mut self,
        view: &View,
        begins: Option<Number>,
        spread: &BTreeMap<Shard, u32>,
    ) {
        let blocks = (0..=Shard::LAST.0 >> BLOCK_BITS).map(|block| Shard(block << BLOCK_BITS));
        let behind = |shard: &Shard| shard.0.checked_add(1).map(Shard);
        let spread_cuts = spread.keys().copied();
        let cuts = spread_cuts.chain(spread.keys().filter_map(behind));
        self.retitle(blocks.chain(cuts), |shard, title| {
            if let Some(title) = title.filter(|title| view.has(title.owner, title.start))
                && begins.is_none()
            {
                let number = Number(title.number.0 + 1);
                return match spread.contains_key(&shard) && number <= Number::MAX {
                    true => Title {
                        number,
                        since: number,
                        ..title
                    },
                    false => title,
                };
            }
            let member = view.heir(shard.0 >> BLOCK_BITS);
            let next = match title {
                Some(title) => Number(title.number.0 + 1),
                None => Number::FIRST,
            };
            let number = next.max(begins.unwrap_or(next));
            Title {
                owner: member.node,
                start: member.start,
                number,
                since: number,
            }
        });
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(members: &[(u64, u64)]) -> View {
        let members = members.iter().map(|(node, start)| Member {
            node: NodeId(*node),
            start: Start(*start),
            sequence: 0,
        });
        View {
            members: members.collect(),
            ..View::default()
        }
    }

    fn owned(ownership: &Ownership, node: u64) -> usize {
        let runs = ownership.runs();
        let own = runs.filter(|(_, title)| title.owner == NodeId(node));
        own.map(|(shards, _)| shards.len()).sum()
    }

    #[test]
    fn only_the_shards_of_those_that_left_change_hands() {
        let mut ownership = Ownership::default();
        ownership.follow(&view(&[(1, 1), (2, 1), (3, 1)]), None, &BTreeMap::new());
        assert_eq!(ownership.highest(), Number::FIRST);
        let before = ownership.clone();
        for node in 1..=3 {
            let share = owned(&ownership, node) as f64 / Shard::COUNT as f64;
            assert!((0.28..0.39).contains(&share), "node {node} owns {share}");
        }
        // Node 2 is gone and node 3 was restarted: both have left, and node 1 keeps what it had.
        ownership.follow(&view(&[(1, 1), (3, 2)]), None, &BTreeMap::new());
        for shard in (0..=u16::MAX).map(Shard) {
            let [was, is] = [&before, &ownership].map(|titles| titles.title(shard).unwrap());
            match was.owner {
                NodeId(1) => assert_eq!(is, was),
                _ => assert_eq!(is.number, Number(was.number.0 + 1)),
            }
        }
        assert!(owned(&ownership, 2) == 0 && owned(&ownership, 3) > Shard::COUNT / 4);
        assert!(ownership.runs().count() <= 1 << (16 - BLOCK_BITS));
    }

    #[test]
    fn alone_a_node_owns_everything_by_one_title_a_start() {
        let mut ownership = Ownership::default();
        for start in 1..4 {
            ownership.follow(&view(&[(1, start)]), None, &BTreeMap::new());
            assert_eq!(ownership.runs().count(), 1);
            let title = ownership.title(Shard(9)).unwrap();
            let number = Number(63 + start as u32);
            assert_eq!((title.start, title.number), (Start(start), number));
            assert_eq!(title.since, number);
        }
    }

    #[test]
    fn a_generation_raises_every_number_to_its_first() {
        let alone = view(&[(1, 1)]);
        let mut ownership = Ownership::default();
        ownership.follow(&alone, None, &BTreeMap::new());
        let first = Number::first_of(7).unwrap();
        ownership.follow(&alone, Some(first), &BTreeMap::new());
        let number = ownership.number(Shard(0));
        assert_eq!(number, first, "although its owner is still a member");
        ownership.follow(&alone, Some(Number(9)), &BTreeMap::new());
        assert_eq!(ownership.number(Shard(0)), Number(first.0 + 1));
        assert!(ownership.can_rise(&alone, 8));
        assert!(!ownership.can_rise(&alone, 1 << 25), "past the last");
        assert!(!ownership.can_rise(&alone, u32::MAX));
    }

    #[test]
    fn the_log_takes_only_the_next_entry_of_a_member() {
        let mut view = view(&[(1, 7)]);
        let mut take = |start, sequence, is_view| {
            let origin = Origin {
                node: NodeId(1),
                start: Start(start),
                sequence,
            };
            view.take(origin, is_view).is_ok()
        };
        assert!(take(7, 1, false) && take(7, 2, false));
        assert!(!take(7, 2, false), "a second time");
        assert!(!take(7, 4, false), "a gap");
        assert!(!take(7, 2, true), "a view of a member is in order, too");
        assert!(!take(6, 3, false), "an earlier start");
        assert!(!take(8, 1, false), "a start that no view has let in");
        assert!(take(8, 1, true));
        assert!(take(7, 3, false));
    }

    #[test]
    fn a_view_follows_the_one_before() {
        let present = view(&[(1, 7), (2, 3)]);
        let check = |before, members: &[(u64, u64)], generation| {
            let members: Vec<_> = members
                .iter()
                .map(|(node, start)| (NodeId(*node), Start(*start)))
                .collect();
            let checked = present.check_next(Index(before), &members, generation);
            checked.map_err(|refusal| refusal.word)
        };
        assert_eq!(check(0, &[(1, 8), (2, 3)], 0), Ok(()));
        assert_eq!(check(0, &[(2, 3)], 1), Ok(()));
        assert_eq!(check(1, &[(1, 8)], 0), Err(Word::Stale));
        for bad in [
            &[][..],
            &[(0, 1)],
            &[(256, 1)],
            &[(1, 6)],
            &[(2, 3), (1, 8)],
            &[(1, 8), (1, 9)],
        ] {
            assert_eq!(check(0, bad, 0), Err(Word::BadArg), "{bad:?}");
        }
    }
}
