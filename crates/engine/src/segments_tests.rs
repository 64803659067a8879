//! The segments: what was put in comes out, files are rewritten, and damage is named.

use std::path::Path;

use raft::eraftpb::{Entry, HardState};

use super::*;
use crate::error::OpenError;
use crate::members::Members;
use crate::replay::replay;
use crate::sectors::{PAYLOAD_BYTES, SECTOR_BYTES};
use crate::start::Start;
use crate::store::{CleanStopMark, SnapshotMark, Stored};

fn entry(index: u64, term: u64, len: usize) -> Entry {
    Entry {
        index,
        term,
        data: vec![term as u8; len].into(),
        ..Entry::default()
    }
}

fn open(path: &Path) -> (Segments, Stored) {
    open_with(path, Damage::Refused).unwrap()
}

fn open_with(path: &Path, damage: Damage) -> Result<(Segments, Stored), OpenError> {
    let replayed = replay(path, damage)?;
    let (stored, remembered) = (replayed.stored.clone(), replayed.remembered());
    let segments = Segments::take_over(path, replayed, remembered).unwrap();
    Ok((segments, stored))
}

fn append(store: &mut Segments, entries: Vec<Entry>) {
    let change = Change {
        entries,
        sync: true,
        ..Change::default()
    };
    store.commit(change).unwrap();
}

fn mark(store: &mut Segments, index: u64) {
    let change = Change {
        snapshot: Some(SnapshotMark { index, term: 1 }),
        sync: true,
        ..Change::default()
    };
    store.commit(change).unwrap();
}

fn reopened(store: Segments, path: &Path) -> (Segments, Stored) {
    drop(store);
    open(path)
}

fn files(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// The payload of a quarter of a segment.
const QUARTER_BYTES: usize = SEGMENT_BYTES as usize / SECTOR_BYTES * PAYLOAD_BYTES / 4;

/// Fills segments with one entry per quarter, from an index on.
fn fill(store: &mut Segments, from: u64, quarters: u64) {
    for index in from..from + quarters {
        append(store, vec![entry(index, 1, QUARTER_BYTES - 100)]);
    }
}

#[test]
fn a_new_store_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let (_, stored) = open(dir.path());
    assert!(stored.entries.is_empty() && stored.members == Members::default());
    assert_eq!(stored.hard_state, HardState::default());
    assert_eq!(stored.clean_stop, None);
}

#[test]
fn every_field_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    let hard_state = HardState {
        term: 3,
        vote: 1,
        commit: 8,
        ..HardState::default()
    };
    store
        .commit(Change {
            entries: vec![entry(8, 3, 1), entry(9, 3, 5000)],
            hard_state: Some(hard_state.clone()),
            node: Some(3),
            members: Some(Members::alone(3)),
            origins: None,
            void: false,
            start: Some(Start::new(5, 1)),
            snapshot: Some(SnapshotMark { index: 7, term: 2 }),
            clean_stop: Some(CleanStopMark::Set(5)),
            sync: true,
        })
        .unwrap();
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries, [entry(8, 3, 1), entry(9, 3, 5000)]);
    assert_eq!(stored.hard_state, hard_state);
    assert_eq!(stored.members, Members::alone(3));
    assert_eq!(stored.start, Start::new(5, 1));
    assert_eq!(stored.snapshot, SnapshotMark { index: 7, term: 2 });
    assert_eq!(stored.clean_stop, Some(5));

    let consumed = Change {
        clean_stop: Some(CleanStopMark::Consumed),
        sync: true,
        ..Change::default()
    };
    store.commit(consumed).unwrap();
    assert_eq!(reopened(store, dir.path()).1.clean_stop, None);
}

#[test]
fn what_nobody_waits_for_is_written_with_the_next_change() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    append(&mut store, vec![entry(1, 1, 10)]);
    let hard_state = HardState {
        term: 1,
        commit: 1,
        ..HardState::default()
    };
    let unhurried = Change {
        hard_state: Some(hard_state.clone()),
        ..Change::default()
    };
    store.commit(unhurried).unwrap();
    assert_eq!(open(dir.path()).1.hard_state, HardState::default());
    append(&mut store, vec![entry(2, 1, 10)]);
    assert_eq!(open(dir.path()).1.hard_state, hard_state);
}

