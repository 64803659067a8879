//! The witness file: a second, independent record of how far the store had come. A log that has lost its end completely looks
//! like one that never had it. The witness reveals that, so that nothing acknowledged goes missing unnoticed, and no start is
//! ever used twice. It is written at every open, snapshot, new segment and close, not at every flush.

use crate::directory::Directory;
use crate::error::{DiskError, OpenError};
use crate::seal::{Fields, seal, unseal};
use crate::start::Start;
use crate::store::Flushed;

/// The format of the data directory that this version writes. It also reads the previous two.
pub const FORMAT: u32 = 5;

/// The format without origins: it does not say who proposed its entries.
const FORMAT_UNNUMBERED: u32 = 4;

/// The format without sectors: its witness knows nothing of flushes.
const FORMAT_OLD: u32 = 3;

const NAME: &str = "witness";
const MAGIC: &[u8; 8] = b"TESTIGO\0";
const LEN_MAX: u64 = 4096;

/// What the store has at least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) start: Start,
    pub(crate) index: u64,
    pub(crate) flushed: Flushed,
}

impl Witness {
    pub(crate) fn write(&self, dir: &Directory) -> Result<(), DiskError> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.start.number().to_le_bytes());
        body.extend_from_slice(&self.start.generation().to_le_bytes());
        for field in [self.index, self.flushed.segment, self.flushed.sequence] {
            body.extend_from_slice(&field.to_le_bytes());
        }
        dir.replace(NAME, &[MAGIC, &FORMAT.to_le_bytes(), &seal(&body)])
            .map_err(|error| DiskError::at(&dir.file(NAME), error))
    }

    /// `None` if there is no such file.
    pub(crate) fn read(dir: &Directory) -> Result<Option<Self>, OpenError> {
        let read = dir.read(NAME, LEN_MAX);
        let at = |error| DiskError::at(&dir.file(NAME), error);
        let Some(contents) = read.map_err(at)? else {
            return Ok(None);
        };
        let damaged = || OpenError::Damaged("the witness file fails its checksum".into());
        let sealed = contents.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let mut head = Fields(sealed);
        let format = head.u32();
        match format {
            Some(FORMAT | FORMAT_UNNUMBERED | FORMAT_OLD) => {}
            Some(found) => {
                return Err(OpenError::Format {
                    found,
                    known: FORMAT,
                });
            }
            None => return Err(damaged()),
        }
        let body = unseal(head.rest()).ok_or_else(damaged)?;
        let decode = |mut fields: Fields<'_>| {
            let start = Start::new(fields.u32()?, fields.u32()?);
            let index = fields.u64()?;
            let mut flushed = Flushed::default();
            if format != Some(FORMAT_OLD) {
                flushed.segment = fields.u64()?;
                flushed.sequence = fields.u64()?;
            }
            fields.end()?;
            Some(Self {
                start,
                index,
                flushed,
            })
        };
        decode(Fields(body)).map(Some).ok_or_else(damaged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        assert_eq!(Witness::read(&dir).unwrap(), None);
        let witness = Witness {
            start: Start::new(7, 2),
            index: 99,
            flushed: Flushed {
                segment: 3,
                sequence: 1234,
            },
        };
        witness.write(&dir).unwrap();
        assert_eq!(Witness::read(&dir).unwrap(), Some(witness));
    }

    #[test]
    fn a_write_that_fails_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        fs::create_dir(dir.file(NAME)).unwrap();
        let written = Witness::default().write(&dir).unwrap_err();
        let read = Witness::read(&dir).unwrap_err();
        for error in [written.to_string(), read.to_string()] {
            assert!(error.contains("/witness: "), "{error}");
        }
    }

    #[test]
    fn a_later_format_is_named_and_a_flipped_bit_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        Witness::default().write(&dir).unwrap();
        let good = fs::read(dir.file(NAME)).unwrap();
        for byte in 0..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 4;
            fs::write(dir.file(NAME), &bad).unwrap();
            let error = Witness::read(&dir).unwrap_err();
            match byte {
                8..12 => {
                    assert!(matches!(error, OpenError::Format { known: FORMAT, .. }));
                    assert!(error.to_string().contains("witness file"), "{error}");
                    assert!(error.to_string().contains("damaged"), "{error}");
                }
                _ => assert!(matches!(error, OpenError::Damaged(_)), "byte {byte}"),
            }
        }
        fs::write(dir.file(NAME), &good[..good.len() - 1]).unwrap();
        assert!(Witness::read(&dir).is_err());
    }
}
