//! Fences: numbers that only grow, so that the protected side can tell a stale holder from the present one. A fence is
//! epoch·2^32 + counter, one counter for the whole node, below 2^53 so that every client's number type holds it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number that a grant carries. It exceeds that of every earlier grant that it conflicts with.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Fence(pub u64);

impl Fence {
    /// The epoch that it was granted in.
    pub fn epoch(self) -> Epoch {
        Epoch(self.0 >> 32)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A reign of a node: it rises with every start and whenever the counter of fences runs short.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Epoch(pub u64);

impl Epoch {
    /// The last epoch whose fences are below 2^53.
    pub const MAX: Epoch = Epoch((1 << 21) - 1);

    /// The lowest fence that this epoch never grants: all earlier epochs' fences are below it, all of its own above.
    pub fn floor(self) -> Fence {
        Fence(self.0 << 32)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The node's source of fences.
#[derive(Clone, Debug)]
pub(crate) struct Fences {
    epoch: Epoch,
    counter: u32,
    warned: bool,
}

/// Past this many fences of an epoch the next epoch is asked for, long before the counter ends.
const LOW_WATER: u32 = 1 << 31;

impl Fences {
    pub(crate) fn new(epoch: Epoch) -> Fences {
        Fences {
            epoch,
            counter: 0,
            warned: false,
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Goes on in a later epoch; an earlier one is ignored, so fences never fall.
    pub(crate) fn raise(&mut self, epoch: Epoch) {
        if epoch > self.epoch {
            *self = Fences::new(epoch);
        }
    }

    /// Whether a set of `count` grants still finds its fences in this epoch.
    pub(crate) fn suffices(&self, count: usize) -> bool {
        (u32::MAX - self.counter) as usize >= count
    }

    /// The next fence. The caller has asked [`Fences::suffices`].
    pub(crate) fn next(&mut self) -> Fence {
        assert!(
            self.counter < u32::MAX,
            "a fence was drawn from a used-up epoch"
        );
        self.counter += 1;
        Fence(self.epoch.floor().0 | u64::from(self.counter))
    }

    /// True once an epoch, when it is time to ask for the next one.
    pub(crate) fn running_low(&mut self) -> bool {
        let low = self.counter >= LOW_WATER && !self.warned;
        self.warned |= low;
        low
    }

    #[cfg(test)]
    pub(crate) fn spend(&mut self, counter: u32) {
        self.counter = counter;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_grow_across_epochs_and_stay_below_two_to_the_53() {
        let mut fences = Fences::new(Epoch(1));
        let first = fences.next();
        assert!(first > Epoch(1).floor() && fences.next() > first);
        fences.raise(Epoch(2));
        assert!(fences.next() > first);
        fences.raise(Epoch(1));
        assert_eq!(fences.epoch(), Epoch(2));
        assert!(Epoch::MAX.floor().0 + u64::from(u32::MAX) < 1 << 53);
    }

    #[test]
    fn the_next_epoch_is_asked_for_once_and_early() {
        let mut fences = Fences::new(Epoch(1));
        assert!(!fences.running_low());
        fences.spend(LOW_WATER);
        assert!(fences.running_low() && !fences.running_low());
        fences.spend(u32::MAX - 2);
        assert!(fences.suffices(2) && !fences.suffices(3));
    }
}
