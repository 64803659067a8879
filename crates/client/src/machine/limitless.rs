//! Gates that were seen to have no hold limit a moment ago, so that not every grant has to be looked at. A gate that is
//! deleted and made anew with a limit is found out about after [`FRESH`]; until then the node's own word is all there is.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a look at a gate counts.
const FRESH: Duration = Duration::from_secs(60);
/// Gates remembered at once.
const GATES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Limitless(HashMap<String, Instant>);

impl Limitless {
    pub(super) fn contains(&self, gate: &str, now: Instant) -> bool {
        self.0.get(gate).is_some_and(|seen| now < *seen + FRESH)
    }

    /// The gate had no hold limit at `seen` or later.
    pub(super) fn note(&mut self, gate: &str, seen: Instant) {
        if self.0.len() >= GATES_MAX {
            self.0.clear();
        }
        self.0.insert(gate.to_owned(), seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_counts_for_a_while_and_memory_is_bounded() {
        let now = Instant::now();
        let mut limitless = Limitless::default();
        limitless.note("a", now);
        assert!(limitless.contains("a", now) && !limitless.contains("b", now));
        assert!(!limitless.contains("a", now + FRESH));
        for at in 0..3 * GATES_MAX {
            limitless.note(&at.to_string(), now);
            assert!(limitless.0.len() <= GATES_MAX);
        }
    }
}
