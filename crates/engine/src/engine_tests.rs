//! The engine over two images, with a crash or a failure at any commit.

use super::*;
use crate::members::MemberChange;
use crate::open::Opening;
use crate::pieces::Piece;
use crate::simulated::Disk;
use crate::store::SnapshotMark;
use crate::two_images::{Fate, TwoImages};
use crate::wire::{self, Said};
use raft::eraftpb::{Message, MessageType};
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

fn bytes(committed: &[Committed]) -> Vec<&[u8]> {
    committed.iter().map(|entry| &entry.data[..]).collect()
}

#[test]
fn all_that_wait_share_one_flush() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    let before = disk.flushes();
    let origins: Vec<_> = (0..256u32)
        .map(|i| Some(engine.propose(&i.to_le_bytes()).unwrap()))
        .collect();
    assert_eq!(disk.flushes(), before, "a proposal touches no disk");
    let committed = engine.flush().unwrap();
    assert_eq!(disk.flushes(), before + 1);
    let came: Vec<_> = committed.iter().map(|entry| entry.origin).collect();
    assert_eq!(came, origins);
    assert_eq!(engine.flush().unwrap(), []);
    assert_eq!(
        disk.flushes(),
        before + 1,
        "nothing waits, nothing is flushed"
    );
}

#[test]
fn a_node_that_comes_back_with_another_directory_starts_above_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let newcomer = Setup {
        node: 2,
        joins: true,
        ..Setup::default()
    };
    let mut found = Engine::examine_as(dir.path(), Opening::Ordinary, newcomer).unwrap();
    assert_eq!(found.members(), &Members::default());
    assert_eq!(found.start().number(), 1);
    found.start_above(7).unwrap();
    found.start_above(3).unwrap();
    let engine = found.take_over().unwrap().engine;
    assert_eq!(engine.start().number(), 8);
    drop(engine);
    let again = Engine::examine_as(dir.path(), Opening::Ordinary, newcomer).unwrap();
    assert_eq!(again.start().number(), 9);
}

#[test]
fn a_start_numbers_what_it_takes_without_a_gap() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    for start in 1..=2 {
        let mut engine = disk.open(dir.path()).unwrap().engine;
        let mut taken = Vec::new();
        for len in [1, 0, ENTRY_BYTES_MAX, ENTRY_BYTES_MAX + 1, 7, 7] {
            taken.extend(engine.propose(&vec![1; len]).ok());
        }
        taken.extend(engine.propose(b"more"));
        let wanted = (1..=5).map(|sequence| Origin {
            node: 1,
            start,
            sequence,
        });
        assert_eq!(taken, wanted.collect::<Vec<_>>());
        let committed = engine.flush().unwrap();
        let came: Vec<_> = committed.iter().filter_map(|entry| entry.origin).collect();
        assert_eq!(came, taken);
        assert!(committed.is_sorted_by_key(|entry| entry.position));
    }
}

#[test]
fn nothing_is_handed_out_before_it_is_durable() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    engine.propose(b"lost").unwrap();
    drop(engine);
    let opened = disk.open(dir.path()).unwrap();
    assert_eq!(opened.committed, []);
}

#[test]
fn after_a_failed_flush_the_engine_refuses_everything() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    engine.propose(b"kept").unwrap();
    let kept = engine.flush().unwrap();
    disk.fate_after(0, Fate::Lost);
    engine.propose(b"unknown").unwrap();
    let full = engine.flush().unwrap_err();
    assert!(matches!(full.0, DiskError::Full(_)), "{full}");

    // The disk has room again, but still nothing is written: only an open finds out what is there.
    disk.fate_after(0, Fate::Done);
    let refused = engine.propose(b"later").unwrap_err();
    assert_eq!(refused, ProposeError::Stopped(full.0.clone()));
    assert_eq!(engine.flush().unwrap_err(), full);
    let index = kept[0].position.index;
    let refused = engine.snapshot(index, b"state").unwrap_err();
    assert_eq!(refused, SnapshotError::Stopped(full.clone()));
    assert_eq!(engine.close(Some(b"image")).unwrap_err(), full);

    let opened = disk.open(dir.path()).unwrap();
    assert_eq!(opened.committed, kept);
    assert_eq!(opened.clean_stop, None);
}

