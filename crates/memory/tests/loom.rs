//! Programs and locks under loom, which tries every interleaving and every value that the memory model allows a load
//! to return. Locks: two threads whole, three with at most two preemptions. Programs: two threads whole, or with at most
//! three preemptions where that takes too long; three with at most one. `LOOM_MAX_PREEMPTIONS=2` raises that, and
//! takes minutes.
//!
//! Loom takes `SeqCst` loads and stores for acquire and release, so the order between a store and the load after it
//! is made by fences here.

use std::collections::HashSet;

use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use testigo_memory::rooms::{Alone, Contention};
use testigo_memory::{Local, Memory, Plan, Program, RegisterId, Word, algorithms};

/// The same source as in the crate, built from loom's parts.
#[path = "../src/locks/room_lock.rs"]
#[allow(dead_code, unreachable_pub, clippy::duplicate_mod)]
mod room_lock;

#[path = "../src/locks/permit_lock.rs"]
#[allow(dead_code, unreachable_pub, clippy::duplicate_mod)]
mod permit_lock;

#[path = "../src/locks/waiter.rs"]
#[allow(dead_code, unreachable_pub, clippy::duplicate_mod)]
mod waiter;

mod parts {
    pub(super) use loom::hint::spin_loop;
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(super) use loom::thread::{Thread, current, park, yield_now};

    /// One look each: more are the same again.
    pub(super) const LOOKS_BEFORE: u32 = 1;
    pub(super) const LOOKS_IN_LINE: u32 = 1;
    pub(super) const SPINS: u32 = 1;
}

struct LoomMemory<'a>(&'a [AtomicU64]);

impl Memory for LoomMemory<'_> {
    fn load(&mut self, register: RegisterId) -> Word {
        fence(Ordering::SeqCst);
        self.0[register].load(Ordering::SeqCst)
    }

    fn store(&mut self, register: RegisterId, value: Word) {
        self.0[register].store(value, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn compare_exchange(&mut self, register: RegisterId, old: Word, new: Word) -> bool {
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.0[register]
            .compare_exchange(old, new, success, failure)
            .is_ok()
    }
}

/// Three threads of a lock are preempted at most so often, all together.
const PREEMPTIONS: Option<usize> = Some(2);
/// The same of a program, and of two threads that have too many accesses to be tried whole.
const FEW: Option<usize> = Some(1);
const SEVERAL: Option<usize> = Some(3);

fn check(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    let asked = builder.preemption_bound.unwrap_or(0);
    builder.preemption_bound = preemptions.map(|most| most.max(asked));
    builder.max_branches = 20_000;
    builder.check(model);
}

/// Runs all but the first in threads of their own.
fn together<F: FnOnce() + 'static>(threads: impl IntoIterator<Item = F>) {
    let mut threads = threads.into_iter();
    let first = threads.next();
    let others: Vec<_> = threads.map(loom::thread::spawn).collect();
    first.into_iter().for_each(|first| first());
    others
        .into_iter()
        .for_each(|thread| thread.join().expect("it ends"));
}

/// One step. Another turn of a wait lets others go on first.
fn step(
    program: &dyn Program,
    actor: usize,
    local: &mut Local,
    registers: &[AtomicU64],
    seen: &mut HashSet<Local>,
) {
    program.step(actor, local, &mut LoomMemory(registers));
    if !seen.insert(*local) {
        loom::thread::yield_now();
    }
}

/// Every process enters the room that is named for it, once. Whoever is inside signs a register, by its room or, where
/// one may be inside, by itself, and must find its signature again.
fn exclude(program: fn() -> Box<dyn Program>, rooms: &'static [u8], preemptions: Option<usize>) {
    check(preemptions, move || {
        let program: std::sync::Arc<dyn Program> = program().into();
        let first = program.registers();
        let first = first
            .iter()
            .map(|register| AtomicU64::new(register.first[0]));
        let registers: Arc<Vec<AtomicU64>> = Arc::new(first.collect());
        let signed = Arc::new(AtomicU64::new(0));
        let alone = Arc::new(AtomicU64::new(1));
        together(rooms.iter().enumerate().map(|(process, &room)| {
            let (program, registers) = (program.clone(), registers.clone());
            let (signed, alone) = (signed.clone(), alone.clone());
            move || {
                let mut seen = HashSet::new();
                let mut local = Local::asking(room);
                let mut run = |local: &mut Local| {
                    while !local.is_idle() {
                        step(&*program, process, local, &registers, &mut seen);
                    }
                };
                run(&mut local);
                let signature = match program.permits() {
                    Some(_) => process as u64 + 1,
                    None => u64::from(room) + 1,
                };
                signed.store(signature, Ordering::SeqCst);
                if signed.load(Ordering::SeqCst) != signature {
                    alone.store(0, Ordering::SeqCst);
                }
                local.leave();
                run(&mut local);
            }
        }));
        assert_eq!(alone.load(Ordering::SeqCst), 1, "not alone inside");
    });
}

