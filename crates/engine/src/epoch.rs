//! The fencing epoch: a durable number that rises at every start, so that no fence of this start
//! can be lower than a fence of an earlier one. It does not live in the replicated log, and no
//! compaction of the log touches it.

use std::fmt;

/// The number of bits left for an epoch when a fence is `epoch · 2^32 + counter`, below `2^53`.
pub const EPOCH_BITS: u32 = 21;

/// The last epoch; a directory that has used it up opens no more.
pub const EPOCH_MAX: u32 = (1 << EPOCH_BITS) - 1;

/// How far a new generation jumps: a backup may be up to this many starts older than what was
/// lost, and its fences still exceed every fence that was ever given out.
pub const GENERATION_EPOCHS: u32 = 4096;

/// One start of the engine on one data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch {
    number: u32,
    generation: u32,
}

impl Epoch {
    /// The number that goes into a fence.
    pub fn number(self) -> u32 {
        self.number
    }

    /// How many times this directory was restored from a backup.
    pub fn generation(self) -> u32 {
        self.generation
    }

    pub(crate) fn new(number: u32, generation: u32) -> Self {
        Self { number, generation }
    }

    /// The epoch of the next start, or nothing when they are used up.
    pub(crate) fn risen(self) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        (number <= EPOCH_MAX).then_some(Self { number, ..self })
    }

    /// The first epoch of the next generation, or nothing when they are used up.
    pub(crate) fn jumped(self) -> Option<Self> {
        let number = self.number.checked_add(GENERATION_EPOCHS)?;
        let generation = self.generation.checked_add(1)?;
        (number <= EPOCH_MAX).then_some(Self { number, generation })
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_rises_by_one_and_a_new_generation_jumps() {
        let first = Epoch::default().risen().unwrap();
        assert_eq!((first.number(), first.generation()), (1, 0));
        let restored = first.jumped().unwrap();
        assert_eq!(restored.number(), 1 + GENERATION_EPOCHS);
        assert_eq!(restored.generation(), 1);
        assert_eq!(restored.risen().unwrap().generation(), 1);
    }

    #[test]
    fn the_last_epoch_has_no_successor() {
        assert_eq!(Epoch::new(EPOCH_MAX, 0).risen(), None);
        assert!(Epoch::new(EPOCH_MAX - 1, 0).risen().is_some());
        assert_eq!(Epoch::new(EPOCH_MAX - 1, 0).jumped(), None);
    }

    #[test]
    fn every_fence_stays_exact_in_a_double() {
        let fence = (u64::from(EPOCH_MAX) << 32) | u64::from(u32::MAX);
        assert!(fence < 1 << 53);
    }
}
