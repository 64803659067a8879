//! Every kind of damage at every place of a small directory. Each start is right, or refused, or the one case that cannot be
//! detected: the very last flush is missing as if it had never happened. The oracle is a list of what was acknowledged, kept
//! apart from the engine; comparing every byte shows whether a refused start has changed anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::engine::Engine;
use crate::error::OpenError;
use crate::open::{Opened, Opening};
use crate::sectors::SECTOR_BYTES;
use crate::segments::file_name;

/// Short segments, so that a small directory has many.
const SEGMENT_BYTES: u64 = 16 << 10;

pub(crate) fn open(dir: &Path) -> Result<Opened, OpenError> {
    Engine::examine(dir, Opening::Ordinary)?
        .with_segments_of(SEGMENT_BYTES)
        .take_over()
}

/// All files except the lock, by name.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

pub(crate) fn files(dir: &Path) -> Files {
    let mut files = Files::new();
    for below in ["", "store"] {
        let Ok(names) = fs::read_dir(dir.join(below)) else {
            continue;
        };
        let paths = names.map(|file| file.unwrap().path());
        for path in paths.filter(|path| path.is_file() && !path.ends_with("lock")) {
            let name = path.strip_prefix(dir).unwrap().to_path_buf();
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

pub(crate) fn put(dir: &Path, files: &Files) {
    fs::remove_dir_all(dir).unwrap();
    fs::create_dir_all(dir.join("store")).unwrap();
    for (name, contents) in files {
        fs::write(dir.join(name), contents).unwrap();
    }
}

/// What was acknowledged, flush by flush.
type Acknowledged = Vec<Vec<u8>>;

/// What a start has found; the snapshot's image is what had been acknowledged until then.
pub(crate) fn found(opened: &Opened) -> Vec<u8> {
    let snapshot = opened.snapshot.iter();
    let mut found: Vec<u8> = snapshot.flat_map(|s| s.image.clone()).collect();
    found.extend(
        opened
            .committed
            .iter()
            .flat_map(|entry| entry.data.to_vec()),
    );
    found
}

/// Segments that were rewritten, a snapshot, and entries after it.
fn written(dir: &Path) -> (Engine, Acknowledged) {
    let mut engine = open(dir).unwrap().engine;
    let mut acknowledged = Acknowledged::new();
    for flush in 0..60u8 {
        let entry = vec![flush; 400 + usize::from(flush) * 97 % 2500];
        engine.propose(&entry).unwrap();
        let index = engine.flush().unwrap()[0].position.index;
        acknowledged.push(entry);
        if [9, 18].contains(&flush) {
            engine.snapshot(index, &acknowledged.concat()).unwrap();
        }
    }
    (engine, acknowledged)
}

#[derive(Debug, Default)]
struct Tally {
    right: usize,
    refused: usize,
    last_flush: usize,
}

struct Sweep<'a> {
    dir: &'a Path,
    good: Files,
    acknowledged: Acknowledged,
    /// Whether the stop was clean, so that even the last flush is recorded elsewhere.
    clean: bool,
    tally: Tally,
}

impl Sweep<'_> {
    /// Starts a damaged directory and judges the result.
    fn start(&mut self, bad: &Files, what: &str, culprits: &[&Path]) {
        for (name, contents) in bad {
            if self.good.get(name) != Some(contents) {
                fs::write(self.dir.join(name), contents).unwrap();
            }
        }
        for gone in self.good.keys().filter(|name| !bad.contains_key(*name)) {
            fs::remove_file(self.dir.join(gone)).unwrap();
        }
        match open(self.dir) {
            Err(error) => {
                assert!(
                    files(self.dir) == *bad,
                    "{what}: the refused start changed the directory"
                );
                let said = error.to_string();
                let name =
                    |culprit: &&Path| culprit.file_name().unwrap().to_str().unwrap().to_owned();
                let names: Vec<_> = culprits.iter().map(name).collect();
                let named = names.iter().any(|name| said.contains(name));
                assert!(named, "{what}: {names:?} is not named: {said}");
                self.tally.refused += 1;
                for name in culprits {
                    fs::write(self.dir.join(name), &self.good[*name]).unwrap();
                }
            }
            Ok(opened) => {
                let found = found(&opened);
                let (_, before) = self.acknowledged.split_last().unwrap();
                if found == self.acknowledged.concat() {
                    let told = opened.clean_stop.is_some() || !opened.notes.is_empty();
                    assert!(
                        told || !self.clean,
                        "{what}: the clean stop is gone in silence"
                    );
                    self.tally.right += 1;
                } else {
                    assert!(
                        !self.clean && found == before.concat(),
                        "{what}: a wrong start"
                    );
                    self.tally.last_flush += 1;
                }
                drop(opened);
                put(self.dir, &self.good);
            }
        }
    }

    fn one_file(&mut self, name: &Path, what: &str, damage: impl FnOnce(&mut Vec<u8>)) {
        let mut bad = self.good.clone();
        damage(bad.get_mut(name).unwrap());
        let what = format!("{what} of {}", name.display());
        self.start(&bad, &what, &[name]);
    }

    fn run(mut self) -> Tally {
        put(self.dir, &self.good);
        let names: Vec<PathBuf> = self.good.keys().cloned().collect();
        for (nth, name) in names.iter().enumerate() {
            let len = self.good[name].len();
            let is_segment = name.starts_with("store");
            for at in (nth % 7..len).step_by(if len >= SECTOR_BYTES { 41 } else { 1 }) {
                self.one_file(name, &format!("a flip at byte {at}"), |file| {
                    file[at] ^= 1 << (at % 8);
                });
            }
            for at in (0..len).step_by(if len >= SECTOR_BYTES { 331 } else { 3 }) {
                let what = format!("a cut at byte {at}");
                self.one_file(name, &what, |file| file.truncate(at));
            }
            for at in (0..len).step_by(SECTOR_BYTES) {
                let end = len.min(at + SECTOR_BYTES);
                let what = format!("zeroes from byte {at} on");
                self.one_file(name, &what, |file| file[at..end].fill(0));
                self.one_file(name, &format!("{what} to the end"), |file| {
                    file[at..].fill(0);
                });
                let other = (at * 7 + 3 * SECTOR_BYTES) % len / SECTOR_BYTES * SECTOR_BYTES;
                if is_segment && other != at {
                    self.one_file(name, &format!("a swap of {at} and {other}"), |file| {
                        let (low, high) = (at.min(other), at.max(other));
                        let (one, two) = file.split_at_mut(high);
                        one[low..low + SECTOR_BYTES].swap_with_slice(&mut two[..SECTOR_BYTES]);
                    });
                }
            }
            let mut bad = self.good.clone();
            bad.remove(name);
            self.start(&bad, "a deleted file", &[name]);
            for other in &names[nth + 1..] {
                self.swap(name, other);
            }
        }
        self.tally
    }

    /// Swaps two files, and then exchanges each of their sectors in turn.
    fn swap(&mut self, one: &Path, other: &Path) {
        let what = format!("a swap of {} and {}", one.display(), other.display());
        let (first, second) = (self.good[one].clone(), self.good[other].clone());
        let mut bad = self.good.clone();
        bad.insert(one.into(), second.clone());
        bad.insert(other.into(), first.clone());
        self.start(&bad, &what, &[one, other]);
        let len = first.len().min(second.len());
        for at in (0..len / SECTOR_BYTES).map(|nth| nth * SECTOR_BYTES) {
            let sector = at..at + SECTOR_BYTES;
            if first[sector.clone()] == second[sector.clone()] {
                continue;
            }
            let mut bad = self.good.clone();
            let mut exchange = |name: &Path, with: &[u8]| {
                bad.get_mut(name).unwrap()[sector.clone()].copy_from_slice(&with[sector.clone()]);
            };
            exchange(one, &second);
            exchange(other, &first);
            self.start(
                &bad,
                &format!("{what} in the sector at {at}"),
                &[one, other],
            );
        }
    }
}

fn sweep(stop: impl FnOnce(Engine), clean: bool) -> Tally {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    let (engine, acknowledged) = written(&dir);
    stop(engine);
    let sweep = Sweep {
        dir: &dir,
        good: files(&dir),
        acknowledged,
        clean,
        tally: Tally::default(),
    };
    let segments = |name: &&PathBuf| name.starts_with("store");
    assert!(sweep.good.keys().filter(segments).count() >= 4);
    let tally = sweep.run();
    println!("{tally:?}");
    tally
}

#[test]
fn no_damage_to_a_crashed_directory_goes_unnoticed() {
    let tally = sweep(drop, false);
    assert!(tally.refused >= 2000, "{tally:?}");
    assert!(tally.last_flush <= 20, "{tally:?}");
}

#[test]
fn no_damage_to_a_cleanly_stopped_directory_goes_unnoticed() {
    let tally = sweep(|engine| engine.close(Some(b"who holds")).unwrap(), true);
    assert!(tally.refused >= 2000, "{tally:?}");
    assert_eq!(tally.last_flush, 0, "{tally:?}");
}

/// Segments 0, 1 and 2 and no snapshot: each of them is needed, and a missing one is named.
#[test]
fn a_missing_segment_is_named_nothing_else_is_removed_and_a_restored_start_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("data");
    let mut engine = open(&dir).unwrap().engine;
    for entry in 0..16u8 {
        engine.propose(&[entry; 2000]).unwrap();
        engine.flush().unwrap();
    }
    let start = engine.start();
    drop(engine);
    let good = files(&dir);
    assert_eq!(good.len(), 4, "three segments and the witness");
    for number in 0..3 {
        let name = file_name(number);
        put(&dir, &good);
        fs::remove_file(dir.join("store").join(&name)).unwrap();
        let damaged = files(&dir);
        let error = open(&dir).unwrap_err().to_string();
        assert!(error.contains(&format!("{name} is missing")), "{error}");
        assert!(files(&dir) == damaged);

        let opened = Engine::open(&dir, Opening::Restored).unwrap();
        let what = opened.cut_off.clone().unwrap_or_default();
        assert!(what.contains(&name), "{what}");
        let kept = opened.committed.len();
        assert_eq!(kept > 0, number > 0, "what comes before is kept");
        let kept = found(&opened);
        assert!(opened.engine.start() > start);
        drop(opened);
        assert_eq!(found(&open(&dir).unwrap()), kept);
    }
}

#[test]
fn a_broken_segment_is_named_not_the_one_behind_it() {
    let above = tempfile::tempdir().unwrap();
    let dir = above.path().join("data");
    drop(written(&dir));
    let good = files(&dir);
    let names: Vec<_> = good
        .keys()
        .filter(|name| name.starts_with("store"))
        .collect();
    for name in names {
        let mut bad = good.clone();
        bad.get_mut(name).unwrap()[9000] ^= 1;
        put(&dir, &bad);
        let error = open(&dir).unwrap_err().to_string();
        assert!(
            error.contains(name.file_name().unwrap().to_str().unwrap()),
            "{error}"
        );
    }
}
