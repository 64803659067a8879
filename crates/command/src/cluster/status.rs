//! `testigo cluster status`.

use std::process::ExitCode;

use clap::Args;
use testigo_client::Value;

use crate::exit::Outcome;
use crate::reach::Reach;
use crate::show::{plain, print_json, print_rows, with_truths};

/// Show the members of a cluster, who leads, who owns how much, and what has moved.
///
/// Any node answers, as far as it knows; one that is cut off shows an old leader and no lease.
///
/// Exit code: 0 a node answers; 69 no node reachable.
///
/// Example: testigo cluster status --json
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Status {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

const MEMBERS: [&str; 10] = [
    "id", "start", "role", "leader", "in_view", "link", "shards", "sessions", "address", "client",
];
const MOVES: [&str; 6] = ["at", "from", "to", "shards", "number", "by"];

impl Status {
    pub(super) fn run(self) -> Outcome {
        self.reach.talk(async |client| {
            let status = with_truths(&client.cluster_status().await?);
            match self.json {
                true => print_json(&status),
                false => print(&status),
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// The number of a voter that can be reached, or that answers, and is in no view.
fn waits_to_be_let_in(member: &Value) -> Option<String> {
    let link = member.field("link").and_then(Value::text)?;
    let waits = member.field("role").and_then(Value::text) == Some("voter")
        && member.field("in_view") == Some(&Value::Truth(false))
        && matches!(link, "self" | "up");
    member.field("id").map(plain).filter(|_| waits)
}

/// For people.
pub(crate) fn print(status: &Value) {
    let field = |name: &str| status.field(name).map_or_else(|| "-".into(), plain);
    let rows = |name: &str| status.field(name).and_then(Value::list).unwrap_or_default();
    match status.field("cluster").and_then(Value::text) {
        None => println!(
            "node {} is alone: it was started without --peer",
            field("id")
        ),
        Some(cluster) => println!(
            "cluster {cluster}, generation {}, seen by node {}",
            field("generation"),
            field("id")
        ),
    }
    println!(
        "leader {}, term {}, view {}, applied {}, lease left {} ms",
        field("leader"),
        field("term"),
        field("view"),
        field("applied"),
        field("lease_ms")
    );
    println!(
        "highest shard number {} of {}, orphaned sessions {}",
        field("number"),
        field("number_max"),
        field("orphans")
    );
    println!();
    print_rows(rows("members"), &MEMBERS);
    for id in rows("members").iter().filter_map(waits_to_be_let_in) {
        println!(
            "node {id} waits to be let in; a node that keeps crashing is let in after 1, 2, 4 … 60 s"
        );
    }
    let moves = rows("moves");
    if !moves.is_empty() {
        println!();
        print_rows(moves, &MOVES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_voter_that_is_there_and_in_no_view_waits_to_be_let_in() {
        let member = |role: &str, in_view, link: &str| {
            let text = |text: &str| Value::Text(text.into());
            let fields = [
                ("id", Value::Number(2)),
                ("role", text(role)),
                ("in_view", Value::Truth(in_view)),
                ("link", text(link)),
            ];
            waits_to_be_let_in(&Value::Map(
                fields.map(|(name, it)| (text(name), it)).into(),
            ))
        };
        for link in ["self", "up"] {
            assert_eq!(member("voter", false, link).as_deref(), Some("2"));
        }
        for (role, in_view, link) in [
            ("voter", true, "up"),
            ("voter", false, "silent"),
            ("learner", false, "up"),
        ] {
            assert_eq!(member(role, in_view, link), None);
        }
    }
}
