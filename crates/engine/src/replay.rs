//! Reads the segments at open: frame after frame, until one is incomplete. That is where the last flush did not finish, if
//! its sectors look like those of a torn write; anything else is damage, and its segment is named. Nothing is changed here.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{DiskError, OpenError};
use crate::frame::{self, Frame};
use crate::pages::PAGE_BYTES;
use crate::sectors::{self, Broken, byte_of};
use crate::segments::{
    Damage, MAGIC, MAGIC_OLD, Older, PROLOGUE_BYTES, PROLOGUE_BYTES_OLD, SEGMENT_BYTES, Tail,
    file_name,
};
use crate::start::Start;
use crate::store::{Change, CleanStopMark, Stored};

/// The sequence of a store's first frame; no flush has a lower one.
const FIRST_SEQUENCE: u64 = 1;

/// What was found, and where the next frame goes.
#[derive(Debug)]
pub(crate) struct Replayed {
    pub(crate) stored: Stored,
    pub(crate) older: VecDeque<Older>,
    /// The newest segment, if it can go on.
    pub(crate) tail: Option<Tail>,
    /// The number of the newest segment that was begun.
    pub(crate) newest: Option<u64>,
    pub(crate) next_number: u64,
    pub(crate) sequence: u64,
    /// Files that are not part of the log.
    pub(crate) useless: Vec<PathBuf>,
    /// Whether the log is damaged, and its remains must be rewritten before the rest is removed.
    pub(crate) rewrite: bool,
    /// The size of a segment.
    pub(crate) segment_bytes: u64,
    /// Where the frames of the newest segment end, to name it if the next one shows that some are missing.
    end: u64,
}

impl Default for Replayed {
    fn default() -> Self {
        Self {
            stored: Stored::default(),
            older: VecDeque::new(),
            tail: None,
            newest: None,
            next_number: 0,
            sequence: FIRST_SEQUENCE,
            useless: Vec::new(),
            rewrite: false,
            segment_bytes: SEGMENT_BYTES,
            end: 0,
        }
    }
}

/// Reads the log.
pub(crate) fn replay(path: &Path, damage: Damage) -> Result<Replayed, OpenError> {
    let runs = runs(&numbers(path)?);
    let Some((newest, before)) = runs.split_last() else {
        return Ok(Replayed::default());
    };
    // A removal that was not flushed comes back: the newest segments without a gap are the log, if they are all of it.
    let read = run(path, newest).and_then(|read| match read.newest {
        None if !before.is_empty() => Err(never_begun(newest)),
        _ => Ok(read),
    });
    match read {
        Ok(mut replayed) => {
            if damage == Damage::CutOff {
                // An interrupted salvage has left them, and perhaps nobody was told of the damage.
                let remains = Remains::read(path, before)?;
                replayed.stored.start = replayed.stored.start.max(remains.start);
                replayed.stored.cut_off = remains.damage;
            }
            replayed.useless.extend(paths(path, before));
            Ok(replayed)
        }
        Err(OpenError::Damaged(what)) if damage == Damage::CutOff => salvage(path, &runs, what),
        Err(error) => Err(error),
    }
}

fn paths(path: &Path, runs: &[Vec<u64>]) -> impl Iterator<Item = PathBuf> {
    let numbers = runs.iter().flatten();
    numbers.map(|number| path.join(file_name(*number)))
}

