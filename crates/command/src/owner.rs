//! `testigo owner`: who owns a name.

use std::process::ExitCode;

use clap::Args;
use testigo_client::Value;

use crate::exit::Outcome;
use crate::reach::Reach;
use crate::show::{print_fields, print_json, print_rows, with_truths};

/// Show which node owns a gate or a queue, or how much each node owns.
///
/// A name belongs to a shard, and a shard to a node, under a number that rises with every new
/// owner; fences are made of it. A queue is named FLOW/QUEUE.
///
/// Exit code: 0; 69 no node reachable.
///
/// Example: testigo owner deploy
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Owner {
    /// The name of a gate, or FLOW/QUEUE.
    name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

const MOVES: [&str; 5] = ["at", "from", "to", "number", "by"];

impl Owner {
    pub(crate) fn run(self) -> Outcome {
        self.reach.talk(async |client| {
            let owner = with_truths(&client.owner(self.name.as_deref()).await?);
            match (self.json, owner.list()) {
                (true, _) => print_json(&owner),
                (false, Some(nodes)) => print_rows(nodes, &["id", "shards", "client"]),
                (false, None) => {
                    print_fields(&owner);
                    let moves = owner.field("moves").and_then(Value::list);
                    if let Some(moves) = moves.filter(|moves| !moves.is_empty()) {
                        println!();
                        print_rows(moves, &MOVES);
                    }
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}
