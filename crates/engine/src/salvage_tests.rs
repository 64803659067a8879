//! What `--restored` makes of a damaged log: nothing readable is thrown away, wherever an earlier attempt ended.

use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::open::{Opened, Opening, START_BYTES, rewritten_bytes};
use crate::replay::replay;
use crate::sectors::SECTOR_BYTES;
use crate::segments::{Damage, file_name};
use crate::start::Start;
use crate::sweep_tests::{Files, files, found, open, put};

fn restored(dir: &Path) -> Opened {
    Engine::open(dir, Opening::Restored).unwrap()
}

fn segment(number: u64) -> PathBuf {
    Path::new("store").join(file_name(number))
}

/// Two segments without a snapshot, what was acknowledged, and the start.
fn two_segments(dir: &Path) -> (Files, Vec<u8>, Start) {
    let mut engine = open(dir).unwrap().engine;
    let mut acknowledged = Vec::new();
    for entry in 0..10u8 {
        engine.propose(&[entry; 2000]).unwrap();
        engine.flush().unwrap();
        acknowledged.extend([entry; 2000]);
    }
    let start = engine.start();
    drop(engine);
    let good = files(dir);
    let names: Vec<_> = good.keys().cloned().collect();
    assert_eq!(names, [segment(0), segment(1), "witness".into()]);
    (good, acknowledged, start)
}

/// Tries every state that a crash can leave while a damaged log is rewritten and what it replaces is removed.
#[test]
fn a_restored_start_that_was_interrupted_anywhere_keeps_as_much_when_it_is_repeated() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    let (mut damaged, acknowledged, start) = two_segments(&dir);
    damaged.get_mut(&segment(1)).unwrap()[9000] ^= 1;
    put(&dir, &damaged);
    let opened = restored(&dir);
    let kept = found(&opened);
    assert!(acknowledged.starts_with(&kept) && kept.len() > 12_000);
    drop(opened);
    let anew: Files = files(&dir)
        .into_iter()
        .filter(|(name, _)| name.starts_with("store"))
        .collect();
    assert_eq!(anew.len(), 1, "the log was written anew");
    let (name, whole) = anew.into_iter().next().unwrap();

    let mut states = Vec::new();
    for written in (0..whole.len()).step_by(5 * SECTOR_BYTES) {
        let mut state = damaged.clone();
        state.insert(name.clone(), whole[..written].to_vec());
        states.push((format!("{written} bytes"), state.clone()));
        let mut torn = whole.clone();
        torn[..written].fill(0);
        state.insert(name.clone(), torn);
        states.push((format!("all but {written} bytes"), state));
    }
    let removals: [&[u64]; 4] = [&[], &[0], &[1], &[0, 1]];
    for removed in removals {
        let mut state = damaged.clone();
        state.insert(name.clone(), whole.clone());
        for number in removed {
            state.remove(&segment(*number));
        }
        states.push((format!("{removed:?} removed"), state));
    }
    for (what, state) in states {
        put(&dir, &state);
        if let Ok(opened) = open(&dir) {
            assert!(found(&opened) == kept, "{what}: a plain start");
            let generation = opened.engine.start().generation();
            assert_eq!(generation, start.generation() + 1, "{what}: a plain start");
        }
        put(&dir, &state);
        let opened = restored(&dir);
        assert!(found(&opened) == kept, "{what}");
        assert!(opened.cut_off.is_some(), "{what}: nobody hears of the loss");
        assert!(opened.engine.start().generation() > start.generation());
        drop(opened);
        assert!(
            found(&open(&dir).unwrap()) == kept,
            "{what}: the next start"
        );
    }
}

#[test]
fn a_segment_that_was_never_begun_behind_a_gap_is_named_and_replaces_nothing() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    let (good, acknowledged, start) = two_segments(&dir);
    let mut states = Vec::new();
    for (number, contents) in [(5, Vec::new()), (7, vec![0; 64 << 10])] {
        let mut state = good.clone();
        state.insert(segment(number), contents);
        states.push((number, state, 10));
    }
    let mut lost = good.clone();
    lost.remove(&segment(1));
    lost.insert(segment(2), Vec::new());
    states.push((1, lost, 6));
    for (named, state, least) in states {
        for witnessed in [true, false] {
            let mut state = state.clone();
            if !witnessed {
                state.remove(Path::new("witness"));
            }
            put(&dir, &state);
            let error = open(&dir).unwrap_err().to_string();
            let named = match witnessed {
                true => file_name(named),
                false => "witness".into(),
            };
            assert!(error.contains(&named), "{named}: {error}");
            assert!(files(&dir) == state, "the refused start changed something");
            let opened = restored(&dir);
            let kept = found(&opened);
            assert!(acknowledged.starts_with(&kept), "{named}");
            assert!(kept.len() >= least * 2000, "{named}: {}", kept.len());
            assert!(opened.cut_off.is_some(), "{named}");
            assert!(opened.engine.start() > start, "{named}: the start fell");
            drop(opened);
            assert_eq!(fs::read_dir(dir.join("store")).unwrap().count(), 1);
            assert!(found(&open(&dir).unwrap()) == kept);
        }
    }
}

#[test]
fn the_room_that_is_asked_for_is_enough_for_the_log_that_is_written_anew() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    for len in [1, 1000, 1 << 20] {
        fs::remove_dir_all(&dir).unwrap_or_default();
        let mut engine = open(&dir).unwrap().engine;
        for _ in 0..5 {
            engine.propose(&vec![7; len]).unwrap();
            engine.flush().unwrap();
        }
        drop(engine);
        let mut behind_a_gap = files(&dir);
        behind_a_gap.insert(segment(20), Vec::new());
        put(&dir, &behind_a_gap);
        let replayed = replay(&dir.join("store"), Damage::CutOff).unwrap();
        let asked = START_BYTES + rewritten_bytes(&replayed.remembered());
        assert_eq!(restored(&dir).committed.len(), 5);
        let written = fs::metadata(dir.join(segment(22))).unwrap().len();
        assert!(
            asked > 5 * len as u64 && asked >= written,
            "{asked} {written}"
        );
    }
}
