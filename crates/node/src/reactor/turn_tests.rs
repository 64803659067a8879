//! Turns of a node with sockets.

use crate::config::Config;
use crate::house::TURN_COST;
use crate::node::Node;
use crate::relay::tests::Client;

#[test]
fn a_long_pipeline_of_one_leaves_turns_for_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let resp = Some("127.0.0.1:0".parse().unwrap());
    let embedded = Config::embedded(dir.path());
    let node = Node::start(Config { resp, ..embedded }).unwrap();
    let address = node.resp_address().unwrap();
    let [mut long, mut short] = [(); 2].map(|()| Client::connect(address));
    for client in [&mut long, &mut short] {
        client.say("PING");
        assert_eq!(client.hear(), "+PONG");
    }
    let pings = 5 * TURN_COST as usize;
    // Both have said everything before the node serves the first word.
    node.shared.enter(|_| {
        long.say(&vec!["PING"; pings].join("\r\n"));
        short.say("STATUS");
    });
    while short.hear() != "commands_ever" {}
    let served: u64 = short.hear()[1..].parse().unwrap();
    // It may have come a turn later, because the node was told of the long one alone.
    assert!(
        served <= 2 + 2 * TURN_COST,
        "{served} of {pings} were served before"
    );
    for _ in 0..pings {
        assert_eq!(long.hear(), "+PONG");
    }
    node.stop().unwrap();
}
