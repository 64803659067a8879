//! The part of the log that no snapshot has replaced, in memory, as raft reads it. The store has the same entries; this
//! mirror changes only after the store has made a change durable.

use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, EntryType, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::bundle;
use crate::error::OpenError;
use crate::members::Members;
use crate::origin::Origins;
use crate::seal::Fields;
use crate::store::{Base, SnapshotMark, Stored};

/// What an entry costs in memory and on disk beyond its bytes. It also bounds logs of tiny entries.
const ENTRY_OVERHEAD_BYTES: u64 = 64;

/// How much has been logged since the last snapshot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogSize {
    /// The number of entries.
    pub entries: u64,
    /// Their bytes, with a fixed overhead for each.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Log {
    snapshot: SnapshotMark,
    entries: VecDeque<Entry>,
    bytes: u64,
    hard_state: HardState,
    /// As of the snapshot.
    members: Members,
    /// As of the snapshot.
    origins: Origins,
}

impl Log {
    /// Checks what raft takes for granted, because raft panics if it does not hold.
    pub(crate) fn new(stored: Stored) -> Result<Self, OpenError> {
        let damaged = |what: String| Err(OpenError::Damaged(what));
        let SnapshotMark {
            mut index,
            mut term,
        } = stored.snapshot;
        for entry in &stored.entries {
            if entry.index != index + 1 {
                return damaged(format!("log entry {} is missing", index + 1));
            }
            if entry.term < term {
                return damaged(format!("log entry {} has an old term", entry.index));
            }
            (index, term) = (entry.index, entry.term);
        }
        let hard = &stored.hard_state;
        if hard.term < term {
            return damaged(format!("the term is {} and the log's is {term}", hard.term));
        }
        if hard.commit < stored.snapshot.index || hard.commit > index {
            return damaged(format!("index {} is committed and missing", hard.commit));
        }
        Ok(Self {
            snapshot: stored.snapshot,
            bytes: stored.entries.iter().map(cost).sum(),
            entries: stored.entries.into(),
            hard_state: stored.hard_state,
            members: stored.members,
            origins: stored.origins,
        })
    }

    pub(crate) fn snapshot_mark(&self) -> SnapshotMark {
        self.snapshot
    }

    pub(crate) fn last(&self) -> u64 {
        self.snapshot.index + self.entries.len() as u64
    }

    /// The entries after the snapshot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The commit index, as far as the store knows it.
    pub(crate) fn commit(&self) -> u64 {
        self.hard_state.commit
    }

    pub(crate) fn size(&self) -> LogSize {
        LogSize {
            entries: self.entries.len() as u64,
            bytes: self.bytes,
        }
    }

    pub(crate) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    /// Appends. An index that exists is replaced, with everything after it.
    pub(crate) fn append(&mut self, entries: Vec<Entry>) {
        let Some(first) = entries.first() else { return };
        assert!(
            first.index > self.snapshot.index && first.index <= self.last() + 1,
            "appending at {} to a log of {}..={}",
            first.index,
            self.snapshot.index + 1,
            self.last()
        );
        while self.last() >= first.index {
            let dropped = self.entries.pop_back();
            self.bytes -= dropped.as_ref().map_or(0, cost);
        }
        self.bytes += entries.iter().map(cost).sum::<u64>();
        self.entries.extend(entries);
    }

    /// What a snapshot at this index would cover.
    pub(crate) fn base_at(&self, index: u64) -> Result<Base, StorageError> {
        let mark = SnapshotMark {
            index,
            term: self.term_at(index)?,
        };
        let (mut members, mut origins) = (self.members.clone(), self.origins.clone());
        for entry in self.entries.iter().take_while(|entry| entry.index <= index) {
            if let Some(changed) = members_in(entry) {
                if changed.at > members.at {
                    members = changed;
                }
            } else if let Some((first, count)) = bundle::origin(&entry.data) {
                origins.take(first, count);
            }
        }
        Ok(Base {
            mark,
            members,
            origins,
        })
    }

