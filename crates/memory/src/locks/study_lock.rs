//! Any classical algorithm behind a guard.
#![expect(unsafe_code, reason = "a guard gives `&mut`")]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{AtomicMemory, Local, Plan, PlanError, Program, ThreadAlgorithm, ThreadProfile};

/// A value that one thread at a time may change, guarded by an algorithm of mutual exclusion: to study it, not to use
/// it, because who waits spins.
///
/// ```
/// use testigo_memory::{StudyLock, mutex};
///
/// let bakery = mutex::ALGORITHMS.iter().find(|one| one.profile.name == "bakery").unwrap();
/// let lock = StudyLock::new(bakery, 2, 0, std::thread::yield_now).unwrap();
/// std::thread::scope(|scope| {
///     for process in 0..2 {
///         let mut seat = lock.seat(process);
///         scope.spawn(move || (0..100).for_each(|_| *seat.enter() += 1));
///     }
/// });
/// assert_eq!(lock.into_inner(), 200);
/// ```
///
/// The lock vouches for the algorithm, so it takes none that was made elsewhere:
///
/// ```compile_fail,E0639
/// use testigo_memory::{ThreadAlgorithm, ThreadProfile};
///
/// let own = ThreadAlgorithm { profile: ThreadProfile::PLAIN, program: |_| todo!() };
/// ```
pub struct StudyLock<T> {
    program: Box<dyn Program>,
    memory: AtomicMemory,
    seats: Box<[AtomicBool]>,
    /// Called after every step.
    relax: fn(),
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, by `&mut self` or by value, and one guard exists at a time. That is
// the word of the algorithm, and `new` takes it only from algorithms of this crate that claim mutual exclusion at any
// speed of their threads: nobody else can make a `ThreadAlgorithm`. It holds if every process runs one thread's entries
// and exits, each to its end, which `StudySeat` sees to. Every step is a `SeqCst` access, so what the last guard wrote
// happens before the next guard is made. Threads thus hand the value to each other, which `T: Send` allows.
unsafe impl<T: Send> Sync for StudyLock<T> {}

impl<T> StudyLock<T> {
    /// A value behind an algorithm, for so many processes. `relax` is called after every step, and may yield.
    ///
    /// Refused are algorithms that do not let one in at a time, those that are kept to be refuted, those that assume a
    /// bound on the speed of others, and numbers of processes that the algorithm does not have.
    pub fn new(
        algorithm: &ThreadAlgorithm,
        processes: usize,
        value: T,
        relax: fn(),
    ) -> Result<StudyLock<T>, PlanError> {
        let ThreadProfile {
            name,
            problem,
            specimen,
            needs_time_bound,
            ..
        } = algorithm.profile;
        let no = |why: &str| {
            let would =
                "take an algorithm of threads-mutex that is no specimen and needs no time bound";
            Err(PlanError(format!("{name} {why}: {would}")))
        };
        if problem != "threads-mutex" {
            return no("lets several in together");
        }
        if specimen.is_some() {
            return no("is a specimen, which lets in whom it should not");
        }
        if needs_time_bound {
            return no("excludes only while no thread is slower than a bound");
        }
        let program = (algorithm.program)(&Plan::new(processes))?;
        Ok(StudyLock {
            memory: AtomicMemory::new(&*program),
            seats: (0..program.processes())
                .map(|_| AtomicBool::new(false))
                .collect(),
            program,
            relax,
            value: UnsafeCell::new(value),
        })
    }

    /// The place of a process, which one thread has at a time.
    ///
    /// # Panics
    ///
    /// If somebody has it, or forgot a guard in it.
    pub fn seat(&self, process: usize) -> StudySeat<'_, T> {
        let taken = self.seats[process].swap(true, Ordering::AcqRel);
        assert!(!taken, "process {process} is somebody else");
        StudySeat {
            lock: self,
            process,
            is_away: false,
        }
    }

    /// The value, once nobody shares the lock.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> fmt::Debug for StudyLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StudyLock({:?})", self.program)
    }
}

