//! Files that a crash left over in the data directories: an output whose job was never passed with it, or an input whose
//! job was passed and which was not removed any more. A harness removes them when it starts.
//!
//! Only a file that is certainly nobody's is removed. Its name is that of an attempt, `NAME.ATTEMPT` or
//! `.NAME.ATTEMPT.part`, of a number that a shard of this node has had; it is old enough that nobody can be about to name it; and,
//! asked after the file was seen, the job NAME is no more, or neither names it nor is in hand under that attempt. Since
//! attempts only grow and an old one is refused, nobody can come to own it later.
//!
//! The same holds of what `testigo job create --data` left over, `NAME.PID-NANOS`. Nothing refuses a creator that was
//! held up, so such a file has to be much older.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testigo_client::{Connection, Value};

use super::duty::Duty;
use crate::datafile::{self, Writer};
use crate::filesroot::FilesRoot;
use crate::reach::Ended;

/// How many bits of an attempt count the takes under its number.
const COUNT_BITS: u32 = 26;
/// A younger file of an attempt is left alone.
const ATTEMPT_AGE_MIN: Duration = Duration::from_secs(600);
/// A younger file of a creator is left alone.
const CREATOR_AGE_MIN: Duration = Duration::from_secs(86_400);
/// Files of one directory that are looked at in one start.
const FILES_MAX: usize = 10_000;

/// A file that an attempt or a creator has written.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    path: PathBuf,
    job: String,
    writer: Writer,
}

/// Removes what nobody owns from the directories of the queues that the process uses, and says how many files it was.
/// Asks as the process itself, which sees every job of its flow; where that is refused, nothing is removed.
pub(super) async fn collect(
    node: &mut Connection,
    duty: &Duty,
    root: &FilesRoot,
) -> Result<usize, Ended> {
    let used = duty.inputs.iter().map(String::as_str);
    let used = used.chain(duty.destinations());
    let mut directories: Vec<&String> = used.filter_map(|q| duty.directories.get(q)).collect();
    directories.sort_unstable();
    directories.dedup();
    let mut found = Vec::new();
    for directory in directories {
        found.extend(written_in(root, Path::new(directory)));
    }
    if found.is_empty() || node.present(&duty.flow, &duty.process).await.is_err() {
        return Ok(0);
    }
    let status = node.say(&["STATUS"]).await?;
    let number = status.field("number").and_then(Value::number).unwrap_or(0);
    let mut removed = 0;
    for file in found {
        let had = match file.writer {
            Writer::Attempt(attempt) => (1..=number).contains(&(attempt >> COUNT_BITS)),
            Writer::Creator { .. } => true,
        };
        if had && !owned(node, duty, &file).await? && root.remove(&file.path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

/// The old files of attempts and creators in a directory.
fn written_in(root: &FilesRoot, directory: &Path) -> Vec<Written> {
    let names = root.names(directory, FILES_MAX).into_iter();
    let written = names.filter_map(|name| Written::read(directory.join(name)));
    written.filter(|written| written.is_old(root)).collect()
}

impl Written {
    fn read(path: PathBuf) -> Option<Written> {
        let name = path.file_name()?.to_str()?;
        let part = name
            .strip_prefix('.')
            .map(|name| name.strip_suffix(".part"));
        let (job, writer) = datafile::read(part.unwrap_or(Some(name))?)?;
        // What could be a pattern is not asked for by name.
        if job.contains(['*', '?']) {
            return None;
        }
        Some(Written {
            job: job.to_owned(),
            writer,
            path,
        })
    }

    fn is_old(&self, root: &FilesRoot) -> bool {
        let least = match self.writer {
            Writer::Attempt(_) => ATTEMPT_AGE_MIN,
            Writer::Creator { .. } => CREATOR_AGE_MIN,
        };
        root.age(&self.path).is_some_and(|age| age >= least)
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
    let held = job.field("attempt").and_then(Value::number);
    let in_hand = held.is_some_and(|attempt| file.writer == Writer::Attempt(attempt));
    Ok(in_hand || named.is_some_and(|named| named == whole))
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
    fn a_file_that_is_being_written_is_known_too() {
        let read = |name: &str| Written::read(PathBuf::from(name)).map(|w| (w.job, w.writer));
        let attempt = |job: &str, attempt| Some((job.to_owned(), Writer::Attempt(attempt)));
        assert_eq!(read("d/a.4294967297"), attempt("a", 4_294_967_297));
        assert_eq!(read(".a.b.7.part"), attempt("a.b", 7));
        assert!(read(".a.1-1700000000123456789.part").is_some());
        for name in ["a", ".a.7", ".7", "*.7", "a.7.part", "..7.part"] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}
