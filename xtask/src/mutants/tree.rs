//! A copy of the tree to change. Files that are as they were are not written again, so that a build of
//! the copy goes on from the last one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{program, unstarted};

/// Makes `to` hold what git would keep of `from`, and nothing else.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let mut git = program("git")?;
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = git.output().map_err(|e| unstarted(&git, &e))?;
    if !listed.status.success() {
        return Err("git could not list the files of the tree".to_owned());
    }
    let text = String::from_utf8_lossy(&listed.stdout);
    let files = text.split('\0').filter(|path| !path.is_empty());
    // A file that was removed but not yet from git's list is gone.
    let files: BTreeSet<PathBuf> = files
        .map(PathBuf::from)
        .filter(|path| from.join(path).is_file())
        .collect();
    fs::create_dir_all(to).map_err(|e| wrong(to, &e))?;
    for path in &files {
        bring(&from.join(path), &to.join(path))?;
    }
    remove_others(to, Path::new(""), &files)
}

/// Copies a file unless it is the same.
fn bring(from: &Path, to: &Path) -> Result<(), String> {
    let content = fs::read(from).map_err(|e| wrong(from, &e))?;
    if fs::read(to).is_ok_and(|there| there == content) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|e| wrong(folder, &e))?;
    }
    fs::write(to, content).map_err(|e| wrong(to, &e))
}

fn remove_others(root: &Path, below: &Path, files: &BTreeSet<PathBuf>) -> Result<(), String> {
    let folder = root.join(below);
    for found in fs::read_dir(&folder).map_err(|e| wrong(&folder, &e))? {
        let found = found.map_err(|e| wrong(&folder, &e))?;
        let path = below.join(found.file_name());
        if found.path().is_dir() {
            remove_others(root, &path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(found.path()).map_err(|e| wrong(&found.path(), &e))?;
        }
    }
    Ok(())
}

fn wrong(path: &Path, reason: &std::io::Error) -> String {
    format!("cannot copy {}: {reason}", path.display())
}
