//! The data file of a job that is deleted by hand. It is removed after the job, and only if it is certainly the job's
//! own: the body names it, it lies in a data directory of the flow, and has a name that is given to files of that job.

use std::path::{Path, PathBuf};

use testigo_client::{Connection, Value};

use crate::datafile;
use crate::exit::complain;
use crate::filesroot::FilesRoot;

/// The file of a job that is to be deleted, if it has one.
pub(super) async fn file_of(node: &mut Connection, id: u64) -> Option<PathBuf> {
    // Who may not look may not delete either, and is told so then.
    let job = node.say(&["JOB", "SHOW", &id.to_string()]).await.ok()?;
    let text = |field: &str| job.field(field).and_then(Value::text);
    let path = Path::new(text("body")?.trim_end());
    let (name, _) = datafile::read(path.file_name()?.to_str()?)?;
    if Some(name) != text("name") {
        return None;
    }
    let (flow, _) = text("queue")?.split_once('/')?;
    let flow = node.say(&["FLOW", "SHOW", flow]).await.ok()?;
    let queues = flow.field("queues").and_then(Value::list)?;
    let mut directories = queues
        .iter()
        .filter_map(|queue| queue.field("data")?.text());
    let inside = directories.any(|directory| path.parent() == Some(Path::new(directory)));
    inside.then(|| path.to_owned())
}

/// Removes the file of a job that is deleted.
pub(super) fn remove(id: u64, root: &FilesRoot, file: Option<&Path>) {
    if let Some(file) = file
        && let Err(error) = root.remove(file)
    {
        let file = file.display();
        complain!("testigo: job {id}: its file {file} cannot be removed from here: {error}");
    }
}
