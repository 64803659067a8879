//! The client that deletes a pool is answered when the nodes have voted.

use testigo_core::{Change, Name};

use super::Answers;
use super::client::ClientId;
use super::cluster_tests::World;

/// Three nodes with a pool of three slots, and a client at each.
fn ports() -> (World, [ClientId; 3]) {
    let mut world = World::of(3);
    let clients = [1, 2, 3].map(|id| world.client(id));
    let created = world.say(1, clients[0], "POOL CREATE ports SLOTS 3");
    assert_eq!(created, "+OK");
    (world, clients)
}

/// All nodes vote that nobody uses it.
fn close(world: &mut World, client: ClientId) {
    let pool = Name::new("ports").unwrap();
    let change = Change::ClosePool { pool };
    let house = world.house(1);
    house.submit(change, Answers::Client(client)).unwrap();
    world.settle();
}

#[test]
fn a_pool_is_deleted_at_all_nodes_before_its_client_is_answered() {
    let (mut world, [one, two, _]) = ports();
    assert_eq!(world.say(2, two, "POOL DELETE ports"), "+OK");
    for (id, client) in [(1, one), (2, two)] {
        let gone = world.say(id, client, "POOL TAKE ports");
        assert!(gone.starts_with("-NOPOOL "), "{gone}");
    }
}

#[test]
fn a_slot_that_was_taken_after_its_node_was_asked_keeps_the_pool() {
    let (mut world, [one, _, three]) = ports();
    let taken = world.say(3, three, "POOL TAKE ports");
    assert!(taken.starts_with("*2"), "{taken}");
    close(&mut world, one);
    let kept = world.hear(1, one);
    assert!(
        kept.starts_with("-BUSY pool ports is in use at node 3;"),
        "{kept}"
    );
    let taken = world.say(1, one, "POOL TAKE ports");
    assert!(taken.starts_with("*2"), "{taken}");
}

#[test]
fn nobody_gets_a_slot_before_a_node_that_is_cut_off_is_left_out() {
    let (mut world, [one, two, three]) = ports();
    world.cut.insert(3);
    close(&mut world, one);
    assert_eq!(world.hear(1, one), "");
    let refused = world.say(2, two, "POOL TAKE ports");
    assert!(refused.starts_with("-BUSY "), "{refused}");
    let mut kept = String::new();
    world.until(120_000, |world| {
        kept.push_str(&world.hear(1, one));
        !kept.is_empty()
    });
    let why = "-BUSY pool ports was not deleted: the cluster changed meanwhile";
    assert!(kept.starts_with(why), "{kept}");
    for (id, client) in [(2, two), (3, three)] {
        let taken = world.say(id, client, "POOL TAKE ports");
        assert!(taken.starts_with("*2"), "{taken}");
    }
}
