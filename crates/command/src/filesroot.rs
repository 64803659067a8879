//! The directory below which the files of jobs lie. What flows and jobs name is opened from there, a step at a time, and
//! no step follows a link: whoever writes a flow, or into one of its directories, cannot lead a harness elsewhere.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::reach::Ended;

/// The option of commands that touch the files of jobs.
#[derive(Args)]
pub(crate) struct FilesRootOption {
    /// The files of jobs lie below this directory; nothing outside of it is touched [default: the current one]
    #[arg(long, value_name = "DIR", env = "TESTIGO_FILES_ROOT")]
    files_root: Option<PathBuf>,
}

impl FilesRootOption {
    pub(crate) fn open(&self) -> Result<FilesRoot, Ended> {
        let given = self.files_root.as_deref();
        FilesRoot::open(given).map_err(|error| {
            let path = given.unwrap_or(Path::new(".")).display();
            Ended::bad_input(format!("--files-root {path}: {error}"))
        })
    }
}

/// An open directory, and everything below it.
#[derive(Debug)]
pub(crate) struct FilesRoot {
    directory: OwnedFd,
    /// As it was given, if it was.
    given: Option<PathBuf>,
    absolute: PathBuf,
}

const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

impl FilesRoot {
    pub(crate) fn open(given: Option<&Path>) -> io::Result<FilesRoot> {
        let path = given.unwrap_or(Path::new("."));
        Ok(FilesRoot {
            directory: openat(CWD, path, DIRECTORY, Mode::empty())?,
            given: given.map(Path::to_owned),
            absolute: std::path::absolute(path)?,
        })
    }

    /// A path as a program is told it.
    pub(crate) fn told(&self, path: &Path) -> PathBuf {
        match &self.given {
            Some(root) => root.join(path),
            None => path.to_owned(),
        }
    }

    /// Opens a directory below; makes what is missing of it, if wanted.
    pub(crate) fn directory(&self, path: &Path, make: bool) -> io::Result<OwnedFd> {
        let mut at = self.directory.try_clone()?;
        for step in self.steps(path)? {
            let open = || openat(&at, step, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
            let opened = match open() {
                Err(Errno::NOENT) if make => match mkdirat(&at, step, Mode::from(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(error) => Err(error),
                },
                opened => opened,
            };
            at = opened.map_err(|errno| not_followed(errno, &at, step))?;
        }
        Ok(at)
    }

    /// Opens a file below to read it; not a link, nor anything else that is no file.
    pub(crate) fn file(&self, path: &Path) -> io::Result<File> {
        let (directory, name) = self.parted(path, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::empty())
            .map_err(|errno| not_followed(errno, &directory, name))?;
        match is_file(&fstat(&file)?) {
            true => Ok(File::from(file)),
            false => Err(io::Error::other(format!("{} is no file", path.display()))),
        }
    }

    /// Makes a file below, which must not be there.
    pub(crate) fn create(&self, path: &Path) -> io::Result<File> {
        let (directory, name) = self.parted(path, true)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let file = openat(&directory, name, flags | OFlags::CLOEXEC, Mode::from(0o666))?;
        Ok(File::from(file))
    }

    /// Gives a file that is on disk another name in its directory, and that name is on disk.
    pub(crate) fn rename(&self, from: &Path, to: &OsStr) -> io::Result<()> {
        self.file(from)?.sync_all()?;
        let (directory, name) = self.parted(from, false)?;
        renameat(&directory, name, &directory, to)?;
        File::from(directory).sync_all()
    }

    /// Removes a file, or a link, not what it leads to.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.parted(path, false)?;
        Ok(unlinkat(&directory, name, AtFlags::empty())?)
    }

    /// How old a file below is; nothing if it is none.
    pub(crate) fn age(&self, path: &Path) -> Option<Duration> {
        let (directory, name) = self.parted(path, false).ok()?;
        let stat = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let written = UNIX_EPOCH + Duration::from_secs(u64::try_from(stat.st_mtime).ok()?);
        let age = SystemTime::now().duration_since(written);
        is_file(&stat).then(|| age.unwrap_or_default())
    }

    /// The names in a directory below, at most so many.
    pub(crate) fn names(&self, directory: &Path, most: usize) -> Vec<String> {
        let opened = self.directory(directory, false);
        let Ok(entries) = opened.and_then(|opened| Ok(Dir::new(opened)?)) else {
            return Vec::new();
        };
        let names = entries.flatten().take(most);
        let names = names.filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        names.collect()
    }

    /// The directory of a path, opened, and the name in it.
    fn parted<'a>(&self, path: &'a Path, make: bool) -> io::Result<(OwnedFd, &'a OsStr)> {
        let none = || io::Error::other(format!("{} names no file", path.display()));
        let name = path.file_name().ok_or_else(none)?;
        let parent = path.parent().ok_or_else(none)?;
        Ok((self.directory(parent, make)?, name))
    }

