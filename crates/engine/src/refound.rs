//! Founding anew: a group of one that begins with the image of another group's state machine. A restored backup and a forced
//! recovery do so. Both must say with which start to begin, because earlier starts must not be used a second time.

use std::path::Path;

use raft::eraftpb::{Entry, EntryType};

use crate::engine::{Committed, Engine, hand_out};
use crate::error::{FlushError, OpenError, SnapshotError};
use crate::log::Log;
use crate::open::{Found, Opening};
use crate::setup::Setup;
use crate::specimen::Specimen;
use crate::start::Start;

/// Why no group was founded anew. The directory is of no use then.
#[derive(Debug, thiserror::Error)]
pub enum RefoundError {
    /// It belongs to a node already.
    #[error("there is something in it already; a group is founded anew in a new directory")]
    NotNew,
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The image was not taken.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] FlushError),
}

impl Engine {
    /// Makes a new data directory of a group of one. It begins with this image, and its next start follows this one.
    pub fn refound(
        path: impl AsRef<Path>,
        setup: Setup,
        start: Start,
        image: &[u8],
    ) -> Result<(), RefoundError> {
        let found = Engine::examine_as(path, Opening::Ordinary, setup)?;
        let mut engine = found.starting_at(start)?.take_over()?.engine;
        // The empty entry of its election.
        let index = engine.delivered();
        engine.snapshot(index, image)?;
        engine.close(None)?;
        Ok(())
    }
}

impl Found {
    /// Begins a new directory with this start.
    fn starting_at(mut self, start: Start) -> Result<Found, RefoundError> {
        match self.is_new() {
            false => Err(RefoundError::NotNew),
            true => {
                self.examined.start = start;
                Ok(self)
            }
        }
    }

    /// Everything in the log after the snapshot, whether or not it is known to be committed. In a group, use this only if the
    /// majority is lost: it has everything that may have been acknowledged.
    pub fn everything(&self) -> Result<Vec<Committed>, OpenError> {
        let log = self.examined.node.store();
        handed_out(log, self.examined.setup, |_| true)
    }
}

/// What the log has, as far as it counts.
pub(crate) fn handed_out(
    log: &Log,
    setup: Setup,
    counts: impl Fn(&Entry) -> bool,
) -> Result<Vec<Committed>, OpenError> {
    let (mut committed, mut origins) = (Vec::new(), log.base().origins);
    let every = setup.specimen == Some(Specimen::ApplyDuplicates);
    for entry in log.iter() {
        if entry.entry_type != EntryType::EntryNormal {
            continue;
        }
        let into = match counts(entry) {
            true => &mut committed,
            false => &mut Vec::new(),
        };
        if !hand_out(entry, &mut origins, every, into) {
            let what = format!("log entry {} is none", entry.index);
            return Err(OpenError::Damaged(what));
        }
    }
    Ok(committed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(node: u64) -> Setup {
        Setup {
            node,
            ..Setup::default()
        }
    }

    #[test]
    fn a_group_is_founded_anew_with_an_image_and_later_starts() {
        let dir = tempfile::tempdir().unwrap();
        Engine::refound(dir.path(), setup(7), Start::new(4100, 3), b"state").unwrap();
        let opened = Engine::examine_as(dir.path(), Opening::Ordinary, setup(7)).unwrap();
        let opened = opened.take_over().unwrap();
        assert_eq!(opened.snapshot.unwrap().image, b"state");
        assert!(opened.committed.iter().all(|entry| entry.data.is_empty()));
        let start = opened.engine.start();
        assert_eq!((start.number(), start.generation()), (4101, 3));
        assert_eq!(opened.engine.members().voters, [7]);
    }

    #[test]
    fn a_directory_that_is_in_use_is_not_founded_anew() {
        let dir = tempfile::tempdir().unwrap();
        drop(Engine::open(dir.path(), Opening::Ordinary).unwrap());
        let refused = Engine::refound(dir.path(), setup(1), Start::new(9, 1), b"state");
        assert!(matches!(refused, Err(RefoundError::NotNew)), "{refused:?}");
        let opened = Engine::open(dir.path(), Opening::Ordinary).unwrap();
        assert_eq!(opened.engine.start().number(), 2);
    }

    #[test]
    fn all_of_a_log_can_be_read_also_what_is_not_known_to_be_committed() {
        let dir = tempfile::tempdir().unwrap();
        let mut engine = Engine::open(dir.path(), Opening::Ordinary).unwrap().engine;
        engine.propose(b"one").unwrap();
        engine.flush().unwrap();
        drop(engine);
        let found = Engine::examine(dir.path(), Opening::Ordinary).unwrap();
        let all = found.everything().unwrap();
        assert!(all.iter().any(|entry| entry.data == b"one"[..]));
    }
}
