//! A disk in memory for an engine in a simulator: it keeps what was flushed, and loses, tears or refuses the rest as told.
//! The engine above it, and the form of what it writes, are the same as on files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use raft::eraftpb::HardState;
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{DiskError, OpenError};
use crate::frame;
use crate::open::{Examined, Opened, Opening};
use crate::setup::Setup;
use crate::shelf::{Shelf, Sink, Source};
use crate::specimen::Specimen;
use crate::store::{Change, Flushed, Store, Stored};
use crate::witness::Witness;

/// What happens to the next flush.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Fate {
    /// It reaches the disk.
    #[default]
    Done,
    /// Nothing of it reaches the disk, and the engine is told that there is no room.
    Full,
    /// This many 256ths of it reach the disk, and the engine is told that it failed.
    Torn(u8),
    /// It reaches the disk, and the engine is told that it failed.
    Unheard,
}

/// A disk. Clones are the same disk.
#[derive(Debug, Clone, Default)]
pub struct Disk(Arc<Mutex<Platter>>);

#[derive(Debug, Default)]
struct Platter {
    /// Frames, as in a segment.
    log: Vec<u8>,
    sequence: u64,
    images: BTreeMap<String, (u64, Arc<[u8]>)>,
    witness: Witness,
    fate: Fate,
    /// How many bytes there is room for; unlimited if `None`.
    room: Option<u64>,
}

const SALT: u64 = 0x5EED;

impl Disk {
    /// Opens what the disk has, as after a crash.
    pub fn open(&self, setup: Setup) -> Result<Opened, OpenError> {
        let mut platter = self.lock();
        let stored = platter.replay(setup.specimen == Some(Specimen::TornWriteAccepted));
        let witness = platter.witness;
        drop(platter);
        let shelf = Arc::new(self.clone());
        let examined = Examined::new(shelf, stored, witness, Opening::Ordinary, setup)?;
        examined.take_over(Box::new(Writer {
            disk: self.clone(),
            unwritten: None,
        }))
    }

    /// Sets what happens to the next flush. Those after it succeed.
    pub fn next_flush(&self, fate: Fate) {
        self.lock().fate = fate;
    }

