//! The data directory: who may use it, what is where, and how a small file is replaced so that a crash leaves either the old
//! or the new one.
//!
//! ```text
//! lock              held by the process that has the directory open
//! witness           the start and the log index that the store must at least have
//! store/            the segments of the log, with what raft must remember
//! snapshot-<index>  the state machine's image up to that index
//! clean-stop        what the last clean stop left for the next start
//! scratch           what a killed process leaves for the next start
//! ```
//!
//! Only the owner can access the directory and the files in it: nobody else may read the bodies of jobs.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{DiskError, OpenError};
use crate::image::is_image;
use crate::scratch;

/// A locked data directory. Clones share the lock, which is released with the last one.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    path: Arc<Path>,
    _lock: Arc<File>,
}

impl Directory {
    /// Creates the directory, durably, unless it exists, and locks it against other processes.
    pub(crate) fn lock(path: &Path) -> Result<Self, OpenError> {
        let at = |error| DiskError::at(path, error);
        create_all(path).map_err(at)?;
        let lock = owner_only()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path.join("lock"))
            .map_err(at)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.into(),
                _lock: Arc::new(lock),
            }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse { dir: path.into() }),
            Err(TryLockError::Error(error)) => Err(DiskError::from(error).into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The path of a file that is still being written.
    pub(crate) fn unfinished(&self, name: &str) -> PathBuf {
        self.file(&format!("{name}{UNFINISHED}"))
    }

    /// The free space in the file system for this process.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        free_bytes(&self.path)
    }

    /// Replaces a file by one with these contents: writes it beside the old one, flushes it, renames it, and flushes the
    /// rename.
    pub(crate) fn replace(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let beside = self.unfinished(name);
        if let Err(error) = write_new(&beside, parts) {
            // On a full disk every byte counts.
            let _ = fs::remove_file(&beside);
            return Err(error);
        }
        fs::rename(&beside, self.file(name))?;
        sync_dir(&self.path)
    }

    /// A file's contents; `None` if it does not exist. A file longer than `len_max` is an error, so that a damaged directory
    /// cannot exhaust the memory.
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

    /// The names of all files.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.path)? {
            names.extend(file?.file_name().into_string());
        }
        Ok(names)
    }

    /// Removes everybody else's access to files that an earlier version, or a copy, has left open. Returns what was open, or
    /// could not be closed.
    pub(crate) fn tighten(&self) -> Vec<String> {
        let mut notes = Vec::new();
        tighten(&self.path, &mut notes);
        // Only our own files: there may be others.
        let ours = |name: &str| {
            let files = ["lock", "witness", "store", scratch::NAME];
            files.contains(&name) || is_image(name)
        };
        let names = self.names().unwrap_or_default();
        for name in names.iter().filter(|name| ours(name)) {
            tighten(&self.file(name), &mut notes);
        }
        for segment in fs::read_dir(self.file("store"))
            .into_iter()
            .flatten()
            .flatten()
        {
            tighten(&segment.path(), &mut notes);
        }
        notes
    }

    /// Removes what an interrupted replacement has left, and every file that `stale` names.
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

/// The suffix of a file that is still being written.
const UNFINISHED: &str = ".unfinished";

/// Options for a file that only its owner may read and write.
pub(crate) fn owner_only() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates a directory that only its owner may enter.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Creates a directory and its ancestors, making each durable in its parent. Returns the directories that were flushed.
fn create_all(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<&Path> = Vec::new();
    let ancestors = path.ancestors().filter(|at| !at.as_os_str().is_empty());
    for at in ancestors {
        match fs::metadata(at) {
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(at),
            Err(error) => return Err(error),
        }
    }
    let mut flushed = Vec::new();
    for at in missing.into_iter().rev() {
        create_dir(at)?;
        let parent = at.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        sync_dir(parent)?;
        flushed.push(parent.into());
    }
    Ok(flushed)
}

/// Makes names in a directory durable. On other systems a directory cannot be opened as a file, and its names are durable by
/// themselves.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(path)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

#[cfg(unix)]
fn tighten(path: &Path, notes: &mut Vec<String>) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = fs::symlink_metadata(path) else {
        return;
    };
    let mode = found.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 && !found.is_symlink() {
        let name = path.display();
        let closed = mode & !0o077;
        let done = fs::set_permissions(path, fs::Permissions::from_mode(closed));
        notes.push(match done {
            Ok(()) => format!("{name} was open to others (mode {mode:o}); now it is not"),
            Err(error) => format!("{name} is open to others (mode {mode:o}): {error}"),
        });
    }
}

#[cfg(not(unix))]
fn tighten(_: &Path, _: &mut Vec<String>) {}

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = owner_only()
        .create(true)
        .write(true)
        .truncate(true)
        .open(path)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.sync_all()
}

/// The free space below a path for this process.
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
    fn a_new_directory_is_flushed_into_the_one_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("var/lib/testigo");
        let above = ["", "var", "var/lib"].map(|above| dir.path().join(above));
        assert_eq!(create_all(&data).unwrap(), above);
        assert_eq!(create_all(&data).unwrap(), Vec::<PathBuf>::new());
    }

    #[cfg(unix)]
    #[test]
    fn nobody_but_the_owner_may_read_what_is_made_or_found() {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let above = tempfile::tempdir().unwrap();
        let dir = Directory::lock(&above.path().join("data")).unwrap();
        dir.replace("witness", &[b"one"]).unwrap();
        fs::write(dir.file("note"), b"somebody else's").unwrap();
        assert_eq!(mode(dir.path()), 0o700);
        assert_eq!(
            ["lock", "witness"].map(|name| mode(&dir.file(name))),
            [0o600; 2]
        );
        assert_eq!(dir.tighten(), Vec::<String>::new());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["witness", "note"] {
            fs::set_permissions(dir.file(name), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let notes = dir.tighten();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[1].contains("witness was open to others (mode 644)"),
            "{notes:?}"
        );
        assert_eq!(
            (mode(dir.path()), mode(&dir.file("witness"))),
            (0o700, 0o600)
        );
        assert_eq!(mode(&dir.file("note")), 0o644, "not ours");
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
