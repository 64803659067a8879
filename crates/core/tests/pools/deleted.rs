//! Pools that are deleted: nobody is given a slot while the nodes vote, and whoever is cut off meanwhile gives none either.

use testigo_core::pool::{PoolAnswer, PoolTake, Shelf, Shelves};
use testigo_core::{Change, NodeId, Refusal, Replicated, SessionId, Word};

use crate::claims::{open, restart, take};
use crate::labels::{give_back, wait_for};
use crate::{Broken, Many, POOL, World, name};

/// What the random runs must find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    /// A pool goes when all nodes have answered once that nobody uses it there.
    ByOldAnswers,
    /// A node gives slots out after its vote.
    GivesAfterItsVote,
    /// A vote counts whichever deletion of the pool it was about.
    AnyVoteCounts,
}

/// The pools, as a node reads them.
pub(super) struct Read<'a>(pub(super) &'a Replicated, pub(super) Option<Broken>);

impl Shelves for Read<'_> {
    fn shelf(&self, pool: &str) -> Option<Shelf<'_>> {
        let mut shelf = self.0.shelf(pool)?;
        shelf.closing &= self.1 != Some(Broken::Deletes(Fault::GivesAfterItsVote));
        Some(shelf)
    }

    fn replicated(&self) -> Option<&Replicated> {
        Some(self.0)
    }
}

/// A change comes into the log.
pub(super) fn submitted(broken: Option<Broken>, head: &Replicated, change: &mut Change) {
    if broken == Some(Broken::Deletes(Fault::AnyVoteCounts))
        && let Change::PoolVote { pool, began, .. } = change
    {
        *began = head.closings().began(pool).unwrap_or(*began);
    }
}

fn close() -> Change {
    Change::ClosePool { pool: name() }
}

fn ask(world: &mut World, at: usize, session: SessionId) -> Result<PoolAnswer, Refusal> {
    let (now, node) = (world.now, &mut world.nodes[at]);
    let take = PoolTake {
        pool: POOL,
        many: Many::Exactly(1),
        label: None,
        wait_ms: None,
    };
    let answer = node.desk.take(now, &node.replicated, session, take);
    world.pass_on(at);
    answer
}

fn is_refused(answer: Result<PoolAnswer, Refusal>) -> bool {
    answer.is_err_and(|refusal| refusal.word == Word::Busy)
}

/// It reads the log to its end.
fn read(world: &mut World, at: usize) {
    while world.nodes[at].applied < world.log.entries.len() {
        world.apply(at);
    }
}

/// As that, and says what it has to say.
fn read_and_say(world: &mut World, at: usize) {
    read(world, at);
    while !world.nodes[at].under_way.is_empty() {
        world.submit(at);
    }
}

fn is_there(world: &World) -> bool {
    world.log.head.pools().get(POOL).is_some()
}

/// A slot can be taken at every node.
fn is_open(world: &mut World) -> bool {
    world.settle();
    (0..3).all(|at| {
        let session = World::session(&world.nodes[at], 77);
        let taken = ask(world, at, session);
        let node = &mut world.nodes[at];
        node.desk.end(session, &node.replicated);
        world.pass_on(at);
        matches!(taken, Ok(PoolAnswer::Taken(taken)) if taken.len() == 1)
    })
}

#[test]
fn a_pool_that_nobody_uses_goes_with_the_last_vote() {
    let mut world = World::new(2, 3, 0);
    world.nodes[1].under_way.push(close());
    world.settle();
    assert!(!is_there(&world));
    assert_eq!(world.log.head.closings().began(POOL), None);
}

#[test]
fn a_node_that_is_cut_off_after_its_vote_gives_nothing() {
    let mut world = World::new(2, 3, 0);
    world.log.append(None, close());
    let session = World::session(&world.nodes[0], 1);
    for at in 0..2 {
        read_and_say(&mut world, at);
    }
    world.nodes[0].cut = true;
    assert!(is_refused(ask(&mut world, 0, session)));
    // The others leave it out, and the pool stays.
    world.leave_out(0);
    world.settle();
    assert!(is_there(&world));
    assert!(is_refused(ask(&mut world, 0, session)));
    for at in 1..3 {
        let session = World::session(&world.nodes[at], 1);
        assert!(
            matches!(ask(&mut world, at, session), Ok(PoolAnswer::Taken(taken)) if !taken.is_empty())
        );
    }
    world.nodes[0].cut = false;
    world.let_in(0);
    world.settle();
    let session = World::session(&world.nodes[0], 2);
    assert!(
        matches!(ask(&mut world, 0, session), Ok(PoolAnswer::Taken(taken)) if !taken.is_empty())
    );
}

