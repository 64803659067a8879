//! Opening: what the directory holds is checked, the epoch rises, and the log is replayed.

use std::fmt;
use std::path::Path;

use raft::{Config, RawNode};

use crate::bundle::Bundle;
use crate::directory::Directory;
use crate::engine::{Committed, DISK_RESERVE_BYTES, Engine, LOG_BYTES_MAX, committed_in};
use crate::epoch::Epoch;
use crate::error::{DiskError, OpenError};
use crate::image::{self, CLEAN_STOP};
use crate::log::Log;
use crate::replay::{Replayed, replay};
use crate::sectors::byte_of;
use crate::segments::{Damage, STEP_BYTES_MAX, Segments, file_name};
use crate::store::{Change, CleanStopMark, Flushed, Store, Stored};
use crate::witness::Witness;

/// What the directory is known to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Start {
    /// What this machine last wrote.
    #[default]
    Ordinary,
    /// A backup that was copied back, or the rest of a damaged store. Its epochs may have been used
    /// since, so a new generation of epochs starts; what a clean stop left in it is dropped.
    Restored,
}

/// What an open found. To rebuild the state machine: load the snapshot, apply the committed
/// entries in order. Entries may have been applied and acted on before the last stop, so applying
/// them must not depend on it: from the last snapshot on, every entry comes at least once.
#[derive(Debug)]
pub struct Opened {
    /// Ready to propose.
    pub engine: Engine,
    /// The last snapshot, if one was taken.
    pub snapshot: Option<StoredSnapshot>,
    /// Everything committed after it.
    pub committed: Vec<Committed>,
    /// What the last [`Engine::close`] left, if nothing has been opened since. A damaged one counts
    /// as none: the start is then as careful as after a crash.
    pub clean_stop: Option<Vec<u8>>,
    /// Where the log of a restored directory is broken; what came after it is lost.
    pub cut_off: Option<String>,
    /// What an operator should know: files that were open to others, a clean stop's image that is damaged.
    pub notes: Vec<String>,
}

/// A state machine's image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSnapshot {
    /// The last index applied to it.
    pub index: u64,
    /// The bytes given to [`Engine::snapshot`].
    pub image: Vec<u8>,
}

/// This node's number among the voters.
pub(crate) const NODE: u64 = 1;

const STORE: &str = "store";

/// What must be free on the disk for a start, 2 MiB: the epoch and the witness are written, and perhaps a segment begun
/// or made longer. A damaged log that is written anew needs its own length, too.
pub const START_BYTES: u64 = 2 << 20;

/// The witness, and the names of new files.
const _: () = assert!(START_BYTES >= STEP_BYTES_MAX + (64 << 10));

/// How long the files must be that the process may write, 80 MiB: one flush holds up to
/// [`UNFLUSHED_BYTES_MAX`](crate::UNFLUSHED_BYTES_MAX).
pub const FILE_BYTES_MIN: u64 = 80 << 20;

/// A data directory that was read and found to be whole. Nothing in it has been changed yet: that begins with
/// [`Found::take_over`].
#[derive(Debug)]
pub struct Found {
    examined: Examined,
    replayed: Replayed,
    /// What every segment begins with, and the entries if they are to be written anew.
    remembered: Change,
}

impl Engine {
    /// Opens or creates a data directory. When this returns, the epoch has durably risen, and a
    /// clean stop's image, if there was one, is durably consumed. A directory that is refused stays as it was, byte for
    /// byte.
    pub fn open(path: impl AsRef<Path>, start: Start) -> Result<Opened, OpenError> {
        Engine::examine(path, start)?.take_over()
    }

    /// Reads a data directory and locks it, and changes nothing.
    pub fn examine(path: impl AsRef<Path>, start: Start) -> Result<Found, OpenError> {
        let dir = Directory::lock(path.as_ref())?;
        let witness = witness(&dir, start)?;
        let store = dir.file(STORE);
        let damage = match start {
            Start::Ordinary => Damage::Refused,
            Start::Restored => Damage::CutOff,
        };
        let Flushed { segment, sequence } = witness.flushed;
        let missing = sequence > 0 && !store.join(file_name(segment)).exists();
        if missing && start == Start::Ordinary {
            return Err(lost(segment, "is missing"));
        }
        let mut replayed = replay(&store, damage)?;
        let remembered = replayed.remembered();
        let behind = replayed.sequence < sequence;
        let mut stored = std::mem::take(&mut replayed.stored);
        if (missing || behind) && start == Start::Restored && stored.cut_off.is_none() {
            stored.cut_off = Some(format!(
                "the log's segment {} is missing or has lost its end",
                file_name(segment)
            ));
        }
        let examined = Examined::new(dir, stored, witness, start)?;
        if behind && start == Start::Ordinary {
            return Err(lost(segment, "has lost its end, which was acknowledged"));
        }
        Ok(Found {
            examined,
            replayed,
            remembered,
        })
    }
}

