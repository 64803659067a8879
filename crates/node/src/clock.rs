//! The two clocks of a node. Everything that ends by time is measured on the monotonic one; the wall clock is only
//! noted in the log, for people.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the node started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock {
            start: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long to sleep until a deadline of this clock: never past the millisecond in which it is due.
    pub(crate) fn until(&self, deadline: u64) -> Duration {
        Duration::from_millis(deadline).saturating_sub(self.start.elapsed())
    }
}

/// Milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
