//! The board for Grafana asks for metrics that a node has.

mod up;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;
use up::{Up, ok};

const BOARD: &str = include_str!("../../../packaging/grafana/testigo.json");

/// Every text below a key of that name, at any depth.
fn texts<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| texts(value, key, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == key => found.push(text),
                    _ => texts(value, key, found),
                }
            }
        }
        _ => {}
    }
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("testigo_"))
}

#[test]
fn every_metric_of_the_board_is_one_of_a_node() {
    let folder = tempfile::tempdir().expect("a folder");
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let peer = free.local_addr().expect("an address").to_string();
    drop(free);
    // A member shows the metrics of a cluster, and a flow those of its queues.
    let node = Up::start(folder.path(), &["--id", "1", "--peer", &peer]);
    let flow = ["FLOW", "APPLY", "shop", "intake -> [orders] -> bill"];
    assert_eq!(node.client().call(&flow), ok());
    let mut stream = TcpStream::connect(node.http()).expect("the node listens");
    let at = node.http();
    let head = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    let shown: BTreeSet<&str> = answer
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| names(line).next())
        .collect();

    let board: Value = serde_json::from_str(BOARD).expect("JSON");
    let mut asked = Vec::new();
    texts(&board, "expr", &mut asked);
    texts(&board, "query", &mut asked);
    let asked: BTreeSet<&str> = asked.iter().flat_map(|text| names(text)).collect();
    assert!(asked.len() > 30, "this is not the board: {asked:?}");
    let unknown: Vec<_> = asked.difference(&shown).collect();
    assert!(unknown.is_empty(), "{unknown:?} are no metrics: {shown:?}");
}
