//! The examples of pools, run as their documents say.

use std::process::Command;

use rustix::process::Signal;

use crate::examples::{lines, start};
use crate::running::{Node, installed};

/// Creates the pool of an example, and gives the line that takes from it.
fn prepared(node: &Node, folder: &str) -> String {
    let lines = lines(&format!("{folder}/README.md"));
    let [create, take, ..] = &lines[..] else {
        panic!("two lines at least: {lines:?}");
    };
    assert_eq!(start(node, folder, create).end().code, 0);
    take.clone()
}

/// The word behind another in a line.
fn behind<'a>(line: &'a str, word: &str) -> &'a str {
    let (_, rest) = line.split_once(word).expect(word);
    rest.trim_start().split(' ').next().expect("a word")
}

#[test]
fn services_have_ports_of_their_own() {
    let node = Node::start();
    let take = prepared(&node, "ports");
    let mut services =
        ["web", "mail", "news"].map(|name| start(&node, "ports", &take.replace("web", name)));
    let ports = services.each_mut().map(|service| {
        let line = service.line();
        let port: u16 = behind(&line, "port").parse().expect("a port");
        port
    });
    assert!(ports.iter().all(|port| (20_000..20_100).contains(port)));
    assert_ne!((ports[0], ports[1]), (ports[1], ports[2]));
    assert_ne!(ports[0], ports[2]);
    assert_eq!(node.json("pool show ports")["used"], 3);
    for service in services {
        assert_eq!(service.end().code, 0);
    }
    assert_eq!(node.json("pool show ports")["free"], 100);
}

#[test]
fn an_address_moves_when_who_announces_it_is_killed() {
    let node = Node::start();
    let take = prepared(&node, "addresses").replace("--ttl 5s", "--ttl 1s");
    let announce = || start(&node, "addresses", &take);
    let [mut first, mut second] = [announce(), announce()];
    let [one, two] = [first.line(), second.line()];
    assert_ne!(behind(&one, "announcing"), behind(&two, "announcing"));
    let mut third = announce();
    node.until("pool show addresses", |pool| pool["waiting"] == 1);
    first.signal(Signal::KILL);
    let moved = third.line();
    assert_eq!(behind(&moved, "announcing"), behind(&one, "announcing"));
    let fence = |line: &str| -> u64 { behind(line, "fence").parse().expect("a fence") };
    assert!(fence(&moved) > fence(&one));
    assert_eq!([second.end().code, third.end().code], [0, 0]);
}

#[test]
fn an_address_is_announced_on_a_device_of_its_own_network() {
    let mut unshare = Command::new("unshare");
    unshare.args(["--map-root-user", "--net", "ip", "link"]);
    if !installed("unshare and ip, with the right to use them", &mut unshare) {
        return;
    }
    let node = Node::start();
    let take = prepared(&node, "addresses");
    let apart = "-- env DEVICE=lo unshare --map-root-user --net ./announce.sh";
    let take = take.replace("-- ./announce.sh", apart);
    // It has to reach the node before it is apart, so only the command is.
    let ended = start(&node, "addresses", &take).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(
        ended.stdout.contains("inet 192.0.2.10/32"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("announcing 192.0.2.10"),
        "{}",
        ended.stdout
    );
}

#[test]
fn test_runs_share_a_farm_and_get_all_machines_or_none() {
    let node = Node::start();
    let take = prepared(&node, "machines");
    let ended = start(&node, "machines", &take).end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout, "amber make check\nbirch make check\n");
    let most = take.replace("--count 2", "--count 4");
    assert_eq!(
        start(&node, "machines", &most).end().code,
        2,
        "there are three"
    );
    let failing = take.replace("-- ", "-- env REMOTE=false ");
    assert_eq!(start(&node, "machines", &failing).end().code, 1);
    assert_eq!(node.json("pool show machines")["free"], 3);
}

#[test]
fn a_test_run_gets_a_machine_with_the_label_that_it_needs() {
    let node = Node::start();
    let lines = lines("machines/README.md");
    let [_, _, create, take] = &lines[..] else {
        panic!("four lines: {lines:?}");
    };
    assert_eq!(start(&node, "machines", create).end().code, 0);
    let ended = start(&node, "machines", take).end();
    assert_eq!(ended.stdout, "amber make check\n", "{}", ended.stderr);
    let any = take.replace("--where big ", "");
    let ended = start(&node, "machines", &any).end();
    assert_eq!(ended.stdout, "cedar make check\n", "the one without labels");
    let misspelt = take.replace("--where big", "--where bigg");
    let ended = start(&node, "machines", &misspelt).end();
    assert_eq!(ended.code, 2);
    assert!(
        ended.stderr.contains("there are big, cuda"),
        "{}",
        ended.stderr
    );
}
