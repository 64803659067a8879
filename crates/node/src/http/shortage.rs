//! What to do when no connection can be accepted, usually because descriptors are used up: pause before the next try, and
//! warn now and then instead of every time.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

/// The pause before the next try.
const PAUSE: Duration = Duration::from_millis(100);
/// At most one warning per this time.
const WARN_EVERY: Duration = Duration::from_secs(60);

/// Remembers the last warning.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    warned: Option<Instant>,
}

impl Shortage {
    /// Waits after a failed accept. Says whether it warned.
    pub(super) async fn pause(&mut self, error: &io::Error) -> bool {
        let due = self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        if due {
            self.warned = Some(Instant::now());
            log::warn!("HTTP connections cannot be accepted: {error}; trying again");
        }
        tokio::time::sleep(PAUSE).await;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shortage_neither_spins_nor_floods_the_log() {
        let (mut shortage, start) = (Shortage::default(), Instant::now());
        let error = io::Error::other("no descriptor is left");
        let mut warnings = 0;
        for _ in 0..1_200 {
            warnings += u32::from(shortage.pause(&error).await);
        }
        // Virtual time: only the pauses make it pass.
        assert_eq!((start.elapsed(), warnings), (PAUSE * 1_200, 2));
    }
}
