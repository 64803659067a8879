//! How many takes wait, when their time is over, and how they end.

use testigo_core::pool::{Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames, SlotTaken};
use testigo_core::{Change, Limits, Name, Refusal, Stamp, Ticket};

use crate::{POOL, World};

const OTHER: &str = "other";

/// Two pools, all of whose slots at node 1 somebody has.
fn two_pools() -> World {
    let mut world = World::new(1, 3, 0);
    let definition = PoolDefinition {
        slots: SlotNames::Numbered(3),
        free_low: 0,
    };
    let create = Change::CreatePool {
        pool: Name::new(OTHER).unwrap(),
        definition: Box::new(definition),
    };
    world.log.append(None, create);
    world.settle();
    for pool in [POOL, OTHER] {
        let taken = take(&mut world, pool, 100, 0);
        assert!(matches!(taken, Ok(PoolAnswer::Taken(taken)) if taken.len() == 1));
    }
    world
}

fn take(world: &mut World, pool: &str, number: u64, wait_ms: u64) -> Result<PoolAnswer, Refusal> {
    let (now, node) = (world.now, &mut world.nodes[0]);
    let take = PoolTake {
        pool,
        many: Many::Exactly(1),
        label: None,
        wait_ms: Some(wait_ms),
    };
    let session = World::session(node, number);
    node.desk.take(now, &node.replicated, session, take)
}

fn wait(world: &mut World, pool: &str, number: u64, wait_ms: u64) -> Ticket {
    match take(world, pool, number, wait_ms) {
        Ok(PoolAnswer::Waiting(ticket)) => ticket,
        other => panic!("it must wait: {other:?}"),
    }
}

fn refused(answer: Result<PoolAnswer, Refusal>) -> String {
    answer.expect_err("it is beyond the limit").to_string()
}

fn answers(world: &mut World) -> Vec<(Ticket, Vec<SlotTaken>)> {
    world.nodes[0].desk.take_out().answers
}

#[test]
fn one_session_waits_for_so_many_takes() {
    let mut world = two_pools();
    let tickets: Vec<Ticket> = (0..1_000)
        .map(|at| wait(&mut world, [POOL, OTHER][at % 2], 1, 1_000))
        .collect();
    assert_eq!(
        refused(take(&mut world, POOL, 1, 1_000)),
        "LIMIT the limit waits_per_session of 1000 is reached; give something back and try again"
    );
    wait(&mut world, POOL, 2, 1_000);
    let node = &mut world.nodes[0];
    assert!(node.desk.cancel(tickets[7], &node.replicated));
    assert!(!node.desk.cancel(tickets[7], &node.replicated));
    wait(&mut world, POOL, 1, 1_000);
}

#[test]
fn so_many_takes_wait_for_all_pools_of_a_node() {
    let mut world = two_pools();
    let limits = Limits {
        waiters: 2,
        ..Limits::default()
    };
    world.nodes[0].desk.set_limits(&limits);
    wait(&mut world, POOL, 1, 1_000);
    let second = wait(&mut world, OTHER, 2, 1_000);
    assert_eq!(
        refused(take(&mut world, POOL, 3, 1_000)),
        "LIMIT the limit waiters of 2 is reached; give something back and try again"
    );
    // Whoever waits no longer makes room: a pool that is gone, too.
    let delete = Change::DeletePool {
        pool: Name::new(OTHER).unwrap(),
    };
    let node = &mut world.nodes[0];
    let applied = node.replicated.apply(Stamp::default(), &delete).unwrap();
    node.desk.follow(0, true, &node.replicated, &applied);
    assert_eq!(answers(&mut world), [(second, vec![])]);
    wait(&mut world, POOL, 3, 1_000);
}

#[test]
fn waits_end_by_their_time_by_a_word_and_with_their_session() {
    let mut world = two_pools();
    let [first, second, third] =
        [(POOL, 1, 90), (OTHER, 1, 50), (POOL, 2, 50)].map(|(pool, number, wait_ms)| {
            // The order in which they come is not that in which their time is over.
            wait(&mut world, pool, number, wait_ms)
        });
    let fourth = wait(&mut world, POOL, 3, 500);
    let node = &mut world.nodes[0];
    assert_eq!(node.desk.next_deadline(), Some(50));
    node.desk.expire(50, &node.replicated);
    let over = answers(&mut world);
    assert_eq!(over, [(second, vec![]), (third, vec![])]);
    let node = &mut world.nodes[0];
    assert_eq!(node.desk.next_deadline(), Some(90));
    let [one, two] = [1, 2].map(|number| World::session(node, number));
    assert!(node.desk.has(one) && !node.desk.has(two));
    node.desk.end(one, &node.replicated);
    assert!(!node.desk.has(one));
    node.desk
        .cancel_all(&[first, fourth].into_iter().collect(), &node.replicated);
    assert_eq!(node.desk.next_deadline(), None);
    assert_eq!(answers(&mut world), [(first, vec![]), (fourth, vec![])]);
}