    /// What the snapshot covers.
    pub(crate) fn base(&self) -> Base {
        Base {
            mark: self.snapshot,
            members: self.members.clone(),
            origins: self.origins.clone(),
        }
    }

    /// Forgets everything up to and including the snapshot's index.
    pub(crate) fn compact(&mut self, base: Base) {
        while self.snapshot.index < base.mark.index {
            let dropped = self.entries.pop_front();
            self.bytes -= dropped.as_ref().map_or(0, cost);
            self.snapshot.index += 1;
        }
        (self.snapshot, self.members, self.origins) = (base.mark, base.members, base.origins);
    }

    /// Replaces the whole log by another node's snapshot.
    pub(crate) fn restore(&mut self, base: Base) {
        self.entries.clear();
        self.bytes = 0;
        self.hard_state.commit = self.hard_state.commit.max(base.mark.index);
        self.hard_state.term = self.hard_state.term.max(base.mark.term);
        (self.snapshot, self.members, self.origins) = (base.mark, base.members, base.origins);
    }

    pub(crate) fn term_at(&self, index: u64) -> Result<u64, StorageError> {
        match index.checked_sub(self.snapshot.index) {
            None => Err(StorageError::Compacted),
            Some(0) => Ok(self.snapshot.term),
            Some(nth) => usize::try_from(nth - 1)
                .ok()
                .and_then(|nth| self.entries.get(nth))
                .map(|entry| entry.term)
                .ok_or(StorageError::Unavailable),
        }
    }
}

/// The members from an entry on, if it changes them.
pub(crate) fn members_in(entry: &Entry) -> Option<Members> {
    if entry.entry_type == EntryType::EntryNormal {
        return None;
    }
    let mut members = Members::read(&mut Fields(&entry.context))?;
    members.at = entry.index;
    (!members.voters.is_empty()).then_some(members)
}