#[test]
fn limits_are_refused_with_their_names() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    assert_eq!(engine.propose(&[]), Err(ProposeError::Empty));
    let long = ENTRY_BYTES_MAX + 1;
    let refused = engine.propose(&vec![0; long]);
    assert_eq!(refused, Err(ProposeError::TooLong(long)));

    let full = loop {
        match engine.propose(&vec![1; ENTRY_BYTES_MAX]) {
            Ok(_) => {}
            Err(ProposeError::Backlog) => assert!(!engine.flush().unwrap().is_empty()),
            Err(error) => break error,
        }
    };
    assert_eq!(full, ProposeError::LogFull);
    engine.flush().unwrap();
    assert!(engine.log_size().bytes <= LOG_BYTES_MAX + (1 << 20));
    engine.snapshot(engine.delivered, b"").unwrap();
    assert!(engine.propose(b"room again").is_ok());
}

#[test]
fn a_snapshot_must_be_new_and_committed() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    engine.propose(b"a").unwrap();
    let next = engine.delivered + 1;
    let early = engine.snapshot(next, b"state").unwrap_err();
    assert_eq!(early, SnapshotError::NotCommitted(next));
    let index = engine.flush().unwrap()[0].position.index;
    assert_eq!(index, next);
    engine.snapshot(index, b"state").unwrap();
    let again = engine.snapshot(index, b"other").unwrap_err();
    assert_eq!(again, SnapshotError::Stale(index));
    drop(engine);
    let snapshot = disk.open(dir.path()).unwrap().snapshot.unwrap();
    assert_eq!(
        (snapshot.index, &snapshot.image[..]),
        (index, &b"state"[..])
    );
}

/// Proposals, flushes, snapshots and clean stops in a seeded order, with a crash at every commit in turn, in two ways: the
/// change is lost, or it is on disk without the caller knowing.
#[test]
fn a_crash_at_any_commit_loses_nothing_acknowledged() {
    for fate in [Fate::Lost, Fate::DoneButFailed] {
        for crash in 0..60 {
            run_into_crash(crash, fate);
        }
    }
}

fn run_into_crash(crash: usize, fate: Fate) {
    let what = format!("{fate:?} at commit {crash}");
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut rng = Xoshiro256StarStar::seed_from_u64(crash as u64);
    let mut acknowledged: Vec<Vec<u8>> = Vec::new();
    let mut starts = vec![0];
    disk.fate_after(crash, fate);
    let mut crashed = false;
    while !crashed || starts.len() < 4 {
        let opened = match disk.open(dir.path()) {
            Ok(opened) => opened,
            Err(error) => {
                assert!(
                    matches!(error, crate::OpenError::Disk(_)),
                    "{what}: {error}"
                );
                crashed = true;
                disk.fate_after(0, Fate::Done);
                continue;
            }
        };
        assert!(
            opened.engine.start().number() > *starts.last().unwrap(),
            "{what}"
        );
        starts.push(opened.engine.start().number());
        let mut found = opened.snapshot.map_or(Vec::new(), |s| decode(&s.image));
        found.extend(opened.committed.iter().map(|entry| entry.data.to_vec()));
        assert!(
            found.starts_with(&acknowledged),
            "{what}: acknowledged is there"
        );
        acknowledged = found;
        if work(opened.engine, &mut acknowledged, &mut rng).is_err() {
            crashed = true;
            disk.fate_after(0, Fate::Done);
        }
    }
}

fn work(
    mut engine: Engine,
    acknowledged: &mut Vec<Vec<u8>>,
    rng: &mut Xoshiro256StarStar,
) -> Result<(), FlushError> {
    for _ in 0..10 {
        for _ in 0..rng.next_u64() % 4 {
            let data = rng.next_u64().to_le_bytes().to_vec();
            engine.propose(&data).map_err(|_| ()).unwrap();
        }
        let committed = engine.flush()?;
        acknowledged.extend(committed.iter().map(|entry| entry.data.to_vec()));
        if rng.next_u64().is_multiple_of(4) {
            match engine.snapshot(engine.delivered, &encode(acknowledged)) {
                Ok(()) | Err(SnapshotError::Stale(_)) => {}
                Err(SnapshotError::Stopped(error)) => return Err(error),
                Err(error) => panic!("{error}"),
            }
        }
    }
    match rng.next_u64() % 2 {
        0 => engine.close(Some(b"image")),
        _ => Ok(()),
    }
}

