//! Real nodes, clients that come to a gate, and what `testigo advise` says of it.

mod up;

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use testigo_core::Using;
use up::places::Places;
use up::{Client, Value, ok};

/// Longer than everything that is waited for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn until(client: &mut Client, words: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = client.call(words);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{words:?}: {answer:?}");
    }
}

fn advise(gate: &str, node: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_testigo"));
    command.args(["advise", gate, "--resp", node]).args(more);
    command.output().expect("it runs")
}

/// So many visits, from one node after the other.
fn visit(clients: &mut [Client], gate: &str, visits: usize) {
    let is_int = |answer: &Value| matches!(answer, Value::Int(_));
    for n in 0..visits {
        let client = &mut clients[n % 3];
        until(client, &["LOCK", gate, "WAIT", "5000"], is_int);
        assert_ne!(client.call(&["UNLOCK", gate]), Value::Nil);
    }
}

#[test]
fn every_algorithm_is_forecast_and_the_one_in_use_is_measured_too() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut clients = [one.client(), two.client(), three.client()];
    let node = two.address.to_string();
    let raymond = [
        "GATE", "CREATE", "site", "MUTEX", "USING", "raymond", "BURST", "2",
    ];
    until(&mut clients[0], &raymond, |answer| *answer == ok());
    let none = advise("site", &node, &[]);
    assert_eq!(none.status.code(), Some(1));
    let said = String::from_utf8_lossy(&none.stderr);
    assert!(said.contains("nobody came to gate site"), "{said}");

    visit(&mut clients, "site", 60);
    let advice = advise("site", &node, &["--json"]);
    let said = String::from_utf8_lossy(&advice.stderr);
    assert_eq!(advice.status.code(), Some(0), "{said}");
    let advice: Json = serde_json::from_slice(&advice.stdout).expect("JSON");
    assert_eq!(advice["arrivals"], 60, "{advice}");
    assert_eq!(
        (&advice["using"], &advice["nodes"]),
        (&"raymond".into(), &3.into())
    );
    let rows = advice["predicted"].as_array().expect("rows");
    let names: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["algorithm"].as_str())
        .collect();
    assert_eq!(names, Using::ALL.map(Using::name));
    let of = |name: &str, what: &str| {
        let row = rows
            .iter()
            .find(|row| row["algorithm"] == name)
            .expect("a row");
        row[what]["mean"].as_f64().expect("a number")
    };
    // Whoever asks everybody sends more than whoever asks along a tree; as published, and as measured.
    let (by_all, by_tree) = (
        of("ricart-agrawala", "messages_per_hand_over"),
        of("raymond", "messages_per_hand_over"),
    );
    assert_eq!(by_all, 4.0);
    assert!(by_tree < by_all, "{by_tree}");
    let measured = advice["measured"]["messages_per_hand_over"].as_f64();
    let measured = measured.expect("hand-overs");
    assert!((measured - by_tree).abs() < 0.5, "{measured} and {by_tree}");

    let table = advise("site", &node, &["--since", "10m"]);
    let table = String::from_utf8(table.stdout).expect("text");
    assert!(
        table.contains("raymond *") && table.contains("  measured"),
        "{table}"
    );

    // A gate of the log is forecast, too; and one that is neither a mutex nor shared is not.
    let plain = ["GATE", "CREATE", "plain", "MUTEX"];
    until(&mut clients[0], &plain, |answer| *answer == ok());
    visit(&mut clients, "plain", 9);
    let table = advise("plain", &node, &[]);
    let table = String::from_utf8(table.stdout).expect("text");
    assert!(
        table.contains("9 arrivals") && table.contains("log *"),
        "{table}"
    );
    let permits = ["GATE", "CREATE", "many", "PERMITS", "3"];
    until(&mut clients[0], &permits, |answer| *answer == ok());
    assert_eq!(advise("many", &node, &[]).status.code(), Some(1));
    drop((one, two, three));
}
