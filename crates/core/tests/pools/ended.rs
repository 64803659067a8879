//! Sessions that the majority ends while their node is cut off: for as long as their clients may believe that node, nobody else
//! gets what they took there, whatever becomes of its process.

use testigo_core::pool::{
    EndedElsewhere, Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames, SlotTaken,
};
use testigo_core::{Change, Name, SessionId, Word};

use crate::claims::{close, open, restart, take, user};
use crate::{POOL, World};

const TTL_MS: u64 = 60_000;

/// A session has the only slot of node 0, which is cut off; the majority leaves the node out and ends the session.
fn ended_while_cut_off() -> (World, SlotTaken) {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    world.nodes[0].cut = true;
    world.leave_out(0);
    let home = world.log.head.session(session).unwrap().home.index;
    world.nodes[1]
        .under_way
        .push(Change::CloseSession { session, home });
    world.settle();
    (world, has)
}

fn comes_back(world: &mut World) {
    world.nodes[0].cut = false;
    world.let_in(0);
    world.settle();
}

fn pass(world: &mut World, ms: u64) {
    world.now += ms;
    world.pass_time();
    world.settle();
}

/// All that somebody else gets at node 0, which has what nobody believes to have.
fn taken_by_another(world: &mut World, number: u64) -> Vec<SlotTaken> {
    let other = open(world, 0, number);
    take(world, 0, other)
}

/// Nobody has the slot of before yet. After the rest of the time somebody has it, and the log has forgotten the end.
fn nobody_has_it_before_all_is_over(world: &mut World, has: &SlotTaken, left: u64) {
    pass(world, left - 1);
    let early = taken_by_another(world, 12);
    assert!(
        early.iter().all(|taken| taken.slot != has.slot),
        "{early:?}"
    );
    pass(world, 1);
    let mut later = (13..16).flat_map(|number| taken_by_another(world, number));
    let again = later.find(|taken| taken.slot == has.slot);
    assert!(again.is_some_and(|taken| taken.fence > has.fence));
    drop(later);
    assert_eq!(world.log.head.ended_elsewhere(), &EndedElsewhere::default());
}

#[test]
fn a_node_that_comes_back_withholds_it() {
    let (mut world, has) = ended_while_cut_off();
    comes_back(&mut world);
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn a_process_that_begins_before_its_node_is_back_withholds_it() {
    let (mut world, has) = ended_while_cut_off();
    pass(&mut world, 1_000);
    world.restart(0);
    pass(&mut world, 1_000);
    comes_back(&mut world);
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS - 1_000);
}

