//! Which files belong to the project: those that git tracks and those that it neither tracks nor ignores, so
//! that a new file is checked before it is added. An exported tree without git is walked instead.

use std::fs;
use std::path::Path;

use crate::process::{program, root};

/// Paths below the root, with `/` between the parts, in order.
pub(crate) fn listed() -> Result<Vec<String>, String> {
    let root = root()?;
    // A checkout made by another user is still read; git is only asked for names.
    let answer = program("git")?
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .output();
    let mut paths: Vec<String> = match answer {
        Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout)
            .split_terminator('\0')
            .map(str::to_owned)
            .collect(),
        _ => {
            let mut found = Vec::new();
            walk(&root, "", &mut found)?;
            found
        }
    };
    // A file may be deleted and not yet committed as such.
    paths.retain(|path| root.join(path).is_file());
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The Rust files among them.
pub(crate) fn rust() -> Result<Vec<String>, String> {
    let mut paths = listed()?;
    paths.retain(|path| path.ends_with(".rs"));
    Ok(paths)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<String>) -> Result<(), String> {
    let failed = |e| format!("cannot list {}: {e}", folder.display());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_file() {
            found.push(format!("{prefix}{name}"));
        } else if kind.is_dir() && name != ".git" && name != "target" {
            walk(&entry.path(), &format!("{prefix}{name}/"), found)?;
        }
    }
    Ok(())
}