/// An algorithm by its name, for so many processes; one permit.
fn made(name: &str, processes: usize) -> Box<dyn Program> {
    let found = algorithms().find(|one| one.profile.name == name);
    let plan = Plan {
        permits: 1,
        ..Plan::new(processes)
    };
    (found.expect("known").program)(&plan).expect("valid")
}

/// A test each, so that they run side by side.
macro_rules! programs {
    ($($test:ident: $name:literal $rooms:tt $preemptions:expr;)*) => {$(
        #[test]
        fn $test() {
            exclude(|| made($name, $rooms.len()), &$rooms, $preemptions);
        }
    )*};
}

programs! {
    two_of_peterson_2: "peterson-2" [0, 0] None;
    two_of_dijkstra: "dijkstra" [0, 0] None;
    two_of_peterson_n: "peterson-n" [0, 0] None;
    two_of_tournament: "tournament" [0, 0] None;
    two_of_tsm: "tsm" [0, 0] None;
    two_of_lamport_fast: "lamport-fast" [0, 0] None;
    two_of_bakery: "bakery" [0, 0] None;
    two_of_adaptive_bakery: "adaptive-bakery" [0, 0] SEVERAL;
    two_of_fife: "fife" [0, 0] None;
    two_of_ctp: "ctp" [0, 1] SEVERAL;
    two_of_peterson_gme: "peterson-gme" [0, 1] None;
    two_of_one_actor: "one-actor" [0, 1] None;
    two_companions_of_ctp: "ctp" [0, 0] SEVERAL;
    two_companions_of_peterson_gme: "peterson-gme" [0, 0] None;
    two_companions_of_one_actor: "one-actor" [0, 0] SEVERAL;
    three_of_dijkstra: "dijkstra" [0, 0, 0] FEW;
    three_of_peterson_n: "peterson-n" [0, 0, 0] FEW;
    three_of_tournament: "tournament" [0, 0, 0] FEW;
    three_of_tsm: "tsm" [0, 0, 0] FEW;
    three_of_lamport_fast: "lamport-fast" [0, 0, 0] FEW;
    three_of_bakery: "bakery" [0, 0, 0] FEW;
    three_of_adaptive_bakery: "adaptive-bakery" [0, 0, 0] FEW;
    three_of_fife: "fife" [0, 0, 0] FEW;
    three_of_ctp: "ctp" [0, 1, 0] PREEMPTIONS;
    three_of_peterson_gme: "peterson-gme" [0, 1, 0] FEW;
    three_of_one_actor: "one-actor" [0, 1, 0] FEW;
}

/// The groups of two actors by themselves; the processes only write a cell each.
macro_rules! groups {
    ($($test:ident: $form:ident $groups:literal $preemptions:expr;)*) => {$(
        #[test]
        fn $test() {
            let groups = || Box::new(Alone::new($groups, Contention::$form)) as Box<dyn Program>;
            exclude(groups, &[0; $groups], $preemptions);
        }
    )*};
}

groups! {
    two_groups_of_a_tournament: Tournament 2 None;
    two_adaptive_groups: Adaptive 2 None;
    two_groups_with_local_spin: Local 2 None;
    three_groups_of_a_tournament: Tournament 3 FEW;
    three_adaptive_groups: Adaptive 3 FEW;
    three_groups_with_local_spin: Local 3 FEW;
}

