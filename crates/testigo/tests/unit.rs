//! A unit of work through the client: all of it, or nothing and every job in the same hands.

use testigo::node::Node;
use testigo::{Address, Config, Connection, Target, Unit, Word};

const FLOW: &str = "intake -> [orders] -> split -> [parts] -> build\nqueue parts { limit 3 }\n";

#[tokio::test]
async fn a_unit_of_work_is_done_whole_or_not_at_all() {
    let data = tempfile::tempdir().expect("a folder");
    let mut config = Config::embedded(data.path());
    config.resp = Some("127.0.0.1:0".parse().expect("an address"));
    let node = Node::start(config).expect("a node");
    let address: Address = node
        .resp_address()
        .expect("it listens")
        .to_string()
        .parse()
        .expect("an address");
    let target = Target::from(address);
    let mut worker = Connection::open(&target, "worker").await.expect("a node");
    worker
        .say(&["FLOW", "APPLY", "shop", FLOW])
        .await
        .expect("a flow");

    let orders = Unit::new()
        .create("shop/orders", Some("o-1"), b"wheel, frame")
        .create("shop/orders", None, &[0, 255]);
    assert_eq!(worker.carry_out(&orders).await, Ok(vec![1, 2]));
    let queue = ["shop/orders".to_owned()];
    let order = worker
        .take(&queue, None)
        .await
        .expect("an answer")
        .expect("a job");
    let other = worker
        .take(&queue, None)
        .await
        .expect("an answer")
        .expect("a job");
    assert_eq!(other.body, [0, 255]);

    // It does not fit: the first order is still in hand, and no part is there.
    let part = |unit: Unit, name| unit.create("shop/parts", Some(name), b"part");
    let many = part(part(part(Unit::new(), "a"), "b"), "c");
    let refused = many.clone().pass(&order, "shop/parts", None);
    let refused = worker.carry_out(&refused).await.expect_err("it is full");
    assert_eq!(refused.word(), Some(&Word::Full), "{refused}");
    assert!(refused.to_string().contains("command 4"), "{refused}");
    let count = worker.say(&["JOB", "COUNT", "shop/parts"]).await;
    assert_eq!(count.expect("a number").number(), Some(0));

    // What cannot be in a unit at all is refused with its own words.
    let nowhere = many.clone().create("shop/nowhere", None, b"");
    let refused = worker.carry_out(&nowhere).await.expect_err("no such queue");
    assert_eq!(refused.word(), Some(&Word::NoQueue), "{refused}");

    let split = many.delete(&order).give_back(&other, false);
    assert_eq!(worker.carry_out(&split).await, Ok(vec![3, 4, 5]));
    let count = worker.say(&["JOB", "COUNT"]).await;
    assert_eq!(count.expect("a number").number(), Some(4));
    assert_eq!(worker.carry_out(&Unit::new()).await, Ok(vec![]));
    node.stop().expect("a clean stop");
}
