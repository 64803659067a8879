//! Opened sessions that move without a word of their slots: the node that they leave speaks for them, or nobody gets those slots.

use testigo_core::pool::SlotTaken;
use testigo_core::{Change, SessionId};

use crate::World;
use crate::claims::{close, open, restart, resume, take, user};

#[test]
fn what_a_session_has_is_known_by_the_log_when_it_moves_without_a_word() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.settle();
    restart(&mut world, 0);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

/// A session has moved to node 1 without a word of the slot that it took at node 0, whose process ends at once.
fn moved_without_a_word_before_a_crash() -> (World, SessionId, SlotTaken) {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.submit(1);
    assert_eq!(
        world.log.head.session(session).unwrap().home.node,
        world.nodes[1].id
    );
    restart(&mut world, 0);
    (world, session, has)
}

#[test]
fn what_a_session_has_is_nobodys_when_it_moves_without_a_word_and_its_old_node_crashes() {
    let (mut world, session, has) = moved_without_a_word_before_a_crash();
    let other = open(&mut world, 0, 12);
    assert_eq!(take(&mut world, 0, other), []);
    // It says so where it is now.
    resume(&mut world, 1, session, &[&has]);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
    restart(&mut world, 0);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

#[test]
fn whoever_has_moved_without_a_word_is_no_longer_awaited_when_it_has_ended_or_says_that_it_has_nothing()
 {
    for ends in [false, true] {
        let (mut world, session, has) = moved_without_a_word_before_a_crash();
        let other = open(&mut world, 0, 12);
        match ends {
            true => close(&mut world, 1, session),
            false => resume(&mut world, 2, session, &[]),
        }
        let taken = take(&mut world, 0, other).remove(0);
        assert!(taken.slot != has.slot || taken.fence > has.fence);
        assert_eq!(world.log.head.unsaid(), &Default::default());
    }
}

#[test]
fn a_node_that_has_said_what_a_moved_session_has_awaits_it_no_longer() {
    let mut world = World::new(2, 3, 0);
    // It has nothing, which is said as well.
    let session = open(&mut world, 0, 11);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.settle();
    assert_eq!(world.log.head.unsaid(), &Default::default());
    restart(&mut world, 0);
    let other = open(&mut world, 0, 12);
    assert_eq!(take(&mut world, 0, other).len(), 1);
}

#[test]
fn a_node_that_was_left_out_says_what_sessions_have_there_that_left_meanwhile() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    world.nodes[0].cut = true;
    world.leave_out(0);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.settle();
    // What it says before it is in again counts nowhere.
    world.nodes[0].cut = false;
    world.settle();
    world.let_in(0);
    world.settle();
    assert_eq!(world.log.head.unsaid(), &Default::default());
    let node = &mut world.nodes[1];
    let given = node
        .desk
        .give(0, &node.replicated, session, crate::POOL, &[&has.slot]);
    assert!(given.is_ok_and(|change| change.is_some()));
}

#[test]
fn a_process_does_not_speak_for_the_one_before() {
    let (mut world, session, has) = moved_without_a_word_before_a_crash();
    // It comes here, and goes, without a word.
    for at in [0, 2] {
        let home = world.log.head.session(session).unwrap().home.index;
        let moved = Change::MoveSession { session, home };
        world.nodes[at].under_way.push(moved);
        world.settle();
    }
    let other = open(&mut world, 0, 12);
    assert_eq!(take(&mut world, 0, other), []);
    resume(&mut world, 1, session, &[&has]);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}

#[test]
fn a_process_that_reads_late_what_the_one_before_has_said_awaits_nobody() {
    let mut world = World::new(2, 6, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.submit(1);
    while world.nodes[0].applied < world.log.entries.len() {
        world.apply(0);
    }
    // The log has it, and the next process begins with what was applied before.
    world.submit(0);
    assert_eq!(world.log.head.unsaid(), &Default::default());
    restart(&mut world, 0);
    let other = open(&mut world, 0, 12);
    assert_eq!(take(&mut world, 0, other).len(), 1);
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
}
