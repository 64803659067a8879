//! The data directory: who may use it, what is where, and how a small file is replaced so that a
//! crash leaves either the old or the new one.
//!
//! ```text
//! lock              held by the process that has the directory open
//! witness           the epoch and the log index that the store must at least have
//! store/            the segments of the log, with what raft must remember
//! snapshot-<index>  the state machine's image up to that index
//! clean-stop        what the last clean stop left for the next start
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{DiskError, OpenError};
use crate::segments::sync_dir;

/// A locked data directory. Clones share the lock; it is given back with the last one.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    path: Arc<Path>,
    _lock: Arc<File>,
}

impl Directory {
    /// Creates the directory if it is not there, and locks it against other processes.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        fs::create_dir_all(path).map_err(DiskError::from)?;
        let lock = File::options()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(DiskError::from)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.into(),
                _lock: Arc::new(lock),
            }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { dir: path.into() }),
            Err(TryLockError::Error(error)) => Err(DiskError::from(error).into()),
        }
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What the file system has free for this process.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.path)
    }

    /// Replaces a file by one with these contents: written beside it, flushed, renamed, and the
    /// rename flushed too.
    pub(crate) fn replace(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let beside = self.file(&format!("{name}{UNFINISHED}"));
        if let Err(error) = write_new(&beside, parts) {
            // On a full disk every byte counts.
            let _ = fs::remove_file(&beside);
            return Err(error);
        }
        fs::rename(&beside, self.file(name))?;
        sync_dir(&self.path)
    }

    /// A file's contents, or nothing when it is not there. Longer than `len_max` is an error, so
    /// that a damaged directory cannot ask for all memory.
    pub(crate) fn read(&self, name: &str, len_max: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(self.file(name)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let len = file.metadata()?.len();
        if len > len_max {
            return Err(io::Error::other(format!("{name} has {len} bytes")));
        }
        let mut contents = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        file.take(len_max).read_to_end(&mut contents)?;
        Ok(Some(contents))
    }

    /// Removes what an interrupted replacement left, and every file that `stale` names.
    pub(crate) fn sweep(&self, stale: impl Fn(&str) -> bool) -> io::Result<()> {
        for file in fs::read_dir(&self.path)? {
            let file = file?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            if name.ends_with(UNFINISHED) || stale(name) {
                fs::remove_file(file.path())?;
            }
        }
        Ok(())
    }
}

/// How the name of a file ends that is still being written.
const UNFINISHED: &str = ".unfinished";

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = File::create(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// What the file system below a path has free for this process.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opener_is_refused_until_the_first_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let first = Directory::lock(dir.path()).unwrap();
        let second = first.clone();
        let refused = Directory::lock(dir.path()).unwrap_err();
        assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
        drop(first);
        assert!(Directory::lock(dir.path()).is_err());
        drop(second);
        assert!(Directory::lock(dir.path()).is_ok());
    }

    #[test]
    fn a_replaced_file_is_read_whole_and_a_swept_one_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let dir = Directory::lock(dir.path()).unwrap();
        assert_eq!(dir.read("note", 100).unwrap(), None);
        dir.replace("note", &[b"one"]).unwrap();
        dir.replace("note", &[b"tw", b"o"]).unwrap();
        assert_eq!(dir.read("note", 100).unwrap().unwrap(), b"two");
        assert!(dir.read("note", 2).is_err());
        fs::write(dir.file("half.unfinished"), b"x").unwrap();
        dir.sweep(|name| name == "note").unwrap();
        assert_eq!(dir.read("note", 100).unwrap(), None);
        assert_eq!(dir.read("half.unfinished", 100).unwrap(), None);
        assert!(dir.read("lock", 100).unwrap().is_some());
    }
}
