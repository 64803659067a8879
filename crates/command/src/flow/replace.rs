//! Putting a new text in the place of a file's old one, so that a crash leaves the old one or the new one.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Result, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// Names that are tried for the file beside; who meets more is not writing flows.
const NAMES_MAX: usize = 1000;
/// As many links as the system follows.
const LINKS_MAX: usize = 40;

/// Writes next to the file and renames. A link stays one and its target is replaced; mode and, as far as it is allowed,
/// owner and group stay.
pub(crate) fn replace(path: &Path, text: &str) -> std::result::Result<(), String> {
    written(path, text).map_err(|error| cannot(path, &error))
}

/// Whether a file could be written beside it, as things are now.
pub(crate) fn replaceable(path: &Path) -> std::result::Result<(), String> {
    let target = target(path);
    let allowed = access(folder(&target), Access::WRITE_OK | Access::EXEC_OK);
    allowed.map_err(|error| cannot(path, &error.into()))
}

fn cannot(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}

fn written(path: &Path, text: &str) -> Result<()> {
    let target = target(path);
    let (mut file, name) = beside(&target)?;
    let done = file
        .write_all(text.as_bytes())
        .and_then(|()| keep_mode(&file, &target))
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&name, &target));
    if done.is_err() {
        let _ = std::fs::remove_file(&name);
        return done;
    }
    File::open(folder(&target)).and_then(|folder| folder.sync_all())
}

/// The file that a path means, at the end of its links; it need not be there.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(to) = std::fs::read_link(&path) else {
            break;
        };
        path = folder(&path).join(to);
    }
    path
}

fn folder(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    parent.unwrap_or(Path::new("."))
}

/// A new file with a name that nothing has. If the old file is not for everybody, the new one never is either.
fn beside(target: &Path) -> Result<(File, PathBuf)> {
    let mode = match target.exists() {
        true => 0o600,
        false => 0o666,
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut number = 1;
    loop {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{number}.new"));
        match options.open(&name) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && number < NAMES_MAX => {
                number += 1;
            }
            opened => return opened.map(|file| (file, name.into())),
        }
    }
}

fn keep_mode(file: &File, target: &Path) -> Result<()> {
    let old = match std::fs::metadata(target) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        old => old?,
    };
    // Only an administrator gives files away; anyone may give one to a group of theirs.
    if fchown(file, Some(old.uid()), Some(old.gid())).is_err() {
        let _ = fchown(file, None, Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let name = |entry: Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<String> = entries
            .map(|entry| name(entry).to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_mode_of_a_file_stays() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let path = folder.path().join("t.flow");
        for mode in [0o600, 0o664, 0o640, 0o666] {
            fs::write(&path, "old").expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("allowed");
            replace(&path, "new").expect("writable");
            assert_eq!(fs::read_to_string(&path).expect("there"), "new");
            let now = fs::metadata(&path).expect("there").permissions().mode();
            assert_eq!(now & 0o7777, mode);
        }
    }

    #[test]
    fn a_link_stays_one_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let real = folder.path().join("real");
        fs::create_dir(&real).expect("made");
        let (first, second) = (folder.path().join("first"), real.join("second"));
        symlink("real/second", &first).expect("linked");
        symlink("t.flow", &second).expect("linked");
        for text in ["new", "newer"] {
            replace(&first, text).expect("writable");
            assert!(first.is_symlink() && second.is_symlink());
            assert_eq!(
                fs::read_to_string(real.join("t.flow")).expect("there"),
                text
            );
        }
    }

    #[test]
    fn what_stands_beside_a_file_is_left_alone() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        for name in ["t.flow", "t.flow.new", "t.flow.1.new"] {
            fs::write(folder.path().join(name), name).expect("written");
        }
        let path = folder.path().join("t.flow");
        replaceable(&path).expect("writable");
        replace(&path, "new").expect("writable");
        assert_eq!(
            names(folder.path()),
            ["t.flow", "t.flow.1.new", "t.flow.new"]
        );
        for name in ["t.flow.new", "t.flow.1.new"] {
            let text = fs::read_to_string(folder.path().join(name)).expect("there");
            assert_eq!(text, name);
        }
    }

    #[test]
    fn a_text_that_cannot_be_put_in_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(folder.path().join("t.flow")).expect("made");
        replace(&folder.path().join("t.flow"), "new").expect_err("it is a folder");
        assert_eq!(names(folder.path()), ["t.flow"]);
        replaceable(&folder.path().join("nowhere/t.flow")).expect_err("there is no folder");
    }
}
