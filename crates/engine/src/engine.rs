//! The engine: a raft node with one voter over a durable log. It keeps raft's own order, persist,
//! then send, then apply, so that more voters change what is sent and nothing else.
//!
//! Raft draws its election timeouts from the thread's generator. With one voter no tick is ever
//! needed: the node campaigns once, at open, wins by its own vote, and leads from then on.

use std::fmt;

use bytes::Bytes;
use raft::eraftpb::{Entry, Message, Snapshot};
use raft::{RawNode, StateRole};

use crate::bundle::{self, Bundle, Contents};
use crate::directory::Directory;
use crate::epoch::Epoch;
use crate::error::{DiskError, FlushError, ProposeError, SnapshotError};
use crate::image::{self, CLEAN_STOP, ImageWriter, WrittenSnapshot};
use crate::log::{Log, LogSize};
use crate::open::{NODE, StoredSnapshot};
use crate::origin::Origin;
use crate::store::{Change, CleanStopMark, SnapshotMark, Store};
use crate::witness::Witness;

/// The longest entry, 1 MiB.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// How much may be proposed between two flushes, 64 MiB.
pub const UNFLUSHED_BYTES_MAX: usize = 64 << 20;

/// How long the log may grow without a snapshot, 256 MiB.
pub const LOG_BYTES_MAX: u64 = 256 << 20;

/// How much of the disk is left free, 64 MiB: below it nothing new is taken, so that what was
/// taken can still be written, merged and deleted.
pub const DISK_RESERVE_BYTES: u64 = 64 << 20;

/// An entry up to this length may use half of the reserve: deletes, deaths and closes are short, and
/// they are how room is made.
pub const SHORT_ENTRY_BYTES: usize = 256;

/// The replicated, durable log of one node.
pub struct Engine {
    pub(crate) node: RawNode<Log>,
    // Before the directory: its files are closed before the lock is given back.
    pub(crate) store: Box<dyn Store>,
    pub(crate) dir: Directory,
    pub(crate) epoch: Epoch,
    /// The last index handed out as committed.
    pub(crate) delivered: u64,
    /// What the next flush makes one entry of.
    pub(crate) bundle: Bundle,
    /// How many proposals this start has taken.
    pub(crate) sequence: u64,
    pub(crate) unflushed_bytes: usize,
    /// What the disk had free when it was last looked at.
    pub(crate) free_bytes: u64,
    pub(crate) reserve_bytes: u64,
    /// [`LOG_BYTES_MAX`], or less in tests.
    pub(crate) log_bytes_max: u64,
    /// The newest segment that the witness file knows of.
    pub(crate) witnessed_segment: u64,
    pub(crate) restored: Option<StoredSnapshot>,
    pub(crate) failed: Option<DiskError>,
}

/// A place in the log. Proposals of one flush share an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The index in raft's log.
    pub index: u64,
    /// The term of the leader that put it there.
    pub term: u64,
    /// Zero-based, among the proposals at this index.
    pub nth: u32,
}

/// A proposal that is durable and will never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Where it stands.
    pub position: Position,
    /// Who proposed it: what [`Engine::propose`] gave. Nothing if it was logged before proposals were numbered.
    pub origin: Option<Origin>,
    /// The bytes proposed.
    pub data: Bytes,
}

impl Engine {
    /// The fencing epoch of this start.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How much a snapshot would compact.
    pub fn log_size(&self) -> LogSize {
        self.node.store().size()
    }

    /// Adds an entry that the next flush makes durable. Touches no disk. What is refused gets no number, so that the
    /// numbers of a start have no gap.
    pub fn propose(&mut self, data: &[u8]) -> Result<Origin, ProposeError> {
        if let Some(failed) = &self.failed {
            return Err(ProposeError::Stopped(failed.clone()));
        }
        let len = data.len();
        if len == 0 {
            return Err(ProposeError::Empty);
        }
        if len > ENTRY_BYTES_MAX {
            return Err(ProposeError::TooLong(len));
        }
        if self.unflushed_bytes + len > UNFLUSHED_BYTES_MAX {
            return Err(ProposeError::Backlog);
        }
        if self.log_size().bytes + (self.unflushed_bytes + len) as u64 > self.log_bytes_max {
            return Err(ProposeError::LogFull);
        }
        let free_bytes = self.free_bytes;
        let reserve_bytes = match len <= SHORT_ENTRY_BYTES {
            true => self.reserve_bytes / 2,
            false => self.reserve_bytes,
        };
        if free_bytes < reserve_bytes + (self.unflushed_bytes + len) as u64 {
            return Err(ProposeError::DiskFull { free_bytes });
        }
        // Raft would hand it on to the leader.
        if self.node.raft.state != StateRole::Leader {
            return Err(ProposeError::NotLeading);
        }
        if !self.bundle.has_room_for(len) {
            self.seal().map_err(|_| ProposeError::NotLeading)?;
        }
        self.unflushed_bytes += len;
        self.sequence += 1;
        let origin = Origin {
            node: NODE,
            start: self.epoch.number().into(),
            sequence: self.sequence,
        };
        self.bundle.push(origin, data);
        Ok(origin)
    }

