//! Sessions that went elsewhere: what they waited for where they were, and what they have of a node that was removed for good.

use testigo_core::pool::{Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames, SlotTaken};
use testigo_core::{Change, Name, NodeId, SessionId};

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

fn waiting(world: &World, at: usize) -> u32 {
    let node = &world.nodes[at];
    node.desk.view(&node.replicated, POOL, 10).unwrap().waiting
}

#[test]
fn what_it_does_not_name_comes_back_where_a_snapshot_tells_of_its_move() {
    let mut world = World::new(2, 9, 0);
    let session = open(&mut world, 0, 11);
    let [named, unnamed] = [(); 2].map(|()| take(&mut world, 0, session).remove(0));
    takes_all_and_waits(&mut world, 0, session);
    world.nodes[0].cut = true;
    resume(&mut world, 1, session, &[&named]);
    world.nodes[0].cut = false;
    world.restore(0);
    world.settle();
    let has = user(&world, 0, &named.slot);
    assert_eq!((in_use(&world, 0), has), (1, Some((session, named.fence))));
    assert_eq!(waiting(&world, 0), 0);
    let other = open(&mut world, 0, 12);
    let again = take(&mut world, 0, other).remove(0);
    assert!(again.slot != unnamed.slot || again.fence > unnamed.fence);
}

#[test]
fn a_session_that_has_ended_waits_no_longer_where_a_snapshot_says_so() {
    let mut world = World::new(2, 3, 0);
    let [session, other] = [11, 12].map(|number| open(&mut world, 0, number));
    let all = takes_all_and_waits(&mut world, 0, other);
    let node = &mut world.nodes[0];
    let wait = PoolTake {
        pool: POOL,
        many: Many::Exactly(1),
        label: None,
        wait_ms: Some(600_000),
    };
    let waits = (node.desk).take(world.now, &node.replicated, session, wait);
    assert!(matches!(waits, Ok(PoolAnswer::Waiting(_))), "{waits:?}");
    world.nodes[0].cut = true;
    close(&mut world, 1, session);
    world.nodes[0].cut = false;
    world.restore(0);
    assert_eq!(waiting(&world, 0), 1);
    assert_eq!(in_use(&world, 0), all.len() as u32);
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

#[test]
fn so_it_does_where_a_snapshot_tells_of_the_pool_too() {
    let mut world = World::new(2, 3, 0);
    let [session, first] = [(1, 11), (0, 12)].map(|(at, number)| open(&mut world, at, number));
    take(&mut world, 0, first);
    world.nodes[0].cut = true;
    let pool = Name::new("others").unwrap();
    world.nodes[1].under_way.push(Change::CreatePool {
        pool: pool.clone(),
        definition: Box::new(PoolDefinition {
            slots: SlotNames::Numbered(3),
            free_low: 0,
        }),
    });
    world.settle();
    let others = PoolTake {
        pool: "others",
        many: Many::UpTo(3),
        label: None,
        wait_ms: None,
    };
    let node = &mut world.nodes[1];
    let taken = node.desk.take(world.now, &node.replicated, session, others);
    let Ok(PoolAnswer::Taken(mut taken)) = taken else {
        panic!("{taken:?}");
    };
    let has = taken.remove(0);
    let home = world.log.head.session(session).unwrap().home.index;
    world.nodes[2].under_way.push(Change::ResumeSession {
        session,
        home,
        serial: None,
        slots: Some(vec![(pool, has.slot.clone(), has.fence)]),
    });
    world.settle();
    world.nodes[1].cut = true;
    world.leave_out(1);
    let (node, address) = (world.nodes[1].id, None);
    world.log.append(None, Change::Address { node, address });
    world.nodes[0].cut = false;
    world.restore(0);
    let node = &mut world.nodes[0];
    let free = node.desk.take(world.now, &node.replicated, first, others);
    let Ok(PoolAnswer::Taken(free)) = free else {
        panic!("{free:?}");
    };
    assert!(!free.is_empty() && free.iter().all(|free| free.slot != has.slot));
}
