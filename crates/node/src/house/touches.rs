//! Keeps what sessions have touched where `kill -9` does not reach: in the engine's scratch file, before the grants are told.
//! After a crash of the process, only gates that an awaited session may hold wait for it. If the file cannot be trusted, all
//! gates wait, as if there were none.

use testigo_core::{Event, Local, SessionId, Shard, Touch, Touches};
use testigo_engine::{SCRATCH_RECORDS_MAX, Scratch, ScratchRecord};

use super::House;

/// The record of touches.
#[derive(Debug)]
pub(crate) struct KeptTouches {
    scratch: Scratch,
    /// The memory in which records are written.
    writing: Vec<ScratchRecord>,
    /// With this many records the file is begun again, because most concern sessions that are gone.
    most: u64,
    /// The file could not be written: no other try is made before this time.
    again_at: Option<u64>,
}

impl KeptTouches {
    /// Begins this start's file with what is known so far.
    pub(crate) fn begin(scratch: Scratch, local: &Local, now: u64) -> KeptTouches {
        let mut kept = KeptTouches {
            scratch,
            writing: Vec::new(),
            most: 0,
            again_at: None,
        };
        kept.rewrite(local, now);
        kept
    }

    fn rewrite(&mut self, local: &Local, now: u64) {
        let begun = self.scratch.begin(local.touches().map(written));
        if let Err(error) = begun {
            return self.give_up(&error, now);
        }
        let most = 2 * self.scratch.len() + SPARE_RECORDS;
        self.most = most.min(SCRATCH_RECORDS_MAX);
        if self.again_at.take().is_some() {
            log::info!("what sessions hold is written down again");
        }
    }

    /// Keeps the touches among these events. When this returns, they outlive the process, or nobody will trust the file.
    fn keep(&mut self, events: &[Event], local: &Local, now: u64) {
        self.writing.clear();
        let touches = events.iter().filter_map(|event| match event {
            Event::Touched(touch) => Some(written(*touch)),
            _ => None,
        });
        self.writing.extend(touches);
        if self.writing.is_empty() || self.again_at.is_some_and(|at| now < at) {
            return;
        }
        let records = self.scratch.len() + self.writing.len() as u64;
        if self.again_at.is_some() || records > self.most {
            return self.rewrite(local, now);
        }
        if let Err(error) = self.scratch.append(&self.writing) {
            self.give_up(&error, now);
        }
    }

    fn give_up(&mut self, error: &std::io::Error, now: u64) {
        if self.again_at.is_none() {
            log::warn!(
                "what sessions hold cannot be written down: {error}; after a crash all gates would wait for all sessions"
            );
        }
        self.again_at = Some(now.saturating_add(AGAIN_MS));
        if let Err(error) = self.scratch.spoil() {
            // The next start would trust a file that lacks what is about to be told. Nothing of it was told yet.
            log::error!("the scratch file can be neither written nor removed: {error}");
            std::process::abort();
        }
    }
}

impl House {
    /// Keeps the touches among these events, before anything that the events tell, or that was answered with them, leaves the
    /// house.
    pub(super) fn keep_touches(&mut self, events: &[Event]) {
        if let Some(kept) = &mut self.touches {
            kept.keep(events, self.services.local(), self.now);
        }
    }
}

/// The touches in the scratch file of the last start; `None` if they are invalid.
pub(crate) fn read_touches(records: &[ScratchRecord]) -> Option<Touches> {
    records.iter().map(read).collect()
}

/// A session's number in 8 bytes, a shard in 2, and the kind of the touch in one.
fn written(touch: Touch) -> ScratchRecord {
    let (kind, session, shard) = match touch {
        Touch::In { session, shard } => (IN, session, shard),
        Touch::Everywhere { session } => (EVERYWHERE, session, Shard(0)),
        Touch::Nowhere { session } => (NOWHERE, session, Shard(0)),
    };
    let mut record = ScratchRecord::default();
    record[..8].copy_from_slice(&session.number().to_le_bytes());
    record[8..10].copy_from_slice(&shard.0.to_le_bytes());
    record[10] = kind;
    record
}

fn read(record: &ScratchRecord) -> Option<Touch> {
    let session = u64::from_le_bytes(*record.first_chunk()?);
    let session = SessionId::from_wire(session)?;
    let shard = Shard(u16::from_le_bytes([record[8], record[9]]));
    match record[10] {
        IN => Some(Touch::In { session, shard }),
        EVERYWHERE => Some(Touch::Everywhere { session }),
        NOWHERE => Some(Touch::Nowhere { session }),
        _ => None,
    }
}

const IN: u8 = 1;
const EVERYWHERE: u8 = 2;
const NOWHERE: u8 = 3;

/// A file with this many records more than twice what it began with is begun again: 1 MiB.
const SPARE_RECORDS: u64 = 1 << 16;
/// How long a file that could not be written is left alone, in milliseconds.
const AGAIN_MS: u64 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_touch_is_read_as_it_was_written() {
        let session = SessionId::opened(u64::MAX);
        let shard = Shard(0xabcd);
        for touch in [
            Touch::In { session, shard },
            Touch::Everywhere { session },
            Touch::Nowhere { session },
        ] {
            assert_eq!(read(&written(touch)), Some(touch));
        }
        assert_eq!(read_touches(&[ScratchRecord::default()]), None);
    }
}
