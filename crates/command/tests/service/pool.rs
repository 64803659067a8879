//! `testigo pool`: slots that outlive a lost node, names that were misspelt, and what people are shown.

use rustix::process::Signal;
use testigo_client::{Address, Client, Loss, SessionOptions, State, Take};

use crate::running::{Node, Running};

#[test]
fn a_command_keeps_its_slots_across_a_killed_node() {
    let mut node = Node::start();
    assert_eq!(node.run("pool create ports --slots 3", "").code, 0);
    let held = "echo $TESTIGO_POOL $TESTIGO_SLOT; read line; echo $line";
    let mut holder = node.begin("pool take ports --count 2 --ttl 60s", held);
    holder.expect("ports 0 1");
    node.kill();
    node.restart();
    // What it has is claimed, and the rest is free for others.
    node.until("pool show ports", |pool| {
        pool["taken"].as_array().is_some_and(|taken| {
            pool["free"] == 1 && taken.len() == 2 && taken.iter().all(|row| row["session"].is_u64())
        })
    });
    let other = node.run("pool take ports", "echo $TESTIGO_SLOT");
    assert_eq!((other.code, &other.stdout[..]), (0, "2\n"));
    let none = node.run("pool take ports --count 2", "true");
    assert_eq!(none.code, 75, "{}", none.stderr);
    assert_eq!(holder.end().code, 0);
    assert_eq!(node.json("pool show ports")["free"], 3);
}

