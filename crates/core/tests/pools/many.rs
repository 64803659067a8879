//! Claims without a log, and claims that are too many for one entry of it.

use testigo_core::pool::{Many, PoolAnswer, PoolDefinition, PoolTake, SlotNames};
use testigo_core::{Change, Fence, Limits, Name};

use crate::claims::{close, open, restart, resume, take, user};
use crate::{Node, POOL, World, name};

/// A node that is alone hears claims and tells no log of them.
#[test]
fn a_claim_that_no_log_remembers_takes_a_slot_from_nobody() {
    let mut world = World::new(2, 3, 0);
    let (holder, liar) = (open(&mut world, 0, 11), open(&mut world, 0, 12));
    let has = take(&mut world, 0, holder).remove(0);
    restart(&mut world, 0);
    let slot: u32 = has.slot.parse().unwrap();
    let node = &mut world.nodes[0];
    let claims = [(holder, has.fence), (liar, Fence(has.fence.0 + 1))];
    for (session, fence) in claims {
        let claim = [(name(), slot, fence)];
        node.desk.resume(session, &claim, &node.replicated);
    }
    assert_eq!(user(&world, 0, &has.slot), Some((holder, has.fence)));
}

/// What a node says of a session that has moved fits into entries of the log, and only the last says that it is all.
#[test]
fn many_claims_are_several_entries() {
    let mut world = World::new(2, 15_000, 0);
    let session = open(&mut world, 0, 11);
    let node = &mut world.nodes[0];
    let all = PoolTake {
        pool: POOL,
        many: Many::UpTo(5_000),
        label: None,
        wait_ms: None,
    };
    let taken = node.desk.take(world.now, &node.replicated, session, all);
    assert!(matches!(taken, Ok(PoolAnswer::Taken(taken)) if taken.len() == 5_000));
    world.pass_on(0);
    let home = world.log.head.session(session).unwrap().home.index;
    let before = world.log.entries.len();
    let moved = Change::MoveSession { session, home };
    world.nodes[1].under_way.push(moved);
    world.settle();
    let said = world.log.entries[before..].iter();
    let said: Vec<(usize, bool)> = said
        .filter_map(|entry| match &entry.1 {
            Change::ClaimSlots { claims, all, .. } => Some((claims.len(), *all)),
            _ => None,
        })
        .collect();
    assert_eq!(said, [(2_000, false), (2_000, false), (1_000, true)]);
    assert_eq!(world.log.head.unsaid(), &Default::default());
    resume(&mut world, 1, session, &[]);
    world.settle();
    let node = &world.nodes[0];
    let view = node.desk.view(&node.replicated, POOL, 100).unwrap();
    assert!(view.slots.is_empty(), "all are given back");
}

#[test]
fn all_pools_together_have_so_many_slots() {
    let mut world = World::new(2, 3, 0);
    let create = |slots, number: u32| Change::CreatePool {
        pool: Name::new(&format!("p{number}")).unwrap(),
        definition: Box::new(PoolDefinition {
            slots: SlotNames::Numbered(slots),
            free_low: 0,
        }),
    };
    const LARGEST: u32 = 1 << 20;
    for number in 0..15 {
        world.log.append(None, create(LARGEST, number));
    }
    let head = &world.log.head;
    assert_eq!(head.pools().iter().len(), 16);
    let refused = head.check(&create(LARGEST, 15)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "LIMIT the existing pools have 15728643 slots, and the limit pool_slots is 16777216: 1048576 more are too many"
    );
    assert_eq!(head.check(&create(LARGEST, 14)), Ok(()), "it is there");
    assert_eq!(head.check(&create(LARGEST - 3, 15)), Ok(()));
}

/// Nobody waits for very many slots at once: a take has a limit, and what a session leaves behind comes back in parts.
#[test]
fn very_many_slots_are_taken_and_come_back_in_parts() {
    const MOST: usize = Limits::SLOTS_AT_ONCE;
    let mut world = World::new(2, 75_000, 0);
    let session = open(&mut world, 0, 11);
    let take = |world: &mut World, many| {
        let node = &mut world.nodes[0];
        let take = PoolTake {
            pool: POOL,
            many,
            label: None,
            wait_ms: None,
        };
        node.desk.take(world.now, &node.replicated, session, take)
    };
    let refused = take(&mut world, Many::Exactly(MOST as u32 + 1)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "LIMIT a take of 10001 slots; the limit slots_at_once is 10000: take them in parts"
    );
    for count in [MOST, MOST, 5_000] {
        let taken = take(&mut world, Many::UpTo(75_000));
        assert!(matches!(taken, Ok(PoolAnswer::Taken(taken)) if taken.len() == count));
    }
    close(&mut world, 0, session);
    let now = world.now;
    let node = &mut world.nodes[0];
    let used = |node: &Node| node.desk.view(&node.replicated, POOL, 0).unwrap().used;
    assert_eq!(used(node), 15_000);
    for left in [5_000, 0] {
        assert!(node.desk.next_deadline().is_some_and(|due| due <= now));
        node.desk.expire(now, &node.replicated);
        assert_eq!(used(node), left);
    }
    assert_eq!(node.desk.next_deadline(), None);
    let names: Vec<String> = (0..=MOST).map(|slot| slot.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let given = node.desk.give(now, &node.replicated, session, POOL, &names);
    let refused = given.unwrap_err().to_string();
    assert!(refused.starts_with("LIMIT 10001 slots; the limit slots_at_once is"));
}
