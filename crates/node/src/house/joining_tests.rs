//! Newcomers that are killed at each step of joining, and start again with their directories.

use testigo_core::{Admission, Newcomer};

use super::cluster_tests::{World, number};

/// A newcomer's directory, and what it asks with if the log has not let it in.
fn ask_on(world: &mut World, newcomer: &Option<Newcomer>) -> bool {
    let asks = newcomer
        .clone()
        .map(|newcomer| world.house(1).wants_to_join(newcomer));
    asks.is_none_or(|admitted| admitted == Ok(Admission::Known))
}

/// Joins node 2 and kills it after it has worked on its log this often; then it starts again and must become a member.
/// Whether it was one before it was killed.
fn joins_again(mut world: World, steps: usize) -> bool {
    let newcomer = world.start_joining(2).unwrap();
    world.stops = Some((2, steps));
    let mut ready = false;
    for _ in 0..200 {
        if world.stops == Some((2, 0)) {
            break;
        }
        world.pass(testigo_engine::TICK_MS);
        ask_on(&mut world, &newcomer);
        ready = world.house(2).check_joined().is_ok() && world.house(2).acts();
        if ready {
            break;
        }
    }
    world.kill(2);
    world.stops = None;
    let newcomer = world.start_joining(2);
    let newcomer = newcomer.unwrap_or_else(|error| panic!("after {steps} steps: {error}"));
    world.until(30_000, |world| {
        let asked = ask_on(world, &newcomer);
        assert!(!world.house(2).is_stopping(), "after {steps} steps");
        asked && world.house(2).check_joined().is_ok() && world.house(2).acts()
    });
    let client = world.client(2);
    number(&world.say(2, client, "LOCK a"));
    ready
}

/// Until a newcomer was killed after each of its steps.
fn at_each_step(world: impl Fn() -> World) {
    let steps = (0..2_000).find(|steps| joins_again(world(), *steps));
    let steps = steps.expect("a newcomer that becomes a member");
    assert!(steps > 10, "{steps} steps are too few to be all");
}

fn founder() -> World {
    let mut world = World::new();
    world.start(1);
    world.until(1_000, |world| world.house(1).acts());
    world
}

#[test]
fn a_newcomer_killed_at_any_step_joins_with_its_directory() {
    at_each_step(founder);
}

/// The log tells it of the removal of its number before it tells it that it was let in again.
#[test]
fn a_newcomer_with_a_number_that_was_removed_does_so_too() {
    at_each_step(|| {
        let mut world = founder();
        let newcomer = world.start_joining(2).unwrap();
        world.until(20_000, |world| {
            ask_on(world, &newcomer) && world.house(2).check_joined().is_ok()
        });
        let admin = world.client(1);
        assert_eq!(world.say(1, admin, "CLUSTER REMOVE 2"), "+OK");
        world.until(20_000, |world| {
            world.house(1).standing().voters == [1] && world.house(1).acts()
        });
        world.kill(2);
        world.forget(2);
        world
    });
}
