//! Images: a state machine's snapshot, and what a clean stop leaves. Each is a file of its own, so that a large one passes
//! through neither the store's journal nor its memory, and any thread can write it while the log goes on.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::directory::Directory;
use crate::error::{DiskError, OpenError, SnapshotError};
use crate::seal::{Fields, seal, unseal};
use crate::shelf::Shelf;

/// The longest image, 4 GiB.
pub const IMAGE_BYTES_MAX: u64 = 4 << 30;

/// A number (a log index or a start) and the image's own checksum, sealed.
pub(crate) const HEAD_BYTES: usize = 8 + 8 + 8;

/// Writes snapshots of the state machine, on any thread.
#[derive(Debug, Clone)]
pub struct ImageWriter {
    pub(crate) shelf: Arc<dyn Shelf>,
}

/// A snapshot that is on disk and not in use yet: see [`Engine::compact`](crate::Engine::compact).
#[derive(Debug)]
#[must_use = "the log is compacted only when the engine is given the written snapshot"]
pub struct WrittenSnapshot {
    pub(crate) index: u64,
    bytes: u64,
}

impl WrittenSnapshot {
    /// The length of the image.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl ImageWriter {
    /// Writes and flushes the state machine's image after applying everything up to and including `index`.
    pub fn write(&self, index: u64, image: &[u8]) -> Result<WrittenSnapshot, SnapshotError> {
        let len = image.len() as u64;
        if len > IMAGE_BYTES_MAX {
            return Err(SnapshotError::TooLong(len));
        }
        // Never overwrites an image that the store relies on.
        let name = snapshot_name(index);
        if self.shelf.has_image(&name) {
            return Err(SnapshotError::Stale(index));
        }
        self.shelf.write_image(&name, index, image)?;
        Ok(WrittenSnapshot { index, bytes: len })
    }
}

const SNAPSHOT: &str = "snapshot-";

/// The file with what a clean stop left.
pub(crate) const CLEAN_STOP: &str = "clean-stop";

pub(crate) fn snapshot_name(index: u64) -> String {
    format!("{SNAPSHOT}{index}")
}

/// Whether a file of the directory is an image at all.
pub(crate) fn is_image(name: &str) -> bool {
    name.starts_with(SNAPSHOT) || name == CLEAN_STOP
}

/// The head before an image.
pub(crate) fn head(number: u64, sum: u64) -> Vec<u8> {
    let fields = [number, sum].map(u64::to_le_bytes);
    seal(&fields.concat())
}

/// The image's own checksum, according to the head.
pub(crate) fn head_sum(head: &[u8]) -> Option<u64> {
    let mut fields = Fields(unseal(head)?);
    fields.u64()?;
    fields.u64()
}

/// Writes an image with its number.
pub(crate) fn write(
    dir: &Directory,
    name: &str,
    number: u64,
    image: &[u8],
) -> Result<(), DiskError> {
    let head = head(number, xxh3_64(image));
    dir.replace(name, &[&head, image])
        .map_err(|error| DiskError::at(&dir.file(name), error))
}

/// Reads the image with this number. An image that is missing, damaged or has another number is an error.
pub(crate) fn read(dir: &Directory, name: &str, number: u64) -> Result<Vec<u8>, OpenError> {
    let contents = dir
        .read(name, IMAGE_BYTES_MAX + HEAD_BYTES as u64)
        .map_err(|error| DiskError::at(&dir.file(name), error))?;
    let Some(mut contents) = contents else {
        return Err(OpenError::Damaged(format!("{name} is missing")));
    };
    if checked(&contents) != Some(number) {
        return Err(OpenError::Damaged(format!("{name} fails its checksum")));
    }
    contents.drain(..HEAD_BYTES);
    Ok(contents)
}

fn checked(contents: &[u8]) -> Option<u64> {
    let (head, image) = contents.split_at_checked(HEAD_BYTES)?;
    let mut fields = Fields(unseal(head)?);
    let number = fields.u64()?;
    (fields.u64()? == xxh3_64(image)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_image_is_read_only_whole_and_under_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        write(&dir, "snapshot-5", 5, b"state").unwrap();
        assert_eq!(read(&dir, "snapshot-5", 5).unwrap(), b"state");
        assert!(read(&dir, "snapshot-5", 6).is_err());
        assert!(read(&dir, "snapshot-6", 6).is_err());

        let good = fs::read(dir.file("snapshot-5")).unwrap();
        for byte in 0..good.len() {
            let mut bad = good.clone();
            bad[byte] ^= 1;
            fs::write(dir.file("snapshot-5"), &bad).unwrap();
            let error = read(&dir, "snapshot-5", 5).unwrap_err();
            assert!(matches!(error, OpenError::Damaged(_)), "byte {byte}");
            fs::write(dir.file("snapshot-5"), &good[..byte]).unwrap();
            assert!(read(&dir, "snapshot-5", 5).is_err(), "length {byte}");
        }
    }

    #[test]
    fn an_empty_image_is_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        write(&dir, CLEAN_STOP, 1, b"").unwrap();
        assert_eq!(read(&dir, CLEAN_STOP, 1).unwrap(), b"");
    }
}
