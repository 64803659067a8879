//! The two clocks of a node. Everything that ends by time is measured on the monotonic one. The wall clock is recorded in the
//! log for people, and says which generation a restored log begins.

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since the node started.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// Stands still while the machine sleeps.
    Monotonic(Instant),
    /// Goes on while the machine sleeps, because others wait for a member's lease meanwhile.
    Boot(Duration),
    /// Set by a simulator.
    #[cfg(test)]
    Hand(std::sync::Arc<std::sync::atomic::AtomicU64>),
}

impl Clock {
    /// For a node that is alone.
    pub(crate) fn start() -> Clock {
        Clock::Monotonic(Instant::now())
    }

    /// For a member of a cluster.
    pub(crate) fn start_among() -> Clock {
        Clock::Boot(since_boot())
    }

    fn elapsed(&self) -> Duration {
        match self {
            Clock::Monotonic(start) => start.elapsed(),
            Clock::Boot(start) => since_boot().saturating_sub(*start),
            #[cfg(test)]
            Clock::Hand(now) => {
                Duration::from_millis(now.load(std::sync::atomic::Ordering::Relaxed))
            }
        }
    }

    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// How long to sleep until a deadline of this clock: never past the millisecond in which it is due.
    pub(crate) fn until(&self, deadline: u64) -> Duration {
        Duration::from_millis(deadline).saturating_sub(self.elapsed())
    }
}

#[cfg(target_os = "linux")]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// If no clock goes on during sleep, this one stands still.
#[cfg(not(target_os = "linux"))]
fn since_boot() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Milliseconds since 1970.
pub(crate) fn wall_ms() -> u64 {
    #[cfg(test)]
    if let Some(now) = simulated::WALL_MS.get() {
        return now;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    now.saturating_add_signed(offset_ms())
}

/// For tests only: names a file with the error of the wall clock in milliseconds, so that a test can make it jump.
const OFFSET_FILE: &str = "TESTIGO_TEST_CLOCK";
/// How often the file is read at most.
const OFFSET_KEPT: Duration = Duration::from_millis(100);

struct Offset {
    file: PathBuf,
    /// When the file was last read, and what it said.
    read: Mutex<Option<(Instant, i64)>>,
}

fn offset_ms() -> i64 {
    static OFFSET: OnceLock<Option<Offset>> = OnceLock::new();
    let offset = OFFSET.get_or_init(|| {
        let file = PathBuf::from(std::env::var_os(OFFSET_FILE)?);
        let read = Mutex::new(None);
        Some(Offset { file, read })
    });
    let Some(Offset { file, read }) = offset else {
        return 0;
    };
    let Ok(mut read) = read.lock() else {
        return 0;
    };
    match *read {
        Some((at, offset)) if at.elapsed() < OFFSET_KEPT => offset,
        _ => {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let offset = text.trim().parse().unwrap_or(0);
            *read = Some((Instant::now(), offset));
            offset
        }
    }
}

/// The wall clock of a simulated run, on its own thread.
#[cfg(test)]
pub(crate) mod simulated {
    use std::cell::Cell;

    thread_local! {
        /// The time; `None` for the system's clock.
        pub(crate) static WALL_MS: Cell<Option<u64>> = const { Cell::new(None) };
    }
}
