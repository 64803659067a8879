//! Pools in a group whose every part goes on by itself: processes that share a pool over a simulated group communication
//! system, which loses at a partition what extended virtual synchrony lets it lose.

#[path = "../pools/labelled.rs"]
mod labelled;
#[path = "../estate/random.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod random;
mod world;

use std::collections::BTreeSet;

use labelled::LABELS;
use random::Random;
use testigo_core::pool::{Many, PoolAnswer, PoolTake};
use testigo_core::{Name, Word};
use world::{NODES, POOL, SLOTS, World};

fn side(nodes: &[u32]) -> BTreeSet<u32> {
    nodes.iter().copied().collect()
}

#[test]
fn a_pool_begins_in_equal_parts_when_all_members_are_there() {
    let mut world = World::new();
    world.start(1);
    world.start(2);
    world.calm();
    let refused = world
        .create(1, POOL, SLOTS, 0)
        .expect_err("node 3 is missing");
    assert_eq!(refused.word, Word::Unavailable);
    assert!(
        refused.to_string().contains("node 3 is out of reach"),
        "{refused}"
    );
    world.start(3);
    world.calm();
    world.create(1, POOL, SLOTS, 0).unwrap();
    world.calm();
    assert_eq!(world.owned(), [4, 4, 4]);
    assert_eq!(world.running(1).answers, [(1, Ok(()))]);
    world.check_whole();
}

#[test]
fn both_sides_of_a_partition_take_and_donate_and_then_merge() {
    let mut world = World::with_pool(0);
    world.cut(&side(&[3]), [0, 0]);
    world.calm();
    for _ in 0..4 {
        assert!(world.take(3, Many::Exactly(1)));
    }
    assert!(
        !world.take(3, Many::Exactly(1)),
        "all of this side are in use"
    );
    assert!(!world.take(1, Many::Exactly(6)));
    world.calm();
    assert!(
        world.take(1, Many::Exactly(6)),
        "2 has donated what 1 asked for"
    );
    world.merge(1, 3);
    world.calm();
    world.check_whole();
}

#[test]
fn a_killed_process_comes_back_with_nothing_and_its_slots_are_shared_anew() {
    let mut world = World::with_pool(0);
    assert!(world.take(3, Many::Exactly(2)));
    world.end(3, false);
    world.calm();
    assert!(!world.take(1, Many::UpTo(12)) || world.running(1).held.len() <= 8);
    world.start(3);
    world.calm();
    world.check_whole();
}

#[test]
fn a_process_that_leaves_gives_its_slots_to_the_others_at_once() {
    let mut world = World::with_pool(0);
    world.end(3, true);
    world.calm();
    let owned = (1..=2).map(|node| {
        let running = world.running(node);
        running
            .desk
            .view(running.group.shelves(), POOL, 0)
            .unwrap()
            .owned
    });
    assert_eq!(owned.sum::<u32>(), SLOTS);
}

#[test]
fn a_pool_begins_anew_when_all_processes_have_ended_and_with_higher_fences() {
    let mut world = World::with_pool(0);
    for node in 1..=NODES {
        assert!(world.take(node, Many::Exactly(4)));
    }
    for node in 1..=NODES {
        world.end(node, false);
    }
    world.start(1);
    world.start(2);
    world.calm();
    assert!(!world.take(1, Many::Exactly(1)), "3 may own something");
    world.start(3);
    world.calm();
    world.check_whole();
    for node in 1..=NODES {
        assert!(
            world.take(node, Many::Exactly(4)),
            "and its fences are above"
        );
    }
}

#[test]
fn a_pool_is_deleted_by_all_and_one_who_missed_it_learns_of_it() {
    let mut world = World::with_pool(0);
    let pool = Name::new(POOL).unwrap();
    world.running(1).group.delete(&pool).unwrap();
    world.pass_on(1);
    world.cut(&side(&[3]), [9, 9]);
    world.calm();
    world.merge(1, 3);
    world.calm();
    for node in 1..=NODES {
        let running = world.running(node);
        assert!(running.desk.view(running.group.shelves(), POOL, 0).is_err());
    }
    assert!(world.create(2, POOL, SLOTS, 1).is_ok());
    world.calm();
    world.check_whole();
}

#[test]
fn a_donation_that_the_donor_never_heard_of_is_not_taken_back() {
    let mut world = World::with_pool(0);
    assert!(world.take(1, Many::Exactly(4)));
    assert!(!world.take(1, Many::Exactly(2)));
    // 2 hears the request and donates; 1 and 3 hear of it, and 2's daemon dies first.
    while world.deliver(2) {}
    while world.deliver(1) {}
    world.kill_daemon(2, 0);
    world.calm();
    assert!(world.take(1, Many::Exactly(1)), "it was donated by 2 or 3");
    world.heal();
    world.check_whole();
}

