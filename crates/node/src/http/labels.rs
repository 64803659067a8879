//! What a cluster member adds to its metrics: its number as a label on all of them, and the standing of its cluster.

use std::fmt::Write;

use crate::cluster::Wait;
use crate::house::House;

/// The metrics of a cluster; empty if the node is not a member of one.
pub(super) fn cluster_metrics(house: &House) -> String {
    let standing = house.standing();
    let mut text = String::new();
    if !standing.member {
        return text;
    }
    let replicated = house.replicated();
    let orphans = replicated.sessions();
    let orphans = orphans.filter(|(_, session)| replicated.is_orphan(session));
    let own = replicated.ownership().runs();
    let own = own.filter(|(_, title)| title.owner == standing.node);
    let own: usize = own.map(|(shards, _)| shards.len()).sum();
    let waits = house.waits();
    let longest = |of: fn(&Wait) -> u64| waits.iter().map(of).max().unwrap_or(0);
    for (name, kind, help, value) in [
        (
            "leads",
            "gauge",
            "1 while this node leads.",
            u64::from(standing.leader == Some(standing.node.0)),
        ),
        ("term", "gauge", "The term of the leader.", standing.term),
        (
            "lease_seconds",
            "gauge",
            "What is left of this node's lease.",
            standing.lease_left_ms.unwrap_or(0),
        ),
        (
            "shards",
            "gauge",
            "Shards that this node owns, of 65536.",
            own as u64,
        ),
        (
            "voters",
            "gauge",
            "Nodes that decide.",
            standing.voters.len() as u64,
        ),
        (
            "members_in_view",
            "gauge",
            "Nodes that are in.",
            replicated.view().members.len() as u64,
        ),
        (
            "orphans",
            "gauge",
            "Sessions whose home is lost.",
            orphans.count() as u64,
        ),
        (
            "shut_shards",
            "gauge",
            "Shards that this node owns and does not open yet, because others may be inside.",
            waits.iter().map(|wait| wait.shards as u64).sum(),
        ),
        (
            "shut_seconds",
            "gauge",
            "For how long some of them have been shut.",
            longest(|wait| wait.waits_ms),
        ),
        (
            "awaited_members",
            "gauge",
            "Members that have not reported what their sessions hold there.",
            longest(|wait| wait.members.len() as u64),
        ),
        (
            "awaited_orphans",
            "gauge",
            "Sessions whose home is lost that may hold something there.",
            longest(|wait| wait.orphans as u64),
        ),
        (
            "awaited_seconds",
            "gauge",
            "How long these sessions may still be awaited.",
            longest(|wait| wait.left_ms.unwrap_or(0)),
        ),
        (
            "applied_index",
            "gauge",
            "How far the log was applied here.",
            standing.applied,
        ),
        (
            "moves_total",
            "counter",
            "Moves of shards between nodes that this node has seen.",
            house.moves().ever(),
        ),
    ] {
        let value = match name {
            seconds if seconds.ends_with("_seconds") => value as f64 / 1000.0,
            _ => value as f64,
        };
        let _ = writeln!(
            text,
            "# HELP testigo_cluster_{name} {help}\n# TYPE testigo_cluster_{name} {kind}\ntestigo_cluster_{name} {value}"
        );
    }
    text
}

/// Puts a node's number on every line.
pub(super) fn labelled(text: &str, node: u64) -> String {
    let mut labelled = String::with_capacity(text.len() + text.len() / 4);
    for line in text.lines() {
        let value = match line.starts_with('#') {
            true => None,
            false => line.rsplit_once(' '),
        };
        let _ = match value {
            None => writeln!(labelled, "{line}"),
            Some((name, value)) => match name.split_once('{') {
                None => writeln!(labelled, "{name}{{node=\"{node}\"}} {value}"),
                Some((name, labels)) => {
                    writeln!(labelled, "{name}{{node=\"{node}\",{labels} {value}")
                }
            },
        };
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_numbers_gets_the_node() {
        let text = "# HELP a Some { text }.\n# TYPE a gauge\na 1\nb{queue=\"x y\"} 2.5\n";
        let expected = "# HELP a Some { text }.\n# TYPE a gauge\na{node=\"7\"} 1\nb{node=\"7\",queue=\"x y\"} 2.5\n";
        assert_eq!(labelled(text, 7), expected);
    }
}
