//! What an open finds after every way to stop: a copy of the directory stands for the machine
//! that lost power, and is damaged as power cuts and old disks damage files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use tempfile::TempDir;
use testigo_engine::{Engine, GENERATION_STARTS, OpenError, Opened, Opening};

const SECTOR: usize = 512;

/// How much of a sector is payload.
const PAYLOAD: usize = 496;

/// How the name of a segment of the log ends.
const JOURNAL: &str = "log";

fn open(dir: &Path) -> Opened {
    Engine::open(dir, Opening::Ordinary).unwrap()
}

fn write(engine: &mut Engine, entries: &[Vec<u8>]) {
    for entry in entries {
        engine.propose(entry).unwrap();
    }
    assert_eq!(engine.flush().unwrap().len(), entries.len());
}

fn found(opened: &Opened) -> Vec<Vec<u8>> {
    let entries = opened.committed.iter();
    entries.map(|entry| entry.data.to_vec()).collect()
}

/// A copy of the directory as it is.
fn copy(from: &Path) -> TempDir {
    fn copy_into(from: &Path, to: &Path) {
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            let to = to.join(file.file_name());
            if file.file_type().unwrap().is_dir() {
                fs::create_dir(&to).unwrap();
                copy_into(&file.path(), &to);
            } else {
                fs::copy(file.path(), to).unwrap();
            }
        }
    }
    let to = tempfile::tempdir().unwrap();
    copy_into(from, to.path());
    to
}

/// A copy with these bytes as its journal.
fn copy_with_journal(from: &Path, bytes: &[u8]) -> TempDir {
    let to = copy(from);
    fs::write(journal(to.path()), bytes).unwrap();
    to
}

fn journal(dir: &Path) -> PathBuf {
    let files = fs::read_dir(dir.join("store")).unwrap();
    let mut journals = files
        .map(|file| file.unwrap().path())
        .filter(|path| path.extension() == Some(OsStr::new(JOURNAL)));
    let journal = journals.next().expect("a journal");
    assert_eq!(journals.next(), None, "one journal");
    journal
}

fn bytes(dir: &Path) -> Vec<u8> {
    fs::read(journal(dir)).unwrap()
}

/// Where the sectors begin that a flush has written, and whether they have something of its frame.
fn flushed(before: &[u8], after: &[u8]) -> Vec<(usize, bool)> {
    let starts = (0..after.len()).step_by(SECTOR);
    let differ = |at: usize, len: usize| before[at..at + len] != after[at..at + len];
    let written = starts.filter(|at| differ(*at, SECTOR));
    written.map(|at| (at, differ(at, PAYLOAD))).collect()
}

#[test]
fn after_every_flush_a_copy_has_everything_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let mut acknowledged = Vec::new();
    for flush in 0..10u8 {
        let entries: Vec<_> = (0..flush)
            .map(|i| vec![flush; 1 + 300 * usize::from(i)])
            .collect();
        write(&mut engine, &entries);
        acknowledged.extend(entries);
        let crashed = copy(dir.path());
        let opened = open(crashed.path());
        assert_eq!(found(&opened), acknowledged);
        assert_eq!(opened.engine.start().number(), engine.start().number() + 1);
    }
}

#[test]
fn a_flush_that_lost_any_one_sector_leaves_what_was_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let acknowledged = vec![vec![1; 10], vec![2; 5000]];
    write(&mut engine, &acknowledged);
    let before = bytes(dir.path());
    let last = [vec![3; 4000], vec![4; 20], vec![5; 1500]];
    write(&mut engine, &last);
    let whole = bytes(dir.path());
    let torn = flushed(&before, &whole);
    assert!(torn.iter().filter(|(_, framed)| *framed).count() > 5);
    for (at, framed) in torn {
        let mut bytes = whole.clone();
        bytes[at..at + SECTOR].copy_from_slice(&before[at..at + SECTOR]);
        let crashed = copy_with_journal(dir.path(), &bytes);
        let mut wanted = acknowledged.clone();
        if !framed {
            wanted.extend(last.iter().cloned());
        }
        let opened = open(crashed.path());
        assert_eq!(found(&opened), wanted, "without the sector at {at}");
    }
}

