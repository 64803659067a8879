//! The witness file: a second, independent record of how far the store had come. Damage
//! at the end of the log looks like a flush that never ended; the witness
//! makes it visible, so that an epoch, and with it a fence, is never used twice. It is written at
//! every open, snapshot and close, not at every flush: damage to what came after the last of
//! these looks like a flush that never ended.

use crate::directory::Directory;
use crate::epoch::Epoch;
use crate::error::{DiskError, OpenError};
use crate::seal::{Fields, seal, unseal};

/// The format of the data directory that this version reads and writes.
pub const FORMAT: u32 = 3;

const NAME: &str = "witness";
const MAGIC: &[u8; 8] = b"TESTIGO\0";
const LEN_MAX: u64 = 4096;

/// What the store has at least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Witness {
    pub(crate) epoch: Epoch,
    pub(crate) index: u64,
}

impl Witness {
    pub(crate) fn write(&self, dir: &Directory) -> Result<(), DiskError> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.epoch.number().to_le_bytes());
        body.extend_from_slice(&self.epoch.generation().to_le_bytes());
        body.extend_from_slice(&self.index.to_le_bytes());
        Ok(dir.replace(NAME, &[MAGIC, &FORMAT.to_le_bytes(), &seal(&body)])?)
    }

    /// Nothing when there is no such file.
    pub(crate) fn read(dir: &Directory) -> Result<Option<Self>, OpenError> {
        let Some(contents) = dir.read(NAME, LEN_MAX).map_err(DiskError::from)? else {
            return Ok(None);
        };
        let damaged = || OpenError::Damaged("the witness file fails its checksum".into());
        let sealed = contents.strip_prefix(MAGIC).ok_or_else(damaged)?;
        let mut head = Fields(sealed);
        match head.u32() {
            Some(FORMAT) => {}
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
            let epoch = Epoch::new(fields.u32()?, fields.u32()?);
            let index = fields.u64()?;
            fields.end()?;
            Some(Self { epoch, index })
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
            epoch: Epoch::new(7, 2),
            index: 99,
        };
        witness.write(&dir).unwrap();
        assert_eq!(Witness::read(&dir).unwrap(), Some(witness));
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
                8..12 => assert!(matches!(error, OpenError::Format { known: FORMAT, .. })),
                _ => assert!(matches!(error, OpenError::Damaged(_)), "byte {byte}"),
            }
        }
        fs::write(dir.file(NAME), &good[..good.len() - 1]).unwrap();
        assert!(Witness::read(&dir).is_err());
    }
}
