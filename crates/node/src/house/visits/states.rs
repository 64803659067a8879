//! Merges the states of all members: collects their rows, adds up their numbers, and puts their times on one clock.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use testigo_core::estate::Peer;

pub(super) type State = Map<String, Value>;

/// One state made of those that each node told, from the point of view of one of them. It names the members that told
/// nothing, and has at most `rows_max` rows of a kind. `None` if no member told any.
pub(super) fn merged(
    told: BTreeMap<Peer, State>,
    own: Peer,
    members: &[Peer],
    rows_max: usize,
) -> Option<State> {
    let (mut state, told) = based(told, own, members)?;
    let now = number(&state, "now_ms");
    for (_, mut other) in told {
        let then = number(&other, "now_ms");
        move_times(&mut other, now - then);
        add(&mut state, other);
    }
    unite_gates(&mut state);
    unite_pools(&mut state);
    let sessions = |row: &Value| row["session"].as_u64();
    let gates = |row: &Value| (is_idle(row), row["name"].as_str().map(str::to_owned));
    cut(&mut state, "gates", gates, rows_max);
    cut(&mut state, "sessions", sessions, rows_max);
    let by_name = |row: &Value| row["name"].as_str().map(str::to_owned);
    cut(&mut state, "elections", by_name, rows_max);
    cut(&mut state, "pools", by_name, rows_max);
    if let Some(Value::Array(edges)) = state.get_mut("edges") {
        edges.truncate(rows_max);
    }
    Some(state)
}

/// The state to which the others are added, naming the members that told nothing; and the others.
pub(super) fn based(
    mut told: BTreeMap<Peer, State>,
    own: Peer,
    members: &[Peer],
) -> Option<(State, BTreeMap<Peer, State>)> {
    let silent = members.iter().filter(|member| !told.contains_key(member));
    let missing: Vec<u64> = silent.map(|(node, _)| node.0).collect();
    let base = match told.contains_key(&own) {
        true => own,
        false => *told.keys().next()?,
    };
    let mut state = told.remove(&base)?;
    state.insert("missing".into(), missing.into());
    Some((state, told))
}

/// Unites the parts of a gate that several nodes know.
fn unite_gates(state: &mut State) {
    let Some(Value::Array(gates)) = state.get_mut("gates") else {
        return;
    };
    let is_spread = |gate: &Value| {
        gate["nodes"]
            .as_array()
            .is_some_and(|nodes| !nodes.is_empty())
    };
    let (parts, mut whole): (Vec<Value>, Vec<Value>) =
        std::mem::take(gates).into_iter().partition(is_spread);
    let mut united: BTreeMap<String, Value> = BTreeMap::new();
    for part in parts {
        let name = part["name"].as_str().unwrap_or_default().to_owned();
        let Some(gate) = united.get_mut(&name) else {
            united.insert(name, part);
            continue;
        };
        for people in ["holders", "waiters", "nodes"] {
            if let (Value::Array(rows), Value::Array(more)) = (&mut gate[people], &part[people]) {
                rows.extend(more.iter().cloned());
            }
        }
        for sum in ["inside", "waiting"] {
            let both = gate[sum].as_u64().unwrap_or(0) + part[sum].as_u64().unwrap_or(0);
            gate[sum] = both.into();
        }
    }
    whole.extend(united.into_values());
    *gates = whole;
}

/// Unites the parts of a pool that all nodes have.
fn unite_pools(state: &mut State) {
    let Some(Value::Array(pools)) = state.get_mut("pools") else {
        return;
    };
    let mut united: BTreeMap<String, Value> = BTreeMap::new();
    for mut part in std::mem::take(pools) {
        let name = part["name"].as_str().unwrap_or_default().to_owned();
        match united.get_mut(&name) {
            None => drop(united.insert(name, part)),
            Some(pool) => {
                if let (Value::Array(nodes), Value::Array(more)) =
                    (&mut pool["nodes"], &mut part["nodes"])
                {
                    nodes.append(more);
                }
            }
        }
    }
    *pools = united.into_values().collect();
}

fn number(state: &State, name: &str) -> i64 {
    state.get(name).and_then(Value::as_i64).unwrap_or(0)
}

fn is_idle(gate: &Value) -> bool {
    let nobody = |people: &str| gate[people].as_u64() == Some(0);
    nobody("inside") && nobody("waiting")
}

/// Converts the times of a member to another's clock.
fn move_times(state: &mut State, by: i64) {
    const TIMES: [&str; 3] = ["since", "until", "heard"];
    let rows = |value: Option<&mut Value>, each: &mut dyn FnMut(&mut Value)| {
        if let Some(Value::Array(rows)) = value {
            rows.iter_mut().for_each(each);
        }
    };
    let mut move_row = |row: &mut Value| {
        for time in TIMES {
            if let Some(value) = row.get_mut(time)
                && let Some(at) = value.as_u64()
            {
                // What began before that clock did is said to begin with it.
                *value = at.saturating_add_signed(by).into();
            }
        }
    };
    rows(state.get_mut("sessions"), &mut move_row);
    rows(state.get_mut("elections"), &mut |election| {
        if let Some(leader) = election.get_mut("leader") {
            move_row(leader);
        }
        for people in ["candidates", "terms"] {
            rows(election.get_mut(people), &mut move_row);
        }
    });
    rows(state.get_mut("gates"), &mut |gate| {
        for people in ["holders", "waiters"] {
            rows(gate.get_mut(people), &mut move_row);
        }
    });
}

