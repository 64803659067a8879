//! What an open finds after every way to stop: a copy of the directory stands for the machine
//! that lost power, and is damaged as power cuts and old disks damage files.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use tempfile::TempDir;
use testigo_engine::{Engine, GENERATION_EPOCHS, OpenError, Opened, Start};

const SECTOR: usize = 512;

/// How the name of a segment of the log ends.
const JOURNAL: &str = "log";

fn open(dir: &Path) -> Opened {
    Engine::open(dir, Start::Ordinary).unwrap()
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
    copy_with_journal(from, &used(from))
}

/// A copy with these bytes in the journal, and zeroes behind them up to its length.
fn copy_with_journal(from: &Path, bytes: &[u8]) -> TempDir {
    fn copy_into(from: &Path, to: &Path) {
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            let to = to.join(file.file_name());
            if file.file_type().unwrap().is_dir() {
                fs::create_dir(&to).unwrap();
                copy_into(&file.path(), &to);
            } else if file.path().extension() != Some(OsStr::new(JOURNAL)) {
                fs::copy(file.path(), to).unwrap();
            }
        }
    }
    let to = tempfile::tempdir().unwrap();
    copy_into(from, to.path());
    let journal = journal(from);
    let len = fs::metadata(&journal).unwrap().len();
    let copied = to.path().join(journal.strip_prefix(from).unwrap());
    fs::write(&copied, bytes).unwrap();
    cut(&copied, len);
    to
}

fn cut(file: &Path, len: u64) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_len(len).unwrap();
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

/// The bytes of the journal that are in use; behind them it is all zeroes.
fn used(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = fs::File::open(journal(dir)).unwrap();
    // These tests write far less than this.
    file.by_ref().take(1 << 20).read_to_end(&mut bytes).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0);
    bytes.truncate(last.map_or(0, |last| last + 1));
    bytes
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
        assert_eq!(opened.engine.epoch().number(), engine.epoch().number() + 1);
    }
}

#[test]
fn a_flush_that_lost_any_one_sector_leaves_what_was_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let acknowledged = vec![vec![1; 10], vec![2; 5000]];
    write(&mut engine, &acknowledged);
    let before = used(dir.path()).len();
    write(&mut engine, &[vec![3; 4000], vec![4; 20], vec![5; 1500]]);
    let whole = used(dir.path());
    let torn = before.next_multiple_of(SECTOR)..whole.len();
    assert!(torn.len() > 5 * SECTOR);
    for sector in torn.step_by(SECTOR) {
        let mut bytes = whole.clone();
        let end = bytes.len().min(sector + SECTOR);
        bytes[sector..end].fill(0);
        let crashed = copy_with_journal(dir.path(), &bytes);
        let opened = open(crashed.path());
        assert_eq!(
            found(&opened),
            acknowledged,
            "without the sector at {sector}"
        );
    }
}

#[test]
fn a_flush_cut_short_anywhere_leaves_what_was_acknowledged_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let acknowledged = vec![vec![1; 10], vec![2; 700]];
    write(&mut engine, &acknowledged);
    let before = used(dir.path()).len();
    write(&mut engine, &[vec![3; 1000], vec![4; 20]]);
    let after = used(dir.path()).len();
    for len in (before..after).step_by(61) {
        let crashed = copy(dir.path());
        cut(&journal(crashed.path()), len as u64);
        let mut opened = open(crashed.path());
        assert_eq!(found(&opened), acknowledged, "cut at {len}");
        // It goes on where it was cut, within a page, and over its end.
        let later = [vec![5; 30], vec![6; 5000]];
        for entry in &later {
            write(&mut opened.engine, std::slice::from_ref(entry));
        }
        drop(opened);
        let both: Vec<_> = acknowledged.iter().chain(&later).cloned().collect();
        assert_eq!(found(&open(crashed.path())), both, "cut at {len}");
    }
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
    let whole = used(dir.path());
    let mut rng = Xoshiro256StarStar::seed_from_u64(11);
    let mut refused = 0;
    for _ in 0..120 {
        let mut bytes = whole.clone();
        let at = rng.next_u64() as usize % bytes.len();
        bytes[at] ^= 1 << (rng.next_u64() % 8);
        let damaged = copy_with_journal(dir.path(), &bytes);
        match Engine::open(damaged.path(), Start::Ordinary) {
            Ok(opened) => assert_eq!(found(&opened), acknowledged, "byte {at}"),
            Err(OpenError::Damaged(_)) => {
                refused += 1;
                // A restored one begins all the same, with what comes before, and says where that ends.
                let opened = Engine::open(damaged.path(), Start::Restored).unwrap();
                assert!(acknowledged.starts_with(&found(&opened)), "byte {at}");
                let whole = found(&opened) == acknowledged;
                assert!(whole || opened.cut_off.is_some(), "byte {at}");
            }
            Err(OpenError::Behind { .. }) => refused += 1,
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(refused > 60, "{refused}");
}

#[test]
fn a_second_opener_is_refused_and_the_first_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let refused = Engine::open(dir.path(), Start::Ordinary).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    write(&mut engine, &[vec![1]]);
    drop(engine);
    assert_eq!(
        open(dir.path()).engine.epoch().number(),
        2,
        "the refused open used no epoch"
    );
}

#[test]
fn the_epoch_rises_by_one_at_every_open_and_compaction_does_not_touch_it() {
    let dir = tempfile::tempdir().unwrap();
    for epoch in 1..=6 {
        let mut engine = open(dir.path()).engine;
        assert_eq!(engine.epoch().number(), epoch);
        let ticket = engine.propose(&[1]).unwrap();
        engine.flush().unwrap();
        engine.snapshot(ticket.index, &[]).unwrap();
        if epoch % 2 == 0 {
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
    let behind = Engine::open(backup.path(), Start::Ordinary).unwrap_err();
    assert!(
        matches!(
            behind,
            OpenError::Behind {
                epoch: 1,
                epoch_witnessed: 4,
                ..
            }
        ),
        "{behind}"
    );
    let opened = Engine::open(backup.path(), Start::Restored).unwrap();
    assert_eq!(opened.engine.epoch().number(), 4 + GENERATION_EPOCHS);
    assert_eq!(opened.engine.epoch().generation(), 1);
    assert_eq!(found(&opened), [b"old".to_vec()]);
    assert_eq!(opened.clean_stop, None, "its holders are long gone");
    drop(opened);
    assert_eq!(
        open(backup.path()).engine.epoch().number(),
        5 + GENERATION_EPOCHS
    );
}

#[test]
fn a_directory_with_a_part_missing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut engine = open(dir.path()).engine;
    let ticket = engine.propose(&[1]).unwrap();
    engine.flush().unwrap();
    engine.snapshot(ticket.index, b"state").unwrap();
    drop(engine);
    let snapshot = format!("snapshot-{}", ticket.index);
    for part in ["witness", "store", &snapshot] {
        let broken = copy(dir.path());
        let path = broken.path().join(part);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let error = Engine::open(broken.path(), Start::Ordinary).unwrap_err();
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
            index = engine.flush().unwrap().last().unwrap().ticket.index;
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
