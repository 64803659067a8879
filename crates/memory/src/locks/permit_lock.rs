//! h of k: so many permits, and a thread takes as many as it needs.

use std::collections::VecDeque;
use std::fmt;

use super::parts::{Arc, Mutex, MutexGuard};
use super::waiter::Waiter;

/// A lock with k permits, of which a thread takes h at once.
///
/// Guarantees:
///
/// - *Exclusion*: the permits of all guards together are never more than there are.
/// - *Order*: first come, first served. A request that does not fit holds back all later ones, so that large
///   requests do not starve.
/// - *Bounded waiting*: a request is passed by no later one.
/// - Waiting threads are parked and use no processor, once they have looked 10 times in vain; between most of these
///   looks they give the processor away. Taking and giving back lock a mutex for a moment.
///
/// ```
/// use testigo_memory::PermitLock;
///
/// let tape_drives = PermitLock::new(3);
/// let two = tape_drives.take(2);
/// assert!(tape_drives.try_take(2).is_none());
/// let one = tape_drives.take(1);
/// drop((two, one));
/// assert!(tape_drives.try_take(3).is_some());
/// ```
///
/// At most three of these threads copy at once, or one of those that need two drives beside one:
///
/// ```
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use testigo_memory::PermitLock;
///
/// let (tape_drives, in_use) = (PermitLock::new(3), AtomicU32::new(0));
/// std::thread::scope(|scope| {
///     for needs in [1, 1, 2, 2] {
///         let (tape_drives, in_use) = (&tape_drives, &in_use);
///         scope.spawn(move || for _ in 0..100 {
///             let guard = tape_drives.take(needs);
///             let before = in_use.fetch_add(guard.permits(), Ordering::Relaxed);
///             assert!(before + needs <= 3);
///             in_use.fetch_sub(needs, Ordering::Relaxed);
///         });
///     }
/// });
/// ```
///
/// What it does not do:
///
/// - A thread that takes more permits while it has some waits for itself for ever if too few are left, or for others if
///   they stand in line before it and need its own.
/// - A guard that is forgotten (`std::mem::forget`) keeps its permits for ever.
/// - A panic inside does not poison the lock: the guard is dropped, and its permits are free again.
pub struct PermitLock {
    permits: u32,
    books: Mutex<Books>,
}

struct Books {
    free: u32,
    line: VecDeque<Arc<Waiter>>,
}

impl PermitLock {
    /// A lock with so many permits, at least one.
    pub fn new(permits: u32) -> PermitLock {
        assert!(permits > 0, "a lock without permits lets nobody in");
        PermitLock {
            permits,
            books: Mutex::new(Books {
                free: permits,
                line: VecDeque::new(),
            }),
        }
    }

    /// Takes so many permits; waits until they are free and everybody before has theirs.
    ///
    /// # Panics
    ///
    /// If that is none, or more than the lock has: nobody could ever serve that.
    pub fn take(&self, permits: u32) -> PermitGuard<'_> {
        self.judge(permits);
        if let Some(waiter) = self.stand_in_line(permits) {
            waiter.wait();
        }
        PermitGuard {
            lock: self,
            permits,
        }
    }

    /// Takes so many permits if that needs no waiting.
    ///
    /// # Panics
    ///
    /// As [`PermitLock::take`] does.
    pub fn try_take(&self, permits: u32) -> Option<PermitGuard<'_>> {
        self.judge(permits);
        let served = self.books().serve(permits);
        served.then(|| PermitGuard {
            lock: self,
            permits,
        })
    }

    /// Takes so many permits at once, or stands in line for them.
    pub(super) fn stand_in_line(&self, permits: u32) -> Option<Arc<Waiter>> {
        let mut books = self.books();
        if books.serve(permits) {
            return None;
        }
        let waiter = Arc::new(Waiter::new(permits));
        books.line.push_back(Arc::clone(&waiter));
        Some(waiter)
    }

    pub(super) fn give_back(&self, permits: u32) {
        let served = self.books().give_back(permits);
        served.iter().for_each(|waiter| waiter.admit());
    }

    fn judge(&self, permits: u32) {
        let all = self.permits;
        let fits = (1..=all).contains(&permits);
        assert!(fits, "{permits} permits: take from 1 to {all} of this lock");
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books
            .lock()
            .expect("nothing panics with the books in hand")
    }
}

impl Books {
    /// Serves a request at once, if nobody is in line and enough is free.
    fn serve(&mut self, permits: u32) -> bool {
        let served = self.line.is_empty() && permits <= self.free;
        self.free -= if served { permits } else { 0 };
        served
    }

    /// Takes permits back; returns those in line whom they now serve.
    fn give_back(&mut self, permits: u32) -> Vec<Arc<Waiter>> {
        self.free += permits;
        let mut served = Vec::new();
        while self
            .line
            .front()
            .is_some_and(|first| first.wants <= self.free)
        {
            let first = self.line.pop_front().expect("somebody is first");
            self.free -= first.wants;
            served.push(first);
        }
        served
    }
}

impl fmt::Debug for PermitLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let books = self.books();
        f.debug_struct("PermitLock")
            .field("permits", &self.permits)
            .field("free", &books.free)
            .field("waiting", &books.line.len())
            .finish()
    }
}

/// Some permits, until it is dropped.
#[must_use = "dropping the guard gives the permits back"]
pub struct PermitGuard<'a> {
    lock: &'a PermitLock,
    permits: u32,
}

impl PermitGuard<'_> {
    /// How many.
    pub fn permits(&self) -> u32 {
        self.permits
    }
}

impl fmt::Debug for PermitGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PermitGuard({})", self.permits)
    }
}

impl Drop for PermitGuard<'_> {
    fn drop(&mut self) {
        self.lock.give_back(self.permits);
    }
}
