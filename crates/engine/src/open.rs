//! Opening: what the directory holds is checked, the epoch rises, and the log is replayed.

use std::path::Path;

use raft::{Config, RawNode};

use crate::bundle::Bundle;
use crate::directory::Directory;
use crate::engine::{Committed, DISK_RESERVE_BYTES, Engine, LOG_BYTES_MAX};
use crate::epoch::Epoch;
use crate::error::{DiskError, OpenError};
use crate::image::{self, CLEAN_STOP};
use crate::log::Log;
use crate::segments::{Damage, Segments};
use crate::store::{Change, CleanStopMark, Store, Stored};
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

impl Engine {
    /// Opens or creates a data directory. When this returns, the epoch has durably risen, and a
    /// clean stop's image, if there was one, is durably consumed.
    pub fn open(path: impl AsRef<Path>, start: Start) -> Result<Opened, OpenError> {
        let dir = Directory::lock(path.as_ref())?;
        let witness = witness(&dir, start)?;
        let damage = match start {
            Start::Ordinary => Damage::Refused,
            Start::Restored => Damage::CutOff,
        };
        let (store, stored) = Segments::open(&dir.file(STORE), damage)?;
        open_over(dir, Box::new(store), stored, witness, start)
    }
}

/// The witness of an existing directory, or a fresh one.
fn witness(dir: &Directory, start: Start) -> Result<Witness, OpenError> {
    let has_store = dir.file(STORE).exists();
    match (Witness::read(dir), has_store) {
        (Ok(Some(witness)), true) => Ok(witness),
        (Ok(Some(witness)), false) if witness == Witness::default() => Ok(witness),
        (Ok(None), false) => {
            // Before the store, so that a store without a witness is never one of ours.
            Witness::default().write(dir)?;
            Ok(Witness::default())
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

pub(crate) fn open_over(
    dir: Directory,
    mut store: Box<dyn Store>,
    mut stored: Stored,
    witness: Witness,
    start: Start,
) -> Result<Opened, OpenError> {
    if stored.voters.is_empty() && stored.entries.is_empty() {
        stored.voters = vec![NODE];
    }
    if stored.voters != [NODE] {
        let what = format!("its voters are {:?}, not this node", stored.voters);
        return Err(OpenError::Damaged(what));
    }
    let epoch = next_epoch(&stored, witness, start)?;
    let mark = stored.snapshot;
    let snapshot = match mark.index {
        0 => None,
        index => Some(StoredSnapshot {
            index,
            image: image::read(&dir, &image::snapshot_name(index), index)?,
        }),
    };
    let clean_stop = match stored.clean_stop {
        Some(epoch) if start == Start::Ordinary => image::read(&dir, CLEAN_STOP, epoch).ok(),
        _ => None,
    };
    let (voters, cut_off) = (stored.voters.clone(), stored.cut_off.take());
    let log = Log::new(stored)?;

    store.commit(Change {
        epoch: Some(epoch),
        voters: Some(voters),
        clean_stop: Some(CleanStopMark::Consumed),
        sync: true,
        ..Change::default()
    })?;
    let kept = image::snapshot_name(mark.index);
    dir.sweep(|name| image::is_image(name) && name != kept)
        .map_err(DiskError::from)?;

    let mut engine = Engine {
        node: elect(log, mark.index)?,
        store,
        dir,
        epoch,
        delivered: mark.index,
        bundle: Bundle::default(),
        unflushed_bytes: 0,
        free_bytes: u64::MAX,
        reserve_bytes: DISK_RESERVE_BYTES,
        log_bytes_max: LOG_BYTES_MAX,
        restored: None,
        failed: None,
    };
    let committed = engine.flush().map_err(|error| error.0)?;
    engine.bear_witness().map_err(|error| error.0)?;
    Ok(Opened {
        engine,
        snapshot,
        committed,
        clean_stop,
        cut_off,
    })
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
