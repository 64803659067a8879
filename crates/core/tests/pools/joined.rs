//! Nodes that come in for the first time, with a view that brings more than them.

use testigo_core::pool::Desk;
use testigo_core::{Change, NodeId, Start};

use crate::labels::{give_back, wait_for};
use crate::{Node, World};

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
