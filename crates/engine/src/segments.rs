//! The log on disk: files of one size, written one after the other, each flush one [frame].
//!
//! Frames are written as whole pages, [past the system's cache](pages). A flush is fast when it changes nothing but data: a
//! file that grows has its length flushed too, through the file system's own journal. So a segment is filled with zeroes
//! some way ahead, and one whose entries a snapshot has replaced is written anew from its beginning, under the next number. An embedded store (fjall) that was here before did neither, and
//! sorted every entry into its tables too; with it `cargo xtask bench jobs` counted 17,400 loops a second and with
//! this 25,100, one after the other on a machine that was not quiet (128 clients, AMD EPYC, two cores, ext4 on virtio).
//!
//! The first frame of a segment has everything that a store remembers beside entries; therefore the oldest can go as soon
//! as a snapshot has replaced its entries.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{DiskError, OpenError};
use crate::frame;
use crate::pages::{self, PAGE_BYTES, Pages};
use crate::replay::{self, Replayed};
use crate::store::{Change, CleanStopMark, Store, Stored};

/// Where a segment ends. A single longer frame has one for itself.
pub(crate) const SEGMENT_BYTES: u64 = 8 << 20;

/// How many segments are kept to be written anew.
pub(crate) const SPARES_MAX: usize = 5;

/// What a segment begins with; the salt follows.
pub(crate) const MAGIC: &[u8; 8] = b"TSTGLOG1";
pub(crate) const PROLOGUE_BYTES: usize = 16;

/// Zeroes are written ahead in steps that double from the first to the second.
const STEP_BYTES_MIN: u64 = 64 << 10;
const STEP_BYTES_MAX: u64 = 1 << 20;

/// The store that the engine writes to.
#[derive(Debug)]
pub(crate) struct Segments {
    path: PathBuf,
    /// Before the current one, the oldest first.
    older: VecDeque<Older>,
    current: Option<Current>,
    /// The number of the segment that comes next.
    next_number: u64,
    /// The number of the frame that comes next.
    sequence: u64,
    /// What every segment begins with.
    remembered: Change,
    /// A change that nobody waits for is part of the next one.
    unwritten: bool,
    buffer: Vec<u8>,
    pages: Pages,
}

/// A segment that is complete.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) number: u64,
    /// The highest index in it or before it.
    pub(crate) last: u64,
    pub(crate) bytes: u64,
}

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) file: File,
    pub(crate) number: u64,
    pub(crate) salt: u64,
    /// Where the next frame goes.
    pub(crate) tail: u64,
    /// What the page that it goes to already has.
    pub(crate) page: Vec<u8>,
    /// How long the file is.
    pub(crate) bytes: u64,
    /// The highest index in it or before it.
    pub(crate) last: u64,
}

/// What is done with a part that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Nothing is opened.
    Refused,
    /// The log ends before it.
    CutOff,
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

impl Segments {
    pub(crate) fn open(path: &Path, damage: Damage) -> Result<(Self, Stored), OpenError> {
        make_dir(path).map_err(DiskError::from)?;
        let Replayed {
            stored,
            older,
            current,
            next_number,
            sequence,
            useless,
        } = replay::replay(path, damage)?;
        for file in useless {
            fs::remove_file(file).map_err(DiskError::from)?;
        }
        let remembered = Change {
            hard_state: Some(stored.hard_state.clone()),
            voters: Some(stored.voters.clone()),
            epoch: Some(stored.epoch),
            snapshot: Some(stored.snapshot),
            clean_stop: stored.clean_stop.map(CleanStopMark::Set),
            ..Change::default()
        };
        let segments = Self {
            path: path.into(),
            older,
            current,
            next_number,
            sequence,
            remembered,
            unwritten: false,
            buffer: Vec::new(),
            pages: Pages::default(),
        };
        Ok((segments, stored))
    }

    fn write(&mut self, mut change: Change) -> io::Result<()> {
        self.remember(&change);
        if !change.sync && change.entries.is_empty() {
            self.unwritten = true;
            return Ok(());
        }
        if std::mem::take(&mut self.unwritten) {
            change = self.complete(change);
        }
        self.buffer.clear();
        let fits = self.current.as_ref().is_some_and(|current| {
            frame::write(&change, self.sequence, current.salt, &mut self.buffer);
            current.tail + self.buffer.len() as u64 <= SEGMENT_BYTES
        });
        if !fits {
            change = self.complete(change);
            self.begin_segment(&change)?;
        }
        let Some(current) = &mut self.current else {
            return Err(io::Error::other("there is no segment"));
        };
        current.append(&self.buffer, &mut self.pages)?;
        current.file.sync_data()?;
        self.sequence += 1;
        if let Some(last) = change.entries.last() {
            current.last = last.index;
        }
        if change.snapshot.is_some() {
            self.drop_spares();
        }
        Ok(())
    }

