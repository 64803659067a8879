//! How long to pause before the next attempt to connect: twice as long each time, within bounds, and scattered so that the
//! clients of a restarted node do not all come at once.

use std::time::Duration;

/// The pause after the first failure.
const FIRST: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(1);

/// Pauses between attempts.
#[derive(Clone, Debug)]
pub struct Backoff {
    failures: u32,
    chance: u64,
}

impl Backoff {
    /// `seed` scatters the pauses; clients of one node should not share it.
    pub fn new(seed: u64) -> Backoff {
        Backoff {
            failures: 0,
            chance: seed | 1,
        }
    }

    /// An attempt succeeded.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// An attempt failed: how long to pause. Between half of the doubled pause and all of it.
    pub fn pause(&mut self) -> Duration {
        let whole = (FIRST * 2u32.pow(self.failures.min(16))).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // Marsaglia's xorshift: good enough to scatter, without a dependency on a generator.
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        let share = (self.chance % 1024) as u32;
        whole / 2 + whole / 2 * share / 1024
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_are_bounded() {
        let mut backoff = Backoff::new(7);
        let mut least = FIRST / 2;
        for _ in 0..100 {
            let pause = backoff.pause();
            assert!(pause >= least && pause <= LONGEST, "{pause:?}");
            least = (least * 2).min(LONGEST / 2);
        }
        backoff.reset();
        assert!(backoff.pause() <= FIRST);
    }

    #[test]
    fn two_clients_pause_differently() {
        let pauses = |seed| {
            let mut backoff = Backoff::new(seed);
            [(); 8].map(|()| backoff.pause())
        };
        assert_ne!(pauses(2), pauses(4));
        assert_eq!(pauses(2), pauses(2));
    }
}
