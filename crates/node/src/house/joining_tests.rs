//! Newcomers that are killed at each step of joining, and start again with their directories.

use testigo_core::{Admission, Newcomer};
use testigo_engine::{MESSAGE_BYTES_MAX, TICK_MS};

use super::cluster_tests::{World, number};

/// A long body of a job.
const BODY_BYTES: usize = 32 << 10;

/// Asks again, if it still joins. Whether the log has it.
fn ask_on(world: &mut World, newcomer: &Option<Newcomer>) -> bool {
    let asks = newcomer
        .clone()
        .map(|newcomer| world.house(1).wants_to_join(newcomer));
    asks.is_none_or(|admitted| admitted == Ok(Admission::Known))
}

/// Joins node 2 and kills it after this many steps; then it starts again and must become a member.
/// Whether it was one before it was killed.
fn joins_again(mut world: World, steps: usize) -> bool {
    let newcomer = world.start_joining(2).unwrap();
    world.stops = Some((2, steps));
    let mut ready = false;
    for _ in 0..200 {
        if world.stops == Some((2, 0)) {
            break;
        }
        world.pass(TICK_MS);
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
        // More than one message carries, so that it may know the one without the other.
        let mut done = |command: &str| {
            let mut told = world.say(1, admin, command);
            world.until(5_000, |world| {
                told += &world.hear(1, admin);
                !told.is_empty()
            });
            told
        };
        assert_eq!(done("FLOW APPLY f \"in -> [q] -> out\""), "+OK");
        let body = "x".repeat(BODY_BYTES);
        for job in 0..2 * MESSAGE_BYTES_MAX / BODY_BYTES as u64 {
            number(&done(&format!("JOB CREATE f/q job-{job} {body}")));
        }
        world
    });
}