    /// Gives raft what was proposed as one entry.
    fn seal(&mut self) -> raft::Result<()> {
        match self.bundle.is_empty() {
            true => Ok(()),
            false => self.node.propose(Vec::new(), self.bundle.take()),
        }
    }

    /// Looks how much of the disk is free. Where the system does not say, there is room.
    pub(crate) fn look_for_room(&mut self) {
        self.free_bytes = self.dir.free_bytes().unwrap_or(u64::MAX);
    }

    /// Makes everything proposed since the last flush durable, all with one flush of the disk, and
    /// hands out what is committed by that: in log order, every entry once in a process.
    pub fn flush(&mut self) -> Result<Vec<Committed>, FlushError> {
        self.writable()?;
        if let Err(error) = self.seal() {
            let why = format!("raft did not take what it leads: {error}");
            return Err(self.fail(DiskError::Failed(why)));
        }
        let mut committed = Vec::new();
        while self.node.has_ready() {
            let mut ready = self.node.ready();
            self.send(ready.take_messages());
            if !ready.snapshot().is_empty() {
                self.restore(ready.snapshot())?;
            }
            let entries = ready.take_entries();
            let hard_state = ready.hs().cloned();
            if hard_state.is_some() || !entries.is_empty() {
                self.commit(Change {
                    entries: entries.clone(),
                    hard_state: hard_state.clone(),
                    sync: ready.must_sync(),
                    ..Change::default()
                })?;
            }
            let log = self.node.mut_store();
            log.append(entries);
            if let Some(hard_state) = hard_state {
                log.set_hard_state(hard_state);
            }
            self.send(ready.take_persisted_messages());
            self.deliver(ready.take_committed_entries(), &mut committed);
            let mut light = self.node.advance(ready);
            self.send(light.take_messages());
            self.deliver(light.take_committed_entries(), &mut committed);
            self.node.advance_apply();
        }
        self.unflushed_bytes = 0;
        Ok(committed)
    }

    /// Another member's snapshot that took the place of the log, to be loaded before what the same
    /// flush handed out is applied. With one voter there is never one.
    pub fn take_restored(&mut self) -> Option<StoredSnapshot> {
        self.restored.take()
    }

    /// Writes snapshots apart from the engine, on another thread.
    pub fn image_writer(&self) -> ImageWriter {
        ImageWriter {
            dir: self.dir.clone(),
        }
    }

    /// Takes a snapshot here and now: [`ImageWriter::write`] and then [`Engine::compact`].
    pub fn snapshot(&mut self, index: u64, image: &[u8]) -> Result<(), SnapshotError> {
        self.compactable(index)?;
        let written = self.image_writer().write(index, image)?;
        self.compact(written)
    }

    /// Lets a written snapshot replace the log up to its index. The next open starts from it.
    pub fn compact(&mut self, written: WrittenSnapshot) -> Result<(), SnapshotError> {
        let index = written.index;
        if let Err(refused) = self.compactable(index) {
            if matches!(refused, SnapshotError::NotCommitted(_)) {
                let _ = std::fs::remove_file(self.dir.file(&image::snapshot_name(index)));
            }
            return Err(refused);
        }
        let log = self.node.store();
        let replaced = log.snapshot_mark().index;
        let term = log.term_at(index);
        let term = term.map_err(|_| SnapshotError::NotCommitted(index))?;
        let mark = SnapshotMark { index, term };
        // The store must never have a snapshot beyond its commit index, which lags one flush.
        let hard_state = self.node.raft.hard_state();
        self.commit(Change {
            hard_state: Some(hard_state),
            snapshot: Some(mark),
            sync: true,
            ..Change::default()
        })?;
        self.node.mut_store().compact(mark);
        self.bear_witness()?;
        // The next open sweeps it away should this fail.
        let _ = std::fs::remove_file(self.dir.file(&image::snapshot_name(replaced)));
        Ok(())
    }

