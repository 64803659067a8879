//! Reading the segments at open: frame after frame, until one is not whole. That is where the last flush did not end;
//! if something whole comes after it, what was acknowledged is broken, and that is said.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{DiskError, OpenError};
use crate::frame;
use crate::pages::{self, PAGE_BYTES};
use crate::seal::Fields;
use crate::segments::{Current, Damage, MAGIC, Older, PROLOGUE_BYTES, SEGMENT_BYTES, file_name};
use crate::store::{Change, CleanStopMark, Stored};

/// What was found, and where the next frame goes.
#[derive(Debug, Default)]
pub(crate) struct Replayed {
    pub(crate) stored: Stored,
    pub(crate) older: VecDeque<Older>,
    pub(crate) current: Option<Current>,
    pub(crate) next_number: u64,
    pub(crate) sequence: u64,
    /// Files that are not part of the log.
    pub(crate) useless: Vec<PathBuf>,
}

/// Reads the log. Nothing is changed.
pub(crate) fn replay(path: &Path, damage: Damage) -> Result<Replayed, OpenError> {
    let mut numbers = numbers(path)?;
    let mut replayed = Replayed::default();
    // A removal that was not flushed comes back; what counts are the last ones without a gap.
    while let Some(gap) = (1..numbers.len()).rfind(|at| numbers[at - 1] + 1 != numbers[*at]) {
        let before = numbers.drain(..gap);
        let files = before.map(|number| path.join(file_name(number)));
        replayed.useless.extend(files);
    }
    let mut rest = numbers.into_iter();
    while let Some(number) = rest.next() {
        let is_last = rest.len() == 0;
        match replayed.segment(path, number, is_last) {
            Ok(()) => {}
            Err(OpenError::Damaged(what)) if damage == Damage::CutOff => {
                replayed.stored.cut_off = Some(what);
                replayed.cut_off(path, number, rest);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(replayed)
}

/// The numbers of all segments, the lowest first.
fn numbers(path: &Path) -> Result<Vec<u64>, OpenError> {
    let mut numbers = Vec::new();
    for file in fs::read_dir(path).map_err(DiskError::from)? {
        let name = file.map_err(DiskError::from)?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".log"));
        numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

impl Replayed {
    fn segment(&mut self, path: &Path, number: u64, is_last: bool) -> Result<(), OpenError> {
        let file = path.join(file_name(number));
        let bytes = Bytes::from(fs::read(&file).map_err(DiskError::from)?);
        let is_first = self.current.is_none();
        let salt = salt(&bytes).unwrap_or_default();
        let begun = frame::read(&bytes, PROLOGUE_BYTES, salt);
        let begun = begun.filter(|frame| is_first || frame.sequence == self.sequence);
        let Some(begun) = begun else {
            let wanted = if is_first { 0 } else { self.sequence };
            if !is_last || frame::any_from(&bytes, PROLOGUE_BYTES, salt, wanted) {
                return Err(broken(number, PROLOGUE_BYTES));
            }
            // The flush that would have begun it never ended.
            self.useless.push(file);
            self.next_number = number;
            return Ok(());
        };
        self.sequence = begun.sequence;
        let mut at = PROLOGUE_BYTES;
        while let Some(frame) = frame::read(&bytes, at, salt) {
            // A body of no known shape stays where it is, and is found below.
            let change = frame::parse(&frame.body);
            let Some(change) = change.filter(|_| frame.sequence == self.sequence) else {
                break;
            };
            self.stored.take_over(change);
            self.sequence += 1;
            at += frame.len;
        }
        let file = File::options().write(true).open(&file);
        let file = file.map_err(DiskError::from)?;
        pages::past_the_cache(&file);
        let begun = at / PAGE_BYTES * PAGE_BYTES;
        let mut page = bytes
            .slice(begun.min(bytes.len())..at.min(bytes.len()))
            .to_vec();
        // The padding of the last frame may be missing.
        page.resize(at - begun, 0);
        let current = Current {
            file,
            number,
            salt,
            tail: at as u64,
            page,
            bytes: bytes.len() as u64,
            last: self.stored.last(),
        };
        let complete = self.current.replace(current);
        self.older.extend(complete.map(Older::from));
        self.next_number = number + 1;
        match is_last && frame::any_from(&bytes, at, salt, self.sequence) {
            true => Err(broken(number, at)),
            false => Ok(()),
        }
    }

    /// The log ends here, and the next frame begins a segment: what is broken is never read again.
    fn cut_off(&mut self, path: &Path, number: u64, rest: impl Iterator<Item = u64>) {
        let useless = rest.map(|number| path.join(file_name(number)));
        self.useless.extend(useless);
        let current = self.current.as_mut();
        let last = current.map(|current| {
            current.tail = current.tail.max(SEGMENT_BYTES);
            current.number
        });
        if last != Some(number) {
            self.useless.push(path.join(file_name(number)));
        }
        self.next_number = last.map_or(number, |last| last + 1);
    }
}

impl Stored {
    fn last(&self) -> u64 {
        let last = self.entries.last().map(|entry| entry.index);
        last.unwrap_or(self.snapshot.index)
    }

    /// The store's state after one more change.
    pub(crate) fn take_over(&mut self, change: Change) {
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
        if let Some(voters) = change.voters {
            self.voters = voters;
        }
        if let Some(epoch) = change.epoch {
            self.epoch = epoch;
        }
        match change.clean_stop {
            Some(CleanStopMark::Set(epoch)) => self.clean_stop = Some(epoch),
            Some(CleanStopMark::Consumed) => self.clean_stop = None,
            None => {}
        }
    }
}

fn salt(bytes: &Bytes) -> Option<u64> {
    Fields(bytes.strip_prefix(MAGIC)?).u64()
}

fn broken(number: u64, at: usize) -> OpenError {
    let name = file_name(number);
    OpenError::Damaged(format!(
        "the log's segment {name} is broken at byte {at}, and what follows is not"
    ))
}
