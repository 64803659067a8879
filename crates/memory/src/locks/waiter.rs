//! One thread in line, and how long it looks before it parks.

use super::parts::{
    AtomicBool, LOOKS_IN_LINE, Ordering, SPINS, Thread, current, park, spin_loop, yield_now,
};

/// A thread that waits to be admitted.
pub(super) struct Waiter {
    /// The room or the number of permits.
    pub(super) wants: u32,
    admitted: AtomicBool,
    thread: Thread,
}

impl Waiter {
    /// The current thread.
    pub(super) fn new(wants: u32) -> Waiter {
        Waiter {
            wants,
            admitted: AtomicBool::new(false),
            thread: current(),
        }
    }

    /// Admits it, and wakes it if it is parked.
    pub(super) fn admit(&self) {
        // Release: what was written inside before is seen by the thread that is admitted.
        self.admitted.store(true, Ordering::Release);
        self.thread.unpark();
    }

    pub(super) fn is_admitted(&self) -> bool {
        self.admitted.load(Ordering::Acquire)
    }

    /// Returns once it is admitted: looks again for a moment, then parks. Whatever else wakes the thread, it looks
    /// again.
    pub(super) fn wait(&self) {
        let mut patience = Patience::new(LOOKS_IN_LINE);
        while !self.is_admitted() {
            if !patience.pause() {
                park();
            }
        }
    }
}

/// How long a thread looks again before it gives up: pauses that double, then turns of the processor that it gives
/// away, so that whoever it waits for can run where there are more threads than processors.
pub(super) struct Patience {
    looks: u32,
    left: u32,
}

impl Patience {
    /// For so many looks.
    pub(super) fn new(looks: u32) -> Patience {
        Patience { looks, left: looks }
    }

    /// Pauses, or says that it is at its end.
    pub(super) fn pause(&mut self) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        match self.looks - self.left {
            turn @ 0..=SPINS => (0..1 << turn).for_each(|_| spin_loop()),
            _ => yield_now(),
        }
        true
    }
}
