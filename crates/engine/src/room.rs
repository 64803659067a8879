//! Room on the members' disks. As long as everybody has enough, nobody says anything about it. As soon as one disk is short,
//! all members tell each other how much is free: then everybody knows whether a majority can still write, and a leader that
//! is short knows who can lead in its place.

use std::collections::BTreeMap;

use crate::elections::ELECTION_TICKS;
use crate::open::START_BYTES;

/// How often the members tell each other, in ticks, while somebody is short.
const SAY_TICKS: u32 = 10;

/// For how many ticks another member's word counts.
const HEARD_TICKS: u32 = 60;

/// After so many ticks without success a leader that is short tries to hand over again. In between it leads as before.
const PAUSE_TICKS: u32 = 2 * ELECTION_TICKS as u32;

/// What an entry costs on the disk beyond its bytes, at most.
const OVERHEAD_BYTES: u64 = 64;

/// How much room a disk has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Room {
    /// Not even for the entries that others propose: the node takes none until there is room.
    None,
    /// Less than [`DISK_RESERVE_BYTES`](crate::DISK_RESERVE_BYTES).
    Short,
    /// Enough.
    #[default]
    Enough,
}

/// How much is free on the members' disks.
#[derive(Debug)]
pub(crate) struct Rooms {
    own: u64,
    reserve: u64,
    /// Other members that have said lately how much is free there, and for how many ticks that is known.
    heard: BTreeMap<u64, (u64, u32)>,
    /// For how many ticks somebody has been short.
    short: u32,
    said_short: bool,
    /// The bytes of the entries that were taken and are not flushed.
    unflushed: u64,
    /// Ticks until the next attempt to hand over.
    pause: u32,
    attempts: usize,
}

impl Rooms {
    pub(crate) fn new(reserve: u64) -> Self {
        Self {
            own: u64::MAX,
            reserve,
            heard: BTreeMap::new(),
            short: 0,
            said_short: false,
            unflushed: 0,
            pause: 0,
            attempts: 0,
        }
    }

    /// The free space here, at the last look.
    pub(crate) fn own(&self) -> u64 {
        self.own
    }

    pub(crate) fn looked(&mut self, free_bytes: u64) {
        self.own = free_bytes;
    }

    pub(crate) fn heard(&mut self, from: u64, free_bytes: u64) {
        self.heard.insert(from, (free_bytes, 0));
    }

    /// What this node has room for.
    pub(crate) fn room(&self) -> Room {
        match self.own {
            own if own < START_BYTES => Room::None,
            own if own < self.reserve => Room::Short,
            _ => Room::Enough,
        }
    }

    /// Whether the last look is so close to the end that another is worth its time.
    pub(crate) fn is_near(&self) -> bool {
        self.own < 2 * self.reserve
    }

    /// Whether entries of so many bytes can be written. If so, they count as taken.
    pub(crate) fn take(&mut self, bytes: u64, entries: usize) -> bool {
        let bytes = bytes + OVERHEAD_BYTES * entries as u64;
        let can = self.own >= START_BYTES.saturating_add(self.unflushed + bytes);
        if can {
            self.unflushed += bytes;
        }
        can
    }

    /// Everything that was taken is on the disk, and the next look sees it.
    pub(crate) fn flushed(&mut self) {
        self.unflushed = 0;
    }

    /// Advances time. Says whether the others are to be told how much is free here.
    pub(crate) fn tick(&mut self) -> bool {
        self.heard.retain(|_, (_, ticks)| {
            *ticks += 1;
            *ticks <= HEARD_TICKS
        });
        self.pause = self.pause.saturating_sub(1);
        let short = self.own < self.reserve;
        let others = self.heard.values();
        self.short = match short || others.into_iter().any(|(free, _)| *free < self.reserve) {
            true => self.short + 1,
            false => 0,
        };
        let changed = std::mem::replace(&mut self.said_short, short) != short;
        changed || self.short % SAY_TICKS == 1
    }

    /// The free space that a majority of the voters has, and the one of them that has least. Silent voters do not count:
    /// without a majority that is heard, nothing is known.
    pub(crate) fn of_majority(&self, own: u64, voters: &[u64]) -> (u64, u64) {
        let majority = voters.len() / 2 + 1;
        // The others' words must have had the time to arrive.
        if voters != [own] && self.short <= SAY_TICKS {
            return (own, u64::MAX);
        }
        let heard = voters.iter().filter_map(|voter| match *voter == own {
            true => Some((self.own, own)),
            false => self.heard.get(voter).map(|(free, _)| (*free, *voter)),
        });
        let mut heard: Vec<(u64, u64)> = heard.collect();
        heard.sort_unstable_by(|a, b| b.cmp(a));
        let least = heard.get(majority.saturating_sub(1));
        least.map_or((own, u64::MAX), |(free, node)| (*node, *free))
    }

