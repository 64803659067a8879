//! Sessions that went elsewhere: what they waited for where they were, and what they have of a node that was removed for good.

use testigo_core::pool::{Many, PoolAnswer, PoolTake, SlotTaken};
use testigo_core::{Change, NodeId, SessionId};

use crate::claims::{close, open, restart, resume, take, user};
use crate::{POOL, World};

/// All that is free at a node, and then what it waits for.
fn takes_all_and_waits(world: &mut World, at: usize, session: SessionId) -> Vec<SlotTaken> {
    let node = &mut world.nodes[at];
    let take = |wait_ms| PoolTake {
        pool: POOL,
        many: match wait_ms {
            None => Many::UpTo(3),
            Some(_) => Many::Exactly(1),
        },
        label: None,
        wait_ms,
    };
    let all = (node.desk).take(world.now, &node.replicated, session, take(None));
    let Ok(PoolAnswer::Taken(all)) = all else {
        unreachable!("it does not wait");
    };
    let waits = (node.desk).take(world.now, &node.replicated, session, take(Some(600_000)));
    assert!(matches!(waits, Ok(PoolAnswer::Waiting(_))), "{waits:?}");
    world.pass_on(at);
    all
}

fn in_use(world: &World, at: usize) -> u32 {
    let node = &world.nodes[at];
    node.desk.view(&node.replicated, POOL, 10).unwrap().used
}

#[test]
fn a_session_that_moves_waits_no_longer_where_it_was() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = takes_all_and_waits(&mut world, 0, session);
    assert_eq!(in_use(&world, 0), has.len() as u32);
    // What it gives up with its move does not go to what it waited for.
    resume(&mut world, 1, session, &[]);
    assert_eq!(in_use(&world, 0), 0);
    let waiting = |world: &World| {
        let node = &world.nodes[0];
        node.desk.view(&node.replicated, POOL, 10).unwrap().waiting
    };
    assert_eq!(waiting(&world), 0);
}

/// A session has the slot of node 0, lives on at node 1, and node 0 is removed.
fn removed() -> (World, SessionId, SlotTaken) {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    resume(&mut world, 1, session, &[&has]);
    world.nodes[0].cut = true;
    world.leave_out(0);
    world.settle();
    let (node, address) = (NodeId(1), None);
    world.log.append(None, Change::Address { node, address });
    (world, session, has)
}

fn stays_until_it_is_given(mut world: World, session: SessionId, has: &SlotTaken) {
    let others = [(1, 12), (2, 13), (1, 14), (2, 15)];
    let others = others.map(|(at, number)| (at, open(&mut world, at, number)));
    let all = |world: &mut World| -> Vec<SlotTaken> {
        let each = others
            .iter()
            .flat_map(|(at, session)| take(world, *at, *session));
        each.collect()
    };
    let taken = all(&mut world);
    assert!(
        taken.iter().all(|taken| taken.slot != has.slot),
        "{taken:?}"
    );
    let owner = (1..3).find(|at| user(&world, *at, &has.slot) == Some((session, has.fence)));
    assert!(owner.is_some(), "it is nobody else's");
    close(&mut world, 1, session);
    let again = all(&mut world);
    let again = again.iter().find(|taken| taken.slot == has.slot);
    assert!(again.is_some_and(|taken| taken.fence > has.fence));
}

#[test]
fn a_slot_of_a_removed_node_stays_with_a_session_that_lives_on() {
    let (mut world, session, has) = removed();
    world.settle();
    stays_until_it_is_given(world, session, &has);
}

#[test]
fn so_it_does_where_a_snapshot_tells_of_the_removal() {
    let (mut world, session, has) = removed();
    world.restore(1);
    world.restore(2);
    world.settle();
    stays_until_it_is_given(world, session, &has);
}

#[test]
fn so_it_does_when_whoever_got_it_starts_again() {
    let (mut world, session, has) = removed();
    world.settle();
    restart(&mut world, 2);
    resume(&mut world, 2, session, &[&has]);
    restart(&mut world, 1);
    resume(&mut world, 1, session, &[&has]);
    stays_until_it_is_given(world, session, &has);
}
