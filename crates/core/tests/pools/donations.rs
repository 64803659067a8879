//! What nodes are told of donations, and of takes that have waited.

use testigo_core::NodeId;
use testigo_core::pool::{Many, PoolAnswer, PoolTake};

use crate::{POOL, World};

#[test]
fn every_node_hears_of_a_donation_and_a_served_wait_begins_when_it_is_served() {
    let mut world = World::new(1, 9, 0);
    world.now = 5_000;
    let want = |world: &mut World, number: u64, count: u32, wait_ms: Option<u64>| {
        let (now, node) = (world.now, &mut world.nodes[0]);
        node.desk.expire(now, &node.replicated);
        let take = PoolTake {
            pool: POOL,
            many: Many::Exactly(count),
            label: None,
            wait_ms,
        };
        let session = World::session(node, number);
        let answer = node.desk.take(now, &node.replicated, session, take);
        if let Ok(PoolAnswer::Waiting(ticket)) = answer {
            let wait = (session, None);
            world.clients.waits.insert((NodeId(1), ticket), wait);
        }
        world.pass_on(0);
        session
    };
    // More than the three that the node owns.
    let first = want(&mut world, 1, 7, Some(60_000));
    world.settle();
    let heard = world.nodes.iter().map(|node| {
        let donations = node.desk.donations();
        let donations = donations.map(|donation| (donation.from.0, donation.to.0, donation.slots));
        donations.collect::<Vec<_>>()
    });
    let heard: Vec<Vec<(u64, u64, u32)>> = heard.collect();
    assert!(heard.iter().all(|one| *one == heard[0]), "{heard:?}");
    assert!(heard[0].iter().all(|(from, to, _)| *from != 1 && *to == 1));
    let node = &world.nodes[0];
    let received = node.desk.view(&node.replicated, POOL, 0).unwrap().received;
    let told: u32 = heard[0].iter().map(|(.., slots)| slots).sum();
    assert_eq!(u64::from(told), received);
    assert!(told >= 4, "it had three, and has seven");
    // What comes back when a session ends is taken at that time, not at the beginning of all times.
    world.now = 6_000;
    want(&mut world, 2, 9, Some(60_000));
    let node = &mut world.nodes[0];
    let waiting = node.desk.view(&node.replicated, POOL, 10).unwrap().waits;
    assert_eq!(
        (waiting[0].since, waiting[0].many),
        (6_000, Many::Exactly(9))
    );
    world.now = 7_000;
    let (now, node) = (world.now, &mut world.nodes[0]);
    node.desk.expire(now, &node.replicated);
    world.clients.held.clear();
    node.desk.end(first, &node.replicated);
    world.pass_on(0);
    world.settle();
    let node = &world.nodes[0];
    let view = node.desk.view(&node.replicated, POOL, 10).unwrap();
    assert_eq!((view.takes, view.gives, view.used), (16, 7, 9));
    assert!(
        view.slots.iter().all(|taken| taken.since == 7_000),
        "{view:?}"
    );
}

/// Takes at a node and gives back, a thousand times, in each way in which a take can be asked for.
fn pairs(world: &mut World, at: usize) {
    let (now, labels) = (world.now, world.labels);
    let node = &mut world.nodes[at];
    let session = World::session(node, 1);
    for pair in 0..1_000 {
        let take = PoolTake {
            pool: POOL,
            many: [Many::Exactly(1), Many::UpTo(1)][pair % 2],
            label: (labels && pair % 3 == 0).then_some("most"),
            wait_ms: (pair % 5 == 0).then_some(1_000),
        };
        let taken = node.desk.take(now, &node.replicated, session, take);
        let Ok(PoolAnswer::Taken(taken)) = taken else {
            panic!("{taken:?}");
        };
        let slot = &*taken[0].slot;
        let given = node
            .desk
            .give(now, &node.replicated, session, POOL, &[slot]);
        assert_eq!(given, Ok(None));
        assert!(!node.desk.has_out(), "{:?}", node.desk.take_out());
    }
}

#[test]
fn a_take_and_give_pair_at_a_node_that_owns_free_slots_sends_nothing() {
    // An odd seed gives the slots labels.
    for (seed, free_low) in [(1, 0), (1, 2), (2, 0), (2, 2), (2, 3)] {
        // Each node owns four, and has at least three free in the middle of a pair.
        let mut world = World::new(seed, 12, free_low);
        // A node that begins asks for what it lacks before it has counted all its slots.
        for at in 0..3 {
            world.pass_on(at);
        }
        world.settle();
        let entries = world.log.entries.len();
        for at in 0..3 {
            pairs(&mut world, at);
            world.pass_on(at);
            assert_eq!(world.nodes[at].under_way, []);
        }
        world.settle();
        assert_eq!(world.log.entries.len(), entries);
        // One who wants more than a node owns is heard of.
        let node = &mut world.nodes[0];
        let take = PoolTake {
            pool: POOL,
            many: Many::Exactly(5),
            label: None,
            wait_ms: Some(1_000),
        };
        let session = World::session(node, 1);
        let waits = node.desk.take(world.now, &node.replicated, session, take);
        assert!(matches!(waits, Ok(PoolAnswer::Waiting(_))), "{waits:?}");
        assert!(node.desk.has_out());
    }
}
