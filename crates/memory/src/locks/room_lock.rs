//! Group exclusion for threads: any number of threads in one room, and one room at a time.

use std::collections::VecDeque;
use std::fmt;

use super::parts::{Arc, AtomicU64, LOOKS_BEFORE, Mutex, MutexGuard, Ordering};
use super::waiter::{Patience, Waiter};

/// A lock with rooms. Threads that enter the same room are inside together; two rooms are never in use at once.
///
/// Guarantees:
///
/// - *Exclusion*: while a guard for a room exists, there is no guard for another room.
/// - *Order*: whoever still has to wait after a few looks stands in line. When a room is empty, the room of the first
///   in line is opened, and all who wait for it enter together, wherever they stand. Nobody who comes later enters
///   before the line is empty, not even into the room that is in use.
/// - *Bounded waiting*: a thread in line waits for at most as many rounds as there are other rooms in line before it, and
///   for the round in use.
/// - *Concurrent entering*: while nobody waits for another room, entering the room in use never blocks.
/// - Waiting threads are parked and use no processor, once they have looked 40 times in vain before they stand in line,
///   and 10 times in it; between most of these looks they give the processor away. Entering and leaving without
///   contention is one atomic operation each.
///
/// What was written in one room is seen by whoever enters the next.
///
/// ```
/// use testigo_memory::RoomLock;
///
/// let hall = RoomLock::new();
/// let talk = hall.enter(1);
/// let same = hall.enter(1);
/// assert!(hall.try_enter(2).is_none());
/// drop((talk, same));
/// assert!(hall.try_enter(2).is_some());
/// ```
///
/// Readers are a room, and every writer has one of its own:
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use testigo_memory::RoomLock;
///
/// let (lock, left, right) = (RoomLock::new(), AtomicU64::new(0), AtomicU64::new(0));
/// std::thread::scope(|scope| {
///     for thread in 1..=2 {
///         let (lock, left, right) = (&lock, &left, &right);
///         scope.spawn(move || for _ in 0..100 {
///             let _writes = lock.enter(thread);
///             left.fetch_add(1, Ordering::Relaxed);
///             right.fetch_add(1, Ordering::Relaxed);
///         });
///         scope.spawn(move || for _ in 0..100 {
///             let _reads = lock.enter(0);
///             assert_eq!(left.load(Ordering::Relaxed), right.load(Ordering::Relaxed));
///         });
///     }
/// });
/// assert_eq!(left.into_inner(), 200);
/// ```
///
/// What it does not do:
///
/// - A thread that enters again while it is inside waits for itself for ever if it asks for another room, or if somebody
///   else stands in line.
/// - A guard that is forgotten (`std::mem::forget`) keeps its place in the room for ever, and no other room opens.
/// - A panic inside does not poison the lock: the guard is dropped, and the next thread enters.
pub struct RoomLock {
    /// The room in bits 32 to 63, whether somebody waits in bit 31, and how many are inside below.
    state: AtomicU64,
    line: Mutex<VecDeque<Arc<Waiter>>>,
}

const WAITED: u64 = 1 << 31;
const INSIDE: u64 = WAITED - 1;

fn room_of(state: u64) -> u32 {
    (state >> 32) as u32
}

/// The state after one more has entered a room, where nothing speaks against it.
fn joined(state: u64, room: u32) -> Option<u64> {
    let free = state & INSIDE == 0;
    let open = state & WAITED == 0 && (free || room_of(state) == room);
    let fits = state & INSIDE < INSIDE;
    (open && fits).then(|| (u64::from(room) << 32) + (state & INSIDE) + 1)
}

impl RoomLock {
    /// A lock with all its rooms empty.
    pub fn new() -> RoomLock {
        RoomLock {
            state: AtomicU64::new(0),
            line: Mutex::new(VecDeque::new()),
        }
    }