/// The check can fail: Lamport's timed form without its delay.
#[test]
#[should_panic(expected = "not alone inside")]
fn two_threads_of_a_specimen_are_inside_together() {
    exclude(|| made("lamport-hasty", 2), &[0, 0], None);
}

/// The room lock itself: rooms are apart, and nobody is left in line.
fn rooms(threads: &'static [u32], preemptions: Option<usize>) {
    check(preemptions, move || {
        let lock = Arc::new(room_lock::RoomLock::new());
        let inside = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        together(threads.iter().map(|&room| {
            let (lock, inside) = (lock.clone(), inside.clone());
            move || {
                let _guard = lock.enter(room);
                inside[room as usize].fetch_add(1, Ordering::SeqCst);
                assert_eq!(inside[1 - room as usize].load(Ordering::SeqCst), 0);
                inside[room as usize].fetch_sub(1, Ordering::SeqCst);
            }
        }));
        assert!(lock.try_enter(0).is_some(), "all have left");
    });
}

#[test]
fn a_room_lock_of_two_threads_is_right_in_every_interleaving() {
    rooms(&[0, 1], None);
    rooms(&[0, 0], None);
}

#[test]
fn a_room_lock_of_three_threads_is_right() {
    rooms(&[0, 1, 0], PREEMPTIONS);
    rooms(&[0, 1, 1], PREEMPTIONS);
}

/// What is written in a room is seen by whoever enters the next one: relaxed accesses see it only if the lock hands it
/// over.
#[test]
fn a_room_lock_hands_over_what_was_written() {
    check(PREEMPTIONS, || {
        let lock = Arc::new(room_lock::RoomLock::new());
        let count = Arc::new(AtomicU64::new(0));
        together((0..3).map(|room| {
            let (lock, count) = (lock.clone(), count.clone());
            move || {
                let _guard = lock.enter(room);
                let before = count.load(Ordering::Relaxed);
                count.store(before + 1, Ordering::Relaxed);
            }
        }));
        assert_eq!(count.load(Ordering::SeqCst), 3, "a count is lost");
    });
}

/// Bounded waiting: whoever asks after another stands in line enters after it.
#[test]
fn nobody_enters_a_room_lock_past_the_line() {
    check(PREEMPTIONS, || {
        let lock = Arc::new(room_lock::RoomLock::new());
        let guard = lock.enter(0);
        let first = Arc::new(loom::sync::Mutex::new(None));
        let waits = {
            let (lock, first) = (lock.clone(), first.clone());
            loom::thread::spawn(move || {
                let waiter = lock.stand_in_line(1);
                *first.lock().expect("nobody panics") = waiter.clone();
                waiter.iter().for_each(|waiter| waiter.wait());
                lock.leave();
            })
        };
        let later = {
            let (lock, first) = (lock.clone(), first.clone());
            loom::thread::spawn(move || {
                let before = first.lock().expect("nobody panics").clone();
                let _guard = lock.enter(0);
                assert!(
                    before.is_none_or(|before| before.is_admitted()),
                    "past the line"
                );
            })
        };
        drop(guard);
        for thread in [waits, later] {
            thread.join().expect("it ends");
        }
    });
}

/// The permit lock: never more than there are, everybody is served, and all come back.
fn permits(threads: &'static [u32], preemptions: Option<usize>) {
    check(preemptions, move || {
        let lock = Arc::new(permit_lock::PermitLock::new(2));
        let taken = Arc::new(AtomicU64::new(0));
        together(threads.iter().map(|&permits| {
            let (lock, taken) = (lock.clone(), taken.clone());
            move || {
                let guard = lock.take(permits);
                let before = taken.fetch_add(u64::from(guard.permits()), Ordering::SeqCst);
                assert!(before + u64::from(permits) <= 2);
                taken.fetch_sub(u64::from(permits), Ordering::SeqCst);
            }
        }));
        assert!(lock.try_take(2).is_some(), "all are back");
    });
}

#[test]
fn a_permit_lock_of_two_threads_is_right_in_every_interleaving() {
    permits(&[1, 2], None);
    permits(&[2, 2], None);
}

#[test]
fn a_permit_lock_of_three_threads_is_right() {
    permits(&[1, 2, 1], PREEMPTIONS);
    permits(&[2, 2, 1], PREEMPTIONS);
}
