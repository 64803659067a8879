//! `testigo recover`: goes on with one node when the majority of a cluster is lost for good.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use testigo_node::{BackupMember, refound, salvage};

use super::dial::{refuse_if_answers, wait_a_lease};
use crate::exit::{Failure, Outcome};
use crate::reach::runtime;

/// Go on with one node when the majority of a cluster is lost for good.
///
/// Founds a cluster of one, in a higher generation, from the data directory of a node that
/// survived and does not run. Others can join it. What only the lost nodes had is lost; choose
/// the survivor that had come furthest. The directory of before is kept beside the new one.
///
/// It waits up to 32 s, so that no fence is given out twice; the clock must be right. Refused while
/// another member of the old cluster answers.
///
/// Exit code: 0 founded; 1 a member of the old cluster answers; 2 bad input.
///
/// Example: testigo recover --force --data /var/lib/testigo --id 2
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Recover {
    /// The lost nodes are lost for good, and what only they had with them.
    #[arg(long, required = true)]
    force: bool,
    /// The data directory of the node that survived.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Its number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=255))]
    id: u64,
    /// The old cluster's --lease-ms, if it was given one: a node that is cut off may act for so long.
    #[arg(long, value_name = "MS", default_value_t = 3_000, value_parser = clap::value_parser!(u64).range(1_000..=60_000))]
    lease_ms: u64,
    /// Print JSON: node, generation, number, data, member.
    #[arg(long)]
    json: bool,
}

impl Recover {
    pub(crate) fn run(self) -> Outcome {
        let backup = salvage(&self.data, self.id)?;
        let others = backup.header.members.iter();
        let others: Vec<&BackupMember> = others.filter(|member| member.node != self.id).collect();
        if let Some(refused) = runtime()?.block_on(refuse_if_answers(&others)) {
            return Ok(refused);
        }
        let members: Vec<&BackupMember> = backup.header.members.iter().collect();
        wait_a_lease(&members, self.lease_ms);
        let generation = backup.header.generation;
        let new = beside(&self.data, "recovering")?;
        let old = beside(&self.data, &format!("generation-{generation}"))?;
        if old.exists() {
            let why = format!("{} exists already; move it elsewhere", old.display());
            return Err(Failure(why));
        }
        if new.exists() {
            // Of a recovery that was interrupted; the directory itself is still as it was.
            std::fs::remove_dir_all(&new)?;
        }
        let founded = refound(&backup, &new, self.id)?;
        std::fs::rename(&self.data, &old)?;
        std::fs::rename(&new, &self.data)?;
        if !self.json {
            println!("the directory of before is {}", old.display());
        }
        super::tell_founded(&founded, &self.data, self.json);
        Ok(ExitCode::SUCCESS)
    }
}

/// A neighbour of the directory, so that renaming is one step.
fn beside(data: &Path, suffix: &str) -> Result<PathBuf, Failure> {
    let absolute = std::path::absolute(data)?;
    let name = absolute
        .file_name()
        .ok_or("the data directory has no name")?;
    let mut name: OsString = name.to_owned();
    name.push(format!(".{suffix}"));
    Ok(absolute.with_file_name(name))
}
