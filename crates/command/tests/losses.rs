//! A node is lost that owned everything and was the home of many sessions. Some of their clients are lost with it. The others
//! keep what they hold, without waiting for those that nobody will hear of again.

mod up;

use std::time::{Duration, Instant};

use up::places::Places;
use up::{Client, Up, Value, ok};

/// Longer than everything that is waited for, even on a busy machine, and less than the orphans live.
const PATIENCE: Duration = Duration::from_secs(60);
const ORPHANS_TTL: &str = "60000";
const SURVIVORS: usize = 6;

struct Survivor {
    session: String,
    gate: String,
    fence: String,
    receipt: String,
}

fn opened(node: &Up, ttl: &str) -> (Client, String) {
    let mut client = node.client();
    let session = client.call(&["SESSION", "OPEN", "TTL", ttl]).int();
    (client, session.to_string())
}

/// A client that nobody hears of again; how it is connected with the node when that one is lost.
fn orphan(node: &Up, kind: &str, held: &str) -> Client {
    let (mut client, _) = opened(node, ORPHANS_TTL);
    match kind {
        "idle" => {}
        "lock" => assert!(matches!(client.call(&["LOCK", "dead"]), Value::Int(_))),
        "wait" => client.send(&["LOCK", held]),
        "set" => client.send(&["LOCKALL", "2", "a-part", held]),
        "election" => assert!(matches!(
            client.call(&["ELECT", "CAMPAIGN", "db", "here"]),
            Value::Int(_)
        )),
        "group" => assert!(!matches!(
            client.call(&["GROUP", "JOIN", "talk"]),
            Value::Error(_)
        )),
        "slot" => assert!(matches!(
            client.call(&["POOL", "TAKE", "ports"]),
            Value::List(_)
        )),
        "job" => {
            assert_eq!(client.call(&["PRESENT", "shop", "bill"]), ok());
            let taken = client.call(&["JOB", "TAKE", "orders"]);
            assert!(matches!(taken, Value::List(_)), "{taken:?}");
        }
        other => panic!("{other} is no kind"),
    }
    client
}

/// Everybody who survives resumes at another node. Says what they are told of their claims.
fn resume(node: &Up, survivors: &[Survivor]) {
    let deadline = Instant::now() + PATIENCE;
    for survivor in survivors {
        let Survivor {
            session,
            gate,
            fence,
            receipt,
        } = survivor;
        let words = [
            "SESSION", "RESUME", session, "HOLDING", "1", gate, fence, "RECEIPTS", receipt,
            "REASONS", "night",
        ];
        let mut client = node.client();
        loop {
            match client.call(&words) {
                Value::Error(why) => {
                    assert!(Instant::now() < deadline, "{gate}: {why}");
                }
                resumed => {
                    let held = Value::List(vec![Value::Text("HELD".into())]);
                    assert_eq!(resumed.at("claims"), &held, "{gate}");
                    break;
                }
            }
        }
    }
}

#[test]
fn a_lost_client_costs_nobody_else_a_lock_when_its_node_is_lost() {
    let places = Places::new(3);
    let [one, two, three] = places.three();
    let mut admin = one.client();
    let made = admin.call(&["POOL", "CREATE", "ports", "SLOTS", "9"]);
    assert_eq!(made, ok());
    let flow = ["FLOW", "APPLY", "shop", "intake -> [orders] -> bill"];
    assert!(!matches!(admin.call(&flow), Value::Error(_)));
    let create = ["JOB", "CREATE", "orders", "*", "a body"];
    assert!(matches!(admin.call(&create), Value::Int(_)));
    let mut clients = Vec::new();
    let survivors: Vec<Survivor> = (0..SURVIVORS)
        .map(|at| {
            let (mut client, session) = opened(&one, "60000");
            let gate = format!("gate-{at}");
            let words = ["LOCK", &gate, "REASON", "night", "RECEIPT"];
            let Value::List(told) = client.call(&words) else {
                panic!("nobody else wants {gate}");
            };
            let Value::Text(receipt) = &told[1] else {
                panic!("{told:?}");
            };
            clients.push(client);
            Survivor {
                session,
                gate,
                fence: told[0].int().to_string(),
                receipt: receipt.clone(),
            }
        })
        .collect();
    let kinds = [
        "idle", "lock", "wait", "set", "election", "group", "slot", "job",
    ];
    let orphans = kinds.map(|kind| orphan(&one, kind, "gate-0"));
    one.kill();
    drop(orphans);
    drop(clients);
    let (first, second) = survivors.split_at(SURVIVORS / 2);
    resume(&two, first);
    resume(&three, second);

    // Nobody has waited for the others: they are still awaited.
    let mut client = two.client();
    let status = client.call(&["CLUSTER", "STATUS"]);
    assert_eq!(status.at("orphans").int(), kinds.len() as i64);
    // The story of a hold has come along.
    let shown = client.call(&["GATE", "SHOW", "gate-1"]);
    let Value::List(holders) = shown.at("holders") else {
        panic!("{shown:?}");
    };
    assert_eq!(holders[0].at("reason"), &Value::Text("night".into()));
}