    /// Sets how many bytes there is room for. What does not fit is refused.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.lock().room = bytes;
    }

    fn lock(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Platter {
    /// What the frames say, up to the first that is incomplete. The rest is overwritten.
    fn replay(&mut self, torn_too: bool) -> Stored {
        let log = Bytes::from(std::mem::take(&mut self.log));
        let (mut stored, mut end, mut sequence) = (Stored::default(), 0, 1);
        while let Some(frame) = frame::read(&log, end, SALT) {
            let Some(change) = frame::parse(&frame.body) else {
                break;
            };
            stored.take_over(change);
            end += frame.len;
            sequence = frame.sequence + 1;
        }
        self.log = log[..end].to_vec();
        self.sequence = sequence;
        if torn_too && end < log.len() {
            let half = frame::parse_half(&log.slice(end..));
            self.write(&half);
            stored.take_over(half);
        }
        stored
    }

    /// Whether so many bytes fit; then they are used up.
    fn use_up(&mut self, bytes: usize) -> Result<(), DiskError> {
        if let Some(room) = &mut self.room {
            let left = room.checked_sub(bytes as u64);
            *room = left.ok_or_else(|| DiskError::Full("there is no room".into()))?;
        }
        Ok(())
    }

    fn write(&mut self, change: &Change) {
        frame::write(change, self.sequence, SALT, &mut self.log);
        self.sequence += 1;
    }
}

struct Writer {
    disk: Disk,
    /// What nobody waits for, left to the next flush.
    unwritten: Option<HardState>,
}

impl Store for Writer {
    fn commit(&mut self, mut change: Change) -> Result<(), DiskError> {
        if !change.sync && change.entries.is_empty() {
            self.unwritten = change.hard_state.or(self.unwritten.take());
            return Ok(());
        }
        let unwritten = self.unwritten.take();
        change.hard_state = change.hard_state.or(unwritten);
        let mut platter = self.disk.lock();
        let before = platter.log.len();
        let failed = || Err(DiskError::Failed("the flush failed".into()));
        match std::mem::take(&mut platter.fate) {
            Fate::Done => {
                platter.write(&change);
                let written = platter.log.len() - before;
                let used = platter.use_up(written);
                if used.is_err() {
                    platter.log.truncate(before);
                }
                used
            }
            Fate::Full => Err(DiskError::Full("there is no room".into())),
            Fate::Unheard => {
                platter.write(&change);
                failed()
            }
            Fate::Torn(share) => {
                platter.write(&change);
                let len = platter.log.len() - before;
                let kept = before + len * usize::from(share) / 256;
                platter.log[kept..].fill(0);
                failed()
            }
        }
    }

    fn flushed(&self) -> Flushed {
        Flushed {
            segment: 0,
            sequence: self.disk.lock().sequence,
        }
    }
}

impl Shelf for Disk {
    fn free_bytes(&self) -> u64 {
        self.lock().room.unwrap_or(u64::MAX)
    }

    fn bear_witness(&self, witness: &Witness) -> Result<(), DiskError> {
        self.lock().witness = *witness;
        Ok(())
    }

    fn has_image(&self, name: &str) -> bool {
        self.lock().images.contains_key(name)
    }

    fn write_image(&self, name: &str, number: u64, image: &[u8]) -> Result<(), DiskError> {
        let mut platter = self.lock();
        platter.use_up(image.len())?;
        let image = (number, Arc::from(image));
        platter.images.insert(name.into(), image);
        Ok(())
    }

    fn read_image(&self, name: &str, number: u64) -> Result<Vec<u8>, OpenError> {
        match self.lock().images.get(name) {
            Some((found, image)) if *found == number => Ok(image.to_vec()),
            _ => Err(OpenError::Damaged(format!("{name} is missing"))),
        }
    }

    fn remove_image(&self, name: &str) {
        self.lock().images.remove(name);
    }

    fn sweep(&self, kept: &str) -> Result<(), DiskError> {
        self.lock().images.retain(|name, _| name == kept);
        Ok(())
    }

    fn source(&self, name: &str) -> Result<Box<dyn Source>, DiskError> {
        match self.lock().images.get(name) {
            Some((_, image)) => Ok(Box::new(Arc::clone(image))),
            None => Err(DiskError::Failed(format!("{name} is missing"))),
        }
    }

    fn sink(&self, name: &str, number: u64, sum: u64) -> Result<Box<dyn Sink>, DiskError> {
        Ok(Box::new(Arriving {
            disk: self.clone(),
            name: name.into(),
            number,
            sum,
            image: Vec::new(),
        }))
    }
}

impl Source for Arc<[u8]> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn sum(&self) -> u64 {
        xxh3_64(self)
    }

    fn read(&mut self, offset: u64, bytes_max: usize) -> Result<Vec<u8>, DiskError> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let until = from.saturating_add(bytes_max).min(self.len());
        Ok(self[from..until].to_vec())
    }
}

struct Arriving {
    disk: Disk,
    name: String,
    number: u64,
    sum: u64,
    image: Vec<u8>,
}

impl Sink for Arriving {
    fn write(&mut self, piece: &[u8]) -> Result<(), DiskError> {
        self.image.extend_from_slice(piece);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<bool, DiskError> {
        if xxh3_64(&self.image) != self.sum {
            return Ok(false);
        }
        self.disk
            .write_image(&self.name, self.number, &self.image)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_flushed_is_found_and_a_torn_flush_is_not() {
        for (fate, kept) in [
            (Fate::Done, 2),
            (Fate::Unheard, 2),
            (Fate::Full, 1),
            (Fate::Torn(0), 1),
            (Fate::Torn(128), 1),
            (Fate::Torn(200), 1),
        ] {
            let disk = Disk::default();
            let mut engine = disk.open(Setup::default()).unwrap().engine;
            engine.propose(&[1; 100]).unwrap();
            engine.flush().unwrap();
            engine.propose(&[2; 100]).unwrap();
            disk.next_flush(fate);
            assert_eq!(engine.flush().is_ok(), fate == Fate::Done);
            drop(engine);
            for start in 2..4 {
                let opened = disk.open(Setup::default()).unwrap();
                assert_eq!(opened.committed.len(), kept, "{fate:?}");
                assert_eq!(opened.engine.start().number(), start);
            }
        }
    }
}
