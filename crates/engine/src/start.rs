//! A start of the engine on one data directory: a durable number that rises with every open, so that nothing this start sends
//! or grants can be mistaken for the work of an earlier one. It is not part of the replicated log, and no compaction of the
//! log touches it.

use std::fmt;

/// The last start; a directory that has used it up cannot be opened any more.
pub const START_MAX: u32 = u32::MAX;

/// How far a new generation jumps: a backup may be up to this many starts older than what was lost, and still none of its
/// starts is used a second time.
pub const GENERATION_STARTS: u32 = 4096;

/// One start of the engine on one data directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Start {
    number: u32,
    generation: u32,
}

impl Start {
    /// Its number, counted from 1.
    pub fn number(self) -> u32 {
        self.number
    }

    /// The generation that it belongs to: 0 until the directory is restored from a backup.
    pub fn generation(self) -> u32 {
        self.generation
    }

    /// That start of that generation.
    pub const fn new(number: u32, generation: u32) -> Self {
        Self { number, generation }
    }

    /// The next start; `None` when they are used up.
    pub(crate) fn risen(self) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Self { number, ..self })
    }

    /// The first start of the next generation, or of generation `least` if that is higher; `None` when starts are used up.
    pub(crate) fn jumped(self, least: u32) -> Option<Self> {
        let number = self.number.checked_add(GENERATION_STARTS)?;
        let generation = self.generation.checked_add(1)?.max(least);
        Some(Self { number, generation })
    }
}

impl fmt::Display for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_rises_by_one_and_a_new_generation_jumps() {
        let first = Start::default().risen().unwrap();
        assert_eq!((first.number(), first.generation()), (1, 0));
        assert_eq!(first.jumped(9).unwrap().generation(), 9);
        let restored = first.jumped(0).unwrap();
        assert_eq!(restored.number(), 1 + GENERATION_STARTS);
        assert_eq!(restored.generation(), 1);
        assert_eq!(restored.risen().unwrap().generation(), 1);
    }

    #[test]
    fn the_last_start_has_no_successor() {
        assert_eq!(Start::new(START_MAX, 0).risen(), None);
        assert!(Start::new(START_MAX - 1, 0).risen().is_some());
        assert_eq!(Start::new(START_MAX - 1, 0).jumped(0), None);
    }
}