    /// The voter that is to lead in place of this node, which is short: one that says that it has room, each in its turn.
    pub(crate) fn heir(&mut self, voters: &[u64]) -> Option<u64> {
        if self.room() == Room::Enough || self.pause > 0 {
            return None;
        }
        let roomy = voters.iter().copied().filter(|voter| {
            let heard = self.heard.get(voter);
            heard.is_some_and(|(free, _)| *free >= self.reserve)
        });
        let roomy: Vec<u64> = roomy.collect();
        let heir = *roomy.get(self.attempts % roomy.len().max(1))?;
        self.attempts += 1;
        self.pause = PAUSE_TICKS;
        Some(heir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESERVE: u64 = 64 << 20;

    fn rooms(own: u64, others: &[(u64, u64)]) -> Rooms {
        let mut rooms = Rooms::new(RESERVE);
        rooms.looked(own);
        for (node, free) in others {
            rooms.heard(*node, *free);
        }
        rooms
    }

    fn told(rooms: &mut Rooms, ticks: u32) -> usize {
        (0..ticks).filter(|_| rooms.tick()).count()
    }

    #[test]
    fn nobody_says_anything_while_everybody_has_enough() {
        assert_eq!(told(&mut rooms(RESERVE, &[(2, RESERVE)]), 200), 0);
        assert_eq!(told(&mut rooms(RESERVE - 1, &[]), 100), 10);
        let mut other_is_short = rooms(RESERVE, &[(2, 5)]);
        assert_eq!(told(&mut other_is_short, 100), 6, "until it is silent");
        let mut again = rooms(5, &[]);
        told(&mut again, 15);
        again.looked(RESERVE);
        assert_eq!(told(&mut again, 100), 1, "that there is room again");
    }

    #[test]
    fn what_a_majority_has_decides() {
        let of = |own: u64, others: &[(u64, u64)], voters: &[u64]| {
            let mut rooms = rooms(own, others);
            told(&mut rooms, SAY_TICKS + 1);
            rooms.of_majority(1, voters)
        };
        assert_eq!(of(5, &[], &[1]), (1, 5));
        assert_eq!(
            of(5, &[(2, RESERVE), (3, 2 * RESERVE)], &[1, 2, 3]),
            (2, RESERVE)
        );
        assert_eq!(of(RESERVE, &[(2, 5), (3, 9)], &[1, 2, 3]), (3, 9));
        assert_eq!(of(RESERVE, &[(2, 5)], &[1, 2, 3]), (2, 5), "3 is down");
        assert_eq!(of(5, &[], &[1, 2, 3]), (1, u64::MAX), "nothing is known");
        assert_eq!(of(5, &[(4, RESERVE)], &[1]), (1, 5), "4 does not vote");
        let at_once = rooms(5, &[(2, 5)]).of_majority(1, &[1, 2]);
        assert_eq!(at_once, (1, u64::MAX));
    }

    #[test]
    fn whoever_has_room_is_asked_to_lead_each_in_its_turn() {
        let voters = [1, 2, 3, 4];
        let mut short = rooms(5, &[(2, RESERVE), (3, 7), (4, RESERVE)]);
        assert_eq!(short.heir(&voters), Some(2));
        assert_eq!(short.heir(&voters), None, "not at once");
        told(&mut short, PAUSE_TICKS);
        assert_eq!(short.heir(&voters), Some(4));
        told(&mut short, HEARD_TICKS);
        assert_eq!(short.heir(&voters), None, "they are silent");
        assert_eq!(rooms(5, &[(2, RESERVE)]).heir(&[1, 3]), None);
        assert_eq!(rooms(RESERVE, &[(2, RESERVE)]).heir(&voters), None);
    }

    #[test]
    fn what_is_taken_leaves_room_for_a_start() {
        let mut rooms = rooms(START_BYTES + 1_000, &[]);
        assert!(rooms.take(500, 1) && !rooms.take(500, 1));
        rooms.flushed();
        assert!(rooms.take(500, 1));
        assert_eq!(rooms.room(), Room::Short);
        rooms.looked(START_BYTES - 1);
        assert!(!rooms.take(0, 0));
        assert_eq!(rooms.room(), Room::None);
    }
}
