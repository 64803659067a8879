//! `testigo cluster backup` and `testigo cluster restore`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use testigo_client::{Address, Connection, NotDone, Value, Word};
use testigo_node::{Backup as File, BackupHeader, BackupMember, refound};
use tokio::time::sleep;

use super::dial::{refuse_if_answers, wait_a_lease};
use crate::exit::{Failure, Outcome};
use crate::reach::{Ended, Reach, runtime};

/// How long to wait before looking again whether a backup is drawn.
const DRAWN: Duration = Duration::from_millis(50);

/// Write a backup of a running cluster, or of a node that is alone.
///
/// It has everything that was acknowledged before: gates, flows, jobs, sessions, once-keys, who
/// owns what. Who holds and who waits is not in it. Nobody waits while it is made.
///
/// Exit code: 0 written and flushed; 69 no node reachable; 2 the file cannot be written.
///
/// Example: testigo cluster backup /backup/testigo-monday
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Backup {
    /// The new file.
    file: PathBuf,
    /// Print JSON: file, bytes, change, generation.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Make a new data directory from a backup, in a higher generation.
///
/// The node that is started on it is a cluster of one that others can join; no fence of it was
/// ever given out before. For that it waits up to 32 s, and the clock must be right. Refused while a
/// member of the old cluster answers at an address of before: stop the old cluster first.
///
/// Exit code: 0 made; 1 a member of the old cluster answers; 2 bad input.
///
/// Example: testigo cluster restore /backup/testigo-monday --data /var/lib/testigo
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Restore {
    /// The backup.
    file: PathBuf,
    /// The new data directory.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The number of the node that begins.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=255))]
    id: u64,
    /// The old cluster's --lease-ms, if it was given one: a node that is cut off may act for so long.
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1_000..=60_000))]
    lease_ms: u64,
    /// Print JSON: node, generation, number, data, member.
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub(super) fn run(self) -> Outcome {
        self.reach.converse(async |mut node| {
            let mut backup = fetch(&mut node).await?;
            self.remember_who_was_alone(&mut backup.header);
            let written = backup.write(&self.file);
            written.map_err(|error| Ended::bad_input(error.to_string()))?;
            let BackupHeader {
                generation, index, ..
            } = backup.header;
            let bytes = std::fs::metadata(&self.file).map_or(0, |file| file.len());
            if self.json {
                let said = serde_json::json!({
                    "file": self.file, "bytes": bytes, "change": index, "generation": generation
                });
                println!("{said}");
                return Ok(ExitCode::SUCCESS);
            }
            let file = self.file.display();
            println!("{file}: {bytes} bytes, change {index} of generation {generation}");
            Ok(ExitCode::SUCCESS)
        })
    }
}

impl Backup {
    /// A node that is alone has no addresses in its log: what reaches it is what was dialled.
    fn remember_who_was_alone(&self, header: &mut BackupHeader) {
        let dialled = self.reach.resp.iter().next();
        if let (true, Some(Address::Tcp(address))) = (header.members.is_empty(), dialled) {
            header.members.push(BackupMember {
                node: 1,
                peer: address.clone(),
                client: None,
            });
        }
    }
}

async fn fetch(node: &mut Connection) -> Result<File, Ended> {
    let strange = || Ended::bad_input("the node's answer to CLUSTER BACKUP cannot be read");
    let begun = node.say(&["CLUSTER", "BACKUP"]).await?;
    let number = begun.field("backup").and_then(Value::number);
    let number = number.ok_or_else(strange)?.to_string();
    let header = begun.field("header").and_then(Value::text);
    let header = serde_json::from_str(header.ok_or_else(strange)?);
    let mut header: BackupHeader = header.map_err(|_| strange())?;
    let mut image = Vec::new();
    loop {
        let offset = image.len().to_string();
        let piece = match node.say(&["CLUSTER", "BACKUP", &number, &offset]).await {
            Err(NotDone::Refused(refusal)) if refusal.word == Word::Busy => {
                sleep(DRAWN).await;
                continue;
            }
            piece => piece?,
        };
        match piece.bytes() {
            None => return Err(strange()),
            Some([]) => break,
            Some(bytes) => image.extend_from_slice(bytes),
        }
    }
    header.image_bytes = image.len() as u64;
    File::from_parts(header, image).map_err(|error| Ended::bad_input(error.to_string()))
}

impl Restore {
    pub(super) fn run(self) -> Outcome {
        let backup = File::read(&self.file)?;
        if self.data.exists() && std::fs::read_dir(&self.data)?.next().is_some() {
            let data = self.data.display();
            let why = format!("{data} is not empty; a backup is restored into a new directory");
            return Err(Failure(why));
        }
        let members: Vec<&BackupMember> = backup.header.members.iter().collect();
        let answers = runtime()?.block_on(refuse_if_answers(&members));
        if let Some(refused) = answers {
            return Ok(refused);
        }
        wait_a_lease(&members, self.lease_ms);
        let founded = refound(&backup, &self.data, self.id)?;
        super::tell_founded(&founded, &self.data, self.json);
        Ok(ExitCode::SUCCESS)
    }
}
