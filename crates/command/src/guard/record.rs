//! The highest fence that a file has seen. The file has two lines of fixed length, and the lower of the two is the one that
//! is overwritten: a crash in the middle of writing spoils only what was no longer needed. The file is never replaced,
//! because its lock belongs to it and not to its name.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// Digits of a fence in the file.
const DIGITS: usize = 20;
/// A line is the fence twice, so that half a line is seen to be half.
const LINE: usize = 2 * DIGITS + 2;
/// Lines in a whole file.
const SLOTS: usize = 2;

/// The record, locked against every other guard of the same file until it and all its copies are closed.
#[derive(Debug)]
pub(super) struct Record {
    file: File,
    slots: [Option<u64>; SLOTS],
}

/// What a record says to a fence.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Not lower than any seen; it is on disk as the highest.
    Passed,
    /// A higher one was seen.
    Stale {
        /// The highest seen.
        highest: u64,
    },
}

impl Record {
    /// Opens or creates the file, and waits until no other guard holds it.
    pub(super) fn lock(path: &Path) -> io::Result<Record> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        file.lock()?;
        let mut text = Vec::new();
        // One byte more than a record has tells a longer file from a record.
        let most = (SLOTS * LINE + 1) as u64;
        Read::by_ref(&mut file).take(most).read_to_end(&mut text)?;
        let slots = read(&text)?;
        if text.is_empty() {
            sync_directory_of(path)?;
        }
        Ok(Record { file, slots })
    }

    /// Judges a fence, and makes a higher one durable before saying that it passed.
    pub(super) fn judge(&mut self, fence: u64) -> io::Result<Verdict> {
        let highest = self.slots.iter().flatten().max().copied();
        match highest {
            Some(highest) if fence < highest => return Ok(Verdict::Stale { highest }),
            Some(highest) if fence == highest => return Ok(Verdict::Passed),
            _ => {}
        }
        // `None` is below every number: an empty or spoilt line is used first.
        let slot = usize::from(self.slots[1] < self.slots[0]);
        self.file.seek(SeekFrom::Start((slot * LINE) as u64))?;
        self.file.write_all(&line(fence))?;
        self.file.sync_all()?;
        self.slots[slot] = Some(fence);
        Ok(Verdict::Passed)
    }

    /// The locked file: whoever inherits it keeps the lock.
    pub(super) fn into_file(self) -> File {
        self.file
    }
}

fn line(fence: u64) -> [u8; LINE] {
    let text = format!("{fence:0DIGITS$} {fence:0DIGITS$}\n");
    text.into_bytes()
        .try_into()
        .expect("a fence has at most twenty digits")
}

/// The fences of a file's lines, nothing for a line that is not whole.
fn read(text: &[u8]) -> io::Result<[Option<u64>; SLOTS]> {
    let foreign = || {
        let why = "it is no record of a guard: name a file of its own, or an empty one";
        io::Error::new(io::ErrorKind::InvalidData, why)
    };
    let strange = |byte: &u8| !byte.is_ascii_digit() && ![b' ', b'\n', 0].contains(byte);
    if text.len() > SLOTS * LINE || text.iter().any(strange) {
        return Err(foreign());
    }
    let mut slots = [None; SLOTS];
    for (slot, chunk) in slots.iter_mut().zip(text.chunks(LINE)) {
        let digits = chunk.get(..DIGITS);
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let fence = digits.and_then(|digits| digits.parse().ok());
        *slot = fence.filter(|fence| line(*fence) == *chunk);
    }
    // The first line is written first, and spoilt only after the second is whole: a file with two lines has a good one.
    let lost = text.len() > LINE && slots.iter().all(Option::is_none);
    if lost { Err(foreign()) } else { Ok(slots) }
}

/// The name of a new file must survive a crash as its content does.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(path: &Path, fence: u64) -> Verdict {
        let mut record = Record::lock(path).expect("a record");
        record.judge(fence).expect("a verdict")
    }

    #[test]
    fn the_highest_fence_only_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fence");
        for fence in [0, 4, 4, 9, 12] {
            assert_eq!(judge(&path, fence), Verdict::Passed, "{fence}");
        }
        for fence in [0, 9, 11] {
            assert_eq!(judge(&path, fence), Verdict::Stale { highest: 12 });
        }
        assert_eq!(judge(&path, u64::MAX), Verdict::Passed);
        assert_eq!(judge(&path, 12), Verdict::Stale { highest: u64::MAX });
        let length = std::fs::metadata(&path).expect("a file").len();
        assert_eq!(length, (SLOTS * LINE) as u64);
    }

    /// Stops a write after every number of bytes: the fences before it are never forgotten.
    #[test]
    fn a_torn_write_never_lowers_the_highest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fence");
        for before in 0..=2 {
            let next = 5;
            let mut old = Vec::new();
            old.extend((0..before).flat_map(|at| line(3 + at)));
            let at = match before {
                1 => LINE,
                _ => 0,
            };
            for torn in 0..LINE {
                let mut text = old.clone();
                text.resize(text.len().max(at + torn), 0);
                text[at..at + torn].copy_from_slice(&line(next)[..torn]);
                std::fs::write(&path, &text).expect("a file");
                let mut record = Record::lock(&path).expect("readable");
                // All of the line but its old line break is the new line already.
                let least = 2 + before;
                let verdict = record.judge(least.saturating_sub(1)).expect("a verdict");
                let kept = matches!(verdict, Verdict::Stale { highest } if highest >= least);
                assert!(kept || before == 0, "{before} lines, torn after {torn}");
                assert_eq!(record.judge(next).expect("a verdict"), Verdict::Passed);
                drop(record);
                assert_eq!(judge(&path, next - 1), Verdict::Stale { highest: next });
            }
        }
    }

    #[test]
    fn a_file_of_another_kind_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("fence");
        let digits = "7".repeat(2 * LINE);
        for text in ["hello", digits.as_str(), &"1".repeat(1000)] {
            std::fs::write(&path, text).expect("a file");
            assert!(Record::lock(&path).is_err(), "{text}");
            assert_eq!(std::fs::read(&path).expect("a file"), text.as_bytes());
        }
    }
}
