//! Pools in houses of a cluster: sessions that move with slots, and nodes that are removed.

use std::collections::BTreeSet;

use testigo_core::{NodeId, Start};

use super::ClientId;
use super::cluster_tests::{World, number};

/// A cluster with a pool of nine slots, and a session at node 1 that has some of them.
fn with_slots(ttl_ms: u64, count: u32) -> (World, ClientId, u64, String) {
    let mut world = World::of(3);
    let one = world.client(1);
    assert_eq!(world.say(1, one, "POOL CREATE seats SLOTS 9"), "+OK");
    let session = number(&world.say(1, one, &format!("SESSION OPEN TTL {ttl_ms}")));
    let told = world.say(1, one, &format!("POOL TAKE seats COUNT {count}"));
    let words: Vec<&str> = told.lines().collect();
    assert_eq!(words[0], format!("*{}", 2 * count), "{told}");
    let pairs = words[1..].chunks(3);
    let named = pairs.map(|pair| format!(" seats {} {}", pair[1], number(pair[2])));
    let named = format!("SLOTS {count}{}", named.collect::<String>());
    (world, one, session, named)
}

#[test]
fn a_connection_whose_session_has_moved_is_closed() {
    for waits in ["", "POOL TAKE seats COUNT 9 WAIT 60000"] {
        let (mut world, one, session, named) = with_slots(8_000, 1);
        if !waits.is_empty() {
            world.begin(1, one, waits);
            world.settle();
        }
        let three = world.client(3);
        let told = world.say(3, three, &format!("SESSION RESUME {session} {named}"));
        assert!(told.contains("claims"), "{told}");
        let closing = |world: &mut World| {
            let client = world.house(1).connections.client(one);
            client.is_none_or(|client| client.dismissed)
        };
        assert!(closing(&mut world), "{waits:?}");
        let view = world.say(3, three, "POOL SHOW seats");
        assert!(view.contains("free"), "{view}");
    }
}

#[test]
fn a_node_is_not_removed_while_sessions_may_use_its_slots() {
    let (mut world, _, session, named) = with_slots(30_000, 3);
    let [two, three, other] = [2, 3, 2].map(|node| world.client(node));
    let living = world.say(2, two, "CLUSTER REMOVE 1");
    assert!(living.starts_with("-BUSY"), "{living}");
    world.kill(1);
    world.until(10_000, |world| {
        !world.house(3).replicated().view().has(NodeId(1), Start(1))
    });
    let early = world.say(2, two, "CLUSTER REMOVE 1");
    assert!(early.starts_with("-BUSY"), "{early}");
    let told = world.say(3, three, &format!("SESSION RESUME {session} {named}"));
    assert!(told.contains("claims"), "{told}");
    assert_eq!(world.say(2, two, "CLUSTER REMOVE 1"), "+OK");
    // Everybody can use the six slots of the others; the three stay with the session.
    let rest = world.say(2, other, "POOL TAKE seats COUNT 6 WAIT 5000");
    assert!(rest.starts_with("*12"), "{rest}");
    assert_eq!(world.say(2, other, "POOL TAKE seats"), "$-1");
    assert_eq!(world.say(3, three, "SESSION CLOSE"), "+OK");
    let more = world.say(2, other, "POOL TAKE seats COUNT 3 WAIT 5000");
    assert!(more.starts_with("*6"), "{more}");
}

/// Whether a connection is there, and has been told nothing.
fn goes_on(world: &mut World, client: ClientId) -> bool {
    let known = world.house(2).connections.client(client);
    known.is_some_and(|client| !client.dismissed) && world.hear(2, client).is_empty()
}

#[test]
fn only_who_has_nothing_but_slots_outlives_the_lease() {
    let mut world = World::of(3);
    let [locks, slots, locked] = [(); 3].map(|()| world.client(2));
    assert_eq!(world.say(2, slots, "POOL CREATE seats SLOTS 9"), "+OK");
    for (client, gate) in [(locks, "a"), (locked, "b")] {
        let fence = world.say(2, client, &format!("LOCK {gate} WAIT 0"));
        assert!(fence.starts_with(':'), "{fence}");
    }
    assert_eq!(world.say(2, locked, "UNLOCK b"), "+OK");
    for client in [locks, slots, locked] {
        let told = world.say(2, client, "POOL TAKE seats");
        assert!(told.starts_with("*2"), "{told}");
    }
    world.cut = BTreeSet::from([1, 2, 3]);
    world.pass(5_000);
    assert!(!goes_on(&mut world, locks));
    world.cut.clear();
    world.until(20_000, |world| world.house(2).acts());
    world.pass(1_000);
    for client in [slots, locked] {
        assert!(goes_on(&mut world, client));
        let told = world.say(2, client, "POOL TAKE seats WAIT 5000");
        let slot = told.lines().nth(2).unwrap_or_else(|| panic!("{told}"));
        let give = format!("POOL GIVE seats {slot}");
        assert_eq!(world.say(2, client, &give), "+OK");
        let fence = world.say(2, client, "LOCK b WAIT 0");
        assert!(fence.starts_with(':'), "{fence}");
        assert_eq!(world.say(2, client, "UNLOCK b"), "+OK");
    }
}

