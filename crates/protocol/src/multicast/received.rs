//! Which numbers of one sender have been received.

use std::collections::BTreeSet;

/// A watermark, and what is above it: R and `extra` of §4.4.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Received {
    /// Every number from 1 up to this one is there.
    pub(super) upto: u64,
    extra: BTreeSet<u64>,
}

impl Received {
    /// False where it was there before. 0 always was: numbers start at 1.
    pub(super) fn add(&mut self, number: u64) -> bool {
        if self.has(number) {
            return false;
        }
        self.extra.insert(number);
        while self.extra.remove(&(self.upto + 1)) {
            self.upto += 1;
        }
        true
    }

    pub(super) fn has(&self, number: u64) -> bool {
        number <= self.upto || self.extra.contains(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watermark_absorbs_what_is_contiguous() {
        let mut received = Received::default();
        assert!(received.add(2) && received.add(3) && received.add(5));
        assert_eq!(received.upto, 0);
        assert!(received.add(1));
        assert_eq!(received.upto, 3);
        assert!(!received.add(5) && !received.add(2) && !received.add(0));
        assert_eq!(received.extra, BTreeSet::from([5]));
    }
}
