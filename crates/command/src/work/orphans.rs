//! Files that a crash left over in the data directories: an output whose job was never passed with it, or an input whose
//! job was passed and which was not removed any more. A harness removes them when it starts.
//!
//! Only a file that is certainly nobody's is removed. Its name is that of an attempt, `NAME.ATTEMPT` or
//! `.NAME.ATTEMPT.part`, of an epoch that this node has had; it is old enough that nobody can be about to name it; and,
//! asked after the file was seen, the job NAME is no more, or neither names it nor is in hand under that attempt. Since
//! attempts only grow and an old one is refused, nobody can come to own it later.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testigo_client::{Connection, Value};

use super::duty::Duty;
use crate::reach::Ended;

/// A younger file is left alone.
const AGE_MIN: Duration = Duration::from_secs(600);
/// Files of one directory that are looked at in one start.
const FILES_MAX: usize = 10_000;

/// A file that an attempt has written.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    path: PathBuf,
    job: String,
    attempt: u64,
}

/// Removes what nobody owns from the directories of the queues that the process uses, and says how many files it was.
/// Asks as the process itself, which sees every job of its flow; where that is refused, nothing is removed.
pub(super) async fn collect(
    node: &mut Connection,
    duty: &Duty,
    folder: &Path,
) -> Result<usize, Ended> {
    let used = duty.inputs.iter().map(String::as_str);
    let used = used.chain(duty.destinations());
    let mut directories: Vec<&String> = used.filter_map(|q| duty.directories.get(q)).collect();
    directories.sort_unstable();
    directories.dedup();
    let mut found = Vec::new();
    for directory in directories {
        found.extend(written_in(&folder.join(directory)));
    }
    if found.is_empty() || node.present(&duty.flow, &duty.process).await.is_err() {
        return Ok(0);
    }
    let status = node.say(&["STATUS"]).await?;
    let epoch = status.field("epoch").and_then(Value::number).unwrap_or(0);
    let mut removed = 0;
    for file in found {
        let had = (1..=epoch).contains(&(file.attempt >> 32));
        if had && !owned(node, duty, &file).await? && fs::remove_file(&file.path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The old files of attempts in a directory.
fn written_in(directory: &Path) -> Vec<Written> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let old = |path: &Path| {
        let found = fs::symlink_metadata(path)
            .ok()
            .filter(fs::Metadata::is_file);
        let age = found.and_then(|found| found.modified().ok()?.elapsed().ok());
        age.is_some_and(|age| age >= AGE_MIN)
    };
    let files = entries.take(FILES_MAX).map(|entry| entry.path());
    files
        .filter(|path| old(path))
        .filter_map(Written::read)
        .collect()
}

impl Written {
    fn read(path: PathBuf) -> Option<Written> {
        let name = path.file_name()?.to_str()?;
        let part = name
            .strip_prefix('.')
            .map(|name| name.strip_suffix(".part"));
        let (job, attempt) = part.unwrap_or(Some(name))?.rsplit_once('.')?;
        // What could be a pattern is not asked for by name.
        if job.is_empty() || job.contains(['*', '?']) {
            return None;
        }
        let digits = attempt.bytes().all(|byte| byte.is_ascii_digit());
        let attempt = attempt.parse().ok().filter(|_| digits)?;
        Some(Written {
            job: job.to_owned(),
            attempt,
            path,
        })
    }
}

/// Whether a living job is called as the file, names it, or is in hand under its attempt.
async fn owned(node: &mut Connection, duty: &Duty, file: &Written) -> Result<bool, Ended> {
    let whole = file.path.file_name().and_then(|name| name.to_str());
    let whole = whole.unwrap_or_default();
    if find(node, duty, whole).await?.is_some() {
        return Ok(true);
    }
    let Some(job) = find(node, duty, &file.job).await? else {
        return Ok(false);
    };
    let body = job.field("body").and_then(Value::text).unwrap_or_default();
    let named = Path::new(body.trim_end()).file_name();
    let attempt = job.field("attempt").and_then(Value::number);
    Ok(named.is_some_and(|named| named == whole) || attempt == Some(file.attempt))
}

/// The living job of that name in the flow.
async fn find(node: &mut Connection, duty: &Duty, name: &str) -> Result<Option<Value>, Ended> {
    let rows = node.say(&["JOB", "FIND", name]).await?;
    let here = format!("{}/", duty.flow);
    let is = |row: &&Value| {
        let cells = row.list().unwrap_or_default();
        let cell = |at: usize| cells.get(at).and_then(Value::text);
        cell(1) == Some(name) && cell(2).is_some_and(|queue| queue.starts_with(&here))
    };
    let row = rows.list().unwrap_or_default().iter().find(is);
    let id = row.and_then(|row| row.list()?.first()?.number());
    let Some(id) = id else {
        return Ok(None);
    };
    // It may have ended in between; then it is nobody's.
    Ok(node.say(&["JOB", "SHOW", &id.to_string()]).await.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_an_attempt_is_read_as_one() {
        let read = |name: &str| Written::read(PathBuf::from(name)).map(|w| (w.job, w.attempt));
        assert_eq!(read("d/a.4294967297"), Some(("a".into(), 4_294_967_297)));
        assert_eq!(read(".a.b.7.part"), Some(("a.b".into(), 7)));
        for name in [
            "a", "a.b", "a.-1", "a.+1", ".a.7", ".7", "*.7", "a.7.part", "a.",
        ] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