#[test]
fn a_flush_cut_short_anywhere_leaves_what_was_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let acknowledged = vec![vec![1; 10], vec![2; 700]];
    write(&mut engine, &acknowledged);
    let before = bytes(dir.path());
    write(&mut engine, &[vec![3; 1000], vec![4; 20]]);
    let after = bytes(dir.path());
    let torn = flushed(&before, &after);
    let framed = torn.into_iter().filter(|(_, framed)| *framed);
    for (at, _) in framed {
        // Written up to there, or from there on.
        for (first, second) in [(&after, &before), (&before, &after)] {
            let torn = [&first[..at], &second[at..]].concat();
            if torn == after {
                continue;
            }
            let crashed = copy_with_journal(dir.path(), &torn);
            let mut opened = open(crashed.path());
            assert_eq!(found(&opened), acknowledged, "cut at {at}");
            // It goes on where it was cut, within a page, and over its end.
            let later = [vec![5; 30], vec![6; 5000]];
            for entry in &later {
                write(&mut opened.engine, std::slice::from_ref(entry));
            }
            drop(opened);
            let both: Vec<_> = acknowledged.iter().chain(&later).cloned().collect();
            assert_eq!(found(&open(crashed.path())), both, "cut at {at}");
        }
    }
}

#[test]
fn a_directory_of_the_format_before_is_read_and_goes_on_in_this_one() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old");
    let dir = copy(&old);
    let mut opened = open(dir.path());
    assert_eq!(opened.snapshot.as_ref().unwrap().image, b"six entries");
    let mut entries: Vec<_> = (6..9).map(|entry| vec![entry; 30]).collect();
    assert_eq!(found(&opened), entries);
    assert_eq!(opened.clean_stop.as_deref(), Some(&b"who holds"[..]));
    assert_eq!(opened.engine.start().number(), 3);
    write(&mut opened.engine, &[vec![9; 30]]);
    entries.push(vec![9; 30]);
    drop(opened);
    assert_eq!(found(&open(dir.path())), entries);
}

#[test]
fn a_directory_without_origins_is_read_and_what_follows_has_some() {
    let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unnumbered");
    let dir = copy(&old);
    let mut opened = open(dir.path());
    assert_eq!(opened.snapshot.as_ref().unwrap().image, b"six entries");
    let mut entries: Vec<_> = (6..9).map(|entry| vec![entry; 30]).collect();
    entries.push(vec![9; 5000]);
    assert_eq!(found(&opened), entries);
    let mut origins = opened.committed.iter().map(|entry| entry.origin);
    assert!(origins.all(|origin| origin.is_none()));
    assert_eq!(opened.clean_stop.as_deref(), Some(&b"who holds"[..]));
    assert_eq!(opened.engine.start().number(), 3);
    write(&mut opened.engine, &[vec![10; 30], vec![11; 30]]);
    entries.extend([vec![10; 30], vec![11; 30]]);
    drop(opened);
    let opened = open(dir.path());
    assert_eq!(found(&opened), entries);
    let origins = opened.committed.iter().filter_map(|entry| entry.origin);
    let origins: Vec<_> = origins.map(|origin| origin.to_string()).collect();
    assert_eq!(origins, ["1/3/1", "1/3/2"]);
    // An older version is told by the witness file that it cannot read this.
    let witness = fs::read(dir.path().join("witness")).unwrap();
    assert_eq!(witness[8..12], testigo_engine::FORMAT.to_le_bytes());
}

#[test]
fn no_flipped_bit_in_a_closed_directory_loses_an_entry_in_silence() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let acknowledged: Vec<_> = (0..60u8).map(|i| vec![i; 40]).collect();
    for entries in acknowledged.chunks(3) {
        write(&mut engine, entries);
    }
    engine.close(None).unwrap();
    let whole = bytes(dir.path());
    let mut rng = Xoshiro256StarStar::seed_from_u64(11);
    let mut refused = 0;
    for _ in 0..120 {
        let mut bytes = whole.clone();
        let at = rng.next_u64() as usize % bytes.len();
        bytes[at] ^= 1 << (rng.next_u64() % 8);
        let damaged = copy_with_journal(dir.path(), &bytes);
        match Engine::open(damaged.path(), Opening::Ordinary) {
            Err(OpenError::Damaged(_)) => {
                refused += 1;
                // A restored one begins all the same, with what comes before, and says where that ends.
                let opened = Engine::open(damaged.path(), Opening::Restored).unwrap();
                assert!(acknowledged.starts_with(&found(&opened)), "byte {at}");
                assert!(opened.cut_off.is_some(), "byte {at}");
            }
            other => panic!("byte {at}: {other:?}"),
        }
    }
    assert_eq!(refused, 120);
}