fn cost(entry: &Entry) -> u64 {
    entry.data.len() as u64 + ENTRY_OVERHEAD_BYTES
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        let members = ConfState::from(&self.members);
        Ok(RaftState::new(self.hard_state.clone(), members))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let Some(skip) = low.checked_sub(self.snapshot.index + 1) else {
            return Err(StorageError::Compacted.into());
        };
        assert!(high <= self.last() + 1, "entries up to {high} asked for");
        let size_max = max_size.into().unwrap_or(u64::MAX);
        let mut size = 0;
        let wanted = self
            .entries
            .iter()
            .skip(usize::try_from(skip).unwrap_or(usize::MAX));
        let wanted = wanted.take(usize::try_from(high.saturating_sub(low)).unwrap_or(usize::MAX));
        Ok(wanted
            .enumerate()
            .take_while(|(nth, entry)| {
                size += cost(entry);
                *nth == 0 || size <= size_max
            })
            .map(|(_, entry)| entry.clone())
            .collect())
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        Ok(self.term_at(index)?)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.snapshot.index + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.last())
    }

    /// Without its image, which travels in pieces.
    fn snapshot(&self, request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        if self.snapshot.index == 0 || self.snapshot.index < request_index {
            return Err(StorageError::SnapshotTemporarilyUnavailable.into());
        }
        let mut snapshot = Snapshot::default();
        let metadata = snapshot.mut_metadata();
        (metadata.index, metadata.term) = (self.snapshot.index, self.snapshot.term);
        metadata.set_conf_state(ConfState::from(&self.members));
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::Bundle;
    use crate::origin::Origin;

    fn entry(index: u64, term: u64) -> Entry {
        Entry {
            index,
            term,
            data: vec![0; 36].into(),
            ..Entry::default()
        }
    }

    fn stored(snapshot: (u64, u64), entries: Vec<Entry>, hard: (u64, u64)) -> Stored {
        let mut stored = Stored {
            entries,
            members: Members::alone(1),
            ..Stored::default()
        };
        (stored.snapshot.index, stored.snapshot.term) = snapshot;
        (stored.hard_state.term, stored.hard_state.commit) = hard;
        stored
    }

    fn log() -> Log {
        let entries = vec![entry(11, 2), entry(12, 2), entry(13, 3)];
        Log::new(stored((10, 2), entries, (3, 12))).unwrap()
    }

    fn indexes(log: &Log, low: u64, high: u64, size_max: u64) -> Vec<u64> {
        let context = GetEntriesContext::empty(false);
        let entries = log.entries(low, high, size_max, context).unwrap();
        entries.iter().map(|entry| entry.index).collect()
    }

    #[test]
    fn raft_reads_what_is_between_the_snapshot_and_the_end() {
        let log = log();
        assert_eq!((log.first_index(), log.last_index()), (Ok(11), Ok(13)));
        let terms: Vec<_> = (9..=14).map(|index| log.term_at(index)).collect();
        assert_eq!(terms[0], Err(StorageError::Compacted));
        assert_eq!(terms[1..5], [Ok(2), Ok(2), Ok(2), Ok(3)]);
        assert_eq!(terms[5], Err(StorageError::Unavailable));
        assert_eq!(indexes(&log, 11, 14, u64::MAX), [11, 12, 13]);
        assert_eq!(indexes(&log, 12, 13, u64::MAX), [12]);
        assert_eq!(indexes(&log, 11, 14, 250), [11, 12]);
        assert_eq!(indexes(&log, 11, 14, 0), [11]);
    }

    #[test]
    fn the_size_follows_appends_overwrites_and_compaction() {
        let mut log = log();
        let size = |entries| LogSize {
            entries,
            bytes: entries * 100,
        };
        assert_eq!(log.size(), size(3));
        log.append(vec![entry(12, 4), entry(13, 4), entry(14, 4)]);
        assert_eq!((log.size(), log.term_at(12)), (size(4), Ok(4)));
        log.compact(log.base_at(13).unwrap());
        assert_eq!((log.size(), log.last()), (size(1), 14));
        let base = Base {
            mark: SnapshotMark { index: 40, term: 9 },
            members: Members::alone(2),
            origins: Origins::default(),
        };
        log.restore(base.clone());
        assert_eq!((log.size(), log.last()), (size(0), 40));
        assert_eq!(log.base(), base);
    }

    #[test]
    fn a_snapshot_stands_for_what_was_so_at_its_index() {
        let mut log = log();
        let origin = |sequence| Origin {
            node: 2,
            start: 7,
            sequence,
        };
        let numbered = |index, sequence| {
            let mut bundle = Bundle::default();
            bundle.push(origin(sequence), b"one");
            bundle.push(origin(sequence + 1), b"two");
            Entry {
                data: bundle.take().into(),
                ..entry(index, 4)
            }
        };
        let mut context = Vec::new();
        Members::alone(9).write(&mut context);
        let change = Entry {
            entry_type: EntryType::EntryConfChange,
            context: context.into(),
            ..entry(16, 4)
        };
        log.append(vec![
            numbered(14, 1),
            numbered(15, 1),
            change,
            numbered(17, 3),
        ]);
        let seen = |index| {
            let base = log.base_at(index).unwrap();
            (
                base.mark.term,
                base.members.voters[0],
                base.origins.of(2, 7),
            )
        };
        let wanted = [(3, 1, 0), (4, 1, 2), (4, 1, 2), (4, 9, 2), (4, 9, 4)];
        assert_eq!([13, 14, 15, 16, 17].map(seen), wanted);
        assert!(log.base_at(18).is_err());
    }

    #[test]
    fn a_log_that_raft_would_panic_over_is_refused() {
        let gap = stored((10, 2), vec![entry(12, 2)], (2, 10));
        let older = stored((10, 2), vec![entry(11, 1)], (2, 10));
        let term_behind = stored((10, 2), vec![entry(11, 3)], (2, 10));
        let commit_lost = stored((10, 2), vec![entry(11, 2)], (2, 12));
        let commit_behind = stored((10, 2), vec![], (2, 9));
        for bad in [gap, older, term_behind, commit_lost, commit_behind] {
            let error = Log::new(bad).unwrap_err();
            assert!(matches!(error, OpenError::Damaged(_)), "{error}");
        }
    }
}