#[test]
fn a_node_that_does_not_know_that_the_pool_has_gone_gives_nothing_either() {
    let mut world = World::new(2, 3, 0);
    world.log.append(None, close());
    for at in 0..3 {
        read_and_say(&mut world, at);
        world.nodes[0].cut = true;
    }
    assert!(!is_there(&world));
    world.create();
    world.settle();
    let session = World::session(&world.nodes[0], 1);
    assert!(is_refused(ask(&mut world, 0, session)));
    world.nodes[0].cut = false;
    assert!(is_open(&mut world));
}

#[test]
fn a_slot_in_use_keeps_the_pool_and_whoever_waits_is_served_afterwards() {
    let mut world = World::new(2, 3, 0);
    wait_for(&mut world, 2, 1, None, 2);
    wait_for(&mut world, 2, 2, None, 1);
    wait_for(&mut world, 0, 1, None, 1);
    assert_eq!(
        (world.clients.held.len(), world.clients.waits.len()),
        (3, 1)
    );
    world.log.append(None, close());
    for at in 0..2 {
        read_and_say(&mut world, at);
    }
    // Node 3 has not read of it, and gives a slot to node 1, where nobody gets it yet.
    let session = World::session(&world.nodes[2], 1);
    let node = &mut world.nodes[2];
    node.desk.end(session, &node.replicated);
    world.clients.held.retain(|_, held| held.0 != session);
    world.pass_on(2);
    while !world.nodes[2].under_way.is_empty() {
        world.submit(2);
    }
    read(&mut world, 0);
    let node = &world.nodes[0];
    let view = node.desk.view(&node.replicated, POOL, 0).unwrap();
    assert_eq!((view.waiting, view.used), (1, 0));
    assert!(view.free > 0);
    world.settle();
    assert!(is_there(&world));
    assert_eq!(world.log.head.closings().began(POOL), None);
    assert!(world.clients.waits.is_empty());
    assert!(world.clients.held.values().any(|held| held.2 == NodeId(1)));
}

#[test]
fn a_process_that_begins_meanwhile_keeps_the_pool() {
    let mut world = World::new(2, 3, 0);
    world.log.append(None, close());
    for at in 0..2 {
        read_and_say(&mut world, at);
    }
    restart(&mut world, 0);
    assert!(is_there(&world));
    assert!(is_open(&mut world));
}

#[test]
fn a_vote_counts_for_the_deletion_that_it_was_about() {
    let mut world = World::new(2, 3, 0);
    let user = open(&mut world, 2, 11);
    let slot = take(&mut world, 2, user).remove(0).slot;
    world.log.append(None, close());
    // What node 1 says is on its way for long.
    read(&mut world, 0);
    read_and_say(&mut world, 2);
    read(&mut world, 0);
    let session = World::session(&world.nodes[0], 1);
    let taken = ask(&mut world, 0, session);
    assert!(matches!(taken, Ok(PoolAnswer::Taken(taken)) if taken.len() == 1));
    let node = &mut world.nodes[2];
    let given = node.desk.give(0, &node.replicated, user, POOL, &[&slot]);
    assert_eq!(given, Ok(None));
    world.log.append(None, close());
    world.submit(0);
    for at in 1..3 {
        read_and_say(&mut world, at);
    }
    assert!(is_there(&world));
    world.settle();
    assert!(is_there(&world));
    assert_eq!(world.log.head.closings().began(POOL), None);
}

#[test]
fn a_node_votes_that_knows_of_it_from_a_snapshot() {
    let mut world = World::new(2, 3, 0);
    world.log.append(None, close());
    world.restore(0);
    world.settle();
    assert!(!is_there(&world));
}

#[test]
fn slots_out_of_reach_keep_the_pool() {
    let mut world = World::new(2, 3, 0);
    world.nodes[0].cut = true;
    world.leave_out(0);
    let refused = world.log.head.check(&close()).unwrap_err();
    assert_eq!(refused.word, Word::Busy);
    assert!(refused.to_string().contains("node 1"), "{refused}");
    world.log.append(None, close());
    world.settle();
    assert!(is_there(&world));
    // It was removed for good, and its slots are the others'.
    world.log.append(
        None,
        Change::Address {
            node: NodeId(1),
            address: None,
        },
    );
    world.log.append(None, close());
    world.settle();
    assert!(!is_there(&world));
}

