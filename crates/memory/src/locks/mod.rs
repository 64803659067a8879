//! Locks that a program would use: [`RoomLock`] and [`PermitLock`], which park whoever waits; and [`StudyLock`], any
//! classical algorithm behind a guard.

mod permit_lock;
mod room_lock;
mod study_lock;
#[cfg(test)]
mod tests;
mod waiter;

pub use permit_lock::{PermitGuard, PermitLock};
pub use room_lock::{RoomGuard, RoomLock};
pub use study_lock::{StudyGuard, StudyLock, StudySeat};

/// What locks are built from. The tests build them from other parts.
mod parts {
    pub(super) use std::hint::spin_loop;
    pub(super) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use std::sync::{Arc, Mutex, MutexGuard};
    pub(super) use std::thread::{Thread, current, park, yield_now};

    /// How often a thread looks again before it stands in line, and then before it parks.
    pub(super) const LOOKS_BEFORE: u32 = 40;
    pub(super) const LOOKS_IN_LINE: u32 = 10;
    /// How many pauses between looks spin; the others yield.
    pub(super) const SPINS: u32 = 3;
}
