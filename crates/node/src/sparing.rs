//! Warnings that strangers can cause as often as they like. The first is written at once, then at most one per minute, with
//! the number of those left out.

/// How long a warning is not repeated.
const INTERVAL_MS: u64 = 60_000;

/// When the same warning may be written again.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sparing {
    until: u64,
    /// How many were written since the minute began.
    written: u32,
    left_out: u64,
}

impl Sparing {
    /// Whether to write a warning now; if so, how many were left out since the last one.
    pub(crate) fn now(&mut self, now: u64) -> Option<u64> {
        self.at_most(1, now)
    }

    /// The same with so many warnings in a minute.
    pub(crate) fn at_most(&mut self, most: u32, now: u64) -> Option<u64> {
        if now >= self.until {
            (self.until, self.written) = (now + INTERVAL_MS, 0);
        }
        if self.written >= most {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

/// The end of a warning: how many were left out.
pub(crate) fn and_more(left_out: u64) -> String {
    match left_out {
        0 => String::new(),
        more => format!(" (and {more} more since the last such warning)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_causes_is_one_warning_a_minute_that_counts_the_others() {
        let mut sparing = Sparing::default();
        let written: Vec<(u64, u64)> = (0..3 * INTERVAL_MS)
            .filter_map(|now| Some((now, sparing.now(now)?)))
            .collect();
        let others = INTERVAL_MS - 1;
        assert_eq!(
            written,
            [(0, 0), (INTERVAL_MS, others), (2 * INTERVAL_MS, others)]
        );
    }
}
