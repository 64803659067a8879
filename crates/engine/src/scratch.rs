//! The scratch file: short records that outlive the process, but not the machine. They are written and never flushed, so a
//! record costs two writes into memory and no disk access. The next process finds what this one has written, even after
//! `kill -9`. A power cut may lose any part of it, so it is trusted only in the same boot of the machine.
//!
//! It is trusted completely or not at all. Its head names the boot, the start that wrote it and the number of records, and is
//! written *before* the records: a file that was torn, cut or changed, or is of an earlier start, does not count. The caller
//! must then assume the worst.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::directory::{Directory, owner_only};
use crate::seal::{Fields, SEAL_BYTES, seal, unseal};
use crate::start::Start;

/// The length of a record.
pub const SCRATCH_RECORD_BYTES: usize = 12;

/// Cap on records in a scratch file, 64 MiB; begin it anew before that.
pub const SCRATCH_RECORDS_MAX: u64 = 1 << 22;

/// A record; the engine does not know its meaning.
pub type ScratchRecord = [u8; SCRATCH_RECORD_BYTES];

pub(crate) const NAME: &str = "scratch";
const MAGIC: &[u8; 8] = b"SCRATCH1";
const BOOT_BYTES: usize = 36;
const HEAD_BYTES: usize = SEAL_BYTES + MAGIC.len() + BOOT_BYTES + 8 + 8;
/// A record and its checksum.
const STORED_BYTES: usize = SCRATCH_RECORD_BYTES + 4;

/// Writes this start's scratch file.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    head: Option<Head>,
    file: Option<File>,
}

/// What must match for the records to be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    boot: [u8; BOOT_BYTES],
    start: u64,
    records: u64,
}

impl Scratch {
    /// The scratch file of a start in a data directory; it is not begun yet.
    pub fn new(dir: &Path, start: Start) -> Scratch {
        Scratch::of_boot(dir, start, boot())
    }

    fn of_boot(dir: &Path, start: Start, boot: Option<[u8; BOOT_BYTES]>) -> Scratch {
        Scratch {
            path: dir.join(NAME),
            head: boot.map(|boot| Head {
                boot,
                start: start.number().into(),
                records: 0,
            }),
            file: None,
        }
    }

    /// How many records the file has.
    pub fn len(&self) -> u64 {
        self.head.map_or(0, |head| head.records)
    }

    /// Whether the file has no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Begins the file anew, with these records. If the process is killed meanwhile, the file stays as it was. If the system
    /// does not identify the boot, there is no file, and nothing is ever trusted.
    pub fn begin(&mut self, records: impl Iterator<Item = ScratchRecord>) -> io::Result<()> {
        let Some(mut head) = self.head else {
            return Ok(());
        };
        let mut stored = vec![0; HEAD_BYTES];
        head.records = 0;
        for record in records {
            stored.extend_from_slice(&head.stored(&record));
            head.records += 1;
        }
        stored[..HEAD_BYTES].copy_from_slice(&head.sealed());
        let beside = self.path.with_extension("unfinished");
        let options = owner_only()
            .create(true)
            .write(true)
            .truncate(true)
            .open(&beside);
        let written = options.and_then(|mut file| {
            file.write_all(&stored)?;
            fs::rename(&beside, &self.path)?;
            Ok(file)
        });
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        self.file = Some(written?);
        self.head = Some(head);
        Ok(())
    }

    /// Adds records. When this returns they outlive the process. After an error it is unknown whether they do: begin the file
    /// anew, or [spoil](Scratch::spoil) it.
    pub fn append(&mut self, records: &[ScratchRecord]) -> io::Result<()> {
        let (Some(head), Some(file)) = (&mut self.head, &self.file) else {
            return Ok(());
        };
        let at = HEAD_BYTES as u64 + head.records * STORED_BYTES as u64;
        let mut stored = Vec::with_capacity(records.len() * STORED_BYTES);
        for record in records {
            stored.extend_from_slice(&head.stored(record));
            head.records += 1;
        }
        // From here on the file does not count until the records are there, too.
        write_at(file, &head.sealed(), 0)?;
        write_at(file, &stored, at)
    }

    /// Ensures that nobody trusts the file, whatever state the disk is in.
    pub fn spoil(&mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        match file.set_len(0) {
            Ok(()) => Ok(()),
            Err(_) => fs::remove_file(&self.path),
        }
    }
}

/// What the given start has left, if it is complete and was written in this boot of the machine.
pub(crate) fn read(dir: &Directory, start: Start) -> Option<Vec<ScratchRecord>> {
    read_of_boot(dir, start, boot())
}

fn read_of_boot(
    dir: &Directory,
    start: Start,
    boot: Option<[u8; BOOT_BYTES]>,
) -> Option<Vec<ScratchRecord>> {
    let most = HEAD_BYTES as u64 + SCRATCH_RECORDS_MAX * STORED_BYTES as u64;
    let contents = dir.read(NAME, most).ok()??;
    let (head, stored) = contents.split_at_checked(HEAD_BYTES)?;
    let mut head = Head::unsealed(head)?;
    let records = usize::try_from(head.records).ok()?;
    let fits = Some(head.boot) == boot
        && head.start == u64::from(start.number())
        && Some(stored.len()) == records.checked_mul(STORED_BYTES);
    if !fits {
        return None;
    }
    head.records = 0;
    let mut found = Vec::with_capacity(records);
    for stored in stored.chunks_exact(STORED_BYTES) {
        let record = *stored.first_chunk::<SCRATCH_RECORD_BYTES>()?;
        if head.stored(&record) != stored {
            return None;
        }
        head.records += 1;
        found.push(record);
    }
    Some(found)
}