fn encode(entries: &[Vec<u8>]) -> Vec<u8> {
    entries.concat()
}

fn decode(image: &[u8]) -> Vec<Vec<u8>> {
    image.chunks(8).map(<[u8]>::to_vec).collect()
}

#[test]
fn another_members_snapshot_replaces_the_log() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let mut engine = disk.open(dir.path()).unwrap().engine;
    engine.propose(b"old").unwrap();
    engine.flush().unwrap();
    let image = b"their state";
    let mut piece = Piece {
        term: 8,
        base: Base {
            mark: SnapshotMark { index: 50, term: 7 },
            members: engine.members().after(MemberChange::AddLearner(2)).unwrap(),
            origins: Origins::default(),
        },
        bytes: image.len() as u64,
        sum: xxhash_rust::xxh3::xxh3_64(image),
        offset: 0,
        data: Bytes::from_static(&image[..5]),
    };
    for _ in 0..2 {
        let frame = wire::write(&Said::Piece(piece.clone()), 2, 1).unwrap();
        engine.step(2, &frame).unwrap();
        piece.offset = 5;
        piece.data = Bytes::from_static(&image[5..]);
    }
    assert_eq!(engine.flush().unwrap(), []);
    let restored = engine.take_restored().unwrap();
    assert_eq!((restored.index, &restored.image[..]), (50, &image[..]));
    assert_eq!(engine.take_restored(), None);
    assert_eq!((engine.leader(), engine.delivered()), (Some(2), 50));
    assert_eq!(engine.members(), &piece.base.members);
    drop(engine);

    let mut opened = disk.open(dir.path()).unwrap();
    assert_eq!(opened.snapshot, Some(restored));
    assert_eq!(opened.committed, []);
    assert_eq!(opened.engine.members(), &piece.base.members);
    // The only voter needs no other vote, but it waits for its election timeout.
    opened.engine.propose(b"new").unwrap();
    let committed = (0..100).find_map(|_| {
        opened.engine.tick();
        let committed = opened.engine.flush().unwrap();
        (!committed.is_empty()).then_some(committed)
    });
    let committed = committed.unwrap();
    assert_eq!(bytes(&committed), [b"new"]);
    assert!(committed[0].position.index > 50);
}

/// A follower with entries that nobody else has, which then gets a snapshot that ends before them.
fn replaced_with_an_end(disk: &Disk, setup: Setup) {
    let mut engine = disk.open(setup).unwrap().engine;
    let entry = |index| Entry {
        index,
        term: 3,
        data: Bytes::from_static(b"\x04\0\0\0void"),
        ..Entry::default()
    };
    let append = Said::Message(Message {
        msg_type: MessageType::MsgAppend,
        from: 1,
        to: 2,
        term: 3,
        entries: (1..=60).map(entry).collect::<Vec<_>>().into(),
        ..Message::default()
    });
    let image = b"their state";
    let piece = Said::Piece(Piece {
        term: 8,
        base: Base {
            mark: SnapshotMark { index: 50, term: 7 },
            members: Members {
                voters: vec![1, 2],
                ..Members::default()
            },
            origins: Origins::default(),
        },
        bytes: image.len() as u64,
        sum: xxhash_rust::xxh3::xxh3_64(image),
        offset: 0,
        data: Bytes::from_static(image),
    });
    for said in [append, piece] {
        engine.step(1, &wire::write(&said, 1, 2).unwrap()).unwrap();
        engine.flush().unwrap();
    }
    assert_eq!(engine.log_size().entries, 0);
}

#[test]
fn nothing_is_left_behind_another_members_snapshot() {
    let setup = Setup {
        node: 2,
        joins: true,
        ..Setup::default()
    };
    let disk = Disk::default();
    replaced_with_an_end(&disk, setup);
    let opened = disk.open(setup).unwrap();
    assert_eq!(opened.snapshot.unwrap().index, 50);
    assert_eq!(opened.engine.log_size().entries, 0);

    let disk = Disk::default();
    let broken = Setup {
        specimen: Some(Specimen::KeepTheOldEnd),
        ..setup
    };
    replaced_with_an_end(&disk, broken);
    let refused = disk.open(setup).unwrap_err();
    assert!(refused.to_string().contains("old term"), "{refused}");
}
