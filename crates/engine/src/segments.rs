//! The log on disk: files of one size, written one after the other; each flush is one [frame].
//!
//! Frames are laid into [sectors] with their own checksums, and written as whole pages, [past the system's cache](pages). A
//! flush is fast if it changes only data: if a file grows, its length is flushed, too, through the file system's own journal.
//! So a segment is filled with blank sectors some way ahead, and flushed, before a frame goes there; and a segment whose
//! entries a snapshot has replaced is rewritten from its beginning, under the next number. The embedded store (fjall) that
//! was used before did neither, and also sorted every entry into its tables. With it `cargo xtask bench jobs` counted 17,400
//! loops per second and with this 25,100, one run after the other on a machine that was not quiet (128 clients, AMD EPYC, two
//! cores, ext4 on virtio).
//!
//! The first frame of a segment has everything that a store remembers apart from entries, so the oldest segment can go as
//! soon as a snapshot has replaced its entries.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::directory::{create_dir, owner_only, sync_dir};
use crate::error::DiskError;
use crate::frame;
use crate::pages::{self, PAGE_BYTES, Pages};
use crate::replay::{Prologue, Replayed};
use crate::sectors::{self, BLANK, Stamp, byte_of};
use crate::store::{Change, Flushed, Store};

/// The size of a segment. A single longer frame has a segment to itself.
pub(crate) const SEGMENT_BYTES: u64 = 8 << 20;

/// How many segments are kept to be rewritten.
pub(crate) const SPARES_MAX: usize = 5;

/// The first bytes of a segment; its salt, its number and its first sequence follow.
pub(crate) const MAGIC: &[u8; 8] = b"TSTGLOG2";
pub(crate) const PROLOGUE_BYTES: usize = 32;

/// The first bytes of a segment from before there were sectors; its salt follows.
pub(crate) const MAGIC_OLD: &[u8; 8] = b"TSTGLOG1";
pub(crate) const PROLOGUE_BYTES_OLD: usize = 16;

/// Blank sectors are written ahead in steps that double from the first to the second.
const STEP_BYTES_MIN: u64 = 64 << 10;
pub(crate) const STEP_BYTES_MAX: u64 = 1 << 20;

const PAGE: u64 = PAGE_BYTES as u64;

/// The store that the engine writes to.
#[derive(Debug)]
pub(crate) struct Segments {
    path: PathBuf,
    /// Before the current one, oldest first.
    older: VecDeque<Older>,
    current: Option<Current>,
    /// The number of the next segment.
    next_number: u64,
    /// The sequence of the next frame.
    sequence: u64,
    /// The number of the newest segment.
    newest: u64,
    /// [`SEGMENT_BYTES`], or less in tests.
    segment_bytes: u64,
    /// What every segment begins with.
    remembered: Change,
    /// Whether a change that nobody waits for is left to the next one.
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
    /// The known length of the file.
    pub(crate) bytes: u64,
    /// Whether it consists of sectors.
    pub(crate) reusable: bool,
}

/// The segment that is being written.
#[derive(Debug)]
struct Current {
    file: File,
    tail: Tail,
}

/// Where a segment goes on.
#[derive(Debug)]
pub(crate) struct Tail {
    pub(crate) number: u64,
    pub(crate) salt: u64,
    /// Where the next frame goes, as an offset in the payload.
    pub(crate) offset: u64,
    /// What the next frame's page already has: sealed sectors, and the payload of one that is not full.
    pub(crate) page: Vec<u8>,
    /// The known length of the file.
    pub(crate) bytes: u64,
    /// The highest index in it or before it.
    pub(crate) last: u64,
}

/// What to do with a broken part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Refuse to open.
    Refused,
    /// End the log before it.
    CutOff,
}

pub(crate) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

