//! The engine: a raft node over a durable log. It keeps raft's own order: what a leader says may go out before its disk is
//! flushed, so that its disk and those of the others work at the same time; what any other node says goes out after.
//!
//! Alone, no tick and no message is needed: the node campaigns once, at open, wins by its own vote, and leads from then on.
//! In a group, the driver passes frames and time to the engine in turns: [`step`](Engine::step), [`tick`](Engine::tick) and
//! [`propose`](Engine::propose) as needed; then [`begin`](Engine::begin), and send the outgoing frames; then
//! [`flush`](Engine::flush), and send again.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType, Snapshot};
use raft::{RawNode, Ready};

use crate::bundle::{self, Contents};
use crate::elections::{Elections, Standing};
use crate::error::{DiskError, FlushError, ProposeError, SnapshotError};
use crate::image::{CLEAN_STOP, ImageWriter, WrittenSnapshot, snapshot_name};
use crate::log::{Log, LogSize, members_in};
use crate::members::Members;
use crate::open::StoredSnapshot;
use crate::origin::{Origin, Origins};
use crate::pieces::Transfers;
use crate::reads::{self, ReadIndex, Reads};
use crate::room::Rooms;
use crate::setup::Setup;
use crate::shelf::Shelf;
use crate::specimen::Specimen;
use crate::start::Start;
use crate::store::{Base, Change, CleanStopMark, Store};
use crate::submissions::{Intake, Submissions};
use crate::wire::Outgoing;
use crate::witness::Witness;

/// The longest entry, 1 MiB.
pub const ENTRY_BYTES_MAX: usize = 1 << 20;

/// How much may be proposed between two flushes, 64 MiB.
pub const UNFLUSHED_BYTES_MAX: usize = 64 << 20;

/// How long the log may grow without a snapshot, 256 MiB.
pub const LOG_BYTES_MAX: u64 = 256 << 20;

/// How much of the disk is left free, 64 MiB. Below it, at a node alone or at so many that no majority has more, nothing new
/// is accepted, so that what was accepted can still be written, merged and deleted.
pub const DISK_RESERVE_BYTES: u64 = 64 << 20;

/// An entry up to this length may use half of the reserve: deletes, deaths and closes are short, and they make room.
pub const SHORT_ENTRY_BYTES: usize = 256;

/// The replicated, durable log of one node.
pub struct Engine {
    pub(crate) node: RawNode<Log>,
    // Before the shelf: its files are closed before the directory's lock is released.
    pub(crate) store: Box<dyn Store>,
    pub(crate) shelf: Arc<dyn Shelf>,
    pub(crate) setup: Setup,
    pub(crate) start: Start,
    /// The last index handed out as committed.
    pub(crate) delivered: u64,
    /// Which proposals have counted up to there.
    pub(crate) origins: Origins,
    /// The members as of there.
    pub(crate) members: Members,
    pub(crate) submissions: Submissions,
    pub(crate) intake: Intake,
    pub(crate) reads: Reads,
    pub(crate) asks: reads::Desk,
    pub(crate) transfers: Transfers,
    pub(crate) elections: Elections,
    pub(crate) standing: Standing,
    /// What raft has ready, between [`Engine::begin`] and [`Engine::flush`].
    pub(crate) begun: Option<Ready>,
    pub(crate) outgoing: Vec<Outgoing>,
    pub(crate) read_indexes: Vec<ReadIndex>,
    /// Another member's snapshot that has arrived on the shelf and is not in use yet.
    pub(crate) arrived: Option<Base>,
    pub(crate) restored: Option<StoredSnapshot>,
    pub(crate) rooms: Rooms,
    /// Who is to lead because this node, which does, is short of room.
    pub(crate) handed_to: Option<u64>,
    /// From this submission on, what no leader was given was taken back.
    pub(crate) refused: Option<(u64, ProposeError)>,
    /// Why nothing that was given to a leader has come out of the log for long.
    pub(crate) stuck: Option<ProposeError>,
    /// [`LOG_BYTES_MAX`], or less in tests.
    pub(crate) log_bytes_max: u64,
    /// The newest segment that the witness file knows.
    pub(crate) witnessed_segment: u64,
    pub(crate) failed: Option<DiskError>,
}

