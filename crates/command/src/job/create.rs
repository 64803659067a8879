//! `testigo job create`.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use testigo_client::{Connection, Value};

use super::body::Body;
use crate::datafile::{self, Writer};
use crate::exit::Outcome;
use crate::filesroot::{FilesRoot, FilesRootOption};
use crate::reach::{Ended, Reach};

/// Create a job, and print its id.
///
/// With --data the file is copied into the queue's data directory first, for `testigo work --files`.
///
/// Exit code: 0 it is created, and on disk; 75 the queue is full; 2 bad input; 69 no node reachable;
/// 76 unknown whether it was created.
///
/// Examples:
///
///     testigo job create orders/orders '{"item": 7}' --name order-7
///     jq -c .order basket.json | testigo job create orders/orders -
///     testigo job create pictures/raw --data cat.ppm
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Create {
    /// The queue.
    queue: String,
    #[command(flatten)]
    body: Body,
    /// A name that no living job of the flow has; without it the node gives one.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The class, in a queue that is ordered by priority; 0 is most urgent.
    #[arg(long, value_name = "C")]
    class: Option<u32>,
    /// The job's data are a copy of this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["body", "file"])]
    data: Option<PathBuf>,
    #[command(flatten)]
    files_root: FilesRootOption,
    #[command(flatten)]
    reach: Reach,
}

impl Create {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |node| self.talk(node).await)
    }

    async fn talk(&self, mut node: Connection) -> Result<ExitCode, Ended> {
        let Some(data) = &self.data else {
            let body = self.body.read()?.unwrap_or_default();
            return self.create(&mut node, self.name.as_deref(), &body).await;
        };
        let name = match &self.name {
            Some(name) => name.clone(),
            None => file_name(data)?,
        };
        let directory = self.directory(&mut node).await?;
        let root = self.files_root.open()?;
        let copy = copy(data, &root, &directory, &name).map_err(|error| {
            let (from, to) = (data.display(), directory.display());
            Ended::bad_input(format!("{from} cannot be copied to {to}: {error}"))
        })?;
        let body = copy.as_os_str().as_encoded_bytes();
        let created = self.create(&mut node, Some(&name), body).await;
        if created.as_ref().is_err_and(|ended| !ended.is_unknown()) {
            // Nobody will look for it.
            let _ = root.remove(&copy);
        }
        created
    }

    async fn create(
        &self,
        node: &mut Connection,
        name: Option<&str>,
        body: &[u8],
    ) -> Result<ExitCode, Ended> {
        let name = name.unwrap_or("*").as_bytes();
        let class = self.class.map(|class| class.to_string());
        let mut words: Vec<&[u8]> = vec![b"JOB", b"CREATE", self.queue.as_bytes(), name, body];
        if let Some(class) = &class {
            words.extend([b"CLASS", class.as_bytes()]);
        }
        let id = node.ask(&words).await?;
        println!("{}", id.number().unwrap_or_default());
        Ok(ExitCode::SUCCESS)
    }

    async fn directory(&self, node: &mut Connection) -> Result<PathBuf, Ended> {
        let queue = node.say(&["QUEUE", "SHOW", &self.queue]).await?;
        match queue.field("data").and_then(Value::text) {
            Some(directory) => Ok(PathBuf::from(directory)),
            None => Err(Ended::bad_input(format!(
                "queue {} has no data directory; say in the flow: queue … {{ data \"a/directory\" }}",
                self.queue
            ))),
        }
    }
}

fn file_name(path: &Path) -> Result<String, Ended> {
    let name = path.file_name().and_then(|name| name.to_str());
    let why = || Ended::bad_input(format!("{} names no job; say --name", path.display()));
    name.map(str::to_owned).ok_or_else(why)
}

/// On disk, whole, under a name that no other job's file has, before the node hears of it.
fn copy(from: &Path, root: &FilesRoot, directory: &Path, name: &str) -> io::Result<PathBuf> {
    if name.contains('/') || name.starts_with('.') {
        return Err(io::Error::other(format!("{name:?} is no name of a file")));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_nanos());
    let creator = Writer::Creator {
        process: std::process::id(),
        at: now,
    };
    let name = datafile::name(name, creator);
    let part = directory.join(datafile::part(&name));
    io::copy(&mut File::open(from)?, &mut root.create(&part)?)?;
    root.rename(&part, OsStr::new(&name))?;
    Ok(directory.join(name))
}
