//! `--every` under a race: processes whose clocks differ by up to half a minute want to run the same period, some of
//! them and now and then the node are killed, and no period ever runs twice. Every run appends a line to a file; the file is
//! held against the node's record.
//!
//! `cargo xtask chaos every` runs it for more periods.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::running::{Node, Running};

const PERIODS: u64 = 4;
/// Says another number of periods.
const ROUNDS: &str = "TESTIGO_ROUNDS";
const RACERS: u64 = 20;
/// The first midnight of the race, in days since 1970: 2024-10-04.
const FIRST_DAY: u64 = 20_000;
const DAY_SECONDS: u64 = 86_400;
/// How far a clock may be off, in seconds.
const SKEW: u64 = 30;

#[test]
fn racing_clocks_never_run_a_period_twice() {
    let periods = std::env::var(ROUNDS).ok();
    let periods = periods.map_or(PERIODS, |periods| periods.parse().unwrap());
    let mut race = Race::new();
    for round in 0..periods {
        race.round(FIRST_DAY + round, round);
        if std::env::var_os(ROUNDS).is_some() {
            eprint!("\r{} of {periods} periods: {}", round + 1, race.so_far());
        }
    }
    assert!(race.killed > 0 && race.nodes_killed > 0);
    assert!(race.recorded > 0, "nothing was recorded");
    println!("\n{periods} periods: {}", race.so_far());
}

/// A node that forgets its record on purpose: the file shows it.
#[test]
fn a_forgotten_record_is_seen() {
    let race = Race::new();
    let noon = FIRST_DAY * DAY_SECONDS + DAY_SECONDS / 2;
    assert_eq!(race.racer(noon, "").end().code, 0);
    assert_eq!(race.racer(noon, "").end().code, 0);
    assert_eq!(repeated(&race.runs), Vec::<u64>::new());
    let mut stream = TcpStream::connect(race.node.address()).unwrap();
    stream
        .write_all(b"ONCE FORGET nightly@1d\r\nQUIT\r\n")
        .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("+OK"), "{said}");
    assert_eq!(race.racer(noon, "").end().code, 0);
    assert_eq!(repeated(&race.runs), [FIRST_DAY]);
}

struct Race {
    node: Node,
    /// A line for every run: its period.
    runs: PathBuf,
    /// Whether a process can be given a clock of its own.
    clocks: bool,
    chance: Chance,
    recorded: u64,
    unknown: u64,
    killed: u64,
    nodes_killed: u64,
}

impl Race {
    fn new() -> Race {
        let node = Node::start();
        Race {
            runs: node.file("runs"),
            node,
            clocks: can_set_clocks(),
            chance: Chance(0x7e57_1605),
            recorded: 0,
            unknown: 0,
            killed: 0,
            nodes_killed: 0,
        }
    }

    /// All race around one midnight, so that they disagree about the period.
    fn round(&mut self, day: u64, round: u64) {
        let midnight = day * DAY_SECONDS;
        // One of the first may stay inside until it is killed, in the middle of its run.
        let slow = (round % 4 == 1).then(|| self.chance.below(3));
        let node_dies = (round % 4 == 2).then(|| self.chance.below(RACERS));
        let mut racers = Vec::new();
        for number in 0..RACERS {
            let clock = midnight + self.chance.below(2 * SKEW + 1) - SKEW;
            let then = if slow == Some(number) {
                "; exec cat"
            } else {
                ""
            };
            racers.push(self.racer(clock, then));
            if node_dies == Some(number) {
                self.node.kill();
                self.node.restart();
                self.nodes_killed += 1;
            }
            // Somebody who began earlier, wherever it has come to by now.
            let other = self.chance.below(4 * RACERS) as usize;
            if other < racers.len() && Some(other as u64) != slow {
                racers[other].signal(Signal::KILL);
                self.killed += 1;
            }
        }
        if let Some(slow) = slow {
            // Inside, or done with because others were faster.
            racers[slow as usize].line();
            racers[slow as usize].signal(Signal::KILL);
            self.killed += 1;
        }
        for racer in racers {
            let ended = racer.end();
            // 69: the node was away for too long. 76: how an attempt ended is not known. -1: killed.
            assert!(
                [0, 69, 76, -1].contains(&ended.code),
                "{}: {}",
                ended.code,
                ended.stderr
            );
        }
        self.hold_against_the_record(midnight, day);
    }

    /// Whoever comes last sees what the node has on record: a run, and then it is in the file once, or an attempt whose end
    /// nobody knows, and then it is there at most once.
    fn hold_against_the_record(&mut self, midnight: u64, day: u64) {
        let last = self.racer(midnight + SKEW, "").end();
        assert_eq!(repeated(&self.runs), Vec::<u64>::new(), "ran twice");
        let in_file = runs(&self.runs).get(&day).copied().unwrap_or(0);
        match last.code {
            0 => {
                assert_eq!(in_file, 1, "day {day} is on record: {}", last.stderr);
                self.recorded += 1;
            }
            76 => self.unknown += 1,
            other => panic!("{other}: {}", last.stderr),
        }
    }

    /// A process with a clock that says so many seconds since 1970. It tells its own period, by its own clock.
    fn racer(&self, clock: u64, then: &str) -> Running {
        let period = clock / DAY_SECONDS;
        let shell = format!("echo {period} >> runs; echo ran{then}");
        let mut words = vec!["lock", "nightly", "--ttl", "1s", "--every", "24h"];
        let now_ms = (clock * 1000).to_string();
        if !self.clocks {
            words.extend(["--now", &now_ms]);
        }
        words.extend(["--", "sh", "-c", &shell]);
        let mut command = self.node.command(words);
        if self.clocks {
            // What `faketime` does, without a process of its own that would be killed instead.
            command.env("LD_PRELOAD", "/usr/$LIB/faketime/libfaketime.so.1");
            command.env("FAKETIME", date(clock));
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
            command.env("TZ", "UTC");
        }
        Running::start(command)
    }

    fn so_far(&self) -> String {
        let Race {
            recorded,
            unknown,
            killed,
            nodes_killed,
            ..
        } = self;
        format!(
            "{recorded} ran once, {unknown} have an unknown attempt; {killed} racers and {nodes_killed} nodes killed"
        )
    }
}

/// Whether `faketime` is here; where it is not, the racers are told the time and do not read it.
fn can_set_clocks() -> bool {
    let found = Command::new("faketime").arg("--version").output().is_ok();
    if !found {
        eprintln!("SKIPPED: faketime is not installed, so no process got a clock of its own");
    }
    found
}

/// How often each period ran.
fn runs(file: &Path) -> BTreeMap<u64, u64> {
    let mut runs = BTreeMap::new();
    for line in fs::read_to_string(file).unwrap_or_default().lines() {
        *runs.entry(line.parse().unwrap()).or_default() += 1;
    }
    runs
}

fn repeated(file: &Path) -> Vec<u64> {
    let runs = runs(file).into_iter();
    runs.filter(|(_, times)| *times > 1)
        .map(|(day, _)| day)
        .collect()
}

/// Seconds since 1970 as a date, after Hinnant's `civil_from_days`.
fn date(seconds: u64) -> String {
    let days = seconds / DAY_SECONDS + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (
        day - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}")
}

#[test]
fn dates_are_right() {
    assert_eq!(date(0), "1970-01-01 00:00:00");
    assert_eq!(date(951_827_696), "2000-02-29 12:34:56");
    assert_eq!(date(FIRST_DAY * DAY_SECONDS - 1), "2024-10-03 23:59:59");
}

/// Marsaglia's xorshift, from a fixed seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