#[test]
fn an_overwritten_index_takes_everything_behind_it_away() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    append(&mut store, (1..=5).map(|i| entry(i, 1, 2000)).collect());
    append(&mut store, vec![entry(3, 2, 10)]);
    let (mut store, stored) = reopened(store, dir.path());
    let expected = [entry(1, 1, 2000), entry(2, 1, 2000), entry(3, 2, 10)];
    assert_eq!(stored.entries, expected);
    append(&mut store, vec![entry(4, 2, 900)]);
    let (_, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries[3..], [entry(4, 2, 900)]);
}

#[test]
fn segments_follow_each_other_and_are_written_anew_when_a_snapshot_has_replaced_them() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    let start = Change {
        start: Some(Start::new(7, 0)),
        sync: true,
        ..Change::default()
    };
    store.commit(start).unwrap();
    fill(&mut store, 1, 12);
    assert_eq!(files(dir.path()).len(), 3);
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries.len(), 12);
    mark(&mut store, 11);
    assert_eq!(files(dir.path()).len(), 3, "they are kept as spares");
    fill(&mut store, 13, 20);
    let names = files(dir.path());
    let wanted: Vec<_> = (2..8).map(file_name).collect();
    assert_eq!(names, wanted, "the first two bear other numbers now");
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries.len(), 21);
    assert_eq!(stored.entries[0].index, 12);
    assert_eq!(stored.start, Start::new(7, 0), "every segment has it");
    mark(&mut store, 32);
    let names = files(dir.path());
    assert_eq!(names.len(), SPARES_MAX + 1, "{names:?}");
    assert!(reopened(store, dir.path()).1.entries.is_empty());
}

#[test]
fn a_frame_longer_than_a_segment_has_one_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    append(&mut store, vec![entry(1, 1, 10)]);
    let long = (2..=40).map(|index| entry(index, 1, 1 << 20)).collect();
    append(&mut store, long);
    append(&mut store, vec![entry(41, 1, 10)]);
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries.len(), 41);
    mark(&mut store, 41);
    fill(&mut store, 42, 9);
    let lengths = files(dir.path()).into_iter();
    let lengths = lengths.map(|file| fs::metadata(dir.path().join(file)).unwrap().len());
    assert!(lengths.sum::<u64>() < 7 * SEGMENT_BYTES + (40 << 20));
    assert_eq!(reopened(store, dir.path()).1.entries.len(), 9);
}

/// A store of three segments with nine entries, and the path of the middle one.
fn three_segments(dir: &Path) -> PathBuf {
    let (mut store, _) = open(dir);
    fill(&mut store, 1, 9);
    assert_eq!(files(dir).len(), 3);
    dir.join(file_name(1))
}

#[test]
fn a_segment_that_was_never_begun_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let spare = fs::read(three_segments(dir.path())).unwrap();
    for contents in [&b""[..], &[0; 5000], &spare] {
        fs::write(dir.path().join(file_name(3)), contents).unwrap();
        let (store, stored) = open(dir.path());
        assert_eq!(stored.entries.len(), 9);
        drop(store);
        assert_eq!(files(dir.path()).len(), 3);
    }
    let (mut store, _) = open(dir.path());
    fill(&mut store, 10, 4);
    assert_eq!(reopened(store, dir.path()).1.entries.len(), 13);
}

#[test]
fn a_removal_that_came_back_is_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    fill(&mut store, 1, 9);
    let first = fs::read(dir.path().join(file_name(0))).unwrap();
    mark(&mut store, 8);
    drop(store);
    fs::remove_file(dir.path().join(file_name(1))).unwrap();
    fs::write(dir.path().join(file_name(0)), first).unwrap();
    let (_, stored) = open(dir.path());
    assert_eq!(stored.entries.len(), 1);
    assert_eq!(files(dir.path()), [file_name(2)]);
}

