//! Pools on a node that is alone: beside the wire, embedded, and across a restart.

mod support;

use std::thread;

use support::{Client, House, Value};
use testigo_core::Word;
use testigo_core::pool::{Many, PoolDefinition, PoolTake, SlotNames};
use testigo_node::{ClusterConfig, Config, ConfigError, Node};

fn take(many: Many, wait_ms: Option<u64>) -> PoolTake<'static> {
    PoolTake {
        pool: "ports",
        many,
        label: None,
        wait_ms,
    }
}

fn create(node: &Node, slots: u32) {
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(slots),
        free_low: 0,
    };
    let created = node.create_pool("ports", definition).unwrap();
    created.wait().unwrap();
}

fn line(client: &mut Client, line: &str) -> Value {
    let words: Vec<&str> = line.split(' ').collect();
    client.call(&words)
}

fn count(client: &mut Client, what: &str) -> i64 {
    line(client, "POOL SHOW ports").at(what).int()
}

#[test]
fn a_connection_and_a_thread_share_a_pool() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    create(node, 3);
    let mut client = house.client();
    assert_eq!(line(&mut client, "POOL TAKE ports COUNT 2").list().len(), 4);
    let session = node.session().unwrap();
    let nothing = session.take_slots(take(Many::Exactly(2), None));
    assert_eq!(nothing, Ok(Vec::new()));
    let taken = session.take_slots(take(Many::UpTo(2), None)).unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].slot, "2");
    let others = session.give_slots("ports", &["0"]);
    assert!(others.is_err(), "it is another's");
    thread::scope(|scope| {
        let waits = scope.spawn(|| session.take_slots(take(Many::Exactly(2), Some(60_000))));
        while node.pool("ports").unwrap().waiting == 0 {
            thread::yield_now();
        }
        // What a connection had comes back with its end.
        drop(client);
        assert_eq!(waits.join().unwrap().unwrap().len(), 2);
    });
    assert_eq!(node.pool("ports").unwrap().used, 3);
    session.give_slots("ports", &["2"]).unwrap();
    drop(session);
    assert_eq!(node.pool("ports").unwrap().free, 3);
}

#[test]
fn what_a_session_had_waits_for_it_across_a_restart() {
    let mut house = House::open();
    create(house.node.as_ref().unwrap(), 3);
    let mut holder = house.client();
    let session = line(&mut holder, "SESSION OPEN TTL 60000").int();
    let taken = line(&mut holder, "POOL TAKE ports").clone();
    let fence = taken.list()[1].int();
    house.restart();
    let mut client = house.client();
    // Nobody knows what it has, so nobody gets anything.
    assert_eq!(count(&mut client, "free"), 0);
    assert_eq!(line(&mut client, "POOL TAKE ports"), Value::Nil);
    let mut holder = house.client();
    let resume = format!("SESSION RESUME {session} SLOTS 1 ports 0 {fence}");
    line(&mut holder, &resume);
    assert_eq!(count(&mut client, "free"), 2);
    let others = line(&mut client, "POOL TAKE ports UPTO 3");
    assert_eq!(others.list().len(), 4);
    assert!(others.list()[1].int() > fence, "fences rise with a restart");
    line(&mut holder, "SESSION CLOSE");
    assert_eq!(count(&mut client, "free"), 1);
}

#[test]
fn a_resume_that_is_read_late_does_nothing() {
    let house = House::open();
    create(house.node.as_ref().unwrap(), 3);
    let mut gone = house.client();
    let session = line(&mut gone, "SESSION OPEN TTL 60000").int();
    line(&mut gone, "POOL TAKE ports");
    let mut holder = house.client();
    let resume = format!("SESSION RESUME {session} SERIAL 2 SLOTS 0");
    line(&mut holder, &resume);
    let fence = line(&mut holder, "POOL TAKE ports").list()[1].int();
    let mut late = house.client();
    for serial in [1, 2] {
        let resume = format!("SESSION RESUME {session} SERIAL {serial} SLOTS 0");
        let refused = line(&mut late, &resume).to_string();
        assert!(refused.contains("STALE"), "{refused}");
        assert!(refused.contains("the next one is above 2"), "{refused}");
    }
    assert_eq!(count(&mut late, "used"), 1);
    // The one after it is told which slots are this node's own.
    let resume = format!("SESSION RESUME {session} SERIAL 3 SLOTS 1 ports 0 {fence}");
    let resumed = line(&mut late, &resume).to_string();
    assert!(resumed.contains("slots"), "{resumed}");
    assert_eq!(count(&mut late, "used"), 1);
}

#[test]
fn a_pool_with_withheld_slots_is_not_deleted() {
    let mut house = House::open();
    create(house.node.as_ref().unwrap(), 3);
    let mut holder = house.client();
    let session = line(&mut holder, "SESSION OPEN TTL 60000").int();
    line(&mut holder, "POOL TAKE ports");
    house.restart();
    let mut client = house.client();
    let refused = line(&mut client, "POOL DELETE ports").to_string();
    assert!(refused.contains("3 in use at node 1"), "{refused}");
    let mut holder = house.client();
    line(&mut holder, &format!("SESSION RESUME {session} SLOTS 0"));
    line(&mut holder, "SESSION CLOSE");
    assert_eq!(line(&mut client, "POOL DELETE ports").to_string(), "+OK");
}

#[test]
fn an_embedded_program_deletes_no_pool_in_use() {
    let house = House::open();
    let node = house.node.as_ref().unwrap();
    create(node, 3);
    let session = node.session().unwrap();
    let taken = session.take_slots(take(Many::Exactly(1), None)).unwrap();
    let refused = node.delete_pool("ports").unwrap().wait().unwrap_err();
    assert_eq!(refused.word, Word::Busy);
    assert!(
        refused.to_string().contains("in use at node 1"),
        "{refused}"
    );
    session.give_slots("ports", &[&taken[0].slot]).unwrap();
    node.delete_pool("ports").unwrap().wait().unwrap();
    let none = node.delete_pool("ports").unwrap().wait().unwrap_err();
    assert_eq!(none.word, Word::NoPool);
    create(node, 2);
    let again = session.take_slots(take(Many::Exactly(2), None)).unwrap();
    assert!(again.iter().all(|again| again.fence > taken[0].fence));
}

#[test]
#[cfg(not(feature = "corosync"))]
fn a_build_without_corosync_says_how_to_build_with_it() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::embedded(data.path());
    config.corosync = Some(testigo_node::CorosyncConfig {
        group: "testigo".into(),
        members: vec![1],
    });
    let refused = Node::start(config).expect_err("there is no Corosync in it");
    let refused = refused.to_string();
    assert!(refused.contains("--features corosync"), "{refused}");
}

#[test]
fn a_corosync_group_has_members_and_is_not_for_a_cluster() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::embedded(data.path());
    let group = |members: &[u32]| testigo_node::CorosyncConfig {
        group: "testigo".into(),
        members: members.to_vec(),
    };
    config.corosync = Some(group(&[]));
    assert_eq!(config.check(), Err(ConfigError::CorosyncGroup));
    config.corosync = Some(group(&[1, 2, 3]));
    assert_eq!(config.check(), Ok(()));
    config.cluster = Some(ClusterConfig::new(1, "127.0.0.1:7700"));
    assert_eq!(config.check(), Err(ConfigError::CorosyncInCluster));
}
