//! Nodes that wait for the same few slots take turns.

use testigo_core::NodeId;

use crate::World;
use crate::labels::{give_back, wait_for};

/// How often a slot comes back until node 3 has one, while node 1 has all slots and ever more waits of its own.
fn returns_until_served(seed: u64, waits: u64) -> usize {
    let mut world = World::new(seed, 6, 0);
    wait_for(&mut world, 0, 100, None, 6);
    assert_eq!(world.clients.held.len(), 6);
    for number in 0..waits {
        wait_for(&mut world, 0, number, None, 1);
    }
    wait_for(&mut world, 2, 1, None, 1);
    for returns in 1..40 {
        give_back(&mut world, "0");
        let mut held = world.clients.held.values();
        if held.any(|held| held.2 == NodeId(3)) {
            return returns;
        }
        wait_for(&mut world, 0, waits + returns as u64, None, 1);
    }
    panic!("it waits for ever");
}

#[test]
fn a_node_whose_takes_never_stop_waiting_lets_others_have_their_turn() {
    // Without labels, and with.
    for seed in [2, 1] {
        for waits in [1, 2, 12] {
            let returns = returns_until_served(seed, waits);
            assert!(returns <= 3, "{returns} for {waits} waits, seed {seed}");
        }
    }
}
