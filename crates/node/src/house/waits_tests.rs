//! What nodes say of themselves when others are lost: whether they are ready, and what waits for whom.

use testigo_core::{NodeId, Start};

use super::cluster_tests::{World, number};
use crate::health::Health;

fn words(world: &mut World, id: u64) -> Vec<&'static str> {
    let reasons = Health::of(world.house(id), None).reasons();
    reasons.iter().map(|reason| reason.word).collect()
}

#[test]
fn a_member_is_ready_while_it_has_a_lease() {
    let mut world = World::of(3);
    assert!((1..=3).all(|id| words(&mut world, id).is_empty()));
    world.start(4);
    assert_eq!(words(&mut world, 4), ["joining"]);
    world.cut.insert(3);
    world.pass(4_000);
    assert_eq!(words(&mut world, 3), ["cut-off"]);
    assert!((1..=2).all(|id| words(&mut world, id).is_empty()));
    let standing = world.house(3).standing();
    assert!(standing.leader.is_none() && standing.last_leader.is_some());
    world.cut.insert(2);
    world.pass(4_000);
    assert_eq!(words(&mut world, 1), ["cut-off"], "no majority is left");
}

/// The numbers behind a name in an answer.
fn named(answer: &str, name: &str) -> Vec<u64> {
    let lines: Vec<&str> = answer.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0] == name);
    pairs.map(|pair| number(pair[1])).collect()
}

#[test]
fn what_waits_is_said_with_the_time_that_is_left() {
    const TTL_MS: u64 = 20_000;
    let mut world = World::of(3);
    let gate = world.gate_of(1);
    let one = world.client(1);
    let session = number(&world.say(1, one, &format!("SESSION OPEN TTL {TTL_MS}")));
    number(&world.say(1, one, &format!("LOCK {gate}")));
    let (two, three) = (world.client(2), world.client(3));
    assert_eq!(world.say(2, two, "CLUSTER WAITS"), "*0");
    world.kill(1);
    world.until(10_000, |world| {
        !world.house(2).replicated().view().has(NodeId(1), Start(1))
            && !world.house(3).replicated().view().has(NodeId(1), Start(1))
    });
    world.pass(500);
    let seen = world.say(3, three, "CLUSTER WAITS");
    assert!(named(&seen, "session").iter().all(|id| *id == session));
    assert!(!named(&seen, "session").is_empty(), "{seen}");
    assert!(named(&seen, "orphans").iter().all(|orphans| *orphans == 1));
    // All members say the same, of all members.
    assert_eq!(
        named(&world.say(2, two, "CLUSTER WAITS"), "node"),
        named(&seen, "node")
    );
    world.pass(1_000);
    let later = world.say(3, three, "CLUSTER WAITS");
    let changed = |name, change: fn(u64) -> u64| {
        let expected: Vec<u64> = named(&seen, name).into_iter().map(change).collect();
        assert_eq!(named(&later, name), expected, "{name}");
    };
    changed("waits_ms", |ms| ms + 1_000);
    changed("left_ms", |ms| ms - 1_000);
    // It ends when it was said to, and not before.
    let left = named(&later, "left_ms").into_iter().max().unwrap();
    world.pass(left - 500);
    assert_ne!(world.say(2, two, "CLUSTER WAITS"), "*0");
    world.pass(1_500);
    assert_eq!(world.say(2, two, "CLUSTER WAITS"), "*0");
    number(&world.say(2, two, &format!("LOCK {gate} WAIT 0")));
}
