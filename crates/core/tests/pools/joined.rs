//! Nodes that come in for the first time, with a view that brings more than them.

use testigo_core::pool::{Desk, Many, PoolAnswer, PoolTake};
use testigo_core::{Address, Change, Limits, Newcomer, NodeId, Replicated, Start};

use crate::labels::{give_back, wait_for};
use crate::{Node, POOL, World};

const NEW: NodeId = NodeId(4);

/// A node that reads the log and is not in yet.
fn newcomer(world: &mut World) {
    let replicated = world.log.head.clone();
    world.nodes.push(Node {
        id: NEW,
        start: Start(1),
        desk: Desk::new(world.now, (NEW, Start(1)), &replicated),
        replicated,
        applied: world.log.entries.len(),
        under_way: Vec::new(),
        sequence: 0,
        cut: false,
    });
}

/// A node that was removed comes back with an empty directory, and reads the log from its beginning.
fn comes_back_empty(world: &mut World, at: usize, start: Start) {
    let (id, replicated) = (world.nodes[at].id, Replicated::new(Limits::default()));
    world.nodes[at] = Node {
        id,
        start,
        desk: Desk::new(world.now, (id, start), &replicated),
        replicated,
        applied: 0,
        under_way: Vec::new(),
        sequence: 0,
        cut: false,
    };
    let address = Address {
        peer: format!("node-{id}:1"),
        client: None,
    };
    let newcomer = Newcomer {
        node: id,
        start,
        token: 1,
        address,
    };
    world.log.append(None, Change::Admit(newcomer));
    world.settle();
}

fn remove(world: &mut World, at: usize) {
    let (node, address) = (world.nodes[at].id, None);
    world.nodes[at].cut = true;
    world.log.append(None, Change::Address { node, address });
}

/// All slots go from node to node; their fences rise.
fn go_round(world: &mut World, nodes: &[usize], slots: u32) {
    for &at in nodes {
        wait_for(world, at, 1, None, slots);
        assert_eq!(world.clients.held.len(), slots as usize, "node {at}");
        while let Some((slot, _)) = world.clients.held.first_key_value() {
            let slot = slot.clone();
            give_back(world, &slot);
        }
    }
}

#[test]
fn a_node_comes_in_beside_others_that_begin_anew() {
    let mut world = World::new(2, 12, 0);
    newcomer(&mut world);
    world.restart(1);
    world.restart(2);
    let members = [(1, 1), (2, 2), (3, 2), (4, 1)];
    world.view(members.map(|(id, start)| (NodeId(id), Start(start))).into());
    world.settle();
    go_round(&mut world, &[3, 0, 3, 1, 2], 12);
}

#[test]
fn a_node_comes_in_with_a_restored_backup() {
    let mut world = World::new(2, 12, 0);
    newcomer(&mut world);
    let before = world.log.head.view().index;
    let restored = Change::View {
        before,
        members: (1..=4).map(|id| (NodeId(id), Start(1))).collect(),
        generation: 1,
    };
    world.log.append(None, restored);
    world.settle();
    go_round(&mut world, &[3, 0, 3, 1, 2], 12);
}

/// Node 1 was alone in the view when it was removed.
fn removed_alone() -> World {
    let mut world = World::new(2, 12, 0);
    world.leave_out(1);
    world.leave_out(2);
    let (node, address) = (NodeId(1), None);
    world.log.append(None, Change::Address { node, address });
    world.nodes[0].cut = true;
    world.settle();
    world
}

#[test]
fn the_slots_of_the_only_one_that_was_in_go_to_whoever_comes_back() {
    let mut world = removed_alone();
    world.restart(1);
    world.restart(2);
    let members = [(2, 2), (3, 2)].map(|(id, start)| (NodeId(id), Start(start)));
    world.view(members.into());
    world.settle();
    go_round(&mut world, &[2, 1, 2], 12);
}

#[test]
fn the_slots_of_the_only_one_that_was_in_go_to_whoever_comes_next() {
    let mut world = removed_alone();
    newcomer(&mut world);
    world.view(vec![(NEW, Start(1))]);
    world.settle();
    for at in [1, 2] {
        world.restart(at);
    }
    let members = [(2, 2), (3, 2), (4, 1)].map(|(id, start)| (NodeId(id), Start(start)));
    world.view(members.into());
    world.settle();
    go_round(&mut world, &[3, 2, 1, 3], 12);
}

#[test]
fn a_number_that_comes_back_is_not_taken_for_whoever_got_its_place() {
    let mut world = World::new(2, 12, 0);
    world.leave_out(0);
    remove(&mut world, 0);
    newcomer(&mut world);
    let members = [(2, 1), (3, 1), (4, 1)];
    world.view(members.map(|(id, start)| (NodeId(id), Start(start))).into());
    world.settle();
    comes_back_empty(&mut world, 0, Start(2));
    let members = [(1, 2), (2, 1), (3, 1), (4, 1)];
    world.view(members.map(|(id, start)| (NodeId(id), Start(start))).into());
    world.settle();
    let all = PoolTake {
        pool: POOL,
        many: Many::UpTo(12),
        label: None,
        wait_ms: None,
    };
    for at in [3, 0] {
        let (now, node) = (world.now, &mut world.nodes[at]);
        let session = World::session(node, 1);
        let taken = node.desk.take(now, &node.replicated, session, all);
        let Ok(PoolAnswer::Taken(taken)) = taken else {
            panic!("{taken:?}");
        };
        world.clients.took(node.id, session, None, &taken);
        world.pass_on(at);
    }
    world.settle();
    while let Some((slot, _)) = world.clients.held.first_key_value() {
        let slot = slot.clone();
        give_back(&mut world, &slot);
    }
    go_round(&mut world, &[0, 3, 0, 1, 2, 3], 12);
}

#[test]
fn a_removed_node_gets_no_slots_before_it_is_left_out() {
    for created in [false, true] {
        let mut world = World::new(2, 12, 0);
        remove(&mut world, 2);
        if created {
            let mut entries = world.log.entries.iter();
            let create = entries.find(|(_, change)| matches!(change, Change::CreatePool { .. }));
            let create = create.unwrap().1.clone();
            let pool = crate::name();
            world.log.append(None, Change::DeletePool { pool });
            world.log.append(None, create);
        }
        // Its lease is not over when another node begins anew.
        world.restart(1);
        world.let_in(1);
        world.settle();
        world.leave_out(2);
        world.settle();
        go_round(&mut world, &[0, 1, 0], 12);
    }
}