/// Adds another member's rows and numbers; everything else is the first one's.
fn add(state: &mut State, other: State) {
    for (name, value) in other {
        let is = value.as_bool() == Some(true);
        // All members hear of the same donations, and have the same pools, groups and decisions.
        let same = [
            "missing",
            "donations",
            "pools_more",
            "groups",
            "groups_more",
        ];
        if same.contains(&&*name) || name.starts_with("decisions") {
            continue;
        }
        match (state.get_mut(&name), value) {
            (Some(Value::Array(rows)), Value::Array(more)) => rows.extend(more),
            (Some(Value::Object(sums)), Value::Object(more)) => {
                for (name, value) in more {
                    add_number(sums, name, &value);
                }
            }
            (Some(Value::Number(_)), value) if name.ends_with("_more") || name == "awaited" => {
                add_number(state, name, &value);
            }
            (Some(highest), value) if name == "number" => {
                *highest = highest.as_u64().max(value.as_u64()).into();
            }
            (Some(Value::Bool(any)), _) if name == "recovering" => *any |= is,
            (Some(Value::Bool(all)), _) if name == "everything_waits" => *all &= is,
            (Some(_), _) => {}
            (None, value) => drop(state.insert(name, value)),
        }
    }
}

fn add_number(sums: &mut State, name: String, value: &Value) {
    let before = sums.get(&name).and_then(Value::as_u64).unwrap_or(0);
    let sum = before.saturating_add(value.as_u64().unwrap_or(0));
    sums.insert(name, sum.into());
}

/// Sorts rows, and cuts and counts those beyond the cap.
fn cut<K: Ord>(state: &mut State, rows: &str, by: impl Fn(&Value) -> K, rows_max: usize) {
    let Some(Value::Array(shown)) = state.get_mut(rows) else {
        return;
    };
    shown.sort_by_cached_key(by);
    let more = shown.len().saturating_sub(rows_max);
    shown.truncate(rows_max);
    add_number(state, format!("{rows}_more"), &more.into());
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use testigo_core::{NodeId, Start};

    use super::*;

    const MEMBERS: [Peer; 3] = [
        (NodeId(1), Start(1)),
        (NodeId(2), Start(4)),
        (NodeId(3), Start(1)),
    ];

    fn gate(name: &str, since: u64) -> Value {
        json!({"name": name, "inside": 1, "waiting": 0, "waiters": [],
               "holders": [{"session": 7, "since": since, "until": null}]})
    }

    fn told(states: [Option<Value>; 3]) -> BTreeMap<Peer, State> {
        let told = MEMBERS.iter().zip(states).filter_map(|(member, state)| {
            let state = state?.as_object().cloned();
            Some((*member, state.unwrap()))
        });
        told.collect()
    }

    fn state(now_ms: u64, gates: Value) -> Value {
        json!({"now_ms": now_ms, "gates": gates, "gates_more": 0, "sizes": {"gates": 1}, "start": now_ms,
               "recovering": now_ms == 90, "everything_waits": now_ms == 90, "number": now_ms, "sessions": [], "edges": []})
    }

    #[test]
    fn times_of_another_clock_are_as_long_ago_as_there() {
        let idle = json!([{"name": "a", "inside": 0, "waiting": 0}]);
        let states = [
            Some(state(1_000, json!([gate("c", 400)]))),
            Some(state(90, json!([gate("b", 30)]))),
            Some(state(50_000, idle)),
        ];
        let all = merged(told(states), MEMBERS[0], &MEMBERS, 200).unwrap();
        let names: Vec<_> = all["gates"].as_array().unwrap().iter().collect();
        let names: Vec<&str> = names
            .iter()
            .map(|gate| gate["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["b", "c", "a"], "those in use come first");
        let since = |at: usize| all["gates"][at]["holders"][0]["since"].as_u64();
        assert_eq!((since(0), since(1)), (Some(940), Some(400)));
        assert_eq!(all["sizes"]["gates"], 3);
        assert_eq!(
            (&all["start"], &all["number"]),
            (&json!(1_000), &json!(50_000))
        );
        assert_eq!(
            (&all["recovering"], &all["everything_waits"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(all["missing"], json!([]));
    }

    #[test]
    fn whoever_told_nothing_is_named() {
        let states = [None, Some(state(90, json!([gate("b", 30)]))), None];
        let some = merged(told(states), MEMBERS[0], &MEMBERS, 200).unwrap();
        assert_eq!(some["missing"], json!([1, 3]));
        assert_eq!(some["gates"][0]["name"], "b");
        assert!(merged(BTreeMap::new(), MEMBERS[0], &MEMBERS, 200).is_none());
    }

    #[test]
    fn rows_that_are_left_out_are_counted() {
        let of = |names: [&str; 2]| state(90, json!([gate(names[0], 1), gate(names[1], 1)]));
        let states = [Some(of(["d", "b"])), Some(of(["c", "a"])), None];
        let cut = merged(told(states), MEMBERS[0], &MEMBERS, 3).unwrap();
        assert_eq!(cut["gates"].as_array().unwrap().len(), 3);
        assert_eq!(cut["gates"][2]["name"], "c");
        assert_eq!(cut["gates_more"], 1);
    }
}