    fn remember(&mut self, change: &Change) {
        let known = &mut self.remembered;
        fn renew<T: Clone>(known: &mut Option<T>, new: &Option<T>) {
            if new.is_some() {
                known.clone_from(new);
            }
        }
        renew(&mut known.hard_state, &change.hard_state);
        renew(&mut known.voters, &change.voters);
        renew(&mut known.epoch, &change.epoch);
        renew(&mut known.snapshot, &change.snapshot);
        renew(&mut known.clean_stop, &change.clean_stop);
    }

    /// The change with everything else that is to be remembered.
    fn complete(&self, change: Change) -> Change {
        Change {
            entries: change.entries,
            sync: change.sync,
            ..self.remembered.clone()
        }
    }

    /// Goes on in the next segment, whose beginning and first frame are in the buffer then.
    fn begin_segment(&mut self, first: &Change) -> io::Result<()> {
        let number = self.next_number;
        let path = self.path.join(file_name(number));
        let spare = self.older.front();
        let spare = spare.filter(|spare| self.is_spare(spare) && spare.bytes <= SEGMENT_BYTES);
        if let Some(spare) = spare {
            fs::rename(self.path.join(file_name(spare.number)), &path)?;
            self.older.pop_front();
        }
        let mut options = File::options();
        let file = options.create(true).write(true).truncate(false);
        let file = file.open(&path)?;
        pages::past_the_cache(&file);
        sync_dir(&self.path)?;
        self.next_number += 1;
        let begun = Current {
            number,
            salt: RandomState::new().hash_one(number),
            tail: 0,
            page: Vec::new(),
            bytes: file.metadata()?.len(),
            last: self.current.as_ref().map_or(0, |current| current.last),
            file,
        };
        self.buffer.clear();
        self.buffer.extend_from_slice(MAGIC);
        self.buffer.extend_from_slice(&begun.salt.to_le_bytes());
        frame::write(first, self.sequence, begun.salt, &mut self.buffer);
        let complete = self.current.replace(begun);
        self.older.extend(complete.map(Older::from));
        Ok(())
    }

    /// Whether a snapshot has replaced all that a segment has.
    fn is_spare(&self, older: &Older) -> bool {
        let replaced = self.remembered.snapshot.unwrap_or_default().index;
        older.last <= replaced
    }

    /// Removes what a snapshot has replaced and nobody will write anew. What cannot be removed now is tried again.
    fn drop_spares(&mut self) {
        let spares = self.older.iter().take_while(|older| self.is_spare(older));
        for _ in SPARES_MAX..spares.count() {
            let Some(oldest) = self.older.front() else {
                return;
            };
            if fs::remove_file(self.path.join(file_name(oldest.number))).is_err() {
                return;
            }
            self.older.pop_front();
        }
    }
}

impl From<Current> for Older {
    fn from(complete: Current) -> Older {
        Older {
            number: complete.number,
            last: complete.last,
            bytes: complete.bytes,
        }
    }
}

impl Current {
    /// Writes bytes at the tail, as whole pages with zeroes behind them: up to the last page's end, or ahead where the
    /// file must grow.
    fn append(&mut self, bytes: &[u8], pages: &mut Pages) -> io::Result<()> {
        const PAGE: u64 = PAGE_BYTES as u64;
        let start = self.tail - self.page.len() as u64;
        let end = self.tail + bytes.len() as u64;
        let mut filled = end.next_multiple_of(PAGE);
        if filled > self.bytes {
            let step = self.bytes.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
            let ahead = (self.bytes + step).next_multiple_of(PAGE);
            filled = filled.max(ahead.min(SEGMENT_BYTES));
        }
        let len = usize::try_from(filled - start).map_err(io::Error::other)?;
        let whole = pages.fill([&self.page, bytes], len);
        match self.write_at(start, whole) {
            Err(refused)
                if refused.kind() == io::ErrorKind::InvalidInput
                    && pages::through_the_cache(&self.file) =>
            {
                self.write_at(start, whole)?;
            }
            written => written?,
        }
        let used = self.page.len() + bytes.len();
        self.page.clear();
        self.page
            .extend_from_slice(&whole[used / PAGE_BYTES * PAGE_BYTES..used]);
        self.tail = end;
        self.bytes = self.bytes.max(filled);
        Ok(())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        #[cfg(unix)]
        {
            std::os::unix::fs::FileExt::write_all_at(&self.file, bytes, at)
        }
        #[cfg(not(unix))]
        {
            use std::io::{Seek, SeekFrom, Write};
            self.file.seek(SeekFrom::Start(at))?;
            self.file.write_all(bytes)
        }
    }
}

impl Store for Segments {
    fn commit(&mut self, change: Change) -> Result<(), DiskError> {
        self.write(change).map_err(DiskError::from)
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_dir),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes names in a directory durable. Elsewhere a directory cannot be opened as a file, and they are so by themselves.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
