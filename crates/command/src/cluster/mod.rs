//! `testigo cluster`: looks at a cluster, and changes who is in it.

mod backup;
mod dial;
mod members;
mod recover;
mod status;

use std::path::Path;

use clap::{Args, Subcommand};
use testigo_node::Refounded;

use crate::exit::Outcome;
use backup::{Backup, Restore};
use members::{Add, Remove};
pub(crate) use recover::Recover;
use status::Status;
pub(crate) use status::print as print_status;

/// Look at a cluster, change its members, back it up and restore it.
///
/// Example: testigo cluster status --resp node1:7600,node2:7600
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Cluster {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Status(Status),
    Add(Add),
    Remove(Remove),
    Backup(Backup),
    Restore(Restore),
}

impl Cluster {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::Status(status) => status.run(),
            Action::Add(add) => add.run(),
            Action::Remove(remove) => remove.run(),
            Action::Backup(backup) => backup.run(),
            Action::Restore(restore) => restore.run(),
        }
    }
}

/// How the nodes of a cluster know each other; those of one that only this machine reaches may go without.
const SAFE: &str = "--secret-file FILE";

/// Says what was founded, and what to do next.
fn tell_founded(founded: &Refounded, data: &Path, json: bool) {
    let Refounded {
        node,
        cluster,
        generation,
        number,
    } = founded;
    if json {
        let said = serde_json::json!({
            "node": node, "generation": generation, "number": number, "data": data, "member": cluster.is_some()
        });
        return println!("{said}");
    }
    println!(
        "node {node} begins generation {generation}; every fence from here on is above all that were given out before"
    );
    println!("highest shard number {number} of {}", (1 << 27) - 1);
    let cluster = match cluster {
        Some(_) => format!(" --id {node} --peer HOST:PORT {SAFE}"),
        None => String::new(),
    };
    println!(
        "start it with: testigo up --data {}{cluster}",
        data.display()
    );
}