/// One process of a [`StudyLock`].
#[derive(Debug)]
pub struct StudySeat<'a, T> {
    lock: &'a StudyLock<T>,
    process: usize,
    /// Whether an entry has begun whose exit is not over. It stays so where a guard was forgotten or `relax` panicked:
    /// the registers then say that the process is inside or on its way, and another entry on top of that is nothing
    /// that the algorithm excludes.
    is_away: bool,
}

impl<T> StudySeat<'_, T> {
    /// Enters, spinning while others are before it.
    ///
    /// # Panics
    ///
    /// If an earlier guard of this seat was forgotten.
    pub fn enter(&mut self) -> StudyGuard<'_, T> {
        let process = self.process;
        assert!(!self.is_away, "process {process} never left");
        self.is_away = true;
        let StudyLock {
            program,
            memory,
            relax,
            ..
        } = self.lock;
        let local = memory.enter(&**program, process, 0, *relax);
        StudyGuard {
            lock: self.lock,
            process,
            is_away: &mut self.is_away,
            local,
            value: PhantomData,
        }
    }
}

impl<T> Drop for StudySeat<'_, T> {
    fn drop(&mut self) {
        self.lock.seats[self.process].store(self.is_away, Ordering::Release);
    }
}

/// The value, until it is dropped.
///
/// Threads may share a guard only if they may share the value:
///
/// ```compile_fail,E0277
/// fn shared<T: Sync>() {}
/// shared::<testigo_memory::StudyGuard<'_, std::cell::Cell<u32>>>();
/// ```
#[must_use = "dropping the guard leaves"]
pub struct StudyGuard<'a, T> {
    lock: &'a StudyLock<T>,
    process: usize,
    is_away: &'a mut bool,
    local: Local,
    /// The guard is what it gives: `Send` and `Sync` exactly where that is.
    value: PhantomData<&'a mut T>,
}

impl<T> Deref for StudyGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard exists between the entry and the exit of its process, and the program lets no other
        // process in meanwhile; so nobody else has a reference that changes the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for StudyGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes this the only reference of this guard.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> fmt::Debug for StudyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StudyGuard({})", self.process)
    }
}

impl<T> Drop for StudyGuard<'_, T> {
    fn drop(&mut self) {
        let StudyLock {
            program,
            memory,
            relax,
            ..
        } = self.lock;
        memory.leave(&**program, self.process, self.local, *relax);
        *self.is_away = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithms;

    fn relax() {
        std::thread::yield_now();
    }

    #[test]
    fn only_algorithms_that_exclude_at_any_speed_are_taken() {
        let mut taken = Vec::new();
        for algorithm in algorithms() {
            let name = algorithm.profile.name;
            match StudyLock::new(algorithm, 2, (), relax) {
                Ok(_) => taken.push(name),
                Err(PlanError(why)) => assert!(why.starts_with(name), "{why}"),
            }
        }
        let right = [
            "dijkstra",
            "peterson-2",
            "peterson-n",
            "tournament",
            "tsm",
            "lamport-fast",
            "bakery",
            "adaptive-bakery",
        ];
        assert_eq!(taken, right);
        let bakery = algorithms().find(|one| one.profile.name == "bakery");
        let none = StudyLock::new(bakery.expect("known"), 0, (), relax);
        assert!(none.is_err(), "no processes");
    }

    fn bakery() -> StudyLock<u32> {
        let found = algorithms().find(|one| one.profile.name == "bakery");
        StudyLock::new(found.expect("known"), 2, 0, relax).expect("valid")
    }

    #[test]
    #[should_panic(expected = "process 0 never left")]
    fn a_seat_whose_guard_was_forgotten_enters_no_more() {
        let lock = bakery();
        let mut seat = lock.seat(0);
        std::mem::forget(seat.enter());
        drop(seat.enter());
    }

    #[test]
    #[should_panic(expected = "process 0 is somebody else")]
    fn a_seat_whose_guard_was_forgotten_is_never_free() {
        let lock = bakery();
        let mut seat = lock.seat(0);
        *seat.enter() += 1;
        drop(seat);
        std::mem::forget(lock.seat(0).enter());
        drop(lock.seat(0));
    }
}