    /// The steps from here to a path that lies below.
    fn steps<'a>(&self, path: &'a Path) -> io::Result<Vec<&'a OsStr>> {
        let below = match path.is_absolute() {
            true => path.strip_prefix(&self.absolute).ok(),
            false => Some(path),
        };
        let steps = below.and_then(|below| {
            let steps = below.components().filter(|step| *step != Component::CurDir);
            let steps = steps.map(|step| match step {
                Component::Normal(name) => Some(name),
                _ => None,
            });
            steps.collect()
        });
        steps.ok_or_else(|| {
            io::Error::other(format!(
                "{} lies outside of {}; --files-root names the directory below which the files of jobs lie",
                path.display(),
                self.absolute.display()
            ))
        })
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode).is_file()
}

/// What is said of a step that is a link.
fn not_followed(errno: Errno, at: &OwnedFd, step: &OsStr) -> io::Error {
    let link = statat(at, step, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
    match link {
        true => io::Error::other(format!(
            "{} is a link, and links are not followed here",
            step.display()
        )),
        false => errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_outside_is_reached() {
        let folder = tempfile::tempdir().expect("a folder");
        let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
        std::fs::create_dir_all(root.join("raw")).expect("folders");
        std::fs::create_dir(&secret).expect("a folder");
        std::fs::write(secret.join("key"), "mine").expect("a file");
        std::fs::write(root.join("raw/cat"), "cat").expect("a file");
        symlink(&secret, root.join("away")).expect("a link");
        symlink("../secret", root.join("near")).expect("a link");
        symlink("raw", root.join("inside")).expect("a link");
        symlink(secret.join("key"), root.join("raw/key")).expect("a link");
        let files = FilesRoot::open(Some(&root)).expect("it is there");
        assert!(files.file(Path::new("raw/cat")).is_ok());
        assert!(files.file(&root.join("raw/./cat")).is_ok());
        for path in [
            "away/key",
            "near/key",
            "inside/cat",
            "raw/key",
            "../secret/key",
            "raw/../../secret/key",
            "raw",
        ] {
            assert!(files.file(Path::new(path)).is_err(), "{path}");
            assert!(files.create(&Path::new(path).join("new")).is_err() || path == "raw");
            assert_eq!(files.age(Path::new(path)), None, "{path}");
        }
        let away = files.directory(Path::new("away"), true);
        let why = away.expect_err("a link").to_string();
        assert!(why.contains("away is a link"), "{why}");
        let outside = files.directory(&secret, true).expect_err("outside");
        assert!(outside.to_string().contains("--files-root"), "{outside}");
        assert!(files.remove(Path::new("away/key")).is_err());
        assert!(files.remove(Path::new("raw/key")).is_ok(), "the link");
        assert!(secret.join("key").exists());
    }

    /// Somebody turns a directory into a link and back while it is used: what is opened is never outside.
    #[test]
    fn a_race_with_a_link_is_not_lost() {
        const OPENED: usize = 2_000;
        let folder = tempfile::tempdir().expect("a folder");
        let (root, secret) = (folder.path().join("root"), folder.path().join("secret"));
        std::fs::create_dir_all(root.join("raw")).expect("folders");
        std::fs::create_dir(&secret).expect("a folder");
        std::fs::write(root.join("raw/cat"), "cat").expect("a file");
        std::fs::write(secret.join("cat"), "mine").expect("a file");
        symlink(&secret, root.join("link")).expect("a link");
        let files = FilesRoot::open(Some(&root)).expect("it is there");
        let over = std::sync::atomic::AtomicBool::new(false);
        let [raw, link, aside] = ["raw", "link", "aside"].map(|name| root.join(name));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(std::sync::atomic::Ordering::Relaxed) {
                    for (from, to) in [(&raw, &aside), (&link, &raw), (&raw, &link), (&aside, &raw)]
                    {
                        std::fs::rename(from, to).expect("renamed");
                    }
                }
            });
            for _ in 0..OPENED {
                if let Ok(mut file) = files.file(Path::new("raw/cat")) {
                    let mut text = String::new();
                    io::Read::read_to_string(&mut file, &mut text).expect("readable");
                    assert_eq!(text, "cat");
                }
            }
            over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