/// The numbers of all segments, lowest first.
pub(crate) fn numbers(path: &Path) -> Result<Vec<u64>, OpenError> {
    let mut numbers = Vec::new();
    let files = match fs::read_dir(path) {
        Ok(files) => files,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(numbers),
        Err(error) => return Err(DiskError::from(error).into()),
    };
    for file in files {
        let name = file.map_err(DiskError::from)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log"));
        let number = number.and_then(|number| number.parse::<u64>().ok());
        numbers.extend(number.filter(|number| name.to_str() == Some(&file_name(*number))));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Numbers in runs without a gap.
fn runs(numbers: &[u64]) -> Vec<Vec<u64>> {
    let runs = numbers.chunk_by(|one, next| one + 1 == *next);
    runs.map(<[u64]>::to_vec).collect()
}

/// The log in consecutive segments.
fn run(path: &Path, numbers: &[u64]) -> Result<Replayed, OpenError> {
    let mut replayed = Replayed::default();
    for (nth, number) in (1..).zip(numbers) {
        replayed.segment(path, *number, nth == numbers.len())?;
    }
    replayed.complete(numbers)?;
    Ok(replayed)
}

/// What can still be read of a damaged log.
#[derive(Debug)]
struct Remains {
    /// The newest part that makes sense without the rest.
    found: Option<Replayed>,
    /// If there is no entry: the newest snapshot that is mentioned.
    fallback: Replayed,
    /// The highest ones anywhere: whatever is lost, its starts and numbers are not used again.
    start: Start,
    sequence: u64,
    /// What is wrong with the newest broken segment.
    damage: Option<String>,
}

impl Remains {
    fn read(path: &Path, runs: &[Vec<u64>]) -> Result<Self, OpenError> {
        let mut remains = Self {
            found: None,
            fallback: Replayed::default(),
            start: Start::default(),
            sequence: FIRST_SEQUENCE,
            damage: None,
        };
        for numbers in runs.iter().rev() {
            remains.read_run(path, numbers)?;
        }
        Ok(remains)
    }

    fn read_run(&mut self, path: &Path, numbers: &[u64]) -> Result<(), OpenError> {
        let mut replayed = Replayed::default();
        let mut damage = None;
        for (nth, number) in (1..).zip(numbers) {
            let is_last = nth == numbers.len();
            let mut alone = Replayed::default();
            let read = match damage {
                None => replayed.segment(path, *number, is_last),
                // Only for its start.
                Some(_) => alone.segment(path, *number, is_last),
            };
            match read {
                Ok(()) => {}
                Err(OpenError::Damaged(what)) => damage = damage.or(Some(what)),
                Err(error) => return Err(error),
            }
            let (read, alone) = (&replayed, &alone);
            self.start = self.start.max(read.stored.start).max(alone.stored.start);
            self.sequence = self.sequence.max(read.sequence).max(alone.sequence);
        }
        self.damage = self.damage.take().or(damage);
        let whole = replayed.complete(numbers).is_ok() && replayed.newest.is_some();
        if whole && self.found.is_none() {
            self.found = Some(replayed);
        } else if !whole && self.fallback.stored.snapshot.index < replayed.stored.snapshot.index {
            self.fallback = replayed;
        }
        Ok(())
    }
}

/// The newest part of a damaged log that makes sense without the rest.
fn salvage(path: &Path, runs: &[Vec<u64>], lost: String) -> Result<Replayed, OpenError> {
    let remains = Remains::read(path, runs)?;
    let mut replayed = remains.found.unwrap_or(remains.fallback);
    replayed.useless = paths(path, runs).collect();
    replayed.older.clear();
    replayed.tail = None;
    let newest = runs.iter().flatten().max();
    // With a gap, so that it is a log of its own from the moment that it is complete, whatever else is still there.
    replayed.next_number = newest.map_or(0, |newest| newest + 2);
    replayed.sequence = remains.sequence + 1;
    replayed.stored.start = remains.start;
    replayed.stored.cut_off = Some(lost);
    replayed.rewrite = true;
    Ok(replayed)
}

impl Replayed {
    /// What every segment begins with; and the entries, if the log is to be rewritten.
    pub(crate) fn remembered(&self) -> Change {
        let stored = &self.stored;
        Change {
            entries: match self.rewrite {
                true => stored.entries.clone(),
                false => Vec::new(),
            },
            hard_state: Some(stored.hard_state.clone()),
            node: stored.node,
            members: Some(stored.members.clone()),
            origins: Some(stored.origins.clone()),
            start: Some(stored.start),
            snapshot: Some(stored.snapshot),
            clean_stop: stored.clean_stop.map(CleanStopMark::Set),
            void: false,
            sync: false,
        }
    }

    fn segment(&mut self, path: &Path, number: u64, is_last: bool) -> Result<(), OpenError> {
        let file = path.join(file_name(number));
        let bytes = fs::read(&file).map_err(|error| DiskError::at(&file, error))?;
        let bytes = Bytes::from(bytes);
        let begun = match bytes.strip_prefix(MAGIC_OLD) {
            Some(salt) => self.old_segment(&bytes, number, salt, is_last)?,
            None => self.new_segment(&bytes, number, is_last)?,
        };
        self.next_number = match begun {
            true => number + 1,
            false => {
                // The flush that would have begun it never finished.
                self.useless.push(file);
                number
            }
        };
        Ok(())
    }

    /// Reads a segment of sectors. Says whether it was begun.
    fn new_segment(
        &mut self,
        bytes: &Bytes,
        number: u64,
        is_last: bool,
    ) -> Result<bool, OpenError> {
        let read = sectors::read(bytes);
        let payload = Bytes::from(read.payload);
        let prologue = Prologue::read(&payload).filter(|begun| begun.number == number);
        let mut end = PROLOGUE_BYTES;
        let mut known = Ok(());
        if let Some(prologue) = &prologue {
            self.follows(number, prologue.sequence)?;
            while let Some(frame) = frame::read(&payload, end, prologue.salt) {
                if frame.sequence != self.sequence {
                    break;
                }
                let Some(change) = frame::parse(&frame.body) else {
                    known = Err(unknown(number, byte_of(end as u64)));
                    break;
                };
                self.take_over(change);
                end += frame.len;
            }
        }
        let begun = prologue.filter(|_| end > PROLOGUE_BYTES);
        if begun.is_some() {
            self.newest = Some(number);
            self.end = byte_of(end as u64);
            let complete = self.tail.take();
            self.older.extend(complete.map(Older::from));
        }
        if let Some(broken) = read.broken {
            return Err(damaged(number, broken));
        }
        known?;
        let byte = begun.as_ref().map_or(0, |_| self.end);
        if read.sequence_max > self.sequence || (begun.is_none() && !is_last) {
            return Err(broken(number, byte));
        }
        let Some(Prologue { salt, .. }) = begun else {
            return Ok(false);
        };
        let page = usize::try_from(byte).unwrap_or(bytes.len());
        let page = bytes.slice(page / PAGE_BYTES * PAGE_BYTES..page);
        self.tail = Some(Tail {
            number,
            salt,
            offset: end as u64,
            page: page.to_vec(),
            bytes: read.file_bytes,
            last: self.stored.last(),
        });
        Ok(true)
    }

    /// Reads a segment from before there were sectors. Nothing is ever added to it.
    fn old_segment(
        &mut self,
        bytes: &Bytes,
        number: u64,
        salt: &[u8],
        is_last: bool,
    ) -> Result<bool, OpenError> {
        let salt = salt.first_chunk().copied().map(u64::from_le_bytes);
        let salt = salt.unwrap_or_default();
        let is_first = self.newest.is_none();
        let mut end = PROLOGUE_BYTES_OLD;
        let Some(begun) = frame::read(bytes, end, salt) else {
            let wanted = if is_first { 0 } else { self.sequence };
            return match !is_last || frame::any_from(bytes, end, salt, wanted) {
                true => Err(broken(number, end as u64)),
                false => Ok(false),
            };
        };
        if is_last && !is_first && begun.sequence < self.sequence {
            return Ok(false);
        }
        self.follows(number, begun.sequence)?;
        while let Some(Frame {
            sequence,
            body,
            len,
        }) = frame::read(bytes, end, salt)
        {
            // An unknown body stays where it is, and is found below.
            let change = frame::parse(&body);
            let Some(change) = change.filter(|_| sequence == self.sequence) else {
                break;
            };
            self.take_over(change);
            end += len;
        }
        self.newest = Some(number);
        self.end = end as u64;
        self.older.push_back(Older {
            number,
            last: self.stored.last(),
            bytes: bytes.len() as u64,
            reusable: false,
        });
        match is_last && frame::any_from(bytes, end, salt, self.sequence) {
            true => Err(broken(number, end as u64)),
            false => Ok(true),
        }
    }

    /// Checks that a segment that begins with this sequence may come next; if not, some segment is broken.
    fn follows(&mut self, number: u64, sequence: u64) -> Result<(), OpenError> {
        match self.newest {
            None => self.sequence = sequence,
            Some(before) if sequence > self.sequence => return Err(broken(before, self.end)),
            Some(_) if sequence < self.sequence => return Err(broken(number, 0)),
            Some(_) => {}
        }
        Ok(())
    }

    fn take_over(&mut self, change: Change) {
        self.stored.take_over(change);
        self.sequence += 1;
    }

    /// Checks that every entry is there that the snapshot has not replaced. If not, a segment before these is missing, and
    /// then no entry is of use.
    fn complete(&mut self, numbers: &[u64]) -> Result<(), OpenError> {
        let first = self.stored.entries.first();
        let wanted = self.stored.snapshot.index + 1;
        if first.is_none_or(|first| first.index == wanted) {
            return Ok(());
        }
        self.stored.entries.clear();
        self.stored.hard_state.commit = self.stored.snapshot.index;
        let before = numbers.first().and_then(|first| first.checked_sub(1));
        let before = file_name(before.unwrap_or_default());
        Err(OpenError::Damaged(format!(
            "the log's segment {before} is missing, and with it log entry {wanted}"
        )))
    }
}

/// The beginning of a segment of sectors.
#[derive(Debug)]
pub(crate) struct Prologue {
    pub(crate) salt: u64,
    pub(crate) number: u64,
    /// The sequence of its first frame.
    pub(crate) sequence: u64,
}

impl Prologue {
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(MAGIC);
        for field in [self.salt, self.number, self.sequence] {
            into.extend_from_slice(&field.to_le_bytes());
        }
    }

    fn read(payload: &Bytes) -> Option<Self> {
        let mut fields = crate::seal::Fields(payload.strip_prefix(MAGIC)?);
        Some(Self {
            salt: fields.u64()?,
            number: fields.u64()?,
            sequence: fields.u64()?,
        })
    }
}

impl Stored {
    fn last(&self) -> u64 {
        let last = self.entries.last().map(|entry| entry.index);
        last.unwrap_or(self.snapshot.index)
    }

    /// Updates the store's state by one more change.
    pub(crate) fn take_over(&mut self, change: Change) {
        if change.void {
            self.entries.clear();
        }
        if let Some(first) = change.entries.first() {
            let kept = self.entries.partition_point(|e| e.index < first.index);
            self.entries.truncate(kept);
        }
        self.entries.extend(change.entries);
        if let Some(mark) = change.snapshot {
            self.snapshot = mark;
            let replaced = self.entries.partition_point(|e| e.index <= mark.index);
            self.entries.drain(..replaced);
        }
        if let Some(hard_state) = change.hard_state {
            self.hard_state = hard_state;
        }
        self.node = change.node.or(self.node);
        if let Some(members) = change.members {
            self.members = members;
        }
        if let Some(origins) = change.origins {
            self.origins = origins;
        }
        if let Some(start) = change.start {
            self.start = start;
        }
        match change.clean_stop {
            Some(CleanStopMark::Set(start)) => self.clean_stop = Some(start),
            Some(CleanStopMark::Consumed) => self.clean_stop = None,
            None => {}
        }
    }
}

fn broken(number: u64, byte: u64) -> OpenError {
    let name = file_name(number);
    OpenError::Damaged(format!(
        "the log's segment {name} is broken at byte {byte}, and what follows is not"
    ))
}

/// Segments without any data, after a gap: the missing ones had the end of the log, if there were any.
fn never_begun(numbers: &[u64]) -> OpenError {
    let first = numbers.first().copied().unwrap_or_default();
    let (name, before) = (file_name(first), file_name(first.saturating_sub(1)));
    OpenError::Damaged(format!(
        "the log's segment {name} was never begun, and {before} before it is missing"
    ))
}

fn damaged(number: u64, broken: Broken) -> OpenError {
    let name = file_name(number);
    OpenError::Damaged(match broken {
        Broken::At { byte } => {
            format!("the log's segment {name} fails its checksum in the sector at byte {byte}")
        }
        Broken::Cut { found, known } => {
            format!("the log's segment {name} is cut: it has {found} bytes and had {known}")
        }
    })
}

fn unknown(number: u64, byte: u64) -> OpenError {
    let name = file_name(number);
    OpenError::Damaged(format!(
        "the log's segment {name} has a change at byte {byte} that this version does not know"
    ))
}