#[test]
fn a_connections_session_that_somebody_ends_gives_its_slots_back() {
    let mut world = World::of(3);
    let [ended, other] = [(); 2].map(|()| world.client(2));
    assert_eq!(world.say(2, ended, "POOL CREATE seats SLOTS 9"), "+OK");
    assert!(world.say(2, ended, "LOCK gate WAIT 0").starts_with(':'));
    assert!(
        world
            .say(2, ended, "POOL TAKE seats UPTO 9")
            .starts_with("*6")
    );
    let session = world.house(2).identity(ended);
    let end = format!("SESSION END {}", session.number());
    assert_eq!(world.say(2, other, &end), "+OK");
    assert!(world.say(2, ended, "POOL TAKE seats").starts_with("-STALE"));
    let told = world.say(2, other, "POOL TAKE seats COUNT 9 WAIT 5000");
    assert!(told.starts_with("*18"), "{told}");
}

#[test]
fn what_a_session_has_that_ran_out_during_a_cut_is_withheld() {
    let mut world = World::of(3);
    let [keeps, waits] = [(); 2].map(|()| world.client(2));
    assert_eq!(world.say(2, keeps, "POOL CREATE seats SLOTS 9"), "+OK");
    let opened = world.say(2, keeps, "SESSION OPEN TTL 2000");
    assert!(opened.starts_with(':'), "{opened}");
    assert!(world.say(2, keeps, "POOL TAKE seats").starts_with("*2"));
    let all = world.say(2, waits, "POOL TAKE seats COUNT 8 WAIT 5000");
    assert!(all.starts_with("*16"), "{all}");
    world.begin(2, waits, "POOL TAKE seats WAIT 60000");
    world.cut = BTreeSet::from([1, 2, 3]);
    for _ in 0..60 {
        world.pass(100);
        // Its node answers it all the time.
        assert!(!world.say(2, keeps, "PING").is_empty());
    }
    world.cut.clear();
    world.until(20_000, |world| {
        let house = world.house(2);
        let now = house.now();
        // As soon as the lease is back, before anything else is done.
        house.acts() && house.judge_silence(now)
    });
    world.pass(1_500);
    assert!(world.say(2, keeps, "POOL TAKE seats").starts_with("-STALE"));
    assert_eq!(world.hear(2, waits), "");
    world.pass(1_500);
    assert!(world.hear(2, waits).starts_with("*2"));
}

#[test]
fn a_lost_node_has_its_slots_until_it_is_back_or_removed_for_good() {
    let mut world = World::of(3);
    let two = world.client(2);
    // Of two slots, one node owns none.
    for (pool, slots) in [("seats", 9), ("few", 2)] {
        let create = format!("POOL CREATE {pool} SLOTS {slots}");
        assert_eq!(world.say(2, two, &create), "+OK");
    }
    let three = world.client(3);
    let shown = world.say(3, three, "POOL SHOW few");
    assert!(shown.contains("owned\r\n:0"), "{shown}");
    let shows = |world: &mut World, pool: &str, words: &str| {
        let shown = world.say(2, two, &format!("POOL SHOW {pool}"));
        shown.contains(words).then_some(()).ok_or(shown)
    };
    assert!(shows(&mut world, "seats", "out of reach and").is_err());
    world.kill(3);
    world.until(10_000, |world| {
        !world.house(2).replicated().view().has(NodeId(3), Start(1))
    });
    let owns = "node 3 is out of reach and owns 3 of the slots, which may be in use there; they come back with it, or when it \
                has been removed for good: testigo cluster remove 3";
    assert_eq!(shows(&mut world, "seats", owns), Ok(()));
    let none = "node 3 is out of reach, and owns no slot";
    assert_eq!(shows(&mut world, "few", none), Ok(()));
    let all = "POOL TAKE seats COUNT 7";
    assert_eq!(world.say(2, two, all), "$-1", "three are the lost node's");
    assert_eq!(world.say(2, two, "CLUSTER REMOVE 3"), "+OK");
    assert!(shows(&mut world, "seats", "node 3 is out of reach").is_err());
    let all = world.say(2, two, "POOL TAKE seats COUNT 9 WAIT 5000");
    assert!(all.starts_with("*18"), "{all}");
}
