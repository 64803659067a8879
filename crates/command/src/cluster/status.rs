//! `testigo cluster status`.

use std::process::ExitCode;

use clap::Args;
use testigo_client::Value;

use crate::exit::Outcome;
use crate::lab::table::Table;
use crate::reach::Reach;
use crate::show::{plain, print_json, print_rows, rounded, with_truths};

/// Show the members of a cluster, who leads, who owns how much, and what has moved.
///
/// After a node was lost it shows what still waits, for whom and for how long, and how to end a
/// session that will not come back. Any node answers, as far as it knows; one that is cut off
/// shows that its lease is over and who led last.
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
        self.reach.end_with(async {
            let mut node = self.reach.open_any().await?;
            let mut status = with_truths(&node.say(&["CLUSTER", "STATUS"]).await?);
            // A node that cannot ask the others, or is of an earlier version, still has the rest to say.
            let waits = node.say(&["CLUSTER", "WAITS"]).await;
            if let (Value::Map(pairs), Ok(waits)) = (&mut status, waits) {
                pairs.push((Value::Text("waits".into()), waits));
            }
            match self.json {
                true => print_json(&status),
                false => {
                    print(&status);
                    print_waits(&status, &self.reach.as_said());
                }
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
    let number = |name: &str| status.field(name).and_then(Value::number);
    let rows = |name: &str| status.field(name).and_then(Value::list).unwrap_or_default();
    let leads = match status.field("cluster").and_then(Value::text) {
        None => {
            println!(
                "node {} is alone: it was started without --peer, and needs no leader and no lease",
                field("id")
            );
            String::new()
        }
        Some(cluster) => {
            println!(
                "cluster {cluster}, generation {}, seen by node {}",
                field("generation"),
                field("id")
            );
            let leader = match (number("leader"), number("last_leader")) {
                (Some(leader), _) => format!("leader {leader}"),
                (None, Some(last)) => format!("no leader known, the last one was {last}"),
                (None, None) => "no leader known".into(),
            };
            let lease = match number("lease_ms") {
                None | Some(0) => "no lease left".into(),
                Some(left) => format!("lease left {left} ms"),
            };
            format!("{leader}, term {}, {lease}, ", field("term"))
        }
    };
    println!(
        "{leads}view {}, applied {}",
        field("view"),
        field("applied")
    );
    println!(
        "highest shard number {} of {}, orphaned sessions {}",
        field("number"),
        field("number_max"),
        field("orphans")
    );
    println!();
    print_known(rows("members"), &MEMBERS);
    for id in rows("members").iter().filter_map(waits_to_be_let_in) {
        println!(
            "node {id} waits to be let in; a node that keeps crashing is let in after 1, 2, 4 … 60 s"
        );
    }
    let moves = rows("moves");
    if !moves.is_empty() {
        println!();
        print_known(moves, &MOVES);
    }
}

/// The columns in which there is something.
fn print_known(rows: &[Value], columns: &[&str]) {
    let known = |name: &&&str| {
        let mut values = rows.iter().map(|row| row.field(name));
        values.any(|value| value.is_some_and(|value| *value != Value::Null))
    };
    let columns: Vec<&str> = columns.iter().filter(known).copied().collect();
    print_rows(rows, &columns);
}

/// What waits after a node was lost, and how to end what will not come back.
fn print_waits(status: &Value, reach: &str) {
    let waits = status.field("waits").and_then(Value::list);
    for wait in waits.unwrap_or_default() {
        let field = |name: &str| wait.field(name).map_or_else(|| "-".into(), plain);
        let number = |name: &str| wait.field(name).and_then(Value::number).unwrap_or(0);
        let list = |name: &str| wait.field(name).and_then(Value::list).unwrap_or_default();
        let mut whom = Vec::new();
        match list("members") {
            [] => {}
            [one] => whom.push(format!("the report of node {}", plain(one))),
            _ => whom.push(format!("the reports of nodes {}", field("members"))),
        }
        match number("orphans") {
            0 => {}
            1 => whom.push("a session whose home is lost".into()),
            orphans => whom.push(format!("{orphans} sessions whose home is lost")),
        }
        println!();
        println!(
            "node {} does not open {} shards yet, for {}: it waits for {}",
            field("node"),
            field("shards"),
            rounded(number("waits_ms")),
            whom.join(" and ")
        );
        let sessions = list("sessions");
        if sessions.is_empty() {
            continue;
        }
        let mut table = Table::new(&["session", "label", "user", "home", "left", "to end it"]);
        for session in sessions {
            let cell = |name: &str| session.field(name).map_or_else(|| "-".into(), plain);
            let left = session.field("left_ms").and_then(Value::number);
            let end = format!("testigo session end{reach} {}", cell("session"));
            let left = rounded(left.unwrap_or(0)).to_string();
            let [id, label, user, home] = ["session", "label", "user", "home"].map(cell);
            table.row([id, label, user, home, left, end]);
        }
        table.print();
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