impl Head {
    fn sealed(&self) -> Vec<u8> {
        let mut body = MAGIC.to_vec();
        body.extend_from_slice(&self.boot);
        body.extend_from_slice(&self.start.to_le_bytes());
        body.extend_from_slice(&self.records.to_le_bytes());
        seal(&body)
    }

    fn unsealed(sealed: &[u8]) -> Option<Head> {
        let mut fields = Fields(unseal(sealed)?);
        if fields.bytes(MAGIC.len())? != MAGIC {
            return None;
        }
        Some(Head {
            boot: fields.bytes(BOOT_BYTES)?.try_into().ok()?,
            start: fields.u64()?,
            records: fields.u64()?,
        })
    }

    /// The next record as it is stored. Its checksum covers its file and place.
    fn stored(&self, record: &ScratchRecord) -> [u8; STORED_BYTES] {
        let mut body = [0; 8 + 8 + SCRATCH_RECORD_BYTES];
        body[..8].copy_from_slice(&self.start.to_le_bytes());
        body[8..16].copy_from_slice(&self.records.to_le_bytes());
        body[16..].copy_from_slice(record);
        let sum = xxh3_64(&body) as u32;
        let mut stored = [0; STORED_BYTES];
        stored[..SCRATCH_RECORD_BYTES].copy_from_slice(record);
        stored[SCRATCH_RECORD_BYTES..].copy_from_slice(&sum.to_le_bytes());
        stored
    }
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The ID of this boot of the machine, if the system has one.
fn boot() -> Option<[u8; BOOT_BYTES]> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    id.trim().as_bytes().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Start = Start::new(7, 0);
    const BOOT: Option<[u8; BOOT_BYTES]> = Some([b'b'; BOOT_BYTES]);

    fn record(number: u8) -> ScratchRecord {
        [number; SCRATCH_RECORD_BYTES]
    }

    fn written(dir: &Directory) -> Scratch {
        let mut scratch = Scratch::of_boot(dir.path(), START, BOOT);
        scratch.begin([record(1), record(2)].into_iter()).unwrap();
        scratch.append(&[record(3)]).unwrap();
        scratch.append(&[record(4), record(5)]).unwrap();
        scratch
    }

    #[test]
    fn records_are_found_by_the_next_start_of_the_same_boot_only() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        assert_eq!(read_of_boot(&dir, START, BOOT), None);
        let scratch = written(&dir);
        assert_eq!(scratch.len(), 5);
        let all = [1, 2, 3, 4, 5].map(record).to_vec();
        assert_eq!(read_of_boot(&dir, START, BOOT), Some(all));
        let other = Some([b'c'; BOOT_BYTES]);
        assert_eq!(read_of_boot(&dir, START, other), None);
        assert_eq!(read_of_boot(&dir, START, None), None);
        for start in [6, 8] {
            assert_eq!(read_of_boot(&dir, Start::new(start, 0), BOOT), None);
        }
    }

    #[test]
    fn a_changed_cut_or_longer_file_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        let scratch = written(&dir);
        let good = fs::read(&scratch.path).unwrap();
        let found = |bytes: &[u8]| {
            fs::write(&scratch.path, bytes).unwrap();
            read_of_boot(&dir, START, BOOT)
        };
        for bit in 0..good.len() * 8 {
            let mut flipped = good.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(found(&flipped), None, "bit {bit}");
        }
        for len in 0..good.len() {
            assert_eq!(found(&good[..len]), None, "length {len}");
        }
        assert_eq!(found(&[&good[..], &[0]].concat()), None);
        let (head, stored) = good.split_at(HEAD_BYTES);
        let mut swapped: Vec<&[u8]> = stored.chunks(STORED_BYTES).collect();
        swapped.swap(0, 1);
        assert_eq!(found(&[head, &swapped.concat()].concat()), None);
        assert!(found(&good).is_some());
    }

    #[test]
    fn whoever_is_killed_between_two_writes_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        let mut scratch = written(&dir);
        let before = fs::read(&scratch.path).unwrap();
        scratch.append(&[record(6)]).unwrap();
        let after = fs::read(&scratch.path).unwrap();
        fs::write(
            &scratch.path,
            [&after[..HEAD_BYTES], &before[HEAD_BYTES..]].concat(),
        )
        .unwrap();
        assert_eq!(read_of_boot(&dir, START, BOOT), None);
    }

    #[test]
    fn a_spoilt_file_is_no_file_until_it_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        let mut scratch = written(&dir);
        scratch.spoil().unwrap();
        assert_eq!(read_of_boot(&dir, START, BOOT), None);
        scratch.append(&[record(9)]).unwrap();
        assert_eq!(read_of_boot(&dir, START, BOOT), None);
        scratch.begin([record(1)].into_iter()).unwrap();
        scratch.append(&[record(2)]).unwrap();
        let all = vec![record(1), record(2)];
        assert_eq!(read_of_boot(&dir, START, BOOT), Some(all));
    }

    #[test]
    fn without_a_boot_there_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::of_boot(dir.path(), START, None);
        scratch.begin([record(1)].into_iter()).unwrap();
        scratch.append(&[record(2)]).unwrap();
        assert!(scratch.is_empty() && !scratch.path.exists());
    }
}
