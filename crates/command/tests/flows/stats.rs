//! What a node measures of a flow, and what is made of it: statistics, the model, the simulation, a job's history.

use serde_json::Value;

use crate::running::Node;
use crate::scene::{ORDERS, create, node_with};

fn worked() -> Node {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1", "o-2", "o-3"]);
    let price = node.run("work f price --drain", "cat");
    assert_eq!(price.code, 0, "{}", price.stderr);
    let bill = node.run("work f bill --drain", "cat > /dev/null");
    assert_eq!(bill.code, 0, "{}", bill.stderr);
    node
}

fn named<'a>(rows: &'a Value, name: &str) -> &'a Value {
    let rows = rows.as_array().expect("rows");
    let found = rows.iter().find(|row| row["name"] == name);
    found.expect(name)
}

#[test]
fn a_node_counts_what_its_flows_do() {
    let node = worked();
    let stats = node.json("flow stats f");
    let orders = named(&stats["queues"], "orders");
    assert_eq!(
        (&orders["arrivals"], &orders["created"]),
        (&3.into(), &3.into())
    );
    assert_eq!(orders["departures"], 3);
    assert!(orders["wait_p99_ms"].is_number(), "{orders}");
    let priced = named(&stats["queues"], "priced");
    assert_eq!(
        (&priced["arrivals"], &priced["created"]),
        (&3.into(), &0.into())
    );
    let price = named(&stats["processes"], "price");
    assert_eq!((&price["ended"], &price["passed"]), (&3.into(), &3.into()));
    assert_eq!(price["ways"][0]["queue"], "priced");
    assert_eq!(price["ways"][0]["passed"], 3);
    assert_eq!(named(&stats["processes"], "bill")["deleted"], 3);
    assert_eq!(
        named(&stats["processes"], "clerk")["utilisation"],
        Value::Null
    );
    let queue = node.json("queue show f/orders");
    assert_eq!(
        (&queue["arrivals"], &queue["departures"]),
        (&3.into(), &3.into())
    );

    let table = node.run("flow stats f --since 15m", "");
    assert_eq!(table.code, 0, "{}", table.stderr);
    for word in ["PROCESS", "price", "QUEUE", "orders", "REJECTS"] {
        assert!(table.stdout.contains(word), "{}", table.stdout);
    }
    assert_eq!(node.run("flow stats none", "").code, 2);
    assert_eq!(node.run("flow stats f --since soon", "").code, 2);
}

#[test]
fn what_was_measured_feeds_the_model_and_the_simulation() {
    let node = worked();
    let forecast = node.json("flow model --running f");
    let price = named(&forecast["processes"], "price");
    assert!(price["taken"].as_f64().is_some_and(|taken| taken > 0.0));
    let both = node.json("flow simulate --running f --time 100");
    assert!(both["model"]["time"].is_number(), "{both}");
    let model = node.run("flow model --running f", "");
    assert!(
        model.stderr.contains("clerk was not seen working"),
        "{}",
        model.stderr
    );
    // The measured load is a text, to be changed and tried.
    let load = node.run("flow model --running f --template", "");
    assert!(
        load.stdout.starts_with("create intake -> [orders] "),
        "{}",
        load.stdout
    );
    std::fs::write(node.file("measured.load"), &load.stdout).expect("a file");
    let again = node.run("flow model f.flow --load measured.load", "");
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(node.run("flow model --running none", "").code, 2);
    assert_eq!(node.run("flow simulate", "").code, 2);
}

/// Nothing arrives, so nothing has a time, and nothing is wrong.
#[test]
fn a_flow_without_jobs_can_be_modelled_and_simulated() {
    let node = node_with(ORDERS);
    let forecast = node.json("flow model --running f");
    assert_eq!(
        (&forecast["time"], &forecast["bottleneck"]),
        (&Value::Null, &Value::Null)
    );
    let model = node.run("flow model --running f", "");
    assert_eq!(model.code, 0, "{}", model.stderr);
    assert!(
        model.stdout.contains("time in the flow   -\n"),
        "{}",
        model.stdout
    );
    let run = node.run("flow simulate --running f", "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    for wrong in ["NaN", "-0.0", "STOOD STILL"] {
        assert!(!run.stdout.contains(wrong), "{}", run.stdout);
    }
}

#[test]
fn a_jobs_way_is_told_while_it_lives_and_after_its_end() {
    let node = node_with(ORDERS);
    create(&node, "f/orders", &["o-1"]);
    let failed = node.run("work f price --once", "exit 9");
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let history = node.json("job history 1");
    assert_eq!(
        (&history["state"], &history["ended"]),
        (&"waiting".into(), &Value::Null)
    );
    assert_eq!(history["hops"][0]["how"], "died");
    node.run("work f price --drain", "cat");
    node.run("work f bill --drain", "cat > /dev/null");
    let history = node.json("job history 1");
    assert_eq!(history["state"], "ended");
    let hops = history["hops"].as_array().expect("hops");
    let told: Vec<(&str, &str)> = hops
        .iter()
        .map(|hop| (hop["queue"].as_str().unwrap(), hop["how"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("f/orders", "died"),
            ("f/orders", "passed"),
            ("f/priced", "deleted")
        ]
    );
    assert!(
        hops.iter()
            .all(|hop| hop["by"].as_str().is_some_and(|by| by.contains('@')))
    );
    assert!(node.run("job history 1", "").stdout.contains("deleted"));
    assert_eq!(node.run("job show 1", "").code, 2);
    assert_eq!(node.run("job history 99", "").code, 2);
}
