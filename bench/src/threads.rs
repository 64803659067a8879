//! Locks for threads of one process: entering and leaving, alone and against others, beside `std` and `parking_lot`.
//! Whoever spins yields. Every lock guards a plain count, which must be right in the end.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use testigo_memory::{PermitLock, RoomLock, StudyLock, mutex};

use crate::report::{Bar, Report, Unit};

const HELP: &str = "\
Usage: cargo xtask bench threads [--rounds N]

Measures lock and unlock, uncontended and with 2, 4 and 8 threads, each N times (5), and prints the median: where
threads meet, runs differ by a factor of ten. With two rooms, half of the threads want each; beside that stand two kinds
of writers of a parking_lot::RwLock that leave with unlock_fair.";

const ROUNDS_DEFAULT: usize = 5;
const SPAN: Duration = Duration::from_millis(200);
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// One entry and exit of a thread, by its number.
type Pass<'a> = dyn Fn(usize, &Count) + Sync + 'a;

/// A count that is right only if no two add to it at once.
#[derive(Default)]
struct Count(AtomicU64);

impl Count {
    fn add(&self) {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + 1, Ordering::Relaxed);
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<bool, String> {
    let mut rounds = ROUNDS_DEFAULT;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(true);
            }
            "--rounds" => rounds = crate::number("--rounds", rest.next())?,
            other => return Err(format!("unexpected argument `{other}`\n\n{HELP}")),
        }
    }
    let mut report = Report::begin(&format!("threads, median of {rounds}"));
    let mut alone = (0.0, 0.0);
    let mut fair = (0.0, 0.0);
    for threads in THREADS {
        let show = |report: &mut Report, name: &str, exact: bool, pass: &Pass<'_>| {
            let median = median((0..rounds).map(|_| per_second(threads, exact, pass)));
            let noun = if threads == 1 { "thread" } else { "threads" };
            report.show(
                &format!("{name}, {threads} {noun}"),
                median,
                Unit::PerSecond,
                "",
            );
            median
        };
        let std_mutex = Mutex::new(());
        show(&mut report, "std Mutex", true, &|_, count| {
            let _guard = std_mutex.lock().expect("nobody panics");
            count.add();
        });
        let std_rw = RwLock::new(());
        show(&mut report, "std RwLock, writers", true, &|_, count| {
            let _guard = std_rw.write().expect("nobody panics");
            count.add();
        });
        let mutex = parking_lot::Mutex::new(());
        show(&mut report, "parking_lot Mutex", true, &|_, count| {
            let _guard = mutex.lock();
            count.add();
        });
        let rw = parking_lot::RwLock::new(());
        let readers = show(
            &mut report,
            "parking_lot RwLock, readers",
            false,
            &|_, count| {
                let _guard = rw.read();
                count.add();
            },
        );
        let kinds = show(
            &mut report,
            "parking_lot RwLock, fair writers",
            true,
            &|_, count| {
                let guard = rw.write();
                count.add();
                parking_lot::RwLockWriteGuard::unlock_fair(guard);
            },
        );
        let rooms = RoomLock::new();
        let one = show(&mut report, "RoomLock, one room", false, &|_, count| {
            let _guard = rooms.enter(1);
            count.add();
        });
        let two = show(
            &mut report,
            "RoomLock, two rooms",
            false,
            &|thread, count| {
                let _guard = rooms.enter(thread as u32 % 2);
                count.add();
            },
        );
        let permits = PermitLock::new(1);
        show(&mut report, "PermitLock, one permit", true, &|_, count| {
            let _guard = permits.take(1);
            count.add();
        });
        if threads == 1 {
            alone = (readers, one);
        }
        if threads == 4 {
            fair = (kinds, two);
        }
        for algorithm in mutex::ALGORITHMS {
            let profile = &algorithm.profile;
            let processes = threads.max(2);
            // Specimens and what needs a bound of time are refused, and so are more processes than it has.
            if StudyLock::new(algorithm, processes, (), || {}).is_err() {
                continue;
            }
            let relax: fn() = if threads > 1 {
                thread::yield_now
            } else {
                || {}
            };
            let median = median((0..rounds).map(|_| {
                let lock = StudyLock::new(algorithm, processes, 0, relax);
                studied(lock.unwrap_or_else(|_| unreachable!()), threads)
            }));
            let noun = if threads == 1 { "thread" } else { "threads" };
            let name = format!("{} of {processes}, {threads} {noun}", profile.name);
            report.show(&name, median, Unit::PerSecond, "");
        }
    }
    let uncontended = alone.0 / alone.1;
    report.row(
        "RoomLock by parking_lot RwLock, alone, time",
        Bar::AtMost(2.0, Unit::Ratio),
        uncontended,
        "",
    );
    report.row(
        "two rooms by two kinds of fair writers, 4 threads",
        Bar::AtLeast(1.0, Unit::Ratio),
        fair.1 / fair.0,
        "",
    );
    Ok(report.end())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Entries per second of so many threads together.
fn per_second(threads: usize, exact: bool, pass: &Pass<'_>) -> f64 {
    let count = Count::default();
    let begin = Instant::now();
    let entries: u64 = thread::scope(|scope| {
        let work = |thread: usize| {
            let count = &count;
            move || {
                let mut entries = 0;
                while entries % 64 != 0 || begin.elapsed() < SPAN {
                    pass(thread, count);
                    entries += 1;
                }
                entries
            }
        };
        let all: Vec<_> = (0..threads).map(|one| scope.spawn(work(one))).collect();
        let all = all.into_iter();
        all.map(|one| one.join().expect("a thread does not panic"))
            .sum()
    });
    let took = begin.elapsed().as_secs_f64();
    let counted = count.0.load(Ordering::Relaxed);
    assert!(
        !exact || counted == entries,
        "{counted} of {entries} counted"
    );
    entries as f64 / took
}

/// The same for a program of the museum.
fn studied(lock: StudyLock<u64>, threads: usize) -> f64 {
    let begin = Instant::now();
    let entries: u64 = thread::scope(|scope| {
        let work = |thread: usize| {
            let mut seat = lock.seat(thread);
            move || {
                let mut entries = 0;
                while entries % 64 != 0 || begin.elapsed() < SPAN {
                    *seat.enter() += 1;
                    entries += 1;
                }
                entries
            }
        };
        let all: Vec<_> = (0..threads).map(|one| scope.spawn(work(one))).collect();
        let all = all.into_iter();
        all.map(|one| one.join().expect("a thread does not panic"))
            .sum()
    });
    let took = begin.elapsed().as_secs_f64();
    assert_eq!(lock.into_inner(), entries, "no count is lost");
    entries as f64 / took
}
