//! Merges the flows of all members: for each queue what its owner knows, for processes and arrows the sums.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use testigo_core::estate::Peer;

use super::states::{State, based};

/// The flows that each node told, merged from the point of view of one of them, naming the members that told nothing. `None`
/// if no member told any.
pub(super) fn merged(told: BTreeMap<Peer, State>, own: Peer, members: &[Peer]) -> Option<State> {
    let (mut state, told) = based(told, own, members)?;
    let flows = state.get_mut("flows").and_then(Value::as_array_mut);
    let mut flows: HashMap<String, &mut Value> = by_key(flows, &["name", "mark"]);
    for ((node, _), mut other) in told {
        let others = other.get_mut("flows").and_then(Value::as_array_mut);
        for (key, other) in by_key(others, &["name", "mark"]) {
            // If a flow was changed between two answers, the first one counts.
            if let Some(flow) = flows.get_mut(&key) {
                add(flow, other, node.0);
            }
        }
    }
    Some(state)
}

/// Rows by the values that name them.
fn by_key<'a>(rows: Option<&'a mut Vec<Value>>, names: &[&str]) -> HashMap<String, &'a mut Value> {
    let rows = rows.into_iter().flatten();
    let keyed = rows.map(|row| {
        let key: Vec<String> = names.iter().map(|name| row[*name].to_string()).collect();
        (key.join(" "), row)
    });
    keyed.collect()
}

fn add(flow: &mut Value, other: &mut Value, node: u64) {
    let mut each = |rows: &str, names: &[&str], merge: &dyn Fn(&mut Value, &mut Value)| {
        let own = flow.get_mut(rows).and_then(Value::as_array_mut);
        let mut own = by_key(own, names);
        let others = other.get_mut(rows).and_then(Value::as_array_mut);
        for (key, other) in by_key(others, names) {
            if let Some(row) = own.get_mut(&key) {
                merge(row, other);
            }
        }
    };
    each("queues", &["name"], &|queue, other| {
        if other["owner"] == node {
            *queue = other.take();
        }
    });
    each("processes", &["name"], &|process, other| {
        add_number(process, other, "clients");
    });
    each("arrows", &["process", "queue", "into"], &|arrow, other| {
        add_number(arrow, other, "count");
        add_number(arrow, other, "per_second");
    });
}

fn add_number(row: &mut Value, other: &Value, name: &str) {
    let sum = match (row[name].as_u64(), other[name].as_u64()) {
        (Some(one), Some(two)) => one.saturating_add(two).into(),
        _ => {
            let real = |row: &Value| row[name].as_f64().unwrap_or(0.0);
            (real(row) + real(other)).into()
        }
    };
    if let Some(number) = row.get_mut(name) {
        *number = sum;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testigo_core::{NodeId, Start};

    use super::*;

    fn told(node: u64, waiting: u64, mark: &str) -> (Peer, State) {
        let flow = json!({"name": "shop", "mark": mark,
            "queues": [{"name": "orders", "owner": 2, "waiting": waiting}],
            "processes": [{"name": "bill", "clients": node}],
            "arrows": [{"process": "bill", "queue": "orders", "into": false, "count": node, "per_second": 0.5}]});
        let state = json!({"now_ms": 1, "flows": [flow]});
        let state = state.as_object().cloned();
        ((NodeId(node), Start(1)), state.unwrap())
    }

    #[test]
    fn a_queue_is_as_its_owner_says_and_clients_are_added_up() {
        let members = [1, 2, 3, 4].map(|node| (NodeId(node), Start(1)));
        let all = [told(1, 9, "m"), told(2, 4, "m"), told(3, 9, "another text")];
        let merged = merged(BTreeMap::from(all), members[0], &members).unwrap();
        let flow = &merged["flows"][0];
        assert_eq!(flow["queues"][0]["waiting"], 4);
        assert_eq!(flow["processes"][0]["clients"], 3);
        assert_eq!(flow["arrows"][0]["count"], 3);
        assert_eq!(flow["arrows"][0]["per_second"], 1.0);
        assert_eq!(merged["missing"], json!([4]));
    }
}