#[test]
fn damage_before_the_end_is_named_or_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let middle = three_segments(dir.path());
    let good = fs::read(&middle).unwrap();
    let quarter = SEGMENT_BYTES as usize / 4;
    for (at, left) in [(0, 4), (20, 4), (quarter / 2, 4), (3 * quarter / 2, 5)] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&middle, bad).unwrap();
        let error = open_with(dir.path(), Damage::Refused).unwrap_err();
        assert!(error.to_string().contains(&file_name(1)), "{at}: {error}");
        assert_eq!(files(dir.path()).len(), 3, "nothing was changed");

        let copy = tempfile::tempdir().unwrap();
        for name in files(dir.path()) {
            fs::copy(dir.path().join(&name), copy.path().join(&name)).unwrap();
        }
        let (mut store, stored) = open_with(copy.path(), Damage::CutOff).unwrap();
        assert_eq!(stored.entries.len(), left, "byte {at}");
        append(&mut store, vec![entry(left as u64 + 1, 2, 10)]);
        let (_, stored) = reopened(store, copy.path());
        assert_eq!(stored.entries.len(), left + 1, "byte {at}");
    }
}

/// The only segment of a small store, before and after its last flush, with three entries at the end.
fn last_flush(dir: &Path) -> (PathBuf, Vec<u8>, Vec<u8>) {
    let (mut store, _) = open(dir);
    let file = dir.join(file_name(0));
    append(&mut store, vec![entry(1, 1, 100)]);
    append(&mut store, vec![entry(2, 1, 100)]);
    let before = fs::read(&file).unwrap();
    append(&mut store, vec![entry(3, 1, 2000)]);
    let after = fs::read(&file).unwrap();
    (file, before, after)
}

#[test]
fn whatever_sectors_of_the_last_flush_are_on_disk_it_is_there_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let (file, before, after) = last_flush(dir.path());
    let sectors = 0..after.len() / SECTOR_BYTES;
    let written: Vec<_> = sectors
        .map(|nth| nth * SECTOR_BYTES..(nth + 1) * SECTOR_BYTES)
        .filter(|sector| before[sector.clone()] != after[sector.clone()])
        .collect();
    assert!(written.len() >= 5);
    let mut whole = 0;
    for torn in 0..1 << written.len() {
        let mut bytes = after.clone();
        let old = written.iter().enumerate();
        for (_, sector) in old.filter(|(nth, _)| torn & (1 << nth) != 0) {
            bytes[sector.clone()].copy_from_slice(&before[sector.clone()]);
        }
        fs::write(&file, bytes).unwrap();
        let entries = open(dir.path()).1.entries.len();
        assert!(entries == 2 || entries == 3);
        whole += usize::from(entries == 3);
    }
    // The pages' last sectors have nothing of the frame.
    assert!(whole.is_power_of_two() && whole < 1 << (written.len() - 4));
}

#[test]
fn any_flipped_bit_and_any_cut_is_named_in_the_last_flush_too() {
    let dir = tempfile::tempdir().unwrap();
    let (file, _, good) = last_flush(dir.path());
    for at in (0..good.len()).step_by(37) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        fs::write(&file, &bad).unwrap();
        let error = replay(dir.path(), Damage::Refused).unwrap_err().to_string();
        assert!(error.contains(&file_name(0)), "byte {at}: {error}");
    }
    for len in (1..good.len()).step_by(101) {
        fs::write(&file, &good[..len]).unwrap();
        let error = replay(dir.path(), Damage::Refused).unwrap_err().to_string();
        assert!(error.contains(&file_name(0)), "length {len}: {error}");
    }
}

#[test]
fn a_write_that_fails_names_the_segment() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = open(dir.path());
    append(&mut store, vec![entry(1, 1, 100)]);
    let change = |len| Change {
        entries: vec![entry(2, 1, len)],
        sync: true,
        ..Change::default()
    };
    // The next segment cannot be made.
    fs::create_dir(dir.path().join(file_name(1))).unwrap();
    let error = store.commit(change(4 * QUARTER_BYTES)).unwrap_err();
    assert!(error.to_string().contains(&file_name(1)), "{error}");
    // This one cannot be written.
    let current = store.current.as_mut().unwrap();
    current.file = File::open(dir.path().join(file_name(0))).unwrap();
    let error = store.commit(change(100)).unwrap_err();
    assert!(error.to_string().contains(&file_name(0)), "{error}");
}