fn lost(segment: u64, how: &str) -> OpenError {
    let name = file_name(segment);
    OpenError::Damaged(format!("the log's segment {name} {how}"))
}

impl Found {
    /// The last snapshot, if one was taken.
    pub fn snapshot(&self) -> Option<&StoredSnapshot> {
        self.examined.snapshot.as_ref()
    }

    /// Everything committed after it.
    pub fn committed(&self) -> &[Committed] {
        &self.examined.committed
    }

    /// With shorter segments, so that a small directory has many.
    #[cfg(test)]
    pub(crate) fn with_segments_of(mut self, bytes: u64) -> Self {
        self.replayed.segment_bytes = bytes;
        self
    }

    /// Goes on with the directory: from here on it is written to.
    pub fn take_over(self) -> Result<Opened, OpenError> {
        let dir = &self.examined.dir;
        enough_room(dir, START_BYTES + rewritten_bytes(&self.remembered))?;
        if !dir.file(STORE).exists() {
            // Before the store, so that a store without a witness is never one of ours.
            Witness::default().write(dir)?;
        }
        let mut notes = dir.tighten();
        let path = dir.file(STORE);
        let mut remembered = self.remembered;
        if self.replayed.rewrite {
            // Were this start interrupted, any later one would take the new log for what it is.
            remembered.epoch = Some(self.examined.epoch);
            remembered.clean_stop = Some(CleanStopMark::Consumed);
        }
        let store = Segments::take_over(&path, self.replayed, remembered)?;
        let mut opened = self.examined.take_over(Box::new(store))?;
        notes.append(&mut opened.notes);
        opened.notes = notes;
        Ok(opened)
    }
}

/// How long the log is that is written anew: there are no entries if none is.
pub(crate) fn rewritten_bytes(remembered: &Change) -> u64 {
    // More than an entry has beside its data.
    const HEAD_BYTES: u64 = 64;
    let entries = remembered.entries.iter();
    byte_of(
        entries
            .map(|entry| HEAD_BYTES + entry.data.len() as u64)
            .sum(),
    )
}

/// Refuses a start that would fail half-way.
fn enough_room(dir: &Directory, needed: u64) -> Result<(), OpenError> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize);
    if let Some(limit) = limit.current.filter(|limit| *limit < FILE_BYTES_MIN) {
        let needed = FILE_BYTES_MIN;
        return Err(OpenError::FileLimit { limit, needed });
    }
    let free_bytes = dir.free_bytes().unwrap_or(u64::MAX);
    if free_bytes < needed {
        let why = format!(
            "{} has {free_bytes} bytes free, and a start needs {needed}",
            dir.path().display()
        );
        return Err(DiskError::Full(why).into());
    }
    Ok(())
}

/// The witness of an existing directory, or a fresh one.
fn witness(dir: &Directory, start: Start) -> Result<Witness, OpenError> {
    let has_store = dir.file(STORE).exists();
    match (Witness::read(dir), has_store) {
        (Ok(Some(witness)), true) => Ok(witness),
        (Ok(Some(witness)), false) if witness == Witness::default() => Ok(witness),
        (Ok(None), false) => {
            let names = dir.names().map_err(DiskError::from)?;
            match names.iter().find(|name| image::is_image(name)) {
                Some(image) => Err(OpenError::Damaged(format!(
                    "there is {image}, and neither the witness file nor the store"
                ))),
                None => Ok(Witness::default()),
            }
        }
        (Err(error @ OpenError::Format { .. }), _) => Err(error),
        (Ok(None) | Err(OpenError::Damaged(_)), true) if start == Start::Restored => {
            Ok(Witness::default())
        }
        (Ok(None), true) => Err(OpenError::Damaged("the witness file is missing".into())),
        (Ok(Some(_)), false) => Err(OpenError::Damaged("the store is missing".into())),
        (Err(error), _) => Err(error),
    }
}

/// What the directory holds, checked, and the raft node that will go on with it.
pub(crate) struct Examined {
    dir: Directory,
    node: RawNode<Log>,
    epoch: Epoch,
    voters: Vec<u64>,
    index: u64,
    snapshot: Option<StoredSnapshot>,
    committed: Vec<Committed>,
    clean_stop: Option<Vec<u8>>,
    cut_off: Option<String>,
    notes: Vec<String>,
}

