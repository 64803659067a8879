//! Any classical algorithm behind a guard.
#![expect(unsafe_code, reason = "a guard gives `&mut`")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{AtomicMemory, Local, Program};

/// A value that one thread at a time may change, guarded by a program of mutual exclusion: to study it, not to use
/// it, because who waits spins.
///
/// ```
/// use testigo_memory::{Plan, StudyLock, mutex};
///
/// let bakery = mutex::ALGORITHMS.iter().find(|one| one.profile.name == "bakery").unwrap();
/// let lock = StudyLock::new((bakery.program)(&Plan::new(2)).unwrap(), 0, std::thread::yield_now);
/// std::thread::scope(|scope| {
///     for process in 0..2 {
///         let mut seat = lock.seat(process);
///         scope.spawn(move || (0..100).for_each(|_| *seat.enter() += 1));
///     }
/// });
/// assert_eq!(lock.into_inner(), 200);
/// ```
pub struct StudyLock<T> {
    program: Box<dyn Program>,
    memory: AtomicMemory,
    seats: Box<[AtomicBool]>,
    /// Called after every step.
    relax: fn(),
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through a guard, by `&mut self` or by value. A program that excludes lets one
// guard exist at a time, and every step is a `SeqCst` access, so what the last guard wrote happens before the next
// guard is made. Threads thus hand the value to each other, which `T: Send` allows. `new` refuses programs that let
// several in; that the program does exclude is what its checks are for.
unsafe impl<T: Send> Sync for StudyLock<T> {}

impl<T> StudyLock<T> {
    /// A value behind a program, which must let one in at a time and need no actors behind the processes.
    /// `relax` is called after every step, and may yield.
    ///
    /// # Panics
    ///
    /// If the program is none of mutual exclusion.
    pub fn new(program: Box<dyn Program>, value: T, relax: fn()) -> StudyLock<T> {
        let excludes = program.permits() == Some(1) && program.rooms() == 1;
        assert!(excludes && program.others().is_empty());
        StudyLock {
            memory: AtomicMemory::new(&*program),
            seats: (0..program.processes())
                .map(|_| AtomicBool::new(false))
                .collect(),
            program,
            relax,
            value: UnsafeCell::new(value),
        }
    }

    /// The place of a process, which one thread has at a time.
    ///
    /// # Panics
    ///
    /// If somebody has it.
    pub fn seat(&self, process: usize) -> StudySeat<'_, T> {
        let taken = self.seats[process].swap(true, Ordering::AcqRel);
        assert!(!taken, "process {process} is somebody else");
        StudySeat {
            lock: self,
            process,
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
}

impl<T> StudySeat<'_, T> {
    /// Enters, spinning while others are before it.
    pub fn enter(&mut self) -> StudyGuard<'_, T> {
        let StudyLock {
            program,
            memory,
            relax,
            ..
        } = self.lock;
        let local = memory.enter(&**program, self.process, 0, *relax);
        StudyGuard {
            lock: self.lock,
            process: self.process,
            local,
        }
    }
}

impl<T> Drop for StudySeat<'_, T> {
    fn drop(&mut self) {
        self.lock.seats[self.process].store(false, Ordering::Release);
    }
}

/// The value, until it is dropped.
#[must_use = "dropping the guard leaves"]
pub struct StudyGuard<'a, T> {
    lock: &'a StudyLock<T>,
    process: usize,
    local: Local,
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
    }
}
