//! Members that come back: after a crash, and after their disk was full.

use testigo_core::Start;
use testigo_engine::{Delivery, DiskError, FlushError, ProposeError};

use super::cluster_tests::World;
use super::joining::Pause;
use crate::health::Absence;

#[test]
fn a_node_that_crashed_says_that_it_waits_to_be_let_in() {
    let mut world = World::of(3);
    for _ in 0..2 {
        world.kill(2);
        world.start(2);
        world.until(10_000, |world| {
            let waits = Absence::of(world.house(2)).and_then(Absence::waits_for);
            let waits = waits.unwrap_or_default();
            waits.contains("after 1, 2, 4 … 60 s")
        });
        world.until(10_000, |world| world.house(2).acts());
    }
    world.kill(2);
    world.start(2);
    let told = |world: &mut World| world.house(2).member().unwrap().pause == Pause::Told;
    world.until(10_000, told);
    world.until(20_000, |world| world.house(2).acts());
    assert_eq!(world.house(2).member().unwrap().pause, Pause::None);
}

#[test]
fn a_member_whose_disk_is_full_goes_on_with_its_next_start() {
    let mut world = World::of(3);
    let client = world.client(2);
    world.begin(2, client, "DECIDE d mine");
    let unknown = world.house(2).submissions.tags();
    assert_eq!(unknown.len(), 1);
    let error = FlushError(DiskError::Full("there is no room".into()));
    world.house(2).deliver(Delivery::Stopped { error, unknown });
    let heard = world.hear(2, client);
    assert!(heard.starts_with("-UNKNOWN "), "{heard}");
    let house = world.house(2);
    assert!(house.must_start_anew().is_some() && !house.is_stopping());
    assert!(!house.acts(), "its clients are sent away");
    world.anew.insert(2);
    world.start_again(2);
    assert_eq!(world.house(2).start(), Start(2));
}

#[test]
fn what_waits_for_room_at_other_nodes_is_answered() {
    let mut world = World::of(3);
    let client = world.client(2);
    world.begin(2, client, "DECIDE d mine");
    let unknown = world.house(2).submissions.tags();
    let error = ProposeError::DisksFull {
        node: 3,
        free_bytes: 5,
    };
    let stuck = Delivery::Stuck { unknown, error };
    world.house(2).deliver(stuck);
    let heard = world.hear(2, client);
    assert!(
        heard.starts_with("-UNKNOWN ") && heard.contains("node 3"),
        "{heard}"
    );
    // There was room after all.
    world.settle();
    let other = world.client(1);
    let decided = world.say(1, other, "DECIDE d another");
    assert!(decided.contains("mine"), "{decided}");
}
