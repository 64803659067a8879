//! The store: what was put in comes out, and damage is named.

use super::*;

fn entry(index: u64, term: u64, len: usize) -> Entry {
    Entry {
        index,
        term,
        data: vec![term as u8; len].into(),
        ..Entry::default()
    }
}

fn append(store: &mut FjallStore, entries: Vec<Entry>) {
    let change = Change {
        entries,
        sync: true,
        ..Change::default()
    };
    store.commit(change).unwrap();
}

fn reopened(store: FjallStore, path: &Path) -> (FjallStore, Stored) {
    drop(store);
    FjallStore::open(path).unwrap()
}

#[test]
fn a_new_store_is_empty() {
    let dir = tempfile::tempdir().unwrap();
    let (_, stored) = FjallStore::open(dir.path()).unwrap();
    assert!(stored.entries.is_empty() && stored.voters.is_empty());
    assert_eq!(stored.hard_state, HardState::default());
    assert_eq!(stored.clean_stop, None);
}

#[test]
fn every_field_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = FjallStore::open(dir.path()).unwrap();
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
            voters: Some(vec![1, 2, 3]),
            epoch: Some(Epoch::new(5, 1)),
            snapshot: Some(SnapshotMark { index: 7, term: 2 }),
            clean_stop: Some(CleanStopMark::Set(5)),
            sync: true,
        })
        .unwrap();
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries, [entry(8, 3, 1), entry(9, 3, 5000)]);
    assert_eq!(stored.hard_state, hard_state);
    assert_eq!(stored.voters, [1, 2, 3]);
    assert_eq!(stored.epoch, Epoch::new(5, 1));
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
fn an_overwritten_index_takes_everything_behind_it_away() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = FjallStore::open(dir.path()).unwrap();
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
fn compacted_rows_leave_with_later_commits() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = FjallStore::open(dir.path()).unwrap();
    let count = 3 * TRIMMED_PER_COMMIT as u64;
    append(&mut store, (1..=count).map(|i| entry(i, 1, 1)).collect());
    let mark = SnapshotMark {
        index: count - 1,
        term: 1,
    };
    let change = Change {
        snapshot: Some(mark),
        sync: true,
        ..Change::default()
    };
    store.commit(change).unwrap();
    let (mut store, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries, [entry(count, 1, 1)]);
    let log_rows = |store: &FjallStore| store.rows.prefix(b"l").count();
    assert_eq!(log_rows(&store), count as usize);
    for i in 1..=4 {
        append(&mut store, vec![entry(count + i, 1, 1)]);
    }
    assert_eq!(log_rows(&store), 5);
    let (_, stored) = reopened(store, dir.path());
    assert_eq!(stored.entries.len(), 5);
}

#[test]
fn a_broken_row_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, _) = FjallStore::open(dir.path()).unwrap();
    append(&mut store, vec![entry(1, 1, 1), entry(2, 1, 1)]);
    store.rows.insert(row::key(2, 0), b"nonsense").unwrap();
    drop(store);
    let error = FjallStore::open(dir.path()).err().unwrap();
    assert!(matches!(&error, OpenError::Damaged(_)), "{error}");
    assert!(error.to_string().contains("log entry 2"), "{error}");
}

#[test]
fn a_broken_field_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = FjallStore::open(dir.path()).unwrap();
    store.rows.insert(EPOCH, numbers(&[1])).unwrap();
    drop(store);
    let error = FjallStore::open(dir.path()).err().unwrap();
    assert!(error.to_string().contains("\"epoch\""), "{error}");
}

#[test]
fn a_full_disk_is_told_from_a_broken_one() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let full = disk_error(fjall::Error::Io(full));
    assert!(matches!(full, DiskError::Full(_)), "{full}");
    let broken = disk_error(fjall::Error::Poisoned);
    assert!(matches!(broken, DiskError::Failed(_)), "{broken}");
}
