//! The log thread: what waits is flushed together, and a failed disk stops it.

use super::*;
use crate::engine::Engine;
use crate::error::DiskError;
use crate::error::{ProposeError, SnapshotError};
use crate::open::{Opened, Opening};
use crate::two_images::{Fate, TwoImages};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};

fn open(path: &Path) -> Opened {
    Engine::open(path, Opening::Ordinary).unwrap()
}

fn start(engine: Engine) -> (LogThread, Receiver<Delivery>) {
    let (sender, deliveries) = mpsc::channel();
    let deliver = move |delivery| sender.send(delivery).unwrap();
    (LogThread::start(engine, deliver).unwrap(), deliveries)
}

fn committed(delivery: Delivery) -> Vec<(Option<u64>, Vec<u8>)> {
    match delivery {
        Delivery::Committed { entries, .. } => entries
            .into_iter()
            .map(|applied| (applied.tag, applied.entry.data.to_vec()))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn everything_submitted_is_delivered_once_in_log_order() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries) = start(open(dir.path()).engine);
    thread::scope(|scope| {
        for client in 0..4u64 {
            let log = &log;
            scope.spawn(move || {
                for nth in 0..50 {
                    let tag = client << 32 | nth;
                    log.submit(tag, &tag.to_be_bytes()).unwrap();
                    log.begin();
                }
            });
        }
    });
    log.close(None).unwrap();
    let delivered: Vec<_> = deliveries.iter().flat_map(committed).collect();
    assert_eq!(delivered.len(), 200);
    for client in 0..4u64 {
        let own = delivered.iter().filter_map(|(tag, _)| *tag);
        let own: Vec<_> = own.filter(|tag| tag >> 32 == client).collect();
        assert!(
            own.is_sorted() && own.len() == 50,
            "client {client}: {own:?}"
        );
    }
    let replayed = open(dir.path()).committed;
    assert!(
        replayed
            .iter()
            .map(|e| &e.data[..])
            .eq(delivered.iter().map(|(_, d)| &d[..]))
    );
}

#[test]
fn whoever_flushes_keeps_the_order() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries) = start(open(dir.path()).engine);
    let flusher = log.flusher();
    thread::scope(|scope| {
        for client in 0..4u64 {
            let (log, flusher) = (&log, flusher.clone());
            scope.spawn(move || {
                for nth in 0..100 {
                    log.submit(client << 32 | nth, &[1]).unwrap();
                    match (client + nth) % 2 {
                        0 => log.begin(),
                        _ => flusher.flush(),
                    }
                }
            });
        }
    });
    log.close(None).unwrap();
    // Too late: nothing happens.
    flusher.flush();
    let delivered = deliveries.iter().flat_map(committed);
    let tags: Vec<_> = delivered.filter_map(|(tag, _)| tag).collect();
    assert_eq!(tags.len(), 400);
    for client in 0..4u64 {
        let own: Vec<_> = tags.iter().filter(|tag| *tag >> 32 == client).collect();
        assert!(own.is_sorted(), "client {client}: {own:?}");
    }
    assert_eq!(open(dir.path()).committed.len(), 400);
}

#[test]
fn a_flusher_has_delivered_when_it_returns() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries) = start(open(dir.path()).engine);
    assert!(!log.flusher().is_quick(), "nothing is known of the disk");
    log.submit(1, &[1]).unwrap();
    log.flusher().flush();
    let delivered = deliveries.try_recv().unwrap();
    assert_eq!(committed(delivered), [(Some(1), vec![1])]);
    log.close(None).unwrap();
}

#[test]
fn submissions_gather_while_the_thread_is_busy() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let engine = disk.open(dir.path()).unwrap().engine;
    let (sender, deliveries) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let deliver = move |delivery| {
        sender.send(delivery).unwrap();
        released.recv().unwrap();
    };
    let log = LogThread::start(engine, deliver).unwrap();
    let flushes = disk.flushes();
    log.submit(0, &[0]).unwrap();
    log.begin();
    assert_eq!(committed(deliveries.recv().unwrap()).len(), 1);
    // The thread is held in its callback, as if by a slow disk; no submitter notices.
    for tag in 1..=100 {
        log.submit(tag, &[1]).unwrap();
        log.begin();
    }
    release.send(()).unwrap();
    assert_eq!(committed(deliveries.recv().unwrap()).len(), 100);
    release.send(()).unwrap();
    log.close(None).unwrap();
    assert_eq!(disk.flushes(), flushes + 2);
}

#[test]
fn a_snapshot_is_taken_beside_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries) = start(open(dir.path()).engine);
    log.submit(1, b"before").unwrap();
    log.begin();
    let Delivery::Committed {
        entries, log: size, ..
    } = deliveries.recv().unwrap()
    else {
        panic!("not committed");
    };
    assert_eq!(size.entries, 2, "raft's own entry and ours");
    let index = entries[0].entry.position.index;
    log.snapshot(index, || b"state".to_vec()).unwrap();
    let taken = deliveries.recv().unwrap();
    assert!(matches!(taken, Delivery::Snapshot(Ok(_))), "{taken:?}");
    log.snapshot(index, || b"again".to_vec()).unwrap();
    let stale = deliveries.recv().unwrap();
    let expected = Err(SnapshotError::Stale(index));
    assert!(matches!(stale, Delivery::Snapshot(r) if r == expected));
    log.submit(2, b"after").unwrap();
    log.begin();
    log.close(None).unwrap();

    let opened = open(dir.path());
    assert_eq!(opened.snapshot.unwrap().image, b"state");
    assert_eq!(opened.committed.len(), 1);
    assert_eq!(&opened.committed[0].data[..], b"after");
}

