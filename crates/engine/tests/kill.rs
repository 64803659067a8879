//! `kill -9` of a real process that writes in a loop: whatever it acknowledged over its pipe is
//! there at the next start, in order, and every start has a higher number. The process is this
//! program itself, called with the directory to write in.

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdout};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use testigo_engine::{Engine, OpenError, Opened, Opening};

const KILLS: u64 = 25;
const SEED: u64 = 0x7E57_1600;
const WRITE_IN: &str = "TESTIGO_ENGINE_TEST_WRITE_IN";

const NAME: &str = "what_a_killed_process_acknowledged_is_there";

fn main() {
    if let Some(dir) = env::var_os(WRITE_IN) {
        return write_forever(Path::new(&dir));
    }
    let mut arguments = env::args().skip(1);
    if arguments.all(|argument| argument.starts_with("--") && argument != "--list")
        || env::args().any(|argument| NAME.contains(&argument))
    {
        what_a_killed_process_acknowledged_is_there();
        println!("test {NAME} ... ok");
    }
}

/// Numbers its entries from zero, through all its starts, and says after every flush how many
/// there are.
fn write_forever(dir: &Path) {
    let opened = Engine::open(dir, Opening::Ordinary).unwrap();
    let mut count = recovered(&opened);
    let mut engine = opened.engine;
    let start = engine.start().number();
    let mut rng = Xoshiro256StarStar::seed_from_u64(u64::from(start));
    let mut out = stdout().lock();
    writeln!(out, "open {start} {count}").unwrap();
    loop {
        for _ in 0..=rng.next_u64() % 8 {
            engine.propose(&entry(count)).unwrap();
            count += 1;
        }
        let committed = engine.flush().unwrap();
        writeln!(out, "acknowledged {start} {count}").unwrap();
        if rng.next_u64().is_multiple_of(32) {
            let index = committed.last().unwrap().position.index;
            engine.snapshot(index, &count.to_le_bytes()).unwrap();
        }
    }
}

/// How many entries there are; each must be where it was put.
fn recovered(opened: &Opened) -> u64 {
    let snapshot = opened.snapshot.as_ref();
    let mut count = snapshot.map_or(0, |snapshot| {
        u64::from_le_bytes(snapshot.image[..].try_into().unwrap())
    });
    for committed in &opened.committed {
        assert_eq!(committed.data[..], entry(count), "entry {count}");
        count += 1;
    }
    count
}

/// The number, and a tail of up to three disk sectors.
fn entry(number: u64) -> Vec<u8> {
    let mut entry = number.to_le_bytes().to_vec();
    entry.resize(8 + (number as usize * 37) % 1600, number as u8);
    entry
}

fn what_a_killed_process_acknowledged_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = Xoshiro256StarStar::seed_from_u64(SEED);
    let (mut start, mut acknowledged) = (0, 0);
    for round in 0..KILLS {
        let (mut child, mut lines) = spawn(dir.path());
        // Every fifth is killed before it has said anything, most likely while it opens.
        let lines_read = if round % 5 == 4 {
            0
        } else {
            1 + rng.next_u64() % 300
        };
        for nth in 0..lines_read {
            let line = lines.next().expect("the process writes on").unwrap();
            heard(&line, &mut start, &mut acknowledged);
            if (round, nth) == (0, 0) {
                let refused = Engine::open(dir.path(), Opening::Ordinary).unwrap_err();
                assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it had said before it died was said.
        for line in lines.map_while(Result::ok) {
            heard(&line, &mut start, &mut acknowledged);
        }
    }
    let opened = Engine::open(dir.path(), Opening::Ordinary).unwrap();
    assert!(opened.engine.start().number() > start);
    assert!(recovered(&opened) >= acknowledged);
    assert!(acknowledged > 1000, "only {acknowledged} acknowledged");
    assert!(opened.snapshot.is_some(), "no snapshot was ever taken");
}

fn spawn(dir: &Path) -> (Child, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env::current_exe().unwrap())
        .env(WRITE_IN, dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, lines)
}

fn heard(line: &str, start: &mut u32, acknowledged: &mut u64) {
    let fields: Vec<_> = line.split(' ').collect();
    // A line cut off by the kill acknowledges nothing.
    let [what, number, count] = fields[..] else {
        return;
    };
    let (Ok(number), Ok(count)) = (number.parse::<u32>(), count.parse::<u64>()) else {
        return;
    };
    match what {
        "open" => {
            assert!(number > *start, "start {number} after {start}");
            assert!(count >= *acknowledged, "{count} of {acknowledged} left");
            *start = number;
        }
        "acknowledged" => {
            assert_eq!(number, *start);
            *acknowledged = count.max(*acknowledged);
        }
        other => panic!("{other}"),
    }
}
