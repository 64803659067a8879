//! Whether to look again for a moment before sleeping. During a hand-over the next command is a round trip away, and falling
//! asleep and waking up would take longer than that. If looking does not pay (one core, a client that thinks), it only takes
//! time from others.

use std::time::Duration;

/// Remembers whether looking again has paid.
#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// How many looks in a row found nothing.
    misses: u32,
    /// How many turns sleep at once before the next look.
    rest: u32,
}

/// The longest look.
pub(crate) const LINGER: Duration = Duration::from_micros(30);
/// After this many misses the rest no longer doubles.
const MISSES_MAX: u32 = 6;

impl Linger {
    /// Whether to look again this time.
    pub(crate) fn is_worth_it(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        !rests
    }

    /// Something came during the look.
    pub(crate) fn paid(&mut self) {
        self.misses = 0;
    }

    /// Nothing came: rests for twice as many turns as after the previous miss.
    pub(crate) fn missed(&mut self) {
        self.rest = (1 << self.misses) - 1;
        self.misses = (self.misses + 1).min(MISSES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(linger: &mut Linger, turns: usize, pays: bool) -> usize {
        let mut looks = 0;
        for _ in 0..turns {
            if linger.is_worth_it() {
                looks += 1;
                match pays {
                    true => linger.paid(),
                    false => linger.missed(),
                }
            }
        }
        looks
    }

    #[test]
    fn looking_that_pays_goes_on_and_looking_in_vain_becomes_rare() {
        let mut linger = Linger::default();
        assert_eq!(looks(&mut linger, 1000, true), 1000);
        assert!(looks(&mut linger, 6_400, false) < 120);
        // One look that pays is enough to start over.
        assert!(looks(&mut linger, 64, true) >= 1);
        assert_eq!(looks(&mut linger, 100, true), 100);
    }
}