#[test]
fn a_refused_submission_is_told_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries) = start(open(dir.path()).engine);
    log.submit(1, &[]).unwrap();
    log.begin();
    log.submit(2, &[7]).unwrap();
    log.begin();
    log.close(None).unwrap();
    let refused = deliveries.recv().unwrap();
    let empty = ProposeError::Empty;
    assert!(matches!(refused, Delivery::Refused { tag: 1, error } if error == empty));
    assert_eq!(committed(deliveries.recv().unwrap()), [(Some(2), vec![7])]);
}

#[test]
fn a_failed_flush_names_the_unknown_and_stops_the_log() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), TwoImages::new());
    let (log, deliveries) = start(disk.open(dir.path()).unwrap().engine);
    disk.fate_after(0, Fate::Lost);
    log.submit(7, &[7]).unwrap();
    log.begin();
    let Delivery::Stopped { error, unknown } = deliveries.recv().unwrap() else {
        panic!("not stopped");
    };
    assert!(matches!(error.0, DiskError::Full(_)), "{error}");
    assert_eq!(unknown, [7]);
    assert_eq!(log.submit(8, &[8]), Err(SubmitError::Stopped));
    assert_eq!(log.close(Some(vec![])), Err(error));
    assert_eq!(
        disk.open(dir.path()).err().map(|e| e.to_string()),
        Some("the disk is full (no room)".into())
    );
}

#[test]
fn only_a_close_leaves_an_image() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _deliveries) = start(open(dir.path()).engine);
    log.close(Some(b"holders".to_vec())).unwrap();
    let opened = open(dir.path());
    assert_eq!(opened.clean_stop.as_deref(), Some(&b"holders"[..]));
    let (log, deliveries) = start(opened.engine);
    log.submit(1, &[1]).unwrap();
    log.begin();
    drop(log);
    assert_eq!(committed(deliveries.recv().unwrap()).len(), 1);
    let opened = open(dir.path());
    assert_eq!((opened.clean_stop, opened.committed.len()), (None, 1));
}

/// A log with room for two of the three entries submitted to it, and the index up to which it is full.
fn full(path: &Path) -> (LogThread, Receiver<Delivery>, u64) {
    let mut engine = open(path).engine;
    engine.log_bytes_max = engine.log_size().bytes + 250;
    let (log, deliveries) = start(engine);
    for tag in 1..=3 {
        log.submit(tag, &[tag as u8; 100]).unwrap();
    }
    log.begin();
    let first = committed(deliveries.recv().unwrap());
    let tags: Vec<_> = first.into_iter().map(|(tag, _)| tag).collect();
    assert_eq!(tags, [Some(1), Some(2)]);
    let Delivery::Full { index } = deliveries.recv().unwrap() else {
        panic!("it has room");
    };
    (log, deliveries, index)
}

#[test]
fn what_finds_no_room_waits_for_the_snapshot_and_keeps_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries, index) = full(dir.path());
    let (finish, finished) = mpsc::channel();
    let image = move || {
        finished.recv().unwrap();
        b"state".to_vec()
    };
    log.snapshot(index, image).unwrap();
    // Later submissions come later, even if another thread flushes.
    log.submit(4, &[4]).unwrap();
    log.begin();
    log.flusher().flush();
    assert!(deliveries.try_recv().is_err());
    finish.send(()).unwrap();
    let taken = deliveries.recv().unwrap();
    assert!(matches!(taken, Delivery::Snapshot(Ok(_))), "{taken:?}");
    let rest = committed(deliveries.recv().unwrap());
    assert_eq!(rest, [(Some(3), vec![3; 100]), (Some(4), vec![4])]);
    log.close(None).unwrap();
    let opened = open(dir.path());
    assert_eq!(opened.snapshot.unwrap().image, b"state");
    assert_eq!(opened.committed.len(), 2);
}

#[test]
fn what_waits_for_a_snapshot_that_fails_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (log, deliveries, index) = full(dir.path());
    let refused = |delivery| {
        matches!(
            delivery,
            Delivery::Refused {
                tag: 3,
                error: ProposeError::LogFull
            }
        )
    };
    log.snapshot(index + 1, Vec::new).unwrap();
    let failed = deliveries.recv().unwrap();
    assert!(matches!(failed, Delivery::Snapshot(Err(_))), "{failed:?}");
    assert!(refused(deliveries.recv().unwrap()));
    // The next one waits again, and asks for a snapshot again, until the log is closed.
    log.submit(3, &[3; 100]).unwrap();
    log.begin();
    let again = deliveries.recv().unwrap();
    assert!(matches!(again, Delivery::Full { .. }), "{again:?}");
    log.close(None).unwrap();
    assert!(refused(deliveries.recv().unwrap()));
    assert_eq!(open(dir.path()).committed.len(), 2);
}
