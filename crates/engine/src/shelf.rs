//! What an engine keeps outside of its log: images and the witness. On a real disk the shelf is the data directory.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};

use xxhash_rust::xxh3::Xxh3;

use crate::directory::{Directory, owner_only, sync_dir};
use crate::error::{DiskError, OpenError};
use crate::image::{self, HEAD_BYTES};
use crate::witness::Witness;

/// Where images and the witness are. Every call that succeeds is durable.
pub(crate) trait Shelf: fmt::Debug + Send + Sync {
    /// The free space; unlimited if the system does not say.
    fn free_bytes(&self) -> u64;
    fn bear_witness(&self, witness: &Witness) -> Result<(), DiskError>;
    fn has_image(&self, name: &str) -> bool;
    fn write_image(&self, name: &str, number: u64, image: &[u8]) -> Result<(), DiskError>;
    fn read_image(&self, name: &str, number: u64) -> Result<Vec<u8>, OpenError>;
    /// If this fails, the next open sweeps it away.
    fn remove_image(&self, name: &str);
    /// Removes every image except one, and unfinished files.
    fn sweep(&self, kept: &str) -> Result<(), DiskError>;
    /// An image to be read in pieces, even if it is removed meanwhile.
    fn source(&self, name: &str) -> Result<Box<dyn Source>, DiskError>;
    /// A new image to be written in pieces.
    fn sink(&self, name: &str, number: u64, sum: u64) -> Result<Box<dyn Sink>, DiskError>;
}

/// An image that is read in pieces.
pub(crate) trait Source: Send {
    fn bytes(&self) -> u64;
    /// The checksum of the whole image.
    fn sum(&self) -> u64;
    /// Up to `bytes_max` bytes from `offset`.
    fn read(&mut self, offset: u64, bytes_max: usize) -> Result<Vec<u8>, DiskError>;
}

/// An image that is written in pieces. It exists only after it is finished.
pub(crate) trait Sink: Send {
    fn write(&mut self, piece: &[u8]) -> Result<(), DiskError>;
    /// Whether the pieces have the promised checksum; if so, the image exists.
    fn finish(self: Box<Self>) -> Result<bool, DiskError>;
}

impl Shelf for Directory {
    fn free_bytes(&self) -> u64 {
        Directory::free_bytes(self).unwrap_or(u64::MAX)
    }

    fn bear_witness(&self, witness: &Witness) -> Result<(), DiskError> {
        witness.write(self)
    }

    fn has_image(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    fn write_image(&self, name: &str, number: u64, image: &[u8]) -> Result<(), DiskError> {
        image::write(self, name, number, image)
    }

    fn read_image(&self, name: &str, number: u64) -> Result<Vec<u8>, OpenError> {
        image::read(self, name, number)
    }

    fn remove_image(&self, name: &str) {
        let _ = fs::remove_file(self.file(name));
    }

    fn sweep(&self, kept: &str) -> Result<(), DiskError> {
        Directory::sweep(self, |name| image::is_image(name) && name != kept)
            .map_err(|error| DiskError::at(self.path(), error))
    }

    fn source(&self, name: &str) -> Result<Box<dyn Source>, DiskError> {
        let at = |error| DiskError::at(&self.file(name), error);
        let mut file = File::open(self.file(name)).map_err(at)?;
        let length = file.metadata().map_err(at)?.len();
        let mut head = [0; HEAD_BYTES];
        io::Read::read_exact(&mut file, &mut head).map_err(at)?;
        let damaged = || DiskError::Failed(format!("{name} fails its checksum"));
        Ok(Box::new(FileSource {
            file,
            bytes: length - HEAD_BYTES as u64,
            sum: image::head_sum(&head).ok_or_else(damaged)?,
        }))
    }

    fn sink(&self, name: &str, number: u64, sum: u64) -> Result<Box<dyn Sink>, DiskError> {
        let beside = self.unfinished(name);
        let open = || {
            let mut options = owner_only();
            let mut file = options
                .create(true)
                .write(true)
                .truncate(true)
                .open(&beside)?;
            file.write_all(&image::head(number, sum))?;
            Ok(file)
        };
        let file = open().map_err(|error| DiskError::at(&beside, error))?;
        Ok(Box::new(FileSink {
            dir: self.clone(),
            name: name.into(),
            file,
            promised: sum,
            seen: Xxh3::new(),
        }))
    }
}

struct FileSource {
    file: File,
    bytes: u64,
    sum: u64,
}

impl Source for FileSource {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn sum(&self) -> u64 {
        self.sum
    }

    fn read(&mut self, offset: u64, bytes_max: usize) -> Result<Vec<u8>, DiskError> {
        use std::io::{Read, Seek, SeekFrom};
        self.file
            .seek(SeekFrom::Start(HEAD_BYTES as u64 + offset))?;
        let mut piece = Vec::new();
        let wanted = (&self.file).take(bytes_max as u64);
        { wanted }.read_to_end(&mut piece)?;
        Ok(piece)
    }
}

struct FileSink {
    dir: Directory,
    name: String,
    file: File,
    promised: u64,
    seen: Xxh3,
}

impl Sink for FileSink {
    fn write(&mut self, piece: &[u8]) -> Result<(), DiskError> {
        self.seen.update(piece);
        let written = self.file.write_all(piece);
        written.map_err(|error| DiskError::at(&self.dir.unfinished(&self.name), error))
    }

    fn finish(self: Box<Self>) -> Result<bool, DiskError> {
        let beside = self.dir.unfinished(&self.name);
        if self.seen.digest() != self.promised {
            let _ = fs::remove_file(beside);
            return Ok(false);
        }
        let finished = self.file.sync_all();
        let finished = finished.and_then(|()| fs::rename(&beside, self.dir.file(&self.name)));
        let finished = finished.and_then(|()| sync_dir(self.dir.path()));
        finished.map_err(|error| DiskError::at(&beside, error))?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_goes_from_one_directory_to_another_in_pieces() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let from = Directory::lock(from.path()).unwrap();
        let to = Directory::lock(to.path()).unwrap();
        let image: Vec<u8> = (0..1000u32).map(|i| (i % 251) as u8).collect();
        from.write_image("snapshot-5", 5, &image).unwrap();
        let mut source = from.source("snapshot-5").unwrap();
        assert_eq!(source.bytes(), 1000);
        from.remove_image("snapshot-5");
        for (broken, wanted) in [(true, false), (false, true)] {
            let mut sink = to.sink("snapshot-5", 5, source.sum()).unwrap();
            for offset in (0..1000).step_by(300) {
                let mut piece = source.read(offset, 300).unwrap();
                piece[7] ^= u8::from(broken);
                sink.write(&piece).unwrap();
                assert!(!to.has_image("snapshot-5"), "it is not finished");
            }
            assert_eq!(sink.finish().unwrap(), wanted);
        }
        assert_eq!(to.read_image("snapshot-5", 5).unwrap(), image);
    }
}
