//! The disk under a temporary directory: whether it is one, and how often a second it flushes.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::statfs;

/// File systems that live in memory, by what `statfs` calls them.
const IN_MEMORY: [(i64, &str); 2] = [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];

/// Fails unless temporary files are on a disk.
pub(crate) fn must_be_real() -> Result<(), String> {
    let path = std::env::temp_dir();
    let found = statfs(&path).map_err(|e| format!("cannot look at {}: {e}", path.display()))?;
    on_disk(&path, found.f_type as i64)
}

fn on_disk(path: &Path, kind: i64) -> Result<(), String> {
    match IN_MEMORY.iter().find(|(known, _)| *known == kind) {
        None => Ok(()),
        Some((_, name)) => Err(format!(
            "{} is a {name}, where a flush costs nothing: set TMPDIR to a directory on a disk",
            path.display()
        )),
    }
}

/// Appends of 1 KiB with a flush each, as many as go into the span; a second.
pub(crate) fn flushes_per_second(span: Duration) -> Result<f64, String> {
    const RECORD: [u8; 1024] = [b'r'; 1024];
    let failed = |error| format!("cannot flush: {error}");
    let directory = tempfile::tempdir().map_err(failed)?;
    let mut file = File::create(directory.path().join("log")).map_err(failed)?;
    let (begin, mut flushes) = (Instant::now(), 0.0);
    while begin.elapsed() < span {
        file.write_all(&RECORD).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        flushes += 1.0;
    }
    Ok(flushes / begin.elapsed().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        let shown = on_disk(Path::new("/x"), 0x0102_1994);
        assert!(shown.is_err_and(|why| why.contains("tmpfs") && why.contains("TMPDIR")));
        assert_eq!(on_disk(Path::new("/x"), 0xEF53), Ok(()));
    }
}