/// A place in the log. Proposals of one flush share an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The index in raft's log.
    pub index: u64,
    /// The term of the leader that logged it.
    pub term: u64,
    /// Zero-based, among the proposals at this index.
    pub nth: u32,
}

/// A proposal that is durable and will never change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// Its place in the log.
    pub position: Position,
    /// Who proposed it, as returned by [`Engine::propose`]. `None` if it was logged before proposals were numbered.
    pub origin: Option<Origin>,
    /// The bytes proposed.
    pub data: Bytes,
}

impl Engine {
    /// The present start of the data directory.
    pub fn start(&self) -> Start {
        self.start
    }

    /// How much a snapshot would compact.
    pub fn log_size(&self) -> LogSize {
        self.node.store().size()
    }

    /// Adds an entry that the next flush makes durable. Does not touch the disk. A refused entry gets no number, so that the
    /// numbers of a start have no gap. An accepted one comes out of the log, whoever leads, as long as this node runs and is
    /// a member.
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
        if self.submissions.bytes() + len > UNFLUSHED_BYTES_MAX {
            return Err(ProposeError::Backlog);
        }
        self.room_for(len)?;
        if !self.members.contains(self.setup.node) {
            return Err(ProposeError::NoMember);
        }
        Ok(self.submissions.push(data))
    }

    /// Whether the log and the disks have room for this much more.
    fn room_for(&self, len: usize) -> Result<(), ProposeError> {
        let waiting = self.submissions.bytes() + len;
        if !self.log_has_room_for(waiting) {
            return Err(ProposeError::LogFull);
        }
        let reserve_bytes = match len <= SHORT_ENTRY_BYTES {
            true => DISK_RESERVE_BYTES / 2,
            false => DISK_RESERVE_BYTES,
        };
        self.majority_has(reserve_bytes + waiting as u64)
    }

    pub(crate) fn log_has_room_for(&self, bytes: usize) -> bool {
        self.log_size().bytes + bytes as u64 <= self.log_bytes_max
    }

    /// Measures the free space on the disk.
    pub(crate) fn look_for_room(&mut self) {
        self.rooms.looked(self.shelf.free_bytes());
    }

    /// Begins a flush: what [`Engine::take_outgoing`] then has need not wait for the disk. Nothing may follow but the flush.
    /// Says whether that will wait for the disk.
    pub fn begin(&mut self) -> bool {
        if self.begun.is_none() && self.failed.is_none() {
            self.prepare();
        }
        let waits = |ready: &Ready| ready.must_sync() || !ready.snapshot().is_empty();
        self.begun.as_ref().is_some_and(waits)
    }

    fn prepare(&mut self) {
        self.submissions.seal();
        self.give();
        self.ask();
        self.begun = self.ready();
        if self.is_specimen(Specimen::AcknowledgeBeforeFlush) {
            let early = self.begun.as_mut().map(Ready::take_persisted_messages);
            self.send(early.unwrap_or_default());
        }
    }

    /// What raft has ready, after sending its messages that need not wait.
    fn ready(&mut self) -> Option<Ready> {
        if !self.node.has_ready() {
            return None;
        }
        let mut ready = self.node.ready();
        self.send(ready.take_messages());
        Some(ready)
    }

    /// Makes everything proposed since the last flush durable, with a single flush of the disk, and hands out what this
    /// commits: in log order, every entry once per process. Alone, that is everything.
    pub fn flush(&mut self) -> Result<Vec<Committed>, FlushError> {
        self.writable()?;
        self.begin();
        let mut committed = Vec::new();
        while let Some(ready) = self.begun.take() {
            self.persist(ready, &mut committed)?;
            self.begun = self.ready();
        }
        self.rooms.flushed();
        self.observe();
        Ok(committed)
    }

    fn persist(
        &mut self,
        mut ready: Ready,
        committed: &mut Vec<Committed>,
    ) -> Result<(), FlushError> {
        for state in ready.take_read_states() {
            let (node, start) = (self.setup.node, self.start.number().into());
            let context = Bytes::from(state.request_ctx);
            if self.leads() && !self.asks.may_answer(&context) {
                continue;
            }
            let answer = self.reads.answer(&context, (node, start), state.index);
            self.read_indexes.extend(answer);
        }
        if !ready.snapshot().is_empty() {
            self.restore(ready.snapshot())?;
        }
        let entries = ready.take_entries();
        let hard_state = match entries.is_empty() || self.is_alone() {
            true => ready.hs().cloned(),
            // With its commit index: a start must know the members of all entries except the last few.
            false => Some(self.node.raft.hard_state()),
        };
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
        let entries = ready.take_committed_entries();
        let mut light = self.node.advance_append(ready);
        self.send(light.take_messages());
        // Not earlier: raft panics if a leader that has just been removed persists something.
        self.deliver(entries, committed);
        self.deliver(light.take_committed_entries(), committed);
        self.node.advance_apply();
        self.step_down_if_removed();
        Ok(())
    }

    fn deliver(&mut self, entries: Vec<Entry>, committed: &mut Vec<Committed>) {
        for entry in entries {
            assert_eq!(entry.index, self.delivered + 1, "an entry out of order");
            self.delivered = entry.index;
            match entry.entry_type {
                EntryType::EntryNormal => {
                    let every = self.is_specimen(Specimen::ApplyDuplicates);
                    hand_out(&entry, &mut self.origins, every, committed);
                }
                _ => self.take_over_members(&entry),
            }
        }
        let (node, start) = (self.setup.node, self.start.number().into());
        self.submissions.applied(self.origins.of(node, start));
    }

    /// From now on the members are those in the entry.
    fn take_over_members(&mut self, entry: &Entry) {
        let later = |members: &Members| members.at > self.members.at;
        let Some(members) = members_in(entry).filter(later) else {
            return;
        };
        for step in self.members.steps_to(&members) {
            if let Err(error) = self.node.apply_conf_change(&step) {
                // What is in the log comes from a leader that has checked it.
                debug_assert!(false, "{step:?}: {error}");
            }
        }
        self.members = members;
    }

    /// Another member's snapshot that has replaced the log. Load it before applying what the same flush handed out. Alone
    /// there is never one.
    pub fn take_restored(&mut self) -> Option<StoredSnapshot> {
        self.restored.take()
    }

    /// Writes snapshots outside of the engine, on another thread.
    pub fn image_writer(&self) -> ImageWriter {
        ImageWriter {
            shelf: Arc::clone(&self.shelf),
        }
    }

    /// Takes a snapshot at once: [`ImageWriter::write`] and then [`Engine::compact`].
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
                self.shelf.remove_image(&snapshot_name(index));
            }
            return Err(refused);
        }
        let log = self.node.store();
        let replaced = log.snapshot_mark().index;
        let base = log.base_at(index);
        let base = base.map_err(|_| SnapshotError::NotCommitted(index))?;
        // The store must never have a snapshot beyond its commit index, which lags by one flush.
        let hard_state = self.node.raft.hard_state();
        self.commit(Change {
            hard_state: Some(hard_state),
            ..self.change_to(&base)
        })?;
        self.node.mut_store().compact(base);
        self.bear_witness()?;
        self.shelf.remove_image(&snapshot_name(replaced));
        Ok(())
    }

    /// The change that puts a snapshot in place of what it covers.
    fn change_to(&self, base: &Base) -> Change {
        let origins = match self.is_specimen(Specimen::ForgetOrigins) {
            true => Origins::default(),
            false => base.origins.clone(),
        };
        Change {
            snapshot: Some(base.mark),
            members: Some(base.members.clone()),
            origins: Some(origins),
            sync: true,
            ..Change::default()
        }
    }

    /// Ends cleanly. The next open gets the image, once; without one it finds what it would find after a crash. Proposals
    /// that were not flushed are lost.
    pub fn close(mut self, image: Option<&[u8]>) -> Result<(), FlushError> {
        self.writable()?;
        if let Some(image) = image {
            let start = u64::from(self.start.number());
            self.shelf.write_image(CLEAN_STOP, start, image)?;
            self.commit(Change {
                clean_stop: Some(CleanStopMark::Set(start)),
                sync: true,
                ..Change::default()
            })?;
        }
        if !self.is_alone() {
            self.keep_what_was_handed_out()?;
        }
        self.bear_witness()
    }

    /// Writes down how far the entries that were handed out reach. The process may go on with the next start, and has applied
    /// them; nothing waited for the disk to know that they are committed.
    fn keep_what_was_handed_out(&mut self) -> Result<(), FlushError> {
        let mut hard_state = self.node.raft.hard_state();
        hard_state.commit = self.delivered.max(self.node.store().commit());
        self.commit(Change {
            hard_state: Some(hard_state),
            sync: true,
            ..Change::default()
        })
    }

    /// Records, outside of the store, how far the store has come.
    pub(crate) fn bear_witness(&mut self) -> Result<(), FlushError> {
        let witness = Witness {
            start: self.start,
            // In a group, what is not committed may have to go again.
            index: match self.is_alone() {
                true => self.node.store().last(),
                false => {
                    let last = self.node.store().last();
                    last.min(self.node.raft.raft_log.committed)
                }
            },
            flushed: self.store.flushed(),
        };
        self.witnessed_segment = witness.flushed.segment;
        let written = self.shelf.bear_witness(&witness);
        written.map_err(|error| self.fail(error))
    }

    /// The only way to the store; it is closed after the first failure.
    pub(crate) fn commit(&mut self, change: Change) -> Result<(), FlushError> {
        self.writable()?;
        let committed = self.store.commit(change);
        committed.map_err(|error| self.fail(error))?;
        // Before anything in a new segment is acknowledged: if the segment were lost, nothing else would know of it.
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

    /// Another member's snapshot replaces the whole log.
    fn restore(&mut self, snapshot: &Snapshot) -> Result<(), FlushError> {
        let index = snapshot.get_metadata().index;
        let arrived = self.arrived.take();
        let Some(base) = arrived.filter(|base| base.mark.index == index) else {
            let why = format!("the snapshot at index {index} has not arrived");
            return Err(self.fail(DiskError::Failed(why)));
        };
        let name = snapshot_name(index);
        let image = self.shelf.read_image(&name, index);
        let image = image.map_err(|error| self.fail(DiskError::Failed(error.to_string())))?;
        self.commit(Change {
            void: !self.is_specimen(Specimen::KeepTheOldEnd),
            hard_state: Some(self.node.raft.hard_state()),
            ..self.change_to(&base)
        })?;
        let replaced = self.node.store().snapshot_mark().index;
        self.shelf.remove_image(&snapshot_name(replaced));
        self.delivered = index;
        self.members = base.members.clone();
        self.origins = base.origins.clone();
        self.node.mut_store().restore(base);
        self.restored = Some(StoredSnapshot { index, image });
        let (node, start) = (self.setup.node, self.start.number().into());
        self.submissions.applied(self.origins.of(node, start));
        Ok(())
    }

    /// Whether there is no other member, so that what is on this disk is committed.
    pub(crate) fn is_alone(&self) -> bool {
        self.members.is_alone(self.setup.node)
    }

    pub(crate) fn is_specimen(&self, specimen: Specimen) -> bool {
        self.setup.specimen == Some(specimen)
    }
}

/// Hands out those proposals of an entry that count. Says whether it could be read.
pub(crate) fn hand_out(
    entry: &Entry,
    origins: &mut Origins,
    every: bool,
    committed: &mut Vec<Committed>,
) -> bool {
    // A new leader's first entry is raft's own and has no bytes.
    let Some(Contents { origin, proposals }) = bundle::split(&entry.data) else {
        return false;
    };
    let count = proposals.len() as u64;
    if origin.is_some_and(|first| !origins.take(first, count) && !every) {
        return true;
    }
    let (index, term) = (entry.index, entry.term);
    committed.extend((0..).zip(proposals).map(|(nth, data)| Committed {
        position: Position { index, term, nth },
        origin: origin.map(|first| first.later(nth.into())),
        data,
    }));
    true
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("start", &self.start)
            .field("delivered", &self.delivered)
            .field("log", &self.log_size())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
