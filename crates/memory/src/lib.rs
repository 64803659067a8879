//! Coordination through shared memory: the classical algorithms as step machines, one access to a shared
//! register per step, and the registers that they run on.
//!
//! A [`Program`] is what every thread runs. The same program runs on real atomics ([`AtomicMemory`]) and on a
//! [`CountedMemory`], whose caller chooses every step. Nothing here reads a clock or starts a thread.
//!
//! For programs that are not about algorithms there are two locks that park whoever waits: [`RoomLock`] and
//! [`PermitLock`].

mod algorithm;
mod atomic;
pub mod blocks;
mod counted;
mod levels;
mod local;
mod locks;
mod memory;
pub mod mutex;
pub mod permits;
mod program;
mod registers;
pub mod rooms;
mod tree;

pub use algorithm::{Claimed, Lone, ThreadAlgorithm, ThreadProfile, ThreadTelling};
pub use atomic::AtomicMemory;
pub use counted::{Access, CountedMemory};
pub use local::{Local, Region};
pub use locks::{PermitGuard, PermitLock, RoomGuard, RoomLock, StudyGuard, StudyLock, StudySeat};
pub use memory::{Memory, RegisterId, Word};
pub use program::{PROCESSES_MAX, Plan, PlanError, Program};
pub use registers::{Register, Registers};
pub use tree::Tree;

/// Every algorithm, by problem; specimens last.
pub fn algorithms() -> impl Iterator<Item = &'static ThreadAlgorithm> {
    let problems = [mutex::ALGORITHMS, permits::ALGORITHMS, rooms::ALGORITHMS];
    problems.into_iter().flatten().copied()
}
