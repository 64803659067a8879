//! Programs and locks on real threads. The counts are plain loads and stores: an update is lost whenever two are
//! inside together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use testigo_memory::{AtomicMemory, PermitLock, Plan, RoomLock, StudyLock, algorithms, mutex};

const ENTRIES: u64 = if cfg!(miri) { 5 } else { 500 };

/// Adds one without an atomic addition.
fn bump(count: &AtomicU64) {
    let before = count.load(Ordering::Relaxed);
    thread::yield_now();
    count.store(before + 1, Ordering::Relaxed);
}

#[test]
fn every_mutex_counts_right_on_real_atomics() {
    let right = mutex::ALGORITHMS
        .iter()
        .filter(|one| one.profile.specimen.is_none() && !one.profile.needs_time_bound);
    for algorithm in right {
        let processes = if algorithm.profile.name == "peterson-2" {
            2
        } else {
            3
        };
        let lock = StudyLock::new(algorithm, processes, 0, thread::yield_now).expect("valid");
        thread::scope(|scope| {
            for process in 0..processes {
                let mut seat = lock.seat(process);
                scope.spawn(move || (0..ENTRIES).for_each(|_| *seat.enter() += 1));
            }
        });
        assert_eq!(
            lock.into_inner(),
            ENTRIES * processes as u64,
            "{}",
            algorithm.profile.name
        );
    }
}

/// Threads of one room share a count each; a second room would see a sum that is not whole.
#[test]
fn every_algorithm_of_rooms_keeps_them_apart_on_real_atomics() {
    let right = algorithms()
        .filter(|one| one.profile.specimen.is_none() && one.profile.problem == "threads-rooms");
    for algorithm in right {
        let program = (algorithm.program)(&Plan::new(3)).expect("valid");
        if !program.others().is_empty() {
            continue;
        }
        let (memory, program) = (AtomicMemory::new(&*program), &*program);
        let in_room = [AtomicU64::new(0), AtomicU64::new(0)];
        let (memory, in_room) = (&memory, &in_room);
        thread::scope(|scope| {
            for process in 0..3 {
                scope.spawn(move || {
                    for entry in 0..ENTRIES {
                        let room = ((entry + process as u64) % 2) as usize;
                        let local = memory.enter(program, process, room as u8, thread::yield_now);
                        in_room[room].fetch_add(1, Ordering::SeqCst);
                        assert_eq!(in_room[1 - room].load(Ordering::SeqCst), 0);
                        in_room[room].fetch_sub(1, Ordering::SeqCst);
                        memory.leave(program, process, local, thread::yield_now);
                    }
                });
            }
        });
    }
}

#[test]
fn a_room_lock_keeps_rooms_apart_and_lets_everybody_in() {
    let lock = RoomLock::new();
    // Each room has one thread at most that counts in it, so a count is lost only to another room.
    let count = AtomicU64::new(0);
    let (lock, count) = (&lock, &count);
    thread::scope(|scope| {
        for room in 0..4 {
            scope.spawn(move || {
                for _ in 0..ENTRIES {
                    let _inside = lock.enter(room);
                    bump(count);
                }
            });
        }
    });
    assert_eq!(count.load(Ordering::Relaxed), 4 * ENTRIES);
}

#[test]
fn permits_are_never_more_than_there_are() {
    let lock = PermitLock::new(3);
    let taken = AtomicU64::new(0);
    let (lock, taken) = (&lock, &taken);
    thread::scope(|scope| {
        for permits in [1, 2, 2, 3] {
            scope.spawn(move || {
                for _ in 0..ENTRIES {
                    let guard = lock.take(permits);
                    let before = taken.fetch_add(u64::from(guard.permits()), Ordering::SeqCst);
                    assert!(before + u64::from(permits) <= 3);
                    taken.fetch_sub(u64::from(permits), Ordering::SeqCst);
                }
            });
        }
    });
    assert_eq!(taken.load(Ordering::SeqCst), 0);
    assert!(lock.try_take(3).is_some(), "all are back");
}