    /// Ends cleanly. An image is handed to the next open, once; without one the next open finds
    /// what it would find after a crash. What was proposed and not flushed is gone.
    pub fn close(mut self, image: Option<&[u8]>) -> Result<(), FlushError> {
        self.writable()?;
        if let Some(image) = image {
            let epoch = u64::from(self.epoch.number());
            image::write(&self.dir, CLEAN_STOP, epoch, image)?;
            self.commit(Change {
                clean_stop: Some(CleanStopMark::Set(epoch)),
                sync: true,
                ..Change::default()
            })?;
        }
        self.bear_witness()
    }

    /// Records beside the store how far the store has come.
    pub(crate) fn bear_witness(&mut self) -> Result<(), FlushError> {
        let witness = Witness {
            epoch: self.epoch,
            index: self.node.store().last(),
            flushed: self.store.flushed(),
        };
        self.witnessed_segment = witness.flushed.segment;
        let written = witness.write(&self.dir);
        written.map_err(|error| self.fail(error))
    }

    /// The only way to the store: after the first failure there is none.
    pub(crate) fn commit(&mut self, change: Change) -> Result<(), FlushError> {
        self.writable()?;
        let committed = self.store.commit(change);
        committed.map_err(|error| self.fail(error))?;
        // Before anything in a new segment is acknowledged: were the segment lost, nobody else would know of it.
        match self.store.flushed().segment == self.witnessed_segment {
            true => Ok(()),
            false => self.bear_witness(),
        }
    }

    fn fail(&mut self, error: DiskError) -> FlushError {
        self.failed = Some(error.clone());
        FlushError(error)
    }

    fn writable(&self) -> Result<(), FlushError> {
        match &self.failed {
            Some(error) => Err(FlushError(error.clone())),
            None => Ok(()),
        }
    }

    /// Whether a snapshot at this index would be new and committed.
    pub(crate) fn compactable(&self, index: u64) -> Result<(), SnapshotError> {
        self.writable()?;
        let taken = self.node.store().snapshot_mark().index;
        if index <= taken {
            return Err(SnapshotError::Stale(taken));
        }
        if index > self.delivered {
            return Err(SnapshotError::NotCommitted(index));
        }
        Ok(())
    }

    /// Another member's snapshot takes the place of the whole log.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), FlushError> {
        let (index, term) = (snapshot.get_metadata().index, snapshot.get_metadata().term);
        let mark = SnapshotMark { index, term };
        let voters = snapshot.get_metadata().get_conf_state().voters.clone();
        let written = image::write(
            &self.dir,
            &image::snapshot_name(index),
            index,
            snapshot.get_data(),
        );
        written.map_err(|error| self.fail(error))?;
        self.commit(Change {
            snapshot: Some(mark),
            voters: Some(voters.clone()),
            hard_state: Some(self.node.raft.hard_state()),
            sync: true,
            ..Change::default()
        })?;
        self.node.mut_store().restore(mark, voters);
        self.delivered = index;
        self.restored = Some(StoredSnapshot {
            index,
            image: snapshot.get_data().to_vec(),
        });
        Ok(())
    }

    /// The links between members take these; with one voter there is nobody to send to.
    fn send(&mut self, messages: Vec<Message>) {
        drop(messages);
    }

    fn deliver(&mut self, entries: Vec<Entry>, committed: &mut Vec<Committed>) {
        for entry in entries {
            assert_eq!(entry.index, self.delivered + 1, "an entry out of order");
            self.delivered = entry.index;
            // A new leader's first entry is raft's own and has no bytes.
            if !entry.data.is_empty() {
                let proposals = committed_in(&entry);
                committed.extend(proposals.expect("what was proposed is a whole bundle"));
            }
        }
    }
}

/// The proposals of an entry, or nothing for bytes that are no bundle.
pub(crate) fn committed_in(entry: &Entry) -> Option<impl Iterator<Item = Committed>> {
    let (index, term) = (entry.index, entry.term);
    let Contents { origin, proposals } = bundle::split(&entry.data)?;
    let numbered = (0..).zip(proposals);
    Some(numbered.map(move |(nth, data)| Committed {
        position: Position { index, term, nth },
        origin: origin.map(|first| first.later(nth.into())),
        data,
    }))
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("epoch", &self.epoch)
            .field("delivered", &self.delivered)
            .field("log", &self.log_size())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