impl Segments {
    /// Takes over what a replay has found; nothing was changed before.
    pub(crate) fn take_over(
        path: &Path,
        replayed: Replayed,
        mut remembered: Change,
    ) -> Result<Self, DiskError> {
        make_dir(path).map_err(|error| DiskError::at(path, error))?;
        let entries = std::mem::take(&mut remembered.entries);
        let current = replayed.tail.map(|tail| {
            let path = path.join(file_name(tail.number));
            let file = File::options().write(true).open(&path);
            let file = file.map_err(|error| DiskError::at(&path, error))?;
            pages::past_the_cache(&file);
            Ok::<_, DiskError>(Current { file, tail })
        });
        let mut segments = Self {
            path: path.into(),
            older: replayed.older,
            current: current.transpose()?,
            next_number: replayed.next_number,
            sequence: replayed.sequence,
            newest: replayed.newest.unwrap_or_default(),
            segment_bytes: replayed.segment_bytes,
            remembered,
            unwritten: false,
            buffer: Vec::new(),
            pages: Pages::default(),
        };
        if replayed.rewrite {
            let written = segments.write(Change {
                entries,
                sync: true,
                ..Change::default()
            });
            if let Err(error) = written {
                // On a full disk every byte counts.
                let _ = fs::remove_file(path.join(file_name(replayed.next_number)));
                return Err(error);
            }
        }
        for file in &replayed.useless {
            fs::remove_file(file).map_err(|error| DiskError::at(file, error))?;
        }
        if !replayed.useless.is_empty() {
            sync_dir(path).map_err(|error| DiskError::at(path, error))?;
        }
        Ok(segments)
    }

    fn write(&mut self, mut change: Change) -> Result<(), DiskError> {
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
            let Tail { salt, offset, .. } = current.tail;
            frame::write(&change, self.sequence, salt, &mut self.buffer);
            byte_of(offset + self.buffer.len() as u64) <= self.segment_bytes
        });
        if !fits {
            change = self.complete(change);
            let next = self.path.join(file_name(self.next_number));
            let begun = self.begin_segment(&change);
            begun.map_err(|error| DiskError::at(&next, error))?;
        }
        let Some(current) = &mut self.current else {
            return Err(DiskError::Failed("there is no segment".into()));
        };
        let numbers = (self.sequence, self.segment_bytes);
        let appended = current.append(&self.buffer, numbers, &mut self.pages);
        let flushed = appended.and_then(|()| current.file.sync_data());
        flushed.map_err(|error| {
            let name = file_name(current.tail.number);
            DiskError::at(&self.path.join(name), error)
        })?;
        self.sequence += 1;
        if let Some(last) = change.entries.last() {
            current.tail.last = last.index;
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
        renew(&mut known.node, &change.node);
        renew(&mut known.members, &change.members);
        renew(&mut known.origins, &change.origins);
        renew(&mut known.start, &change.start);
        renew(&mut known.snapshot, &change.snapshot);
        renew(&mut known.clean_stop, &change.clean_stop);
    }

    /// The change, with everything else that must be remembered.
    fn complete(&self, change: Change) -> Change {
        Change {
            entries: change.entries,
            void: change.void,
            sync: change.sync,
            ..self.remembered.clone()
        }
    }

    /// Goes on in the next segment, whose beginning and first frame are then in the buffer.
    fn begin_segment(&mut self, first: &Change) -> io::Result<()> {
        let number = self.next_number;
        let path = self.path.join(file_name(number));
        let spare = self.older.front();
        let spare = spare.filter(|spare| self.is_spare(spare) && spare.bytes <= self.segment_bytes);
        let spare = spare.filter(|spare| spare.reusable);
        let bytes = spare.map_or(0, |spare| spare.bytes);
        let is_new = spare.is_none();
        if let Some(spare) = spare {
            fs::rename(self.path.join(file_name(spare.number)), &path)?;
            self.older.pop_front();
        }
        let mut options = owner_only();
        let file = options.create(true).write(true).truncate(is_new);
        let file = file.open(&path)?;
        pages::past_the_cache(&file);
        sync_dir(&self.path)?;
        self.next_number += 1;
        self.newest = number;
        let newest = self.current.as_ref().map(|current| current.tail.last);
        let newest = newest.or(self.older.back().map(|older| older.last));
        let begun = Current {
            file,
            tail: Tail {
                number,
                salt: RandomState::new().hash_one(number),
                offset: 0,
                page: Vec::new(),
                bytes,
                last: newest.unwrap_or_default(),
            },
        };
        self.buffer.clear();
        let (salt, sequence) = (begun.tail.salt, self.sequence);
        let prologue = Prologue {
            salt,
            number,
            sequence,
        };
        prologue.write(&mut self.buffer);
        frame::write(first, sequence, salt, &mut self.buffer);
        let complete = self.current.replace(begun);
        self.older
            .extend(complete.map(|complete| Older::from(complete.tail)));
        Ok(())
    }

    /// Whether a snapshot has replaced everything in a segment.
    fn is_spare(&self, older: &Older) -> bool {
        let replaced = self.remembered.snapshot.unwrap_or_default().index;
        older.last <= replaced
    }

    /// Removes segments that a snapshot has replaced and that will not be rewritten. What cannot be removed now is tried
    /// again.
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