#[test]
fn a_second_opener_is_refused_and_the_first_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let refused = Engine::open(dir.path(), Opening::Ordinary).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    write(&mut engine, &[vec![1]]);
    drop(engine);
    assert_eq!(
        open(dir.path()).engine.start().number(),
        2,
        "the refused open used no start"
    );
}

#[test]
fn the_start_rises_by_one_at_every_open_and_compaction_does_not_touch_it() {
    let dir = tempfile::tempdir().unwrap();
    for start in 1..=6 {
        let mut engine = open(dir.path()).engine;
        assert_eq!(engine.start().number(), start);
        engine.propose(&[1]).unwrap();
        let index = engine.flush().unwrap()[0].position.index;
        engine.snapshot(index, &[]).unwrap();
        if start % 2 == 0 {
            engine.close(None).unwrap();
        }
    }
}

#[test]
fn a_clean_stops_image_is_found_once() {
    let dir = tempfile::tempdir().unwrap();
    let engine = open(dir.path()).engine;
    engine.close(Some(b"who holds, who waits")).unwrap();
    let crashed_before = copy(dir.path());
    let opened = open(dir.path());
    assert_eq!(
        opened.clean_stop.as_deref(),
        Some(&b"who holds, who waits"[..])
    );
    // Killed at once: the image must not come back, it is older than what was granted since.
    let crashed_after = copy(dir.path());
    assert_eq!(open(crashed_after.path()).clean_stop, None);
    assert!(open(crashed_before.path()).clean_stop.is_some());
}

#[test]
fn a_damaged_clean_stop_counts_as_a_crash() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).engine.close(Some(b"image")).unwrap();
    let mut bytes = fs::read(dir.path().join("clean-stop")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(dir.path().join("clean-stop"), bytes).unwrap();
    assert_eq!(open(dir.path()).clean_stop, None);
}

#[test]
fn a_store_put_back_alone_is_refused_until_it_is_called_restored() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    write(&mut engine, &[b"old".to_vec()]);
    engine.close(Some(b"image")).unwrap();
    let backup = copy(dir.path());
    for _ in 0..3 {
        open(dir.path());
    }
    fs::copy(dir.path().join("witness"), backup.path().join("witness")).unwrap();
    let behind = Engine::open(backup.path(), Opening::Ordinary).unwrap_err();
    assert!(
        matches!(
            behind,
            OpenError::Behind {
                start: 1,
                start_witnessed: 4,
                ..
            }
        ),
        "{behind}"
    );
    let opened = Engine::open(backup.path(), Opening::Restored).unwrap();
    assert_eq!(opened.engine.start().number(), 4 + GENERATION_STARTS);
    assert_eq!(opened.engine.start().generation(), 1);
    assert_eq!(found(&opened), [b"old".to_vec()]);
    assert_eq!(opened.clean_stop, None, "its holders are long gone");
    drop(opened);
    assert_eq!(
        open(backup.path()).engine.start().number(),
        5 + GENERATION_STARTS
    );
}

#[test]
fn a_directory_with_a_part_missing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    engine.propose(&[1]).unwrap();
    let index = engine.flush().unwrap()[0].position.index;
    engine.snapshot(index, b"state").unwrap();
    drop(engine);
    let snapshot = format!("snapshot-{index}");
    for part in ["witness", "store", &snapshot] {
        let broken = copy(dir.path());
        let path = broken.path().join(part);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let error = Engine::open(broken.path(), Opening::Ordinary).unwrap_err();
        assert!(matches!(error, OpenError::Damaged(_)), "{part}: {error}");
    }
}

#[test]
fn snapshots_keep_the_log_short_and_recover() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let mut total = 0u64;
    for _ in 0..20 {
        let mut index = 0;
        for _ in 0..100 {
            for _ in 0..10 {
                total += 1;
                engine.propose(&total.to_le_bytes()).unwrap();
            }
            index = engine.flush().unwrap().last().unwrap().position.index;
        }
        engine.snapshot(index, &total.to_le_bytes()).unwrap();
        assert_eq!(engine.log_size().entries, 0);
    }
    write(&mut engine, &[b"after".to_vec()]);
    drop(engine);
    let opened = open(dir.path());
    assert_eq!(opened.snapshot.as_ref().unwrap().image, total.to_le_bytes());
    assert_eq!(found(&opened), [b"after".to_vec()]);
    let files = fs::read_dir(dir.path()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let snapshots: Vec<_> = names.filter(|name| name.starts_with("snapshot")).collect();
    assert_eq!(snapshots.len(), 1, "{snapshots:?}");
}