    /// Enters a room; waits while another one is in use or somebody waits for one.
    pub fn enter(&self, room: u32) -> RoomGuard<'_> {
        if !self.join_soon(room)
            && let Some(waiter) = self.stand_in_line(room)
        {
            waiter.wait();
        }
        RoomGuard { lock: self, room }
    }

    /// Enters a room if that needs no waiting.
    pub fn try_enter(&self, room: u32) -> Option<RoomGuard<'_>> {
        // A guard that was made in vain would leave when it is dropped.
        self.join(room).then(|| RoomGuard { lock: self, room })
    }

    /// Tries again for a moment while nobody is in line: a room is often left again at once, and to park and be
    /// woken takes much longer than that.
    fn join_soon(&self, room: u32) -> bool {
        let mut patience = Patience::new(LOOKS_BEFORE);
        loop {
            if self.join(room) {
                return true;
            }
            if self.state.load(Ordering::Relaxed) & WAITED != 0 || !patience.pause() {
                return false;
            }
        }
    }

    pub(super) fn join(&self, room: u32) -> bool {
        // Acquire: what was written in the room before is seen in this one.
        let mut state = self.state.load(Ordering::Relaxed);
        while let Some(next) = joined(state, room) {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            match self
                .state
                .compare_exchange_weak(state, next, success, failure)
            {
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
        assert!(state & INSIDE < INSIDE, "2^31 guards of one lock");
        false
    }

    fn line(&self) -> MutexGuard<'_, VecDeque<Arc<Waiter>>> {
        self.line
            .lock()
            .expect("nothing panics with the line in hand")
    }

    /// Enters after all, or stands in line. The line and its bit change together, under the mutex: while nobody holds
    /// that, somebody is in line exactly while the bit is set.
    pub(super) fn stand_in_line(&self, room: u32) -> Option<Arc<Waiter>> {
        // All that could panic comes before the bit: nobody would hand over to a line that is empty.
        let waiter = Arc::new(Waiter::new(room));
        let mut line = self.line();
        line.reserve(1);
        let mut state = self.state.fetch_or(WAITED, Ordering::Relaxed);
        // Without the bit the line was empty, and the room may be open by now. Nobody else joins while the bit is set, so
        // this tries at most as often as threads leave. Acquire: as in `join`.
        while let Some(next) = joined(state, room) {
            let (success, failure) = (Ordering::Acquire, Ordering::Relaxed);
            let marked = state | WAITED;
            match self.state.compare_exchange(marked, next, success, failure) {
                Ok(_) => return None,
                // The last to leave has seen the bit, and hands over to us as soon as it gets the line.
                Err(other) if other & INSIDE == 0 => break,
                Err(other) => state = other & !WAITED,
            }
        }
        line.push_back(Arc::clone(&waiter));
        Some(waiter)
    }

    pub(super) fn leave(&self) {
        // Release: what was written here is seen in the next room. Acquire, for the last: it hands over on behalf
        // of all who were inside.
        let before = self.state.fetch_sub(1, Ordering::AcqRel);
        if before & INSIDE == 1 && before & WAITED != 0 {
            self.hand_over();
        }
    }

    /// Opens the room of the first in line. Nobody is inside and the bit is set, so nobody else changes the
    /// state: joining needs the bit clear, leaving needs somebody inside, and the line is in our hands.
    fn hand_over(&self) {
        let mut line = self.line();
        let Some(room) = line.front().map(|first| first.wants) else {
            return;
        };
        let (enter, stay): (VecDeque<_>, VecDeque<_>) =
            line.drain(..).partition(|waiter| waiter.wants == room);
        *line = stay;
        let waited = if line.is_empty() { 0 } else { WAITED };
        let state = u64::from(room) << 32 | waited | enter.len() as u64;
        self.state.store(state, Ordering::Release);
        drop(line);
        enter.iter().for_each(|waiter| waiter.admit());
    }
}

impl Default for RoomLock {
    fn default() -> RoomLock {
        RoomLock::new()
    }
}

impl fmt::Debug for RoomLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        f.debug_struct("RoomLock")
            .field("room", &room_of(state))
            .field("inside", &(state & INSIDE))
            .field("waited_for", &(state & WAITED != 0))
            .finish()
    }
}

/// A place in a room, until it is dropped.
#[must_use = "dropping the guard leaves the room"]
pub struct RoomGuard<'a> {
    lock: &'a RoomLock,
    room: u32,
}

impl RoomGuard<'_> {
    /// The room.
    pub fn room(&self) -> u32 {
        self.room
    }
}

impl fmt::Debug for RoomGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RoomGuard({})", self.room)
    }
}

impl Drop for RoomGuard<'_> {
    fn drop(&mut self) {
        self.lock.leave();
    }
}