impl fmt::Debug for Examined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Examined")
            .field("dir", &self.dir)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Examined {
    pub(crate) fn new(
        dir: Directory,
        mut stored: Stored,
        witness: Witness,
        start: Start,
    ) -> Result<Self, OpenError> {
        if stored.voters.is_empty() && stored.entries.is_empty() {
            stored.voters = vec![NODE];
        }
        if stored.voters != [NODE] {
            let what = format!("its voters are {:?}, not this node", stored.voters);
            return Err(OpenError::Damaged(what));
        }
        let epoch = next_epoch(&stored, witness, start)?;
        let index = stored.snapshot.index;
        let snapshot = match index {
            0 => None,
            index => Some(StoredSnapshot {
                index,
                image: image::read(&dir, &image::snapshot_name(index), index)?,
            }),
        };
        let mut notes = Vec::new();
        let clean_stop = match stored.clean_stop {
            Some(epoch) if start == Start::Ordinary => {
                let image = image::read(&dir, CLEAN_STOP, epoch);
                image.map_err(|error| notes.push(format!("{error}; the start is as after a crash")))
            }
            _ => Err(()),
        };
        let mut committed = Vec::new();
        for entry in &stored.entries {
            let unreadable = || OpenError::Damaged(format!("log entry {} is none", entry.index));
            committed.extend(committed_in(entry).ok_or_else(unreadable)?);
        }
        let (voters, cut_off) = (stored.voters.clone(), stored.cut_off.take());
        Ok(Self {
            node: elect(Log::new(stored)?, index)?,
            dir,
            epoch,
            voters,
            index,
            snapshot,
            committed,
            clean_stop: clean_stop.ok(),
            cut_off,
            notes,
        })
    }

    pub(crate) fn take_over(self, mut store: Box<dyn Store>) -> Result<Opened, OpenError> {
        store.commit(Change {
            epoch: Some(self.epoch),
            voters: Some(self.voters),
            clean_stop: Some(CleanStopMark::Consumed),
            sync: true,
            ..Change::default()
        })?;
        let kept = image::snapshot_name(self.index);
        self.dir
            .sweep(|name| image::is_image(name) && name != kept)
            .map_err(|error| DiskError::at(self.dir.path(), error))?;

        let mut engine = Engine {
            node: self.node,
            witnessed_segment: store.flushed().segment,
            store,
            dir: self.dir,
            epoch: self.epoch,
            delivered: self.index,
            bundle: Bundle::default(),
            sequence: 0,
            unflushed_bytes: 0,
            free_bytes: u64::MAX,
            reserve_bytes: DISK_RESERVE_BYTES,
            log_bytes_max: LOG_BYTES_MAX,
            restored: None,
            failed: None,
        };
        let committed = engine.flush().map_err(|error| error.0)?;
        debug_assert_eq!(committed, self.committed);
        engine.bear_witness().map_err(|error| error.0)?;
        Ok(Opened {
            engine,
            snapshot: self.snapshot,
            committed,
            clean_stop: self.clean_stop,
            cut_off: self.cut_off,
            notes: self.notes,
        })
    }
}

fn next_epoch(stored: &Stored, witness: Witness, start: Start) -> Result<Epoch, OpenError> {
    let last = stored.entries.last();
    let index = last.map_or(stored.snapshot.index, |entry| entry.index);
    let next = match start {
        Start::Restored => stored.epoch.max(witness.epoch).jumped(),
        Start::Ordinary if stored.epoch < witness.epoch || index < witness.index => {
            return Err(OpenError::Behind {
                epoch: stored.epoch.number(),
                epoch_witnessed: witness.epoch.number(),
                index,
                index_witnessed: witness.index,
                segment: match witness.flushed {
                    // A witness of the format before knows no segment.
                    Flushed { sequence: 0, .. } => "the log".into(),
                    Flushed { segment, .. } => format!("the log's segment {}", file_name(segment)),
                },
            });
        }
        Start::Ordinary => stored.epoch.risen(),
    };
    next.ok_or(OpenError::EpochsExhausted)
}

/// A raft node that leads, once its first flush is done.
fn elect(log: Log, applied: u64) -> Result<RawNode<Log>, OpenError> {
    let config = Config {
        id: NODE,
        applied,
        ..Config::default()
    };
    let silent = slog::Logger::root(slog::Discard, slog::o!());
    let refused = |error: raft::Error| OpenError::Damaged(format!("raft refused it: {error}"));
    let mut node = RawNode::new(&config, log, &silent).map_err(refused)?;
    node.campaign().map_err(refused)?;
    Ok(node)
}