impl From<Tail> for Older {
    fn from(complete: Tail) -> Older {
        Older {
            number: complete.number,
            last: complete.last,
            bytes: complete.bytes,
            reusable: true,
        }
    }
}

impl Current {
    /// Writes a frame at the tail, as whole pages.
    fn append(
        &mut self,
        frame: &[u8],
        (sequence, segment_bytes): (u64, u64),
        pages: &mut Pages,
    ) -> io::Result<()> {
        let end = self.tail.offset + frame.len() as u64;
        let filled = byte_of(end).next_multiple_of(PAGE);
        if filled > self.tail.bytes {
            self.grow(filled, segment_bytes, pages)?;
        }
        let start = byte_of(self.tail.offset) - self.tail.page.len() as u64;
        let len = usize::try_from(filled - start).map_err(io::Error::other)?;
        let whole = pages.zeroes(len);
        let stamp = Stamp {
            sequence,
            file_bytes: self.tail.bytes,
        };
        sectors::lay(whole, start, &self.tail.page, frame, stamp);
        self.write_at(start, whole)?;
        let used = usize::try_from(byte_of(end) - start).map_err(io::Error::other)?;
        self.tail.page.clear();
        self.tail
            .page
            .extend_from_slice(&whole[used / PAGE_BYTES * PAGE_BYTES..used]);
        self.tail.offset = end;
        Ok(())
    }

    /// Extends the file, durably. From then on every sector says so, which shows if the file is cut.
    fn grow(&mut self, wanted: u64, segment_bytes: u64, pages: &mut Pages) -> io::Result<()> {
        let bytes = self.tail.bytes;
        let step = bytes.clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        let ahead = (bytes + step).min(segment_bytes);
        let grown = wanted.max(ahead);
        let len = usize::try_from(grown - bytes).map_err(io::Error::other)?;
        let blank = pages.zeroes(len);
        let stamp = Stamp {
            sequence: BLANK,
            file_bytes: bytes,
        };
        sectors::lay(blank, bytes, &[], &[], stamp);
        self.write_at(bytes, blank)?;
        self.file.sync_all()?;
        self.tail.bytes = grown;
        Ok(())
    }

    /// Writes pages, past the cache if the system allows it.
    fn write_at(&mut self, at: u64, pages: &[u8]) -> io::Result<()> {
        match self.write_pages(at, pages) {
            Err(refused)
                if refused.kind() == io::ErrorKind::InvalidInput
                    && pages::through_the_cache(&self.file) =>
            {
                self.write_pages(at, pages)
            }
            written => written,
        }
    }

    fn write_pages(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
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
        self.write(change)
    }

    fn flushed(&self) -> Flushed {
        Flushed {
            segment: self.newest,
            sequence: self.sequence,
        }
    }
}

fn make_dir(path: &Path) -> io::Result<()> {
    match create_dir(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_dir),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