/// A slot that was taken very often is given its next number; a view may come before that is delivered.
#[test]
fn a_new_number_that_a_view_undoes_repeats_no_fence() {
    let mut world = World::with_pool(0);
    let running = world.running(1);
    let (session, shelves) = (running.session, running.group.shelves());
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(1),
        label: None,
        wait_ms: None,
    };
    let mut last = None;
    while running.desk.take_out().changes.is_empty() {
        let taken = running.desk.take(0, shelves, session, take);
        let Ok(PoolAnswer::Taken(taken)) = taken else {
            panic!("{taken:?}");
        };
        assert!(last < Some(taken[0].fence));
        last = Some(taken[0].fence);
        let given = running.desk.give(0, shelves, session, POOL, &["0"]);
        assert_eq!(given, Ok(None));
    }
    world
        .fences
        .extend(last.map(|fence| ("0".to_owned(), fence)));
    world.cut(&side(&[1]), [0, 0]);
    world.calm();
    assert!(world.take(1, Many::Exactly(4)), "and all fences rise");
}

/// Random takes, gives and faults; TESTIGO_ROUNDS seeds from TESTIGO_SEED on.
#[test]
fn no_slot_is_owned_twice_or_lost_whatever_fails() {
    let number = |name: &str, other: u64| {
        std::env::var(name).map_or(other, |text| text.parse().expect("a number"))
    };
    let rounds = number("TESTIGO_ROUNDS", 2_000);
    let first = number("TESTIGO_SEED", 1);
    let (mut takes, mut donations) = (0, 0);
    let (mut served, mut crossed) = (0, [0, 0]);
    for seed in first..first + rounds {
        let world = random_run(seed, false);
        (takes, donations) = (takes + world.takes, donations + world.donations);
        served += world.labelled_waits;
        crossed = [0, 1].map(|at| crossed[at] + world.crossed[at]);
    }
    println!(
        "{rounds} seeds: {takes} takes, {donations} donations; {served} waits for labels served, {crossed:?} that parts and \
         meetings interrupted"
    );
    assert!(takes > 20 * rounds && donations > rounds);
    assert!(served > rounds && crossed.iter().all(|times| *times > rounds / 2));
}

/// A process that is said to have left, and has not, uses what others were given: a group that believes more than a process's
/// own word is noticed.
#[test]
fn a_daemon_that_lies_is_noticed() {
    let noticed = |seed: &u64| std::panic::catch_unwind(|| random_run(*seed, true)).is_err();
    assert!((1..50).any(|seed| noticed(&seed)));
}

fn random_run(seed: u64, lies: bool) -> World {
    let mut chance = Random::new(seed);
    // In odd seeds slots have labels, and takes wait for some.
    let labels = seed % 2 == 1;
    let mut world = World::with(chance.below(3) as u32, labels);
    world.lies = lies;
    let steps = 200 + chance.below(600);
    let fault_every = 8 + chance.below(60);
    for _ in 0..steps {
        let node = 1 + chance.below(NODES.into()) as u32;
        if chance.below(fault_every) == 0 {
            fault(&mut world, node, &mut chance);
        }
        match chance.below(6) {
            _ if world.stations[&node].running.is_none() => {}
            choice if labels && choice < 3 => use_labels(&mut world, node, &mut chance),
            0 => {
                world.take(node, Many::UpTo(1 + chance.below(3) as u32));
            }
            1 => world.give(node),
            _ => {
                world.deliver(node);
            }
        }
    }
    world.heal();
    world.check_whole();
    if labels {
        world.serve_all();
        world.check_whole();
    }
    world
}

/// Takes with a label or without, at once or after a wait, or gives back; and time goes on.
fn use_labels(world: &mut World, node: u32, chance: &mut Random) {
    world.pass_time(node);
    if chance.below(5) < 2 {
        let held = world.running(node).held.len() as u64;
        return world.give_nth(node, chance.below(held) as usize);
    }
    let label = LABELS.get(chance.below(4) as usize).copied();
    let count = 1 + chance.below(3) as u32;
    let many = match chance.below(2) == 0 || label == Some("rare") {
        true => Many::UpTo(count),
        false => Many::Exactly(count),
    };
    let wait_ms = (chance.below(3) > 0).then(|| 1 + chance.below(200));
    world.take_with(node, many, label, wait_ms);
}

fn fault(world: &mut World, node: u32, chance: &mut Random) {
    let station = &world.stations[&node];
    let (runs, daemon) = (station.running.is_some(), station.daemon);
    let component = world.component(node);
    let other = 1 + chance.below(NODES.into()) as u32;
    match chance.below(6) {
        0 if runs => world.end(node, chance.below(2) == 0),
        1 if !runs => world.start(node),
        2 if daemon => world.kill_daemon(node, chance.below(8)),
        3 if !daemon => world.start_daemon(node),
        4 if component.len() > 1 => {
            world.cut(&side(&[node]), [chance.below(8), chance.below(8)]);
        }
        5 if !component.contains(&other) => world.merge(node, other),
        _ => {}
    }
}
