//! A set of slots whose smallest member is found in a few steps, however many there are.

/// A set of slots as bits. A bit of the next level says whether any of 64 bits below it is set.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SlotSet {
    /// The slots themselves first; each further level summarises the one below.
    levels: Vec<Vec<u64>>,
    len: u32,
}

impl SlotSet {
    /// An empty set for the slots below `slots`.
    pub fn new(slots: u32) -> SlotSet {
        let mut levels = Vec::new();
        let mut words = (slots as usize).div_ceil(64).max(1);
        loop {
            levels.push(vec![0; words]);
            if words == 1 {
                return SlotSet { levels, len: 0 };
            }
            words = words.div_ceil(64);
        }
    }

    pub fn len(&self) -> u32 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn contains(&self, slot: u32) -> bool {
        self.levels[0]
            .get(slot as usize / 64)
            .is_some_and(|word| word & bit(slot) != 0)
    }

    /// Adds a slot; false if it was there already.
    pub fn insert(&mut self, slot: u32) -> bool {
        if self.contains(slot) {
            return false;
        }
        let mut place = slot;
        for level in &mut self.levels {
            level[place as usize / 64] |= bit(place);
            place /= 64;
        }
        self.len += 1;
        true
    }

    /// Removes a slot; false if it was not there.
    pub fn remove(&mut self, slot: u32) -> bool {
        if !self.contains(slot) {
            return false;
        }
        let mut place = slot;
        for level in &mut self.levels {
            let word = &mut level[place as usize / 64];
            *word &= !bit(place);
            if *word != 0 {
                break;
            }
            place /= 64;
        }
        self.len -= 1;
        true
    }

    /// The smallest slot.
    pub fn first(&self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let place = self.levels.iter().rev().fold(0, |place, level| {
            place * 64 + level[place as usize].trailing_zeros()
        });
        Some(place)
    }

    /// All slots, the smallest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        slots_of(self.levels[0].iter().copied())
    }

    /// The slots that are also in all sets of `with` and not in `without`, the smallest first.
    pub fn common<'a, const N: usize>(
        &'a self,
        with: [&'a SlotSet; N],
        without: &'a SlotSet,
    ) -> impl Iterator<Item = u32> + 'a {
        slots_of(self.common_words(with, without))
    }

    /// How many slots are also in all sets of `with` and not in `without`.
    pub fn count_common<const N: usize>(&self, with: [&SlotSet; N], without: &SlotSet) -> u32 {
        let words = self.common_words(with, without);
        words.map(u64::count_ones).sum()
    }

    /// Whether both sets have a slot in common.
    pub fn meets(&self, other: &SlotSet) -> bool {
        let mut words = self.levels[0].iter().zip(&other.levels[0]);
        words.any(|(own, other)| own & other != 0)
    }

    fn common_words<'a, const N: usize>(
        &'a self,
        with: [&'a SlotSet; N],
        without: &'a SlotSet,
    ) -> impl Iterator<Item = u64> + 'a {
        let word = |set: &SlotSet, at: usize| {
            let words = set.levels.first().and_then(|words| words.get(at));
            words.copied().unwrap_or(0)
        };
        let own = self.levels[0].iter().enumerate();
        own.map(move |(at, own)| {
            let all = with.iter().fold(*own, |all, set| all & word(set, at));
            all & !word(without, at)
        })
    }

    /// Adds all slots of another set of the same size.
    pub fn insert_all(&mut self, other: &SlotSet) {
        for (level, others) in self.levels.iter_mut().zip(&other.levels) {
            for (word, other) in level.iter_mut().zip(others) {
                *word |= other;
            }
        }
        self.len = self.levels[0].iter().map(|word| word.count_ones()).sum();
    }

    /// Removes all slots of another set of the same size.
    pub fn remove_all(&mut self, other: &SlotSet) {
        self.combine(other, |own, other| own & !other);
    }

    /// Removes all slots that are not in another set of the same size.
    pub fn retain_all(&mut self, other: &SlotSet) {
        self.combine(other, |own, other| own & other);
    }

    fn combine(&mut self, other: &SlotSet, left: impl Fn(u64, u64) -> u64) {
        let Some((slots, summaries)) = self.levels.split_first_mut() else {
            return;
        };
        for (word, other) in slots.iter_mut().zip(&other.levels[0]) {
            *word = left(*word, *other);
        }
        self.len = slots.iter().map(|word| word.count_ones()).sum();
        let mut below = slots;
        for level in summaries {
            level.fill(0);
            for (at, word) in below.iter().enumerate() {
                level[at / 64] |= u64::from(*word != 0) << (at % 64);
            }
            below = level;
        }
    }

    /// Removes the `count` smallest slots and returns them.
    pub fn take_first(&mut self, count: u32) -> Vec<u32> {
        std::iter::from_fn(|| {
            let slot = self.first()?;
            self.remove(slot);
            Some(slot)
        })
        .take(count as usize)
        .collect()
    }

    pub fn clear(&mut self) {
        for level in &mut self.levels {
            level.fill(0);
        }
        self.len = 0;
    }
}

/// The slots whose bits are set.
fn slots_of(words: impl Iterator<Item = u64>) -> impl Iterator<Item = u32> {
    words.enumerate().flat_map(|(at, word)| {
        std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
            .take_while(|&rest| rest != 0)
            .map(move |rest| at as u32 * 64 + rest.trailing_zeros())
    })
}

fn bit(place: u32) -> u64 {
    1 << (place % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_is_found_over_several_levels() {
        let mut set = SlotSet::new(300_000);
        for slot in [299_999, 64, 4_096, 262_144] {
            assert!(set.insert(slot) && !set.insert(slot));
        }
        assert_eq!(
            set.iter().collect::<Vec<_>>(),
            [64, 4_096, 262_144, 299_999]
        );
        assert_eq!(set.take_first(3), [64, 4_096, 262_144]);
        assert_eq!((set.first(), set.len()), (Some(299_999), 1));
        assert!(set.remove(299_999) && !set.remove(299_999));
        assert_eq!(set, SlotSet::new(300_000));
        assert_eq!((set.first(), set.contains(7_000_000)), (None, false));
    }

    #[test]
    fn sets_are_compared_word_by_word() {
        let of = |slots: &[u32]| {
            let mut set = SlotSet::new(300);
            for slot in slots {
                set.insert(*slot);
            }
            set
        };
        let (one, two, three) = (of(&[1, 70, 130, 299]), of(&[1, 70, 299]), of(&[1, 2, 299]));
        let none = SlotSet::default();
        assert_eq!(one.common([&two], &of(&[70])).collect::<Vec<_>>(), [1, 299]);
        assert_eq!(
            one.common([&two, &three], &none).collect::<Vec<_>>(),
            [1, 299]
        );
        assert_eq!(one.count_common([&two], &none), 3);
        assert!(one.meets(&three) && !one.meets(&of(&[2, 131])));
        let mut all = one.clone();
        all.insert_all(&three);
        assert_eq!(all, of(&[1, 2, 70, 130, 299]));
        all.remove_all(&of(&[1, 2, 70, 5]));
        assert_eq!(all, of(&[130, 299]));
        all.retain_all(&of(&[1, 130]));
        assert_eq!(all, of(&[130]));
    }
}