#[test]
fn a_pool_is_not_deleted_while_a_command_may_come_back_to_its_slot() {
    let mut node = Node::start();
    assert_eq!(node.run("pool create ports --slots 1", "").code, 0);
    let mut holder = node.begin("pool take ports --ttl 60s", "echo in; cat");
    holder.expect("in");
    // The connection is held up while the node goes on without the session.
    holder.signal(Signal::STOP);
    node.kill();
    node.restart();
    let deleted = node.run("pool delete ports", "");
    assert_eq!(deleted.code, 75, "{}", deleted.stderr);
    holder.signal(Signal::CONT);
    let ended = holder.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn waiting_takes_are_served_in_their_order_and_give_up_on_a_signal() {
    let node = Node::start();
    assert_eq!(node.run("pool create gpus --slots 1", "").code, 0);
    let mut first = node.begin("pool take gpus", "echo in; cat");
    first.expect("in");
    let begin = |waiting: u64| {
        let begun = node.begin("pool take gpus --wait 10m", "echo in; cat");
        node.until("pool show gpus", |pool| pool["waiting"] == waiting);
        begun
    };
    let (mut second, third) = (begin(1), begin(2));
    third.signal(Signal::INT);
    assert_eq!(third.wait().code, 130);
    node.until("pool show gpus", |pool| pool["waiting"] == 1);
    let shown = node.run("pool show gpus", "");
    assert!(shown.stdout.contains("\nwaiting\n"), "{}", shown.stdout);
    assert_eq!(first.end().code, 0);
    second.expect("in");
    assert_eq!(second.end().code, 0);
    assert_eq!(node.json("pool show gpus")["free"], 1);
}

#[test]
fn a_misspelt_pool_is_pointed_out() {
    let node = Node::start();
    assert_eq!(node.run("pool create ports --slots 3", "").code, 0);
    for line in ["pool show prots", "pool delete port"] {
        let ended = node.run(line, "");
        assert_eq!(ended.code, 2);
        assert!(
            ended.stderr.contains("did you mean ports?"),
            "{}",
            ended.stderr
        );
    }
    let ended = node.run("pool take prots", "true");
    assert!(
        ended.stderr.contains("did you mean ports?"),
        "{}",
        ended.stderr
    );
}

/// What was wrong with a command line, and what would be right.
#[test]
fn what_is_wrong_in_a_command_line_is_said() {
    let node = Node::start();
    assert_eq!(node.run("pool create ports --slots 1", "").code, 0);
    let refused = |line: &[&str], why: &str| {
        let mut words = vec!["pool"];
        words.extend(line);
        let ended = Running::start(node.command(words)).end();
        assert_eq!(ended.code, 2, "{line:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(why), "{line:?}: {}", ended.stderr);
    };
    let most = "write a whole number such as 8; a pool has at most 1048576 slots";
    for number in ["-1", "2.5", "5000000000"] {
        refused(&["create", "p", "--slots", number], most);
        refused(&["take", "ports", "--count", number, "--", "true"], most);
        refused(&["take", "ports", "--upto", number, "--", "true"], most);
    }
    refused(&["create", "p", "--slots", "2", "--free-low", "-1"], most);
    // Variables that are not set.
    for line in [
        &["show", ""][..],
        &["delete", ""],
        &["take", "", "--", "true"],
    ] {
        refused(line, "a name is empty");
    }
    refused(&["take", "ports", "--where", "", "--", "true"], "--where");
    // None is free, and how to get one.
    let mut holder = node.begin("pool take ports", "echo in; cat");
    holder.expect("in");
    let none = node.run("pool take ports", "true");
    assert_eq!(none.code, 75);
    assert!(
        none.stderr.contains("no free slot at this node"),
        "{}",
        none.stderr
    );
    assert!(
        none.stderr.contains("testigo pool show ports"),
        "{}",
        none.stderr
    );
    assert!(none.stderr.contains("--wait 5s"), "{}", none.stderr);
    assert_eq!(holder.end().code, 0);
}

#[test]
fn a_pool_in_use_is_not_deleted_and_is_shown_plainly() {
    let node = Node::start();
    assert_eq!(
        node.run("pool create ports --slots 3 --free-low 1", "")
            .code,
        0
    );
    let mut holder = node.begin("pool take ports", "echo in; cat");
    holder.expect("in");
    let refused = node.run("pool delete ports", "");
    assert_eq!(refused.code, 75);
    assert!(
        refused.stderr.contains("1 in use at node 1"),
        "{}",
        refused.stderr
    );
    let shown = node.run("pool show ports", "").stdout;
    let first = "ports: 3 slots, 2 free, 1 used, 0 waiting; a node with none free asks the others";
    assert_eq!(shown.lines().next(), Some(first));
    let json = node.json("pool show ports");
    assert_eq!(
        json["owners"][0],
        serde_json::json!({"first": "0", "last": "2", "node": 1})
    );
    assert_eq!(holder.end().code, 0);
    assert_eq!(node.run("pool delete ports", "").code, 0);
}

#[tokio::test]
async fn the_client_keeps_slots_while_its_session_lives() {
    let mut node = Node::start();
    let address: Address = node.address().parse().expect("an address");
    let client = Client::connect(address).await.expect("connected");
    client.create_pool("ports", 3, 0).await.expect("created");
    let options = SessionOptions {
        ttl: std::time::Duration::from_secs(60),
        label: None,
    };
    let session = client.open(options).await.expect("opened");
    let two = Take::new("ports").count(2);
    let mut slots = session.take_slots(two.clone()).await.expect("taken");
    assert_eq!(slots.len(), 2);
    assert!(session.take_slots(two).await.expect("asked").is_empty());
    let one = slots.pop().expect("two");
    session.give_slots(vec![one]).await.expect("given");
    node.kill();
    node.restart();
    let used = async || {
        let shown = client.show_pool("ports").await.expect("shown");
        shown.field("used").and_then(testigo_client::Value::number)
    };
    // Asked again over the resumed session: the one that was kept is claimed, the given one is not.
    let more = session
        .take_slots(Take::new("ports").up_to(9))
        .await
        .expect("taken");
    assert_eq!((more.len(), used().await), (2, Some(3)));
    assert_eq!(slots[0].state(), State::Held);
    // A session that somebody ends loses them, and says so.
    let other: Address = node.address().parse().expect("an address");
    let other = Client::connect(other).await.expect("connected");
    other.end_session(session.id()).await.expect("ended");
    assert_eq!(slots[0].lost().await, Loss::SessionOver);
    assert_eq!(used().await, Some(0));
}