#[test]
fn a_process_that_begins_after_its_node_is_back_withholds_it() {
    let (mut world, has) = ended_while_cut_off();
    comes_back(&mut world);
    pass(&mut world, TTL_MS - 1);
    restart(&mut world, 0);
    // The process before may have answered until its end.
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn so_does_the_one_after_that() {
    let (mut world, has) = ended_while_cut_off();
    comes_back(&mut world);
    for _ in 0..2 {
        restart(&mut world, 0);
        pass(&mut world, TTL_MS - 1);
    }
    nobody_has_it_before_all_is_over(&mut world, &has, 1);
}

#[test]
fn a_snapshot_says_so_too() {
    let (mut world, has) = ended_while_cut_off();
    world.nodes[0].cut = false;
    world.restart(0);
    world.restore(0);
    comes_back(&mut world);
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn so_does_one_to_a_process_that_awaits_the_session() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    restart(&mut world, 0);
    assert_eq!(
        taken_by_another(&mut world, 10),
        [],
        "others must be asked first"
    );
    world.nodes[0].cut = true;
    let home = world.log.head.session(session).unwrap().home.index;
    let close = Change::CloseSession { session, home };
    world.nodes[1].under_way.push(close);
    world.settle();
    world.nodes[0].cut = false;
    world.restore(0);
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn a_pool_that_came_meanwhile_does_not_make_a_node_forget_what_it_gave_out() {
    let (mut world, has) = ended_while_cut_off();
    pass(&mut world, 10 * TTL_MS);
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(3),
        free_low: 0,
    };
    world.nodes[1].under_way.push(Change::CreatePool {
        pool: Name::new("others").unwrap(),
        definition: Box::new(definition),
    });
    world.settle();
    // It reads all of this before it is in again.
    world.nodes[0].cut = false;
    world.settle();
    comes_back(&mut world);
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn a_process_that_reads_late_that_its_node_has_waited_withholds_nothing_more() {
    let (mut world, has) = ended_while_cut_off();
    comes_back(&mut world);
    world.now += TTL_MS;
    world.pass_time();
    // The log has it, and the next process begins with what was applied before.
    world.submit(0);
    world.restart(0);
    world.let_in(0);
    world.settle();
    assert_eq!(taken_by_another(&mut world, 12)[0].slot, has.slot);
}

#[test]
fn a_session_that_somebody_else_ends_at_its_own_node_is_remembered() {
    for asked in [true, false] {
        let mut world = World::new(2, 3, 0);
        let session = open(&mut world, 0, 11);
        let has = take(&mut world, 0, session).remove(0);
        let home = world.log.head.session(session).unwrap().home.index;
        world.nodes[0].under_way.push(Change::EndSession {
            session,
            home,
            asked,
        });
        world.submit(0);
        // Its node does not hear of it any more, and its client does not either unless it has asked for it.
        world.nodes[0].cut = true;
        world.leave_out(0);
        world.settle();
        world.restart(0);
        comes_back(&mut world);
        match asked {
            true => assert_eq!(taken_by_another(&mut world, 12)[0].slot, has.slot),
            false => nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS),
        }
    }
}

#[test]
fn a_session_that_ran_out_gets_nothing_while_its_end_is_on_its_way() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    let node = &mut world.nodes[0];
    let wait = PoolTake {
        pool: POOL,
        many: Many::Exactly(3),
        label: None,
        wait_ms: Some(1_000),
    };
    let waits = node.desk.take(0, &node.replicated, session, wait);
    assert!(matches!(waits, Ok(PoolAnswer::Waiting(_))), "{waits:?}");
    node.desk.run_out(session, 0, &node.replicated);
    let answers = node.desk.take_out().answers;
    assert!(matches!(&answers[..], [(_, taken)] if taken.is_empty()));
    let late = node.desk.take(0, &node.replicated, session, wait);
    assert_eq!(late.unwrap_err().word, Word::Stale);
    // It has what it has until the log has spoken.
    assert_eq!(user(&world, 0, &has.slot), Some((session, has.fence)));
    close(&mut world, 0, session);
    assert_eq!(user(&world, 0, &has.slot), None);
}

#[test]
fn nothing_is_remembered_of_a_session_that_its_own_node_ends() {
    let mut world = World::new(2, 3, 0);
    let session: SessionId = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    close(&mut world, 0, session);
    assert_eq!(world.log.head.ended_elsewhere(), &EndedElsewhere::default());
    restart(&mut world, 0);
    assert_eq!(taken_by_another(&mut world, 12)[0].slot, has.slot);
}

#[test]
fn a_session_that_ran_out_and_was_taken_up_again_gets_slots() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let node = &mut world.nodes[0];
    node.desk.run_out(session, 0, &node.replicated);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[0].under_way.push(moved);
    world.settle();
    assert_eq!(take(&mut world, 0, session).len(), 1);
}

#[test]
fn a_session_of_an_earlier_start_of_the_process_is_withheld_though_its_node_acts() {
    let mut world = World::new(2, 3, 0);
    let session = open(&mut world, 0, 11);
    let has = take(&mut world, 0, session).remove(0);
    world.nodes[0].cut = true;
    world.leave_out(0);
    world.settle();
    // It is in again under another start before the session is judged.
    comes_back(&mut world);
    let home = world.log.head.session(session).unwrap().home.index;
    let close = Change::CloseSession { session, home };
    world.nodes[1].under_way.push(close);
    world.settle();
    nobody_has_it_before_all_is_over(&mut world, &has, TTL_MS);
}

#[test]
fn a_removed_node_leaves_nothing_to_be_waited_for() {
    let (mut world, _) = ended_while_cut_off();
    assert_ne!(world.log.head.ended_elsewhere(), &EndedElsewhere::default());
    let session = open(&mut world, 1, 21);
    world.nodes[1].cut = true;
    world.leave_out(1);
    let home = world.log.head.session(session).unwrap().home.index;
    let moved = Change::MoveSession { session, home };
    world.nodes[2].under_way.push(moved);
    world.settle();
    assert_ne!(world.log.head.unsaid(), &Default::default());
    for at in [0, 1] {
        let (node, address) = (world.nodes[at].id, None);
        world.log.append(None, Change::Address { node, address });
    }
    assert_eq!(world.log.head.unsaid(), &Default::default());
    assert_eq!(world.log.head.ended_elsewhere(), &EndedElsewhere::default());
}
