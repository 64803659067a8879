//! The names that a node knows: for completions, and for whoever wrote one slightly wrong.

use std::time::Duration;

use testigo_client::{Connection, Value};
use testigo_node::nearest;
use tokio::time::timeout;

/// The longest that somebody who waits for names waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Gates.
    Gate,
    /// Elections.
    Election,
    /// Queues, as FLOW/QUEUE.
    Queue,
    /// Flows.
    Flow,
    /// Pools.
    Pool,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Gate => "gate",
            Kind::Election => "election",
            Kind::Queue => "queue",
            Kind::Flow => "flow",
            Kind::Pool => "pool",
        })
    }
}

/// What a refusal's sentence says that there is not.
pub(crate) fn missing(why: &str) -> Option<(Kind, &str)> {
    let kinds = [
        ("there is no gate ", Kind::Gate),
        ("there is no queue ", Kind::Queue),
        ("there is no flow ", Kind::Flow),
        ("nobody leads ", Kind::Election),
        ("there is no pool ", Kind::Pool),
    ];
    kinds.iter().find_map(|(begin, kind)| {
        let (name, _) = why.strip_prefix(begin)?.split_once(';')?;
        Some((*kind, name))
    })
}

/// The names of a kind, as far as the user may see them. Nothing when the node does not answer soon.
pub(crate) async fn names(node: &mut Connection, kind: Kind) -> Vec<String> {
    let list: &[&str] = match kind {
        Kind::Gate => &["GATE", "LIST"],
        Kind::Election => &["ELECT", "LIST"],
        Kind::Queue => &["QUEUE", "LIST", "*"],
        Kind::Flow => &["FLOW", "LIST"],
        Kind::Pool => &["POOL", "LIST"],
    };
    let Ok(Ok(rows)) = timeout(PATIENCE, node.say(list)).await else {
        return Vec::new();
    };
    let name = |row: &Value| {
        let name = row.field("name").or(row.list().and_then(<[_]>::first));
        name.and_then(Value::text).map(str::to_owned)
    };
    let rows = rows.list().unwrap_or_default();
    rows.iter().filter_map(name).collect()
}

/// The name that may have been meant. A queue's name may stand without its flow.
pub(crate) fn meant<'a>(wrong: &str, names: &'a [String]) -> Option<&'a str> {
    let whole = nearest(wrong, names.iter().map(String::as_str));
    whole.or_else(|| {
        let short = |name: &'a String| Some((name.split_once('/')?.1, name.as_str()));
        let short: Vec<(&str, &str)> = names.iter().filter_map(short).collect();
        let near = nearest(wrong, short.iter().map(|(short, _)| *short))?;
        short
            .iter()
            .find(|(short, _)| *short == near)
            .map(|(_, name)| *name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_read_from_the_sentence() {
        let why = "there is no gate deploi; `testigo gate create` makes one";
        assert_eq!(missing(why), Some((Kind::Gate, "deploi")));
        let why = "nobody leads bd; nobody is a candidate";
        assert_eq!(missing(why), Some((Kind::Election, "bd")));
        let why = "there is no pool prots; `testigo pool create` makes one";
        assert_eq!(missing(why), Some((Kind::Pool, "prots")));
        assert_eq!(missing("there is no job 7; it was deleted"), None);
    }

    #[test]
    fn a_queue_is_meant_with_and_without_its_flow() {
        let names = ["shop/orders", "shop/priced"].map(str::to_owned);
        assert_eq!(meant("shop/order", &names), Some("shop/orders"));
        assert_eq!(meant("ordesr", &names), Some("shop/orders"));
        assert_eq!(meant("melons", &names), None);
    }
}