#[test]
fn a_removal_ends_the_vote() {
    let mut world = World::new(2, 3, 0);
    world.nodes[0].cut = true;
    world.log.append(None, close());
    world.settle();
    assert!(world.log.head.closings().began(POOL).is_some());
    let (node, address) = (NodeId(1), None);
    world.log.append(None, Change::Address { node, address });
    assert_eq!(world.log.head.closings().began(POOL), None);
    world.settle();
    assert!(is_there(&world));
}

#[test]
fn who_asks_again_meanwhile_begins_nothing() {
    let mut world = World::new(2, 3, 0);
    wait_for(&mut world, 2, 1, None, 1);
    world.log.append(None, close());
    let began = world.log.head.closings().began(POOL);
    world.log.append(None, close());
    assert_eq!(world.log.head.closings().began(POOL), began);
    let slot = world.clients.held.keys().next().unwrap().clone();
    give_back(&mut world, &slot);
    assert!(!is_there(&world));
}

impl World {
    /// Pools come and go.
    fn step_deleting(&mut self, opened: bool) {
        let at = self.chance.below(3) as usize;
        match (self.chance.below(40), is_there(self)) {
            (0, true) => self.delete(at),
            (0..2, false) => self.create(),
            _ => self.step(opened),
        }
    }

    /// All who can give back what they have, and a node is asked to delete the pool.
    fn delete(&mut self, at: usize) {
        for at in 0..3 {
            for number in 0..4 {
                let node = &mut self.nodes[at];
                let session = World::session(node, number);
                self.clients.held.retain(|_, held| held.0 != session);
                self.clients.waits.retain(|_, waits| waits.0 != session);
                node.desk.end(session, &node.replicated);
                self.pass_on(at);
            }
        }
        let unused = |node: &crate::Node| {
            let view = node.desk.view(&node.replicated, POOL, 0);
            !node.cut && view.is_ok_and(|view| view.used == 0)
        };
        let pool = name();
        let change = match self.broken {
            Some(Broken::Deletes(Fault::ByOldAnswers)) if self.nodes.iter().all(unused) => {
                Change::DeletePool { pool }
            }
            Some(Broken::Deletes(Fault::ByOldAnswers)) => return,
            _ => close(),
        };
        self.nodes[at].under_way.push(change);
        // Some are quick.
        for _ in 0..self.chance.below(60) {
            let at = self.chance.below(3) as usize;
            match self.chance.below(20) {
                0 => self.take(at),
                1..10 => self.submit(at),
                _ => self.apply(at),
            }
            self.check();
        }
    }

    fn create(&mut self) {
        let mut entries = self.log.entries.iter();
        let created = entries.find(|(_, change)| matches!(change, Change::CreatePool { .. }));
        let create = created.expect("it was created first").1.clone();
        self.log.append(None, create);
    }
}

/// How many pools were deleted in a random run, or nothing if something went wrong in it.
fn run(seed: u64, fault: Option<Fault>) -> Option<usize> {
    let slots = 3 + (seed % 10) as u32;
    let mut world = World::new(seed, slots, (seed % 3) as u32);
    world.broken = fault.map(Broken::Deletes);
    let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        for _ in 0..600 {
            world.step_deleting(seed % 4 >= 2);
        }
        for node in &mut world.nodes {
            node.cut = false;
        }
        for at in 0..3 {
            world.let_in(at);
        }
        world.settle();
        assert_eq!(world.log.head.closings().began(POOL), None);
        if !is_there(&world) {
            world.create();
        }
        world.calm(slots);
    }));
    let created = world.log.entries.iter();
    let created = created.filter(|(_, change)| matches!(change, Change::CreatePool { .. }));
    ran.ok().map(|()| created.count() - 1)
}

#[test]
fn nobody_has_a_slot_of_a_pool_that_is_deleted() {
    let rounds: u64 = std::env::var("TESTIGO_ROUNDS").map_or(300, |n| n.parse().unwrap());
    let first: u64 = std::env::var("TESTIGO_SEED").map_or(1, |n| n.parse().unwrap());
    let mut deleted = 0;
    for seed in first..first + rounds {
        let ran = run(seed, None);
        deleted += ran.unwrap_or_else(|| panic!("seed {seed}"));
    }
    println!("{deleted} deleted");
    assert!(deleted as u64 > rounds / 4);
}

#[test]
fn a_deletion_that_is_broken_on_purpose_is_found() {
    for fault in [
        Fault::ByOldAnswers,
        Fault::GivesAfterItsVote,
        Fault::AnyVoteCounts,
    ] {
        let found = (1..5_000).find(|seed| run(*seed, Some(fault)).is_none());
        println!("{fault:?}: seed {found:?}");
        assert!(found.is_some(), "{fault:?} is not found");
    }
}
