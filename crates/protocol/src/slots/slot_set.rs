//! A set of slots whose smallest one is found in a few steps, however many there are.

/// A set of slots, as bits, with a bit above every 64 of them that says whether any is set.
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

    /// Puts a slot in; false when it was there.
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

    /// Takes a slot out; false when it was not there.
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

    /// All of them, the smallest first.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.levels[0].iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)))
                .take_while(|&rest| rest != 0)
                .map(move |rest| at as u32 * 64 + rest.trailing_zeros())
        })
    }

    /// Takes the `count` smallest out.
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
}
